//! Patterns as nondeterministic automata over bytes with assertions.
//!
//! The automaton is built backwards: the states after a part of the pattern are added before the
//! states of the part. A look-ahead is a separate automaton that ends at [`DONE`], and so is a
//! look-behind. The search for a look-behind starts at the start of the string and runs during the
//! match of the pattern; its automaton is called a *tracker*.

use std::rc::Rc;

use regex_syntax::hir::ClassUnicode;

use super::term::{Side, Term};
use burn_dfa_automata::{ByteDfa, ByteStateId, Expr, FastMap};
use burn_dfa_common::{Result, limits::Meter};

/// The accepting state, shared by the pattern and every look-ahead and look-behind.
pub(super) const DONE: u32 = 0;

/// A state of a [`Layout`].
pub(super) enum State {
    Done,
    /// Reads a byte: `(first, last, next)`, in order, without overlap.
    Bytes(Vec<(u8, u8, u32)>),
    /// Continues to all of these states without reading.
    Union(Vec<u32>),
    /// Continues without reading if the assertion holds.
    Assert(Assertion, u32),
}

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
    pub(super) states: Vec<State>,
    /// The start states of the trackers; a look-behind within another precedes it.
    pub(super) trackers: Vec<u32>,
    /// The start state of the whole pattern.
    pub(super) start: u32,
    /// A state that reads a byte of a word. Present if the pattern has `\b` or `\B`.
    pub(super) word: Option<u32>,
    /// A state that reads any byte. Present if the pattern has `$`.
    byte: Option<u32>,
    chars: FastMap<Vec<(char, char)>, Rc<ByteDfa>>,
}

impl<'m> Layout<'m> {
    /// The layout of a search for `term`.
    pub(super) fn new(term: &Term, meter: &'m Meter<'m>) -> Result<Self> {
        let mut layout = Layout {
            meter,
            states: vec![State::Done],
            trackers: Vec::new(),
            start: DONE,
            word: None,
            byte: None,
            chars: FastMap::default(),
        };
        layout.start = layout.search(term)?;
        Ok(layout)
    }

    /// The states of `term` after any characters.
    fn search(&mut self, term: &Term) -> Result<u32> {
        let found = self.emit(term, DONE)?;
        let again = self.add(State::Union(vec![found]))?;
        let any = self.class(&[(char::MIN, char::MAX)], again)?;
        self.states[again as usize] = State::Union(vec![found, any]);
        Ok(again)
    }

    /// Adds the states of `term` before the state `next`, and returns their start.
    fn emit(&mut self, term: &Term, next: u32) -> Result<u32> {
        match term {
            Term::Class(set) => self.class(&ranges(set), next),
            Term::Concat(terms) => terms.iter().rev().try_fold(next, |next, term| self.emit(term, next)),
            Term::Alternate(terms) => {
                let starts: Result<Vec<u32>> = terms.iter().map(|term| self.emit(term, next)).collect();
                self.add(State::Union(starts?))
            }
            Term::Repeat { term, min, max } => self.repeat(term, *min, *max, next),
            Term::Start => self.add(State::Assert(Assertion::Start, next)),
            Term::End => {
                let start = self.byte()?;
                self.add(State::Assert(Assertion::Ahead { start, negated: true }, next))
            }
            Term::Boundary(is_edge) => {
                self.word()?;
                self.add(State::Assert(Assertion::Boundary(*is_edge), next))
            }
            Term::Look { side: Side::Ahead, negated, term } => {
                let start = self.emit(term, DONE)?;
                self.add(State::Assert(Assertion::Ahead { start, negated: *negated }, next))
            }
            Term::Look { side: Side::Behind, negated, term } => {
                let start = self.search(term)?;
                self.trackers.push(start);
                let tracker = self.trackers.len() - 1;
                self.add(State::Assert(Assertion::Behind { tracker, negated: *negated }, next))
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
                at = self.add(State::Union(vec![body, next]))?;
            }
        } else {
            at = self.add(State::Union(vec![next]))?;
            let body = self.emit(term, at)?;
            self.states[at as usize] = State::Union(vec![body, next]);
        }
        for _ in 0..min {
            at = self.emit(term, at)?;
        }
        Ok(at)
    }

    /// One character out of `ranges`, in UTF-8.
    fn class(&mut self, ranges: &[(char, char)], next: u32) -> Result<u32> {
        let dfa = match self.chars.get(ranges) {
            Some(dfa) => Rc::clone(dfa),
            None => {
                let dfa = Rc::new(Expr::Chars(ranges.to_vec()).determinize(self.meter)?);
                self.chars.insert(ranges.to_vec(), Rc::clone(&dfa));
                dfa
            }
        };
        // The automaton accepts at the end of a character only.
        let base = self.states.len() as u32;
        let reading: Vec<ByteStateId> = (1..dfa.state_count() as u32)
            .map(ByteStateId)
            .filter(|&state| !dfa.is_accepting(state))
            .collect();
        let number = |state: ByteStateId| match reading.binary_search(&state) {
            Ok(at) => base + at as u32,
            Err(_) => next,
        };
        let intervals = dfa.intervals();
        for &state in &reading {
            let row = intervals
                .iter()
                .map(|&(first, last, class)| (first, last, dfa.next_by_class(state, class)))
                .filter(|&(_, _, target)| target != ByteStateId::DEAD)
                .map(|(first, last, target)| (first, last, number(target)));
            self.add(State::Bytes(row.collect()))?;
        }
        if dfa.is_empty() { self.add(State::Union(Vec::new())) } else { Ok(number(dfa.start())) }
    }

    fn byte(&mut self) -> Result<u32> {
        match self.byte {
            Some(state) => Ok(state),
            None => {
                let state = self.add(State::Bytes(vec![(0, u8::MAX, DONE)]))?;
                self.byte = Some(state);
                Ok(state)
            }
        }
    }

    fn word(&mut self) -> Result<()> {
        if self.word.is_none() {
            let word = [(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')];
            let ranges = word.map(|(first, last)| (first, last, DONE));
            self.word = Some(self.add(State::Bytes(ranges.to_vec()))?);
        }
        Ok(())
    }

    fn add(&mut self, state: State) -> Result<u32> {
        self.states.push(state);
        self.meter.states(self.states.len())?;
        if self.states.len().is_multiple_of(4096) {
            self.meter.time()?;
        }
        Ok((self.states.len() - 1) as u32)
    }
}

fn ranges(set: &ClassUnicode) -> Vec<(char, char)> {
    set.ranges().iter().map(|range| (range.start(), range.end())).collect()
}
