//! Nondeterministic automata, which are made from expressions and regexes and then determinised.
//!
//! An [`Nfa`] is built *backwards*: the states that follow a state are added before it, so that the targets of its
//! transitions exist already. Only loops are patched afterwards.

use regex_automata::util::look::Look;

use super::Rows;
use crate::error::{Error, Limit, Result};
use crate::limits::Meter;

/// A state of an [`Nfa`].
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// Reads a byte: the ranges `ranges[from..to]`, in order, without overlap.
    Bytes { from: u32, to: u32 },
    /// Goes on to all of `branches[from..to]` without reading.
    Union { from: u32, to: u32 },
    /// Goes on without reading where the assertion holds.
    Look { look: Look, next: u32 },
    /// The end of the language: no more bytes may follow.
    Accept,
}

/// The bytes `first..=last` lead to `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Range {
    pub(super) first: u8,
    pub(super) last: u8,
    pub(super) next: u32,
}

/// A nondeterministic automaton over bytes with look-around; state 0 accepts.
pub(crate) struct Nfa<'a> {
    meter: &'a Meter<'a>,
    pub(super) states: Vec<State>,
    pub(super) ranges: Vec<Range>,
    pub(super) branches: Vec<u32>,
    pub(super) looks: Vec<Look>,
}

impl<'a> Nfa<'a> {
    /// The state that accepts.
    pub(crate) const ACCEPT: u32 = 0;

    /// The automaton of the empty string: the accepting state alone.
    pub(crate) fn new(meter: &'a Meter<'a>) -> Self {
        let (ranges, branches, looks) = (Vec::new(), Vec::new(), Vec::new());
        Self { meter, states: vec![State::Accept], ranges, branches, looks }
    }

    pub(super) fn meter(&self) -> &'a Meter<'a> {
        self.meter
    }

    /// Adds a state that reads one byte by `(first, last, next)`, which must be in order and disjoint.
    pub(crate) fn bytes(&mut self, ranges: impl IntoIterator<Item = (u8, u8, u32)>) -> Result<u32> {
        let from = self.ranges.len();
        self.ranges.extend(ranges.into_iter().map(|(first, last, next)| Range { first, last, next }));
        debug_assert!(self.ranges[from..].is_sorted_by(|a, b| a.last < b.first));
        let (from, to) = (index(from)?, index(self.ranges.len())?);
        self.add(State::Bytes { from, to })
    }

    /// Adds a state that goes on to each of `branches`.
    pub(crate) fn union(&mut self, branches: impl IntoIterator<Item = u32>) -> Result<u32> {
        let from = index(self.branches.len())?;
        self.branches.extend(branches);
        let to = index(self.branches.len())?;
        self.add(State::Union { from, to })
    }

    /// Adds a state that goes on to `next` where `look` holds.
    pub(crate) fn look(&mut self, look: Look, next: u32) -> Result<u32> {
        if !self.looks.contains(&look) {
            self.looks.push(look);
        }
        self.add(State::Look { look, next })
    }

    /// Replaces the first branch of a union.
    pub(crate) fn patch(&mut self, union: u32, branch: u32) {
        if let State::Union { from, to } = self.states[union as usize] {
            debug_assert!(from < to);
            self.branches[from as usize] = branch;
        }
    }

    /// The number that the next state will have.
    pub(crate) fn next_state(&self) -> Result<u32> {
        index(self.states.len())
    }

    /// Copies in what can be read from `start` in `rows`, where every state can reach an accepting one; those are
    /// followed by `next`. Returns where the copy starts.
    pub(super) fn copy(&mut self, rows: &Rows, start: u32, next: u32) -> Result<u32> {
        if start == 0 {
            return self.bytes([]);
        }
        // Numbers are given first. A state that reads bytes takes one, and a second one if it accepts as well.
        let mut numbers = vec![next; rows.state_count()];
        let mut count = self.next_state()?;
        let reading = || (1..rows.state_count() as u32).filter(|&state| !rows.row(state).is_empty());
        for state in reading() {
            let accepts = u32::from(rows.is_accepting(state));
            numbers[state as usize] = count + accepts;
            count = count.checked_add(1 + accepts).ok_or_else(|| self.too_large())?;
        }
        for state in reading() {
            let runs = rows.row(state).iter();
            let mut copy = self.bytes(runs.map(|run| (run.first, run.last, numbers[run.target as usize])))?;
            if rows.is_accepting(state) {
                copy = self.union([copy, next])?;
            }
            debug_assert_eq!(copy, numbers[state as usize]);
        }
        Ok(numbers[start as usize])
    }

    fn add(&mut self, state: State) -> Result<u32> {
        let id = index(self.states.len())?;
        self.states.push(state);
        if id % 4096 == 0 {
            self.check()?;
        }
        Ok(id)
    }

    /// Refuses more memory or time than allowed.
    pub(super) fn check(&self) -> Result<()> {
        self.meter.bytes(
            self.states.len() * size_of::<State>()
                + self.ranges.len() * size_of::<Range>()
                + self.branches.len() * size_of::<u32>(),
        )?;
        self.meter.time()
    }

    fn too_large(&self) -> Error {
        Error::limit(Limit::Bytes(self.meter.limits().bytes))
    }
}

/// Indices are 32 bits wide whatever the limits say.
fn index(at: usize) -> Result<u32> {
    u32::try_from(at).map_err(|_| Error::limit(Limit::States(u32::MAX as usize)))
}
