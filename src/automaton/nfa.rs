//! Nondeterministic automata: what expressions and regexes become before determinisation.
//!
//! An [`Nfa`] is built *backwards*: a piece is laid down in front of the state that follows it, so every
//! target exists before what leads to it; only loops and copied graphs are patched.

use regex_automata::util::look::Look;

use super::ByteDfa;
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

    /// The automaton of the empty string alone, before anything is laid in front of it.
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
    pub(super) fn patch(&mut self, union: u32, branch: u32) {
        if let State::Union { from, to } = self.states[union as usize] {
            debug_assert!(from < to);
            self.branches[from as usize] = branch;
        }
    }

    /// The number that the next state will have.
    pub(crate) fn next_state(&self) -> Result<u32> {
        index(self.states.len())
    }

    /// Lays down one of `words`, which must be sorted and distinct, in front of `next`.
    ///
    /// Common prefixes and common suffixes are laid down once: the result is the minimal acyclic
    /// automaton of the words.
    ///
    /// Reference: J. Daciuk et al., *Incremental Construction of Minimal Acyclic Finite-State
    /// Automata*, Computational Linguistics 26(1), 2000.
    pub(super) fn lay_words(&mut self, words: &[&[u8]], next: u32) -> Result<u32> {
        debug_assert!(words.is_sorted_by(|a, b| a < b));
        if let [word] = words {
            return word.iter().rev().try_fold(next, |next, &byte| self.bytes([(byte, byte, next)]));
        }
        let mut suffixes = super::words::Suffixes::new(next);
        // The path of the previous word, not yet frozen: node `i` is after `i` bytes.
        let mut path = vec![super::words::Node::default()];
        let mut previous: &[u8] = &[];
        for &word in words {
            let shared = previous.iter().zip(word).take_while(|(a, b)| a == b).count();
            suffixes.freeze(self, &mut path, previous, shared)?;
            path.resize_with(word.len() + 1, Default::default);
            path[word.len()].ends = true;
            previous = word;
        }
        suffixes.freeze(self, &mut path, previous, 0)?;
        match path.pop() {
            Some(root) => suffixes.state(self, root),
            None => self.bytes([]),
        }
    }

    /// Lays down the whole of `dfa` in front of `next`.
    pub(super) fn lay_dfa(&mut self, dfa: &ByteDfa, next: u32) -> Result<u32> {
        let intervals = dfa.intervals();
        // The rows as ranges of bytes to states of `dfa`.
        let mut ranges: Vec<(u8, u8, u32)> = Vec::new();
        let mut ends = vec![0];
        for state in 1..dfa.state_count() {
            let row = ranges.len();
            for &(first, last, class) in &intervals {
                let target = dfa.next_by_class(super::ByteStateId(state as u32), class).0;
                match ranges[row..].last_mut() {
                    _ if target == super::ByteStateId::DEAD.0 => {}
                    Some((_, end, same)) if *same == target && *end + 1 == first => *end = last,
                    _ => ranges.push((first, last, target)),
                }
            }
            ends.push(ranges.len());
        }
        // Numbers first: a state with bytes to read takes one, and one more where it accepts as well.
        let mut numbers = vec![0; dfa.state_count()];
        let mut count = self.next_state()?;
        let row = |state: usize| ends[state - 1]..ends[state];
        for (state, number) in numbers.iter_mut().enumerate().skip(1) {
            if row(state).is_empty() {
                *number = next;
            } else {
                let accepts = dfa.is_accepting(super::ByteStateId(state as u32));
                *number = count + u32::from(accepts);
                count = count.checked_add(1 + u32::from(accepts)).ok_or_else(|| self.too_large())?;
            }
        }
        for state in 1..dfa.state_count() {
            let row = &ranges[row(state)];
            if row.is_empty() {
                continue;
            }
            let mut start =
                self.bytes(row.iter().map(|&(first, last, target)| (first, last, numbers[target as usize])))?;
            if dfa.is_accepting(super::ByteStateId(state as u32)) {
                start = self.union([start, next])?;
            }
            debug_assert_eq!(start, numbers[state]);
        }
        if dfa.is_empty() { self.bytes([]) } else { Ok(numbers[dfa.start().index()]) }
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
