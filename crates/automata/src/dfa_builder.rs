//! A builder that hash-conses rows: words with equal suffixes share states during construction.

use super::hash::hash;
use super::id_table::IdTable;
use super::pushdown::UntrimmedPda;
use super::rows::{Run, append};
use super::{Call, FastMap, Pushdown, Rows, SparseDfa};
use burn_dfa_common::{Result, limits::Meter};

/// An automaton built from its ends to its start.
///
/// [`state`](Self::state) creates a state with existing targets, or returns an earlier state with
/// the same row. A state on a cycle is [reserved](Self::reserve) first and [filled](Self::fill)
/// later; such states are never shared.
pub struct DfaBuilder {
    rows: Rows,
    /// The shared states.
    known: IdTable,
    scratch: Vec<Run>,
    /// The call states.
    calls: FastMap<Call, u32>,
    /// The RETURN states, by exit.
    returning: Vec<u32>,
}

impl DfaBuilder {
    /// The dead state alone.
    #[allow(clippy::new_without_default, reason = "one way to make it")]
    pub fn new() -> Self {
        Self::with_capacity(1 << 6)
    }

    /// The dead state alone, with capacity for `states` states, a power of two.
    pub fn with_capacity(states: usize) -> Self {
        Self {
            rows: Rows::with_capacity(states, 2 * states),
            known: IdTable::with_slots(states),
            scratch: Vec::new(),
            calls: FastMap::default(),
            returning: Vec::new(),
        }
    }

    /// The rows so far.
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// All rows, including the rows of unused states.
    pub fn into_rows(self) -> Rows {
        self.rows
    }

    /// Number of states, the dead one included.
    pub fn state_count(&self) -> usize {
        self.rows.state_count()
    }

    /// Whether a text may end in `state`.
    pub fn is_accepting(&self, state: u32) -> bool {
        self.rows.is_accepting(state)
    }

    /// The runs of `state`, sorted.
    pub fn row(&self, state: u32) -> &[Run] {
        self.rows.row(state)
    }

    /// The state after `byte` in `state`.
    pub fn next(&self, state: u32, byte: u8) -> u32 {
        self.rows.next(state, byte)
    }

    /// Refuses to exceed the limits of states, memory or time; call it regularly while adding
    /// states.
    pub fn check(&self, meter: &Meter) -> Result<()> {
        self.rows.check(meter)?;
        meter.bytes(self.rows.bytes() + self.known.bytes())
    }

    /// Reserves `count` consecutive states to be filled; returns the first.
    pub fn reserve(&mut self, count: usize) -> u32 {
        self.rows.reserve(count)
    }

    /// Gives a reserved state its row; see [`Rows::push`].
    pub fn fill(&mut self, state: u32, accepting: bool, row: &[Run]) {
        self.rows.fill(state, accepting, row.iter().copied());
    }

    /// The state with this row; runs must be sorted, with filled or reserved targets. Returns 0 for
    /// a row without transitions that does not accept.
    pub fn state(&mut self, accepting: bool, row: &[Run]) -> u32 {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        row.iter().for_each(|&run| append(&mut scratch, 0, run));
        let state = if scratch.is_empty() && !accepting { 0 } else { self.shared(accepting, &scratch) };
        self.scratch = scratch;
        state
    }

    /// The state with this row, which must satisfy the invariants of [`Rows`].
    fn shared(&mut self, accepting: bool, row: &[Run]) -> u32 {
        let Self { rows, known, .. } = self;
        let is_same = |state| rows.is_accepting(state) == accepting && rows.row(state) == row;
        let new = rows.state_count() as u32;
        let (state, is_new) = known.find_or_insert(hash(accepting.into(), row), new, is_same);
        if is_new {
            rows.push_whole(accepting, row);
        }
        state
    }

    /// The state that reads `byte` and continues to `to`.
    pub fn byte(&mut self, byte: u8, to: u32) -> u32 {
        self.state(false, &[Run { first: byte, last: byte, target: to }])
    }

    /// The state that reads `bytes` and continues to `to`.
    pub fn word(&mut self, bytes: &[u8], to: u32) -> u32 {
        bytes.iter().rev().fold(to, |to, &byte| self.byte(byte, to))
    }

    /// The row of `state` merged with other runs, which must not overlap its runs.
    pub fn joined(&self, state: u32, others: &[Run]) -> Vec<Run> {
        let own = self.row(state);
        let mut row = Vec::with_capacity(own.len() + others.len());
        row.extend_from_slice(own);
        row.extend(others.iter().filter(|run| run.target != 0));
        row.sort_unstable();
        debug_assert!(row.is_sorted_by(|a, b| a.last < b.first), "{row:?}");
        row
    }

