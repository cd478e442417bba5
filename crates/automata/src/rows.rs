//! Rows of runs: the states of a deterministic automaton.

use super::csr::{Csr, Filling};
use super::{ByteDfa, ByteStateId};
use burn_dfa_common::{Error, Limit, Result, limits::Meter};

/// The bytes `first..=last` lead to `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run {
    /// The first byte of the range.
    pub first: u8,
    /// The last byte of the range.
    pub last: u8,
    /// The target state of the range.
    pub target: u32,
}

/// The ranges of bytes with different targets in two rows, in order.
#[derive(Clone, Copy, Debug)]
pub struct Differences<'a> {
    rows: [&'a [Run]; 2],
    /// The next byte.
    next: u16,
}

impl<'a> Differences<'a> {
    /// Compares two rows.
    pub fn new(mut row: &'a [Run], mut other: &'a [Run]) -> Self {
        while let ([before @ .., last], [other_before @ .., other_last]) = (row, other)
            && last == other_last
        {
            (row, other) = (before, other_before);
        }
        Self { rows: [row, other], next: 0 }
    }

    /// Skips the common first runs of both rows.
    fn skip_alike(&mut self) {
        while let [[run, rest @ ..], [other, other_rest @ ..]] = self.rows
            && run == other
        {
            self.next = self.next.max(u16::from(run.last) + 1);
            self.rows = [rest, other_rest];
        }
    }
}

impl Iterator for Differences<'_> {
    type Item = (u8, u8);

    fn next(&mut self) -> Option<(u8, u8)> {
        loop {
            self.skip_alike();
            if self.next > u16::from(u8::MAX) || self.rows.iter().all(|row| row.is_empty()) {
                return None;
            }
            let first = self.next as u8;
            let mut last = u8::MAX;
            let targets = self.rows.each_mut().map(|row| {
                while let [run, rest @ ..] = *row
                    && run.last < first
                {
                    *row = rest;
                }
                match row.first() {
                    Some(run) if run.first <= first => {
                        last = last.min(run.last);
                        run.target
                    }
                    run => {
                        last = last.min(run.map_or(u8::MAX, |run| run.first - 1));
                        0
                    }
                }
            });
            self.next = u16::from(last) + 1;
            if targets[0] != targets[1] {
                return Some((first, last));
            }
        }
    }
}

impl From<(u8, u8, u32)> for Run {
    fn from((first, last, target): (u8, u8, u32)) -> Self {
        Self { first, last, target }
    }
}

/// The states of a deterministic automaton: each has a *row*, which is a list of runs, and may
/// accept.
///
/// State 0 is dead: it has no runs, and it is the target of all bytes outside of a row's runs.
/// The runs of a row are sorted, do not overlap and have targets other than 0; neighbors that could
/// be one run are merged.
#[derive(Clone, Debug)]
pub struct Rows {
    runs: Vec<Run>,
    /// The range of each state's runs.
    spans: Vec<(u32, u32)>,
    accepting: Vec<bool>,
}

impl Rows {
    /// The dead state alone.
    #[allow(clippy::new_without_default, reason = "one way to make it")]
    pub fn new() -> Self {
        Self { runs: Vec::new(), spans: vec![(0, 0)], accepting: vec![false] }
    }

    /// The dead state alone, with capacity for some states and their runs.
    pub(super) fn with_capacity(states: usize, runs: usize) -> Self {
        let mut rows = Self {
            runs: Vec::with_capacity(runs),
            spans: Vec::with_capacity(states),
            accepting: Vec::with_capacity(states),
        };
        rows.reserve(1);
        rows
    }

    /// Number of runs of all states.
    pub(super) fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// Adds a state and returns its number: 1 for the first, and so on.
    ///
    /// `runs` must be sorted and must not overlap. A target may be a state to be added later; runs
    /// to 0 are left out.
    pub fn push(&mut self, accepting: bool, runs: impl IntoIterator<Item = impl Into<Run>>) -> u32 {
        let state = self.reserve(1);
        self.fill(state, accepting, runs);
        state
    }

    /// As [`push`](Self::push), for runs with no neighbors to merge and no target 0.
    pub(super) fn push_whole(&mut self, accepting: bool, runs: &[Run]) {
        let from = self.runs.len();
        self.runs.extend_from_slice(runs);
        self.spans.push((from as u32, self.runs.len() as u32));
        self.accepting.push(accepting);
    }

    /// As [`push`](Self::push), with targets renumbered by `number`, which must be injective except
    /// for 0.
    pub(super) fn push_numbered(&mut self, accepting: bool, row: &[Run], mut number: impl FnMut(u32) -> u32) {
        let from = self.runs.len();
        for run in row {
            let target = number(run.target);
            if target != 0 {
                self.runs.push(Run { target, ..*run });
            }
        }
        self.spans.push((from as u32, self.runs.len() as u32));
        self.accepting.push(accepting);
    }

    /// Adds `count` states to be [filled](Self::fill) later, and returns the first.
    pub(super) fn reserve(&mut self, count: usize) -> u32 {
        let first = self.state_count();
        self.spans.resize(first + count, (0, 0));
        self.accepting.resize(first + count, false);
        first as u32
    }

