//! Parts of a grammar with counted tokens or bounded texts, as automata.
//!
//! Each part is lowered as a separate grammar: its rules, cut into terminals like the surrounding
//! grammar. It has to be finite: a counted part is copied for each remaining number of tokens, and
//! a bounded part loses some texts by set operations.

use burn_dfa_common::{Error, ErrorKind, Result, limits::Meter};
use std::sync::Arc;

use super::form::{Bounded, Counted, CutShort, Expression, Grammar, Node, Rule};
use super::{Lexical, regular};
use burn_dfa_automata::{ByteDfa, ByteStateId, CountedPart, Expr, FastMap, Op, SparseAutomaton};

/// Most expressions and rules of all counted parts, including the rules they refer to.
const MAX_SIZE: usize = 1 << 22;

/// Deepest nesting of counted and bounded parts.
const MAX_NESTING: usize = 32;

/// The counted and bounded parts of a grammar lowered so far.
#[derive(Default)]
pub(super) struct Counting {
    /// By address of the part. The map keeps the part alive so no other part reuses its address.
    known: FastMap<usize, (Arc<Counted>, Known)>,
    /// The same for bounded parts; `None` if the part has no text.
    bounded: FastMap<usize, (Arc<Bounded>, Option<ByteDfa>)>,
    depth: usize,
    /// The levels of expressions around the current counted part.
    pub(super) levels: usize,
    size: usize,
}

/// The state of a counted part.
enum Known {
    /// It is being lowered.
    Open,
    /// It has no text.
    Empty,
    Part(Arc<CountedPart>),
}

impl Counting {
    /// The automaton of a counted part of `grammar`; `None` if it has no text.
    ///
    /// # Errors
    /// The part is recursive, names tokens, or is too large.
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
            Err(error) if error.kind() == ErrorKind::Unsatisfiable => None,
            part => Some(Arc::new(part?)),
        };
        let known = part.clone().map_or(Known::Empty, Known::Part);
        self.known.insert(key, (Arc::clone(counted), known));
        Ok(part)
    }

    /// The automaton of a bounded part of `grammar`; `None` if it has no text.
    ///
    /// # Errors
    /// The part has recursion other than loops, or is too large.
    pub(super) fn bounded(
        &mut self,
        bounded: &Arc<Bounded>,
        grammar: &Grammar,
        meter: &Meter,
    ) -> Result<Option<ByteDfa>> {
        let key = Arc::as_ptr(bounded) as usize;
        if let Some((_, known)) = self.bounded.get(&key) {
            return Ok(known.clone());
        }
        let Bounded { name, body, lazy, max_chars } = &**bounded;
        let refused = |reason: &str| {
            let attribute = if *lazy { "lazy" } else { "max_chars" };
            Error::grammar_as_a_whole(format!("`{attribute}`: the rule `{name}` {reason}"))
        };
        if self.depth == MAX_NESTING {
            return Err(refused(&format!("lies within more than {MAX_NESTING} others with such attributes")));
        }
        self.depth += 1;
        let own = self.grammar_of(name, body, grammar, &refused)?;
        let lowered = own.lower_within(meter, self);
        self.depth -= 1;
        let dfa = match lowered {
            Err(error) if error.kind() == ErrorKind::Unsatisfiable => None,
            lowered => match lowered?.determinized {
                SparseAutomaton::Finite(rows) => {
                    let mut dfa = rows.to_dense(meter)?;
                    if let Some(max) = *max_chars {
                        dfa = regular::at_most(&dfa, max, meter)?;
                    }
                    Some(if *lazy { regular::lazy(&dfa, meter)? } else { dfa })
                }
                SparseAutomaton::Pushdown(_) => {
                    return Err(refused(
                        "contains recursion with something before and behind it, which needs a stack, and the attribute is for \
                         others; leave it out",
                    ));
                }
            },
        };
        self.bounded.insert(key, (Arc::clone(bounded), dfa.clone()));
        Ok(dfa)
    }

    /// A part that ends only after a complete text.
    fn whole(&mut self, counted: &Counted, grammar: &Grammar, meter: &Meter) -> Result<CountedPart> {
        let refusal = |reason: &str| refused(counted, reason);
        let own = self.grammar_of(&counted.name, &counted.body, grammar, &refusal)?;
        let Lexical { determinized, tokens } = own.lower_within(meter, self)?;
        if !tokens.edges.is_empty() {
            return Err(refused(counted, "names tokens: name them around it"));
        }
        match determinized {
            SparseAutomaton::Finite(rows) => {
                Ok(CountedPart::new(rows, tokens.boundaries, Some(counted.max_tokens)))
            }
            SparseAutomaton::Pushdown(_) => Err(recursive(counted)),
        }
    }

    /// A grammar of a part alone.
    fn grammar_of(
        &mut self,
        name: &str,
        body: &Expression,
        grammar: &Grammar,
        refused: &dyn Fn(&str) -> Error,
    ) -> Result<Grammar> {
        let mut reached = vec![false; grammar.rules.len()];
        let mut rest = vec![body];
        self.size += reached.len();
        while let Some(expression) = rest.pop() {
            self.size += 1;
            if self.size > MAX_SIZE {
                return Err(refused(
                    "is too large together with the others that have such attributes: leave some of them out, or make them smaller",
                ));
            }
            match &expression.0 {
                Node::Rule(rule) if !std::mem::replace(&mut reached[*rule], true) => {
                    rest.push(&grammar.rules[*rule].body);
                }
                Node::Sequence(parts) | Node::Choice(parts) => rest.extend(parts),
                Node::Repeat { inner, .. } => rest.push(inner),
                Node::Counted(inner) => rest.push(&inner.body),
                Node::Bounded(inner) => rest.push(&inner.body),
                _ => {}
            }
        }
        let rules = grammar.rules.iter().zip(reached).map(|(rule, reached)| match reached {
            true => rule.clone(),
            false => Rule { name: String::new(), body: Expression::choice([]) },
        });
        let mut rules: Vec<Rule> = rules.collect();
        rules.push(Rule { name: name.to_owned(), body: body.clone() });
        Ok(Grammar { start: rules.len() - 1, rules, lexing: grammar.lexing.within(), checks: Vec::new() })
    }
}

/// A part that may be cut short if no token is left.
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
    // A text that extends a whole text is not a text cut short.
    let any = Arc::new(Expr::Chars(vec![(char::MIN, char::MAX)]));
    let longer =
        Expr::Concat(vec![Expr::Dfa(Arc::new(whole.clone())), Expr::Repeat { expr: any, min: 1, max: None }]);
    let short = short.product(&longer.determinize(meter)?, Op::Difference, meter)?;
    let end = Expr::Literals(vec![vec![u8::MAX]]);
    let both =
        Expr::Union(vec![Expr::Dfa(Arc::new(whole)), Expr::Concat(vec![Expr::Dfa(Arc::new(short)), end])]);
    Ok(CountedPart::with_cuts(&both.determinize(meter)?, counted.max_tokens))
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

/// The error for a grammar with this counted part and recursion elsewhere.
pub(super) fn beside_recursion(name: &str) -> Error {
    Error::grammar_as_a_whole(format!(
        "`max_tokens`: the tokens of `{name}` are counted without a stack, and something else is recursive: write that without \
         recursion, or leave `max_tokens` out; schemas are copied to a depth by `Limits::frames` 0"
    ))
}
