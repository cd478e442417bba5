//! Parts of grammars that are regular by their kind, as automata.

use std::sync::Arc;

use super::form::{Expression, Node};
use burn_dfa_automata::{ByteDfa, Expr, FastMap, Op};
use burn_dfa_common::{Error, Result, limits::Meter};

/// The automaton of an expression without rules.
///
/// # Errors
/// A limit is exceeded, or an operand is not regular by its kind.
pub(super) fn lower(expression: &Expression, meter: &Meter) -> Result<ByteDfa> {
    Lowering { meter, shared: FastMap::default() }.lower(expression)
}

/// Lowers an expression with shared subexpressions, such as terminals within terminals.
struct Lowering<'m> {
    meter: &'m Meter<'m>,
    /// By address.
    shared: FastMap<*const Expression, Arc<Expr>>,
}

impl Lowering<'_> {
    fn lower(&mut self, expression: &Expression) -> Result<ByteDfa> {
        let meter = self.meter;
        match &expression.0 {
            Node::Regex(regex) => regex.lower(meter),
            Node::Terminal(terminal) => {
                let dfa = self.lower(&terminal.body)?;
                if terminal.lazy { lazy(&dfa, meter) } else { Ok(dfa) }
            }
            Node::And(parts) => {
                let mut parts = parts.iter();
                let Some(first) = parts.next() else { return any_text(meter) };
                let mut all = self.lower(first)?;
                for part in parts {
                    all = all.product(&self.lower(part)?, Op::Intersection, meter)?;
                }
                Ok(all)
            }
            Node::Not(inner) => any_text(meter)?.product(&self.lower(inner)?, Op::Difference, meter),
            _ => self.tree(expression)?.determinize(meter),
        }
    }

    fn tree(&mut self, expression: &Expression) -> Result<Expr> {
        Ok(match &expression.0 {
            Node::Literal(bytes) => Expr::Literals(vec![bytes.clone()]),
            Node::Class(ranges) => Expr::Chars(ranges.clone()),
            Node::Substring(words) => Expr::Run(words.iter().map(|word| word.as_bytes().to_vec()).collect()),
            Node::Sequence(parts) => Expr::Concat(self.trees(parts)?),
            Node::Choice(parts) => Expr::Union(self.trees(parts)?),
            Node::Repeat { inner, min, max } => {
                let pointer = Arc::as_ptr(inner);
                let expr = match self.shared.get(&pointer) {
                    Some(known) => Arc::clone(known),
                    None => {
                        let expr = Arc::new(self.tree(inner)?);
                        self.shared.insert(pointer, Arc::clone(&expr));
                        expr
                    }
                };
                Expr::Repeat { expr, min: *min, max: *max }
            }
            Node::Regex(_) | Node::And(_) | Node::Not(_) | Node::Terminal(_) => {
                Expr::Dfa(Arc::new(self.lower(expression)?))
            }
            Node::Rule(_)
            | Node::Constraint(_)
            | Node::Grammar(_)
            | Node::Counted(_)
            | Node::Bounded(_)
            | Node::Token { .. } => {
                return Err(Error::grammar_as_a_whole(
                    "a terminal, an intersection or a complement holds a rule, a token or another constraint",
                ));
            }
        })
    }

    fn trees(&mut self, parts: &[Expression]) -> Result<Vec<Expr>> {
        parts.iter().map(|part| self.tree(part)).collect()
    }
}

/// The words of a language without a proper prefix in the language.
///
/// # Errors
/// A limit is exceeded.
pub(super) fn lazy(dfa: &ByteDfa, meter: &Meter) -> Result<ByteDfa> {
    // Proper extensions of words.
    let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
    let longer = Expr::Concat(vec![
        Expr::Dfa(Arc::new(dfa.clone())),
        Expr::Repeat { expr: Arc::new(any), min: 1, max: None },
    ]);
    dfa.product(&longer.determinize(meter)?, Op::Difference, meter)
}

/// The words of a language up to a number of characters.
///
/// # Errors
/// See [`lazy`].
pub(super) fn at_most(dfa: &ByteDfa, characters: usize, meter: &Meter) -> Result<ByteDfa> {
    let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
    let short = Expr::Repeat { expr: Arc::new(any), min: 0, max: Some(characters) };
    dfa.product(&short.determinize(meter)?, Op::Intersection, meter)
}

/// Any text: UTF-8.
pub(super) fn any_text(meter: &Meter) -> Result<ByteDfa> {
    let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
    Expr::Repeat { expr: Arc::new(any), min: 0, max: None }.determinize(meter)
}
