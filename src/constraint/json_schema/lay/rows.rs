//! Rows of an automaton under construction, back to front.

use crate::automaton::{Interner, RawDfa};
use crate::error::Result;
use crate::limits::Meter;

/// A byte range and the state it leads to.
pub(super) type Run = (u8, u8, u32);

/// States as rows. A row whose targets are known is stored once, so that equal ends of words and values are
/// shared as they are laid down; a state that leads back to itself is taken first and filled later. State 0
/// is dead.
pub(super) struct Rows {
    runs: Vec<Run>,
    spans: Vec<(u32, u32)>,
    accepting: Vec<bool>,
    known: Interner<u64>,
    /// By number in `known`, the state.
    states: Vec<u32>,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            runs: Vec::new(),
            spans: vec![(0, 0)],
            accepting: vec![false],
            known: Interner::new(),
            states: Vec::new(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn check(&self, meter: &Meter) -> Result<()> {
        meter.states(self.count())?;
        meter.bytes(self.runs.len() * size_of::<Run>() + self.count() * 24 + self.known.bytes())?;
        meter.time()
    }

    /// A state yet to be filled.
    pub(super) fn take(&mut self) -> u32 {
        self.spans.push((0, 0));
        self.accepting.push(false);
        (self.spans.len() - 1) as u32
    }

    /// `count` states yet to be filled, numbered in a row; returns the first.
    pub(super) fn take_many(&mut self, count: usize) -> u32 {
        let first = self.spans.len() as u32;
        self.spans.resize(self.spans.len() + count, (0, 0));
        self.accepting.resize(self.spans.len(), false);
        first
    }

    pub(super) fn fill(&mut self, state: u32, accepting: bool, row: &[Run]) {
        let from = self.runs.len() as u32;
        self.runs.extend(row.iter().filter(|run| run.2 != 0));
        self.spans[state as usize] = (from, self.runs.len() as u32);
        self.accepting[state as usize] = accepting;
    }

    /// The state with this row, whose runs are in order and whose targets are all filled or taken.
    pub(super) fn state(&mut self, accepting: bool, row: &[Run]) -> u32 {
        if !accepting && row.iter().all(|run| run.2 == 0) {
            return 0;
        }
        let mut words: Vec<u64> = Vec::with_capacity(row.len() + 1);
        words.push(accepting.into());
        let live = row.iter().filter(|run| run.2 != 0);
        words.extend(
            live.map(|&(first, last, to)| u64::from(first) << 40 | u64::from(last) << 32 | u64::from(to)),
        );
        let (number, new) = self.known.intern(&words);
        if new {
            let state = self.take();
            self.fill(state, accepting, row);
            self.states.push(state);
        }
        self.states[number as usize]
    }

    /// The state that reads `byte` and goes on to `to`.
    pub(super) fn byte(&mut self, byte: u8, to: u32) -> u32 {
        self.state(false, &[(byte, byte, to)])
    }

    /// The state that reads `bytes` and goes on to `to`.
    pub(super) fn word(&mut self, bytes: &[u8], to: u32) -> u32 {
        bytes.iter().rev().fold(to, |to, &byte| self.byte(byte, to))
    }

    pub(super) fn row(&self, state: u32) -> &[Run] {
        let (from, to) = self.spans[state as usize];
        &self.runs[from as usize..to as usize]
    }

    pub(super) fn is_accepting(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    pub(super) fn next(&self, state: u32, byte: u8) -> u32 {
        let run = self.row(state).iter().find(|run| run.0 <= byte && byte <= run.1);
        run.map_or(0, |run| run.2)
    }

    /// The row of `state` with other runs among it; bytes must not meet.
    pub(super) fn joined(&self, state: u32, others: &[Run]) -> Vec<Run> {
        let mut row = self.row(state).to_vec();
        row.extend(others.iter().filter(|run| run.2 != 0));
        row.sort_unstable();
        debug_assert!(row.is_sorted_by(|a, b| a.1 < b.0), "{row:?}");
        row
    }

    /// The automaton of `state` but that `path` leads to `to`. Other states are left as they are.
    pub(super) fn redirected(&mut self, state: u32, path: &[u8], to: u32) -> u32 {
        let mut along = Vec::with_capacity(path.len());
        let mut at = state;
        for &byte in path {
            along.push(at);
            at = self.next(at, byte);
        }
        if at == to {
            return state;
        }
        let mut to = to;
        for (&state, &byte) in along.iter().zip(path).rev() {
            let row = replaced(self.row(state), byte, to);
            to = self.state(self.is_accepting(state), &row);
        }
        to
    }

    /// The automaton of sorted, distinct words, each with the state behind it.
    pub(super) fn words(&mut self, words: &[(Vec<u8>, u32)]) -> u32 {
        #[derive(Default)]
        struct Node {
            end: u32,
            children: Vec<Run>,
        }
        // The path of the previous word: node `i` is after `i` bytes.
        let mut path = vec![Node::default()];
        let mut previous: &[u8] = &[];
        let close = |rows: &mut Self, path: &mut Vec<Node>, word: &[u8], depth: usize| {
            while path.len() > depth + 1 {
                let Some(node) = path.pop() else { break };
                let state = rows.ending(node.end, &node.children);
                let parent = path.len() - 1;
                path[parent].children.push((word[parent], word[parent], state));
            }
        };
        for (word, end) in words {
            let shared = previous.iter().zip(word).take_while(|(a, b)| a == b).count();
            close(self, &mut path, previous, shared);
            path.resize_with(word.len() + 1, Node::default);
            path[word.len()].end = *end;
            previous = word;
        }
        close(self, &mut path, previous, 0);
        path.pop().map_or(0, |root| self.ending(root.end, &root.children))
    }

    /// The state that goes on as `end` does, or by `row`.
    pub(super) fn ending(&mut self, end: u32, row: &[Run]) -> u32 {
        if row.is_empty() {
            return end;
        }
        let joined = self.joined(end, row);
        self.state(self.is_accepting(end), &joined)
    }

    pub(super) fn into_raw(self, start: u32) -> RawDfa {
        let mut raw = RawDfa::over_bytes();
        for state in 1..self.count() as u32 {
            raw.push(self.is_accepting(state), self.row(state).iter().copied());
        }
        raw.set_start(start);
        raw
    }
}

/// `row` with `byte` leading to `to`.
fn replaced(row: &[Run], byte: u8, to: u32) -> Vec<Run> {
    let mut new = Vec::with_capacity(row.len() + 2);
    for &(first, last, old) in row {
        if last < byte || first > byte {
            new.push((first, last, old));
            continue;
        }
        if first < byte {
            new.push((first, byte - 1, old));
        }
        if last > byte {
            new.push((byte + 1, last, old));
        }
    }
    if to != 0 {
        let at = new.partition_point(|run| run.0 < byte);
        new.insert(at, (byte, byte, to));
    }
    new
}
