//! Rows of an automaton under construction, back to front.

use crate::automaton::RowDfa;
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
    /// The states that are stored once, by the hash of their rows; 0 where there is none. A power of two.
    known: Vec<u32>,
    known_count: usize,
    scratch: Vec<Run>,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            runs: Vec::new(),
            spans: vec![(0, 0)],
            accepting: vec![false],
            known: vec![0; 1 << 10],
            known_count: 0,
            scratch: Vec::new(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn check(&self, meter: &Meter) -> Result<()> {
        meter.states(self.count())?;
        meter.bytes(self.runs.len() * size_of::<Run>() + self.count() * 9 + self.known.len() * 4)?;
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
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend(row.iter().filter(|run| run.2 != 0));
        let mut at = hash(accepting, &scratch) as usize & (self.known.len() - 1);
        let state = loop {
            match self.known[at] {
                0 => {
                    let state = self.take();
                    self.fill(state, accepting, &scratch);
                    self.known[at] = state;
                    self.known_count += 1;
                    break state;
                }
                state if self.accepting[state as usize] == accepting && self.row(state) == scratch => {
                    break state;
                }
                _ => at = (at + 1) & (self.known.len() - 1),
            }
        };
        self.scratch = scratch;
        if self.known_count * 2 > self.known.len() {
            self.grow();
        }
        state
    }

    /// Makes room for twice as many states that are stored once.
    fn grow(&mut self) {
        let mask = self.known.len() * 2 - 1;
        let mut known = vec![0; mask + 1];
        for &state in self.known.iter().filter(|&&state| state != 0) {
            let mut at = hash(self.is_accepting(state), self.row(state)) as usize & mask;
            while known[at] != 0 {
                at = (at + 1) & mask;
            }
            known[at] = state;
        }
        self.known = known;
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

    /// The automaton of sorted, distinct words, each with the state behind it; those before 0 are left out.
    pub(super) fn words<'w>(&mut self, words: impl Iterator<Item = (&'w [u8], u32)>) -> u32 {
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
        for (word, end) in words.filter(|&(_, end)| end != 0) {
            let shared = previous.iter().zip(word).take_while(|(a, b)| a == b).count();
            close(self, &mut path, previous, shared);
            path.resize_with(word.len() + 1, Node::default);
            path[word.len()].end = end;
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

    /// The automaton that begins at `start`; `None` where it has no member.
    pub(super) fn finish(&self, start: u32, meter: &Meter) -> Result<Option<RowDfa>> {
        RowDfa::new(self.count(), start, |state| self.row(state), |state| self.is_accepting(state), meter)
    }
}

/// In the low bits.
fn hash(accepting: bool, row: &[Run]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = u64::from(accepting) + 1;
    for &(first, last, to) in row {
        let word = u64::from(first) << 40 | u64::from(last) << 32 | u64::from(to);
        hash = (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    }
    hash ^ hash >> 32
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
