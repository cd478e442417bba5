//! Expressions: languages as trees of literals, character classes and regular operators, compiled
//! to automata.

use std::sync::Arc;

use super::{ByteDfa, DfaBuilder, FastMap, Nfa, Rows};
use burn_dfa_common::{Result, limits::Meter};

/// A language over bytes, as a tree.
#[derive(Clone, Debug)]
pub enum Expr {
    /// Any one of the byte strings. Without strings, the empty language.
    Literals(Vec<Vec<u8>>),
    /// A consecutive, possibly empty run of the byte strings, in their order.
    Run(Vec<Vec<u8>>),
    /// One character out of inclusive ranges, in UTF-8.
    Chars(Vec<(char, char)>),
    /// A finished automaton.
    Dfa(Arc<ByteDfa>),
    /// A word of one of the expressions.
    Union(Vec<Expr>),
    /// A word of each expression, in order.
    Concat(Vec<Expr>),
    /// From `min` to `max` words of `expr`, one after the other; without a maximum if `max` is
    /// `None`.
    Repeat {
        /// The repeated expression.
        expr: Arc<Expr>,
        /// The minimum number of repetitions.
        min: usize,
        /// The maximum number of repetitions; `None` for no maximum.
        max: Option<usize>,
    },
}

impl Expr {
    /// The minimal automaton of the language.
    ///
    /// # Errors
    /// If a limit is breached; repetitions that are too large are refused before they are built.
    pub fn determinize(&self, meter: &Meter) -> Result<ByteDfa> {
        if let Self::Dfa(dfa) = self {
            return Ok(ByteDfa::clone(dfa));
        }
        meter.bytes(self.states(&mut FastMap::default()).saturating_mul(STATE_BYTES))?;
        let mut nfa = Nfa::new(meter);
        let mut builder = Builder { nfa: &mut nfa, steps: &mut 0 };
        let start = builder.add(self, Nfa::ACCEPT)?;
        nfa.determinize(start)
    }

    /// An approximate lower bound on the states of the nondeterministic automaton. `known` caches
    /// the bounds of shared expressions by address.
    fn states(&self, known: &mut FastMap<*const Self, usize>) -> usize {
        let mut sum =
            |exprs: &[Self]| exprs.iter().map(|expr| expr.states(known)).fold(1, usize::saturating_add);
        match self {
            // Words share states.
            Self::Literals(_) | Self::Chars(_) => 1,
            Self::Run(words) => words.iter().map(Vec::len).sum(),
            Self::Dfa(dfa) => dfa.state_count(),
            Self::Union(exprs) | Self::Concat(exprs) => sum(exprs),
            Self::Repeat { expr, min, max } => {
                let pointer = Arc::as_ptr(expr);
                let states = match known.get(&pointer) {
                    Some(&states) => states,
                    None => {
                        let states = expr.states(known);
                        known.insert(pointer, states);
                        states
                    }
                };
                states.saturating_mul(max.unwrap_or(min.saturating_add(1)))
            }
        }
    }
}

/// Memory of a state of a nondeterministic automaton and one outgoing transition.
const STATE_BYTES: usize = 16;

/// Builds the nondeterministic automaton of expressions, back to front.
struct Builder<'n, 'm> {
    nfa: &'n mut Nfa<'m>,
    /// The number of added expressions.
    steps: &'n mut usize,
}