    /// Fills the row of a reserved state, once.
    pub(super) fn fill(
        &mut self,
        state: u32,
        accepting: bool,
        runs: impl IntoIterator<Item = impl Into<Run>>,
    ) {
        debug_assert_eq!(self.spans[state as usize], (0, 0), "a row is filled once");
        let from = self.runs.len();
        for run in runs {
            append(&mut self.runs, from, run.into());
        }
        self.spans[state as usize] = (from as u32, self.runs.len() as u32);
        self.accepting[state as usize] = accepting;
    }

    /// Number of states, the dead one included.
    pub fn state_count(&self) -> usize {
        self.accepting.len()
    }

    /// Whether a text may end in `state`.
    pub fn is_accepting(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// The runs of `state`, sorted.
    pub fn row(&self, state: u32) -> &[Run] {
        let (from, to) = self.spans[state as usize];
        &self.runs[from as usize..to as usize]
    }

    /// The state after `byte` in `state`.
    pub fn next(&self, state: u32, byte: u8) -> u32 {
        let run = self.row(state).iter().find(|run| run.first <= byte && byte <= run.last);
        run.map_or(0, |run| run.target)
    }

    /// For each state, the states with a run into it, once for each run.
    pub(super) fn backward(&self) -> Csr {
        let mut edges = Filling::new(self.state_count(), self.runs.iter().map(|run| run.target));
        for (state, &(from, to)) in (0..).zip(&self.spans) {
            self.runs[from as usize..to as usize].iter().for_each(|run| edges.add(run.target, state));
        }
        edges.done()
    }

    /// For each state the least number of bytes to an accepting state; `u32::MAX` if no path
    /// exists.
    pub(super) fn distances(&self) -> Vec<u32> {
        self.backward().distances((1..self.state_count() as u32).filter(|&state| self.is_accepting(state)))
    }

    /// Refuses to exceed the limits of states, memory or time; call it regularly while adding
    /// states.
    pub fn check(&self, meter: &Meter) -> Result<()> {
        // The ranges of runs are stored in 32 bits.
        if u32::try_from(self.runs.len()).is_err() {
            return Err(Error::limit(Limit::Bytes(meter.limits().bytes)));
        }
        meter.states(self.state_count())?;
        meter.bytes(self.bytes())?;
        meter.time()
    }

    /// Approximate memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.runs.len() * size_of::<Run>() + self.state_count() * 9
    }
}

/// The automaton over bytes as rows; its states keep their numbers.
impl From<&ByteDfa> for Rows {
    fn from(dfa: &ByteDfa) -> Self {
        let intervals = dfa.intervals();
        let mut rows = Self::new();
        for state in (1..dfa.state_count() as u32).map(ByteStateId) {
            let runs = intervals
                .iter()
                .map(|&(first, last, class)| (first, last, dfa.next_by_class(state, class).0));
            rows.push(dfa.is_accepting(state), runs);
        }
        rows
    }
}

/// Adds `run` to the row that starts at index `from`, merged with its last run if possible; skips a
/// run to 0.
pub(super) fn append(row: &mut Vec<Run>, from: usize, run: Run) {
    if run.target == 0 {
        return;
    }
    debug_assert!(run.first <= run.last);
    match row[from..].last_mut() {
        Some(last) if last.target == run.target && last.last + 1 == run.first => last.last = run.last,
        last => {
            debug_assert!(last.is_none_or(|last| last.last < run.first));
            row.push(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_the_bytes_by_which_two_rows_lead_elsewhere() {
        let rows: [&[(u8, u8, u32)]; 8] = [
            &[],
            &[(0, 255, 1)],
            &[(0, 9, 1), (10, 10, 2), (11, 255, 1)],
            &[(0, 9, 1), (12, 255, 2)],
            &[(0, 9, 1), (10, 10, 2), (11, 20, 3), (30, 40, 1), (50, 60, 1)],
            &[(0, 3, 1), (10, 10, 2), (11, 20, 3), (30, 30, 2), (31, 40, 1), (50, 60, 1)],
            &[(10, 10, 2), (255, 255, 1)],
            &[(3, 7, 1), (8, 9, 3), (200, 254, 1)],
        ];
        for (row, other) in rows.iter().flat_map(|row| rows.iter().map(move |other| (row, other))) {
            let [row, other] =
                [row, other].map(|row| row.iter().map(|&run| run.into()).collect::<Vec<Run>>());
            let ranges: Vec<(u8, u8)> = Differences::new(&row, &other).collect();
            assert!(ranges.iter().all(|(first, last)| first <= last));
            assert!(ranges.is_sorted_by(|a, b| a.1 < b.0));
            let after = |row: &[Run], byte: u8| {
                let run = row.iter().find(|run| (run.first..=run.last).contains(&byte));
                run.map_or(0, |run| run.target)
            };
            for byte in 0..=u8::MAX {
                let differs = after(&row, byte) != after(&other, byte);
                let found = ranges.iter().any(|&(first, last)| (first..=last).contains(&byte));
                assert_eq!(found, differs, "{byte}: {row:?}, {other:?}");
            }
        }
    }
}
