//! Patterns as nondeterministic automata over bytes with assertions.
//!
//! The automaton is built backwards: the states after a part of the pattern are added before the
//! states of the part. A look-ahead is a separate automaton that ends at [`DONE`], and so is a
//! look-behind. The search for a look-behind starts at the start of the string and runs during the
//! match of the pattern; its automaton is called a *tracker*.

use regex_syntax::hir::ClassUnicode;

use super::term::{Side, Term};
use burn_dfa_automata::Nfa;
use burn_dfa_common::{Result, limits::Meter};

/// The accepting state, shared by the pattern and every look-ahead and look-behind.
pub(super) const DONE: u32 = Nfa::ACCEPT;

/// A condition at a position.
#[derive(Clone, Copy)]
pub(super) enum Assertion {
    Start,
    /// The automaton from state `start` on matches here, or does not.
    Ahead {
        start: u32,
        negated: bool,
    },
    /// A match of this tracker ends here, or does not.
    Behind {
        tracker: usize,
        negated: bool,
    },
    /// An edge of a word, or none.
    Boundary(bool),
}

/// A pattern as states.
pub(super) struct Layout<'m> {
    meter: &'m Meter<'m>,
    pub(super) nfa: Nfa<'m, Assertion>,
    /// The start states of the trackers; a look-behind within another precedes it.
    pub(super) trackers: Vec<u32>,
    /// The start state of the whole pattern.
    pub(super) start: u32,
    /// A state that reads a byte of a word. Present if the pattern has `\b` or `\B`.
    pub(super) word: Option<u32>,
    /// A state that reads any byte. Present if the pattern has `$`.
    byte: Option<u32>,
}

impl<'m> Layout<'m> {
    /// The layout of a search for `term`.
    pub(super) fn new(term: &Term, meter: &'m Meter<'m>) -> Result<Self> {
        let mut layout =
            Layout { meter, nfa: Nfa::new(meter), trackers: Vec::new(), start: DONE, word: None, byte: None };
        layout.start = layout.search(term)?;
        Ok(layout)
    }

    /// The states of `term` after any characters.
    fn search(&mut self, term: &Term) -> Result<u32> {
        let found = self.emit(term, DONE)?;
        // The first branch is patched after its state exists.
        let again = self.nfa.union([found, found])?;
        let any = self.nfa.class(&[(char::MIN, char::MAX)], again)?;
        self.nfa.patch(again, any);
        Ok(again)
    }

    /// Adds the states of `term` before the state `next`, and returns their start.
    fn emit(&mut self, term: &Term, next: u32) -> Result<u32> {
        self.meter.states(self.nfa.state_count())?;
        match term {
            Term::Class(set) => self.nfa.class(&ranges(set), next),
            Term::Concat(terms) => terms.iter().rev().try_fold(next, |next, term| self.emit(term, next)),
            Term::Alternate(terms) => {
                let starts: Result<Vec<u32>> = terms.iter().map(|term| self.emit(term, next)).collect();
                self.nfa.union(starts?)
            }
            Term::Repeat { term, min, max } => self.repeat(term, *min, *max, next),
            Term::Start => self.nfa.look(Assertion::Start, next),
            Term::End => {
                let start = self.byte()?;
                self.nfa.look(Assertion::Ahead { start, negated: true }, next)
            }
            Term::Boundary(is_edge) => {
                self.word()?;
                self.nfa.look(Assertion::Boundary(*is_edge), next)
            }
            Term::Look { side: Side::Ahead, negated, term } => {
                let start = self.emit(term, DONE)?;
                self.nfa.look(Assertion::Ahead { start, negated: *negated }, next)
            }
            Term::Look { side: Side::Behind, negated, term } => {
                let start = self.search(term)?;
                self.trackers.push(start);
                let tracker = self.trackers.len() - 1;
                self.nfa.look(Assertion::Behind { tracker, negated: *negated }, next)
            }
        }
    }

    fn repeat(&mut self, term: &Term, min: u32, max: Option<u32>, next: u32) -> Result<u32> {
        // A term that matches the empty string may have fewer than `min` matches.
        let min = if term.is_nullable() { 0 } else { min };
        let mut at = next;
        if let Some(max) = max {
            for _ in min..max {
                let body = self.emit(term, at)?;
                at = self.nfa.union([body, next])?;
            }
        } else {
            at = self.nfa.union([next, next])?;
            let body = self.emit(term, at)?;
            self.nfa.patch(at, body);
        }
        for _ in 0..min {
            at = self.emit(term, at)?;
        }
        Ok(at)
    }

    fn byte(&mut self) -> Result<u32> {
        match self.byte {
            Some(state) => Ok(state),
            None => {
                let state = self.nfa.bytes([(0, u8::MAX, DONE)])?;
                self.byte = Some(state);
                Ok(state)
            }
        }
    }

    fn word(&mut self) -> Result<()> {
        if self.word.is_none() {
            let word = [(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')];
            self.word = Some(self.nfa.bytes(word.map(|(first, last)| (first, last, DONE)))?);
        }
        Ok(())
    }
}

fn ranges(set: &ClassUnicode) -> Vec<(char, char)> {
    set.ranges().iter().map(|range| (range.start(), range.end())).collect()
}
