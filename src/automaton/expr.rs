//! Expressions: languages as trees of literals, character classes and regular operators, from which automata are built.

use std::sync::Arc;

use regex_syntax::utf8::Utf8Sequences;

use super::{ByteDfa, FastMap, Nfa, Rows, SharedRows};
use crate::error::Result;
use crate::limits::Meter;

/// A language over bytes, as a tree.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    /// Any one of these byte strings. Without a string it is the empty language, which has no word.
    Literals(Vec<Vec<u8>>),
    /// A run of neighbours out of these byte strings, in their order, which may be empty.
    Run(Vec<Vec<u8>>),
    /// One character out of inclusive ranges, in UTF-8.
    Chars(Vec<(char, char)>),
    /// A finished automaton.
    Dfa(Arc<ByteDfa>),
    /// A word of one of them.
    Union(Vec<Expr>),
    /// A word of each, in this order.
    Concat(Vec<Expr>),
    /// From `min` to `max` words of `expr`, one after the other; any number from `min` on where `max` is `None`.
    Repeat { expr: Arc<Expr>, min: usize, max: Option<usize> },
}

impl Expr {
    /// The minimal automaton of the language.
    ///
    /// # Errors
    /// Where a limit is breached; repetitions that are too large are refused before they are built.
    pub(crate) fn determinize(&self, meter: &Meter) -> Result<ByteDfa> {
        if let Self::Dfa(dfa) = self {
            return Ok(ByteDfa::clone(dfa));
        }
        meter.bytes(self.states().saturating_mul(STATE_BYTES))?;
        let mut nfa = Nfa::new(meter);
        let start = Builder { nfa: &mut nfa, chars: FastMap::default() }.add(self, Nfa::ACCEPT)?;
        nfa.determinize(start)
    }

    /// A lower bound, roughly, on the states of the nondeterministic automaton.
    fn states(&self) -> usize {
        let sum = |exprs: &[Self]| exprs.iter().map(Self::states).fold(1, usize::saturating_add);
        match self {
            // Words share states.
            Self::Literals(_) | Self::Chars(_) => 1,
            Self::Run(words) => words.iter().map(Vec::len).sum(),
            Self::Dfa(dfa) => dfa.state_count(),
            Self::Union(exprs) | Self::Concat(exprs) => sum(exprs),
            Self::Repeat { expr, min, max } => {
                expr.states().saturating_mul(max.unwrap_or(min.saturating_add(1)))
            }
        }
    }
}

/// Memory of a state of a nondeterministic automaton and one way out of it.
const STATE_BYTES: usize = 16;

/// Builds the nondeterministic automaton of expressions, back to front.
struct Builder<'n, 'm> {
    nfa: &'n mut Nfa<'m>,
    /// Automata of the classes met so far: a class is often repeated.
    chars: FastMap<Vec<(char, char)>, Arc<ByteDfa>>,
}

impl Builder<'_, '_> {
    /// Adds `expr`, followed by the state `next`, and returns where it starts.
    fn add(&mut self, expr: &Expr, next: u32) -> Result<u32> {
        match expr {
            Expr::Literals(words) => {
                let mut words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                words.sort_unstable();
                words.dedup();
                let mut rows = SharedRows::new();
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
            Expr::Chars(ranges) => self.chars(ranges, next),
            Expr::Dfa(dfa) => self.dfa(dfa, next),
            Expr::Union(exprs) => {
                let starts: Result<Vec<u32>> = exprs.iter().map(|expr| self.add(expr, next)).collect();
                self.nfa.union(starts?)
            }
            Expr::Concat(exprs) => exprs.iter().rev().try_fold(next, |next, expr| self.add(expr, next)),
            Expr::Repeat { expr, min, max } => self.repeat(expr, *min, *max, next),
        }
    }

    fn dfa(&mut self, dfa: &ByteDfa, next: u32) -> Result<u32> {
        self.nfa.copy(&Rows::from(dfa), dfa.start().0, next)
    }

    fn chars(&mut self, ranges: &[(char, char)], next: u32) -> Result<u32> {
        if let [(first, last)] = ranges
            && first.is_ascii()
            && last.is_ascii()
            && first <= last
        {
            return self.nfa.bytes([(*first as u8, *last as u8, next)]);
        }
        let dfa = match self.chars.get(ranges) {
            Some(dfa) => Arc::clone(dfa),
            None => {
                let dfa = Arc::new(one_char(ranges, self.nfa.meter())?);
                self.chars.insert(ranges.to_vec(), Arc::clone(&dfa));
                dfa
            }
        };
        self.dfa(&dfa, next)
    }

    fn repeat(&mut self, expr: &Expr, min: usize, max: Option<usize>, next: u32) -> Result<u32> {
        let mut at = match max {
            Some(max) if max < min => return self.nfa.bytes([]),
            None => {
                let again = self.nfa.union([next, next])?;
                let body = self.add(expr, again)?;
                self.nfa.patch(again, body);
                again
            }
            Some(max) => {
                // Nested, as in `(x(x)?)?`; each optional part that is left out leads straight to the end.
                let mut at = next;
                for _ in min..max {
                    let body = self.add(expr, at)?;
                    at = self.nfa.union([body, next])?;
                }
                at
            }
        };
        for _ in 0..min {
            at = self.add(expr, at)?;
            // Limits are checked when a state is added, and a body may add none.
            if min > 4096 {
                self.nfa.meter().time()?;
            }
        }
        Ok(at)
    }
}

/// The automaton of one character out of `ranges`.
fn one_char(ranges: &[(char, char)], meter: &Meter) -> Result<ByteDfa> {
    let mut nfa = Nfa::new(meter);
    let mut starts = Vec::new();
    for &(first, last) in ranges {
        for sequence in Utf8Sequences::new(first, last) {
            let start = sequence
                .as_slice()
                .iter()
                .rev()
                .try_fold(Nfa::ACCEPT, |next, range| nfa.bytes([(range.start, range.end, next)]))?;
            starts.push(start);
        }
    }
    let start = nfa.union(starts)?;
    nfa.determinize(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

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
    fn repetitions_count() {
        let repeat = |min, max| Expr::Repeat { expr: Arc::new(word("ab")), min, max };
        assert_eq!(matched(&repeat(1, Some(2)), "a ab abab ababab"), "ab abab");
        assert_eq!(matched(&repeat(2, None), "ab abab ababab"), "abab ababab");
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        assert!(repeat(2, Some(1)).determinize(&meter).unwrap().is_empty());
        assert!(repeat(usize::MAX, None).determinize(&meter).unwrap_err().is_limit());
        assert!(repeat(0, Some(usize::MAX)).determinize(&meter).unwrap_err().is_limit());
        let empty = Expr::Repeat { expr: Arc::new(Expr::Concat(vec![])), min: usize::MAX, max: None };
        assert!(empty.determinize(&meter).unwrap_err().is_limit());
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