impl Builder<'_, '_> {
    /// Adds `expr`, followed by the state `next`, and returns its start.
    fn add(&mut self, expr: &Expr, next: u32) -> Result<u32> {
        // Adding a state checks the limits, and an expression may add no state.
        *self.steps += 1;
        if self.steps.is_multiple_of(4096) {
            self.nfa.meter().time()?;
        }
        match expr {
            Expr::Literals(words) => {
                let mut words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                words.sort_unstable();
                words.dedup();
                let mut rows = DfaBuilder::new();
                let end = rows.state(true, &[]);
                let start = rows.words(words.into_iter().map(|word| (word, end)));
                self.nfa.copy(rows.rows(), start, next)
            }
            Expr::Run(words) => {
                let mut starts = vec![next];
                let mut after = next;
                for word in words.iter().rev() {
                    let bytes = word.iter().rev();
                    let begin =
                        bytes.copied().try_fold(after, |to, byte| self.nfa.bytes([(byte, byte, to)]))?;
                    after = self.nfa.union([begin, next])?;
                    starts.push(begin);
                }
                self.nfa.union(starts)
            }
            Expr::Chars(ranges) => self.nfa.class(ranges, next),
            Expr::Dfa(dfa) => self.nfa.copy(&Rows::from(&**dfa), dfa.start().0, next),
            Expr::Union(exprs) => {
                let starts: Result<Vec<u32>> = exprs.iter().map(|expr| self.add(expr, next)).collect();
                self.nfa.union(starts?)
            }
            Expr::Concat(exprs) => exprs.iter().rev().try_fold(next, |next, expr| self.add(expr, next)),
            Expr::Repeat { expr, min, max } => {
                let steps = &mut *self.steps;
                self.nfa.repeat(*min, *max, next, |nfa, next| Builder { nfa, steps }.add(expr, next))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_dfa_common::{ErrorKind, Limits};

    fn word(word: &str) -> Expr {
        Expr::Literals(vec![word.into()])
    }

    fn matched(expr: &Expr, candidates: &str) -> String {
        let limits = Limits::default();
        let dfa = expr.determinize(&Meter::start(&limits)).unwrap();
        let of = candidates.split(' ').filter(|text| dfa.matches(text.as_bytes()));
        of.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn repetitions_stay_between_their_bounds() {
        let repeat = |min, max| Expr::Repeat { expr: Arc::new(word("ab")), min, max };
        assert_eq!(matched(&repeat(1, Some(2)), "a ab abab ababab"), "ab abab");
        assert_eq!(matched(&repeat(2, None), "ab abab ababab"), "abab ababab");
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        assert!(repeat(2, Some(1)).determinize(&meter).unwrap().is_empty());
        assert_eq!(repeat(usize::MAX, None).determinize(&meter).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(repeat(0, Some(usize::MAX)).determinize(&meter).unwrap_err().kind(), ErrorKind::Limit);
        let empty = Expr::Repeat { expr: Arc::new(Expr::Concat(vec![])), min: usize::MAX, max: None };
        assert_eq!(empty.determinize(&meter).unwrap_err().kind(), ErrorKind::Limit);
    }

    /// The same language without repetitions that copy a body.
    fn written_out(expr: &Expr) -> Expr {
        let all = |exprs: &[Expr]| exprs.iter().map(written_out).collect();
        match expr {
            Expr::Repeat { expr, min, max } => {
                let expr = written_out(expr);
                let times = |count: usize| Expr::Concat(vec![expr.clone(); count]);
                let any = || Expr::Repeat { expr: expr.clone().into(), min: 0, max: None };
                match max {
                    Some(max) => Expr::Union((*min..=*max).map(times).collect()),
                    None => Expr::Concat(vec![times(*min), any()]),
                }
            }
            Expr::Union(exprs) => Expr::Union(all(exprs)),
            Expr::Concat(exprs) => Expr::Concat(all(exprs)),
            other => other.clone(),
        }
    }

    #[test]
    fn repetitions_that_run_together_are_exact() {
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        let repeat = |expr: &Expr, min, max| Expr::Repeat { expr: Arc::new(expr.clone()), min, max };
        let some = |expr: &Expr| repeat(expr, 1, None);
        let any = |expr: &Expr| repeat(expr, 0, None);
        let [a, b, aaa] = [word("a"), word("b"), word("aaa")];
        let letter = Expr::Chars(vec![('a', 'b'), ('é', 'ü')]);
        let bodies = [
            Expr::Concat(vec![some(&letter), any(&b)]),
            Expr::Union(vec![a.clone(), aaa.clone()]),
            Expr::Union(vec![a.clone(), b.clone(), word("ab")]),
            Expr::Concat(vec![a.clone(), repeat(&letter, 1, Some(3)), any(&b)]),
            repeat(&Expr::Union(vec![a.clone(), aaa]), 2, Some(3)),
            Expr::Union(vec![repeat(&letter, 0, Some(2)), repeat(&a, 3, None)]),
            Expr::Concat(vec![any(&a), repeat(&repeat(&some(&b), 1, Some(2)), 0, Some(2))]),
        ];
        let counts =
            [(0, Some(0)), (0, Some(3)), (1, Some(4)), (2, Some(2)), (2, Some(4)), (0, None), (3, None)];
        // Deeper than counts are compared.
        let twice = |expr: &Expr| repeat(expr, 1, Some(2));
        let deep = twice(&twice(&twice(&twice(&twice(&twice(&bodies[0]))))));
        assert_eq!(deep.determinize(&meter).unwrap(), written_out(&deep).determinize(&meter).unwrap());
        for body in &bodies {
            for (min, max) in counts {
                let inner = repeat(body, min, max);
                for expr in [
                    inner.clone(),
                    Expr::Concat(vec![any(&a), inner.clone(), b.clone()]),
                    Expr::Union(vec![Expr::Concat(vec![inner.clone(), a.clone()]), inner.clone()]),
                    repeat(&Expr::Concat(vec![b.clone(), inner.clone()]), 1, Some(3)),
                    repeat(&Expr::Concat(vec![inner.clone(), any(&b)]), 2, None),
                ] {
                    let expected = written_out(&expr).determinize(&meter).unwrap();
                    assert_eq!(expr.determinize(&meter).unwrap(), expected, "{expr:?}");
                }
            }
        }
    }

    #[test]
    fn repetitions_that_run_together_stay_small() {
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        let repeat = |expr: Expr, min, max| Expr::Repeat { expr: expr.into(), min, max };
        let letters = || Expr::Chars(vec![('a', 'z')]);
        let blanks = || repeat(word(" "), 0, None);
        let words = || Expr::Concat(vec![repeat(letters(), 1, None), blanks()]);
        for (expr, max) in [
            // The states before minimization. Of 50 repetitions, the intervals would be 1,275.
            (repeat(words(), 1, Some(50)), 200),
            (repeat(words(), 0, Some(50)), 200),
            (repeat(words(), 50, None), 200),
            (repeat(Expr::Concat(vec![repeat(letters(), 1, Some(10)), blanks()]), 1, Some(30)), 700),
        ] {
            let mut nfa = Nfa::new(&meter);
            let mut builder = Builder { nfa: &mut nfa, steps: &mut 0 };
            let start = builder.add(&expr, Nfa::ACCEPT).unwrap();
            let states = nfa.subset_count(start).unwrap();
            assert!(states <= max, "{states} states of {expr:?}");
        }
    }

    #[test]
    fn pieces_are_copied_whole() {
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        let words = Expr::Literals(["", "a", "ab", "b", "xyab"].map(Into::into).to_vec());
        let dfa = words.determinize(&meter).unwrap();
        let piece = Expr::Dfa(Arc::new(dfa));
        let twice = |expr: &Expr| Expr::Concat(vec![expr.clone(), expr.clone()]).determinize(&meter).unwrap();
        assert_eq!(twice(&piece), twice(&words));
        let nothing = Expr::Literals(vec![]);
        assert!(nothing.determinize(&meter).unwrap().is_empty());
        assert!(Expr::Concat(vec![piece, Expr::Literals(vec![])]).determinize(&meter).unwrap().is_empty());
        let chars = Expr::Chars(vec![('x', 'z'), ('a', 'é'), ('\u{D7FF}', '\u{E000}')]);
        assert_eq!(matched(&chars, "w z é ê \u{E000} \u{E001}"), "w z é \u{E000}");
    }
}
