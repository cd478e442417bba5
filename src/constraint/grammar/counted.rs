//! Parts of a grammar of which the tokens are counted, as automata.
//!
//! A counted part is lowered as a grammar of its own: the rules that it refers to, cut into terminals as the grammar around it is.
//! It has to be finite, since it is copied for each number of tokens that are left.

use std::sync::Arc;

use super::form::{Counted, CutShort, Expression, Grammar, Node, Rule};
use super::{Lexical, regular};
use crate::automaton::{ByteDfa, ByteStateId, CountedPart, Determinized, Expr, FastMap, Op};
use crate::error::{Error, Result};
use crate::limits::Meter;

/// Most expressions and rules of all counted parts, those of the rules that they refer to included.
const MAX_SIZE: usize = 1 << 22;

/// Most counted parts within each other.
const MAX_NESTING: usize = 32;

/// The counted parts of a grammar that were lowered so far.
#[derive(Default)]
pub(super) struct Counting {
    /// By where the part is kept. It is kept here as well, so that no other one takes its place.
    known: FastMap<usize, (Arc<Counted>, Known)>,
    depth: usize,
    /// The levels of expressions around the counted part that is being lowered.
    pub(super) levels: usize,
    size: usize,
}

/// What is known of a counted part.
enum Known {
    /// It is being lowered.
    Open,
    /// It has no text.
    Empty,
    Part(Arc<CountedPart>),
}

impl Counting {
    /// The automaton of a counted part of `grammar`; `None` where it has no text.
    ///
    /// # Errors
    /// Where it is recursive, names tokens, or is too large.
    pub(super) fn part(
        &mut self,
        counted: &Arc<Counted>,
        grammar: &Grammar,
        meter: &Meter,
    ) -> Result<Option<Arc<CountedPart>>> {
        let key = Arc::as_ptr(counted) as usize;
        match self.known.get(&key) {
            Some((_, Known::Part(known))) => return Ok(Some(Arc::clone(known))),
            Some((_, Known::Empty)) => return Ok(None),
            Some((_, Known::Open)) => return Err(recursive(counted)),
            None => {}
        }
        if self.depth == MAX_NESTING {
            return Err(refused(
                counted,
                &format!("lies within more than {MAX_NESTING} others that are counted"),
            ));
        }
        self.known.insert(key, (Arc::clone(counted), Known::Open));
        self.depth += 1;
        let part = match &counted.cut_short {
            Some(cut_short) => cut(counted, cut_short, meter),
            None => self.whole(counted, grammar, meter),
        };
        self.depth -= 1;
        let part = match part {
            Err(error) if error.is_unsatisfiable() => None,
            part => Some(Arc::new(part?)),
        };
        let known = part.clone().map_or(Known::Empty, Known::Part);
        self.known.insert(key, (Arc::clone(counted), known));
        Ok(part)
    }

    /// A part that ends where it is complete.
    fn whole(&mut self, counted: &Counted, grammar: &Grammar, meter: &Meter) -> Result<CountedPart> {
        let own = self.grammar_of(counted, grammar)?;
        let Lexical { determinized, tokens } = own.lower_within(meter, self)?;
        if !tokens.edges.is_empty() {
            return Err(refused(counted, "names tokens: name them around it"));
        }
        match determinized {
            Determinized::Finite(rows) => Ok(CountedPart::new(rows, tokens.boundaries, Some(counted.most))),
            Determinized::Called(_) => Err(recursive(counted)),
        }
    }

    /// A grammar of the part alone.
    fn grammar_of(&mut self, counted: &Counted, grammar: &Grammar) -> Result<Grammar> {
        let mut reached = vec![false; grammar.rules.len()];
        let mut rest = vec![&counted.body];
        self.size += reached.len();
        while let Some(expression) = rest.pop() {
            self.size += 1;
            if self.size > MAX_SIZE {
                return Err(refused(
                    counted,
                    "is too large together with the others that are counted: count the tokens of fewer parts, or smaller ones",
                ));
            }
            match &expression.0 {
                Node::Rule(rule) if !std::mem::replace(&mut reached[*rule], true) => {
                    rest.push(&grammar.rules[*rule].body);
                }
                Node::Sequence(parts) | Node::Choice(parts) => rest.extend(parts),
                Node::Repeat { inner, .. } => rest.push(inner),
                Node::Counted(inner) => rest.push(&inner.body),
                _ => {}
            }
        }
        let rules = grammar.rules.iter().zip(reached).map(|(rule, reached)| match reached {
            true => rule.clone(),
            false => Rule { name: String::new(), body: Expression::choice([]) },
        });
        let mut rules: Vec<Rule> = rules.collect();
        rules.push(Rule { name: counted.name.clone(), body: counted.body.clone() });
        Ok(Grammar { start: rules.len() - 1, rules, lexing: grammar.lexing.within() })
    }
}

/// A part that may be cut short where no token is left.
fn cut(counted: &Counted, cut_short: &CutShort, meter: &Meter) -> Result<CountedPart> {
    let whole = regular::lower(&counted.body, meter)?;
    let mut short = regular::lower(&cut_short.texts, meter)?;
    if cut_short.only_any && short != regular::any_text(meter)? {
        short = whole.clone();
    }
    let reads = |dfa: &ByteDfa| {
        (1..dfa.state_count() as u32).any(|state| dfa.next(ByteStateId(state), u8::MAX) != ByteStateId::DEAD)
    };
    if reads(&whole) || reads(&short) {
        return Err(refused(counted, "reads bytes that are no UTF-8: write it in characters"));
    }
    // What goes on behind a whole text is none that is cut short.
    let any = Arc::new(Expr::Chars(vec![(char::MIN, char::MAX)]));
    let longer =
        Expr::Concat(vec![Expr::Dfa(Arc::new(whole.clone())), Expr::Repeat { expr: any, min: 1, max: None }]);
    let short = short.product(&longer.determinize(meter)?, Op::Difference, meter)?;
    let end = Expr::Literals(vec![vec![u8::MAX]]);
    let both =
        Expr::Union(vec![Expr::Dfa(Arc::new(whole)), Expr::Concat(vec![Expr::Dfa(Arc::new(short)), end])]);
    Ok(CountedPart::with_cuts(&both.determinize(meter)?, counted.most))
}

fn refused(counted: &Counted, reason: &str) -> Error {
    Error::grammar_as_a_whole(format!("`max_tokens`: `{}` {reason}", counted.name))
}

fn recursive(counted: &Counted) -> Error {
    refused(
        counted,
        "is recursive, and tokens are counted without a stack: write it without recursion, and copy schemas within it to a depth by \
         `Limits::frames` 0",
    )
}

/// Of a grammar with a counted part of this name, and recursion elsewhere.
pub(super) fn beside_recursion(name: &str) -> Error {
    Error::grammar_as_a_whole(format!(
        "`max_tokens`: the tokens of `{name}` are counted without a stack, and something else is recursive: write that without \
         recursion, or leave `max_tokens` out; schemas are copied to a depth by `Limits::frames` 0"
    ))
}