    /// A copy of `state` in which `path` leads to `to`. Existing states do not change.
    pub fn redirected(&mut self, state: u32, path: &[u8], to: u32) -> u32 {
        let mut along = Vec::with_capacity(path.len());
        let mut at = state;
        for &byte in path {
            along.push(at);
            at = self.next(at, byte);
        }
        if at == to {
            return state;
        }
        let mut row = std::mem::take(&mut self.scratch);
        let mut to = to;
        for (&state, &byte) in along.iter().zip(path).rev() {
            replace(self.row(state), byte, to, &mut row);
            let accepting = self.is_accepting(state);
            to = if row.is_empty() && !accepting { 0 } else { self.shared(accepting, &row) };
        }
        self.scratch = row;
        to
    }

    /// The automaton of sorted, distinct words, each with the state after it; words with state 0
    /// are left out.
    ///
    /// A word shares the path of the previous word's common prefix, and equal suffixes share
    /// states, as all equal rows do. If the same state follows all words, the result is the minimal
    /// acyclic automaton of the words.
    ///
    /// Reference: J. Daciuk et al., *Incremental Construction of Minimal Acyclic Finite-State
    /// Automata*, Computational Linguistics 26(1), 2000.
    pub fn words<'w>(&mut self, words: impl Iterator<Item = (&'w [u8], u32)>) -> u32 {
        // Node `i` is the position after the first `i` bytes of the previous word.
        let mut path = vec![Node::default()];
        let mut previous: &[u8] = &[];
        for (word, end) in words.filter(|&(_, end)| end != 0) {
            let shared = previous.iter().zip(word).take_while(|(a, b)| a == b).count();
            self.close(&mut path, previous, shared);
            if path.len() <= word.len() {
                path.resize_with(word.len() + 1, Node::default);
            }
            path[word.len()].end = end;
            previous = word;
        }
        self.close(&mut path, previous, 0);
        self.node(&path[0])
    }

    /// Creates states for the nodes of `path`, the path of `word`, deeper than `depth`, and empties
    /// the nodes.
    fn close(&mut self, path: &mut [Node], word: &[u8], depth: usize) {
        for at in (depth + 1..=word.len()).rev() {
            let target = self.node(&path[at]);
            path[at].end = 0;
            path[at].children.clear();
            path[at - 1].children.push(Run { first: word[at - 1], last: word[at - 1], target });
        }
    }

    /// The state that continues as the node's end does, or to its children.
    fn node(&mut self, node: &Node) -> u32 {
        if node.children.is_empty() {
            return node.end;
        }
        if node.end == 0 {
            return self.state(false, &node.children);
        }
        let row = self.joined(node.end, &node.children);
        self.state(self.is_accepting(node.end), &row)
    }

    /// The call state for the procedure at `enter`, with a return state for each exit.
    pub fn call(&mut self, enter: u32, returns: Vec<u32>) -> u32 {
        let call = Call { enter, returns };
        if let Some(&known) = self.calls.get(&call) {
            return known;
        }
        let state = self.reserve(1);
        self.calls.insert(call, state);
        state
    }

    /// The RETURN state of an exit.
    pub fn returning(&mut self, outcome: usize) -> u32 {
        while self.returning.len() <= outcome {
            let state = self.reserve(1);
            self.returning.push(state);
        }
        self.returning[outcome]
    }

    /// The automaton with calls that begins at `start`; `None` if its language is empty.
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn pushdown(self, start: u32, meter: &Meter) -> Result<Option<Pushdown>> {
        let calls = self.calls.into_iter().map(|(call, state)| (state, call)).collect();
        UntrimmedPda { rows: self.rows, start, calls, returning: self.returning }.pushdown(meter)
    }

    /// The automaton that begins at `start`; `None` if its language is empty.
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn finish(&self, start: u32, meter: &Meter) -> Result<Option<SparseDfa>> {
        SparseDfa::new(&self.rows, start, meter)
    }
}

/// The continuations of a common prefix of words.
#[derive(Default)]
struct Node {
    /// The state after a word that ends here; 0 if none does.
    end: u32,
    children: Vec<Run>,
}

/// Writes `row` with the target of `byte` replaced by `to` into `new`.
fn replace(row: &[Run], byte: u8, to: u32, new: &mut Vec<Run>) {
    new.clear();
    let before = row.partition_point(|run| run.last < byte);
    new.extend_from_slice(&row[..before]);
    let mut rest = &row[before..];
    let mut after = None;
    if let Some((&run, others)) = rest.split_first()
        && run.first <= byte
    {
        if run.first < byte {
            new.push(Run { last: byte - 1, ..run });
        }
        after = (run.last > byte).then(|| Run { first: byte + 1, ..run });
        rest = others;
    }
    append(new, 0, Run { first: byte, last: byte, target: to });
    // Only the run right after the byte can merge with it.
    let mut rest = after.iter().chain(rest);
    if let Some(&run) = rest.next() {
        append(new, 0, run);
    }
    new.extend(rest);
}
