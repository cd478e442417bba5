//! Automata under construction: deterministic, but neither trimmed nor minimal.

use super::{ByteDfa, ByteStateId, Csr};
use crate::error::Result;
use crate::limits::Meter;

/// The symbols `first..=last` lead to `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u8,
    pub(super) last: u8,
    pub(super) target: u32,
}

/// A deterministic automaton as rows of runs, over *symbols*: any partition of the bytes.
///
/// State 0 is dead and has no runs; a symbol that no run of a state covers leads to it. The runs of a row
/// are in order, do not overlap, lead to live states, and no two of them could be one.
/// [`minimize`](Self::minimize) is the only way to a [`ByteDfa`].
#[derive(Clone, Debug)]
pub(crate) struct RawDfa {
    /// Symbol of each byte.
    pub(super) symbols: [u8; 256],
    pub(super) runs: Vec<Run>,
    /// Where the runs of each state end; those of state `s` begin where those of `s - 1` end.
    pub(super) ends: Vec<usize>,
    pub(super) accepting: Vec<bool>,
    pub(super) start: u32,
}

impl RawDfa {
    /// No states but the dead one, over `symbols`.
    pub(crate) fn new(symbols: [u8; 256]) -> Self {
        Self { symbols, runs: Vec::new(), ends: vec![0], accepting: vec![false], start: 0 }
    }

    /// No states but the dead one; every byte is its own symbol.
    pub(crate) fn over_bytes() -> Self {
        Self::new(std::array::from_fn(|byte| byte as u8))
    }

    /// Adds a state and returns its number: 1 for the first, and so on.
    ///
    /// `runs` are `(first symbol, last symbol, target)`, in order and without overlap. A target may be a state
    /// that is yet to be added; 0 is the dead state.
    pub(crate) fn push(&mut self, accepting: bool, runs: impl IntoIterator<Item = (u8, u8, u32)>) -> u32 {
        let row = self.runs.len();
        for (first, last, target) in runs {
            debug_assert!(first <= last);
            debug_assert!(self.runs[row..].last().is_none_or(|run| run.last < first));
            match self.runs[row..].last_mut() {
                _ if target == 0 => {}
                Some(run) if run.target == target && run.last + 1 == first => run.last = last,
                _ => self.runs.push(Run { first, last, target }),
            }
        }
        self.ends.push(self.runs.len());
        self.accepting.push(accepting);
        (self.accepting.len() - 1) as u32
    }

    /// Makes `state` the start; without this call the language is empty.
    pub(crate) fn set_start(&mut self, state: u32) {
        self.start = state;
    }

    /// Number of states, the dead one included.
    pub(crate) fn state_count(&self) -> usize {
        self.accepting.len()
    }

    /// Refuses more states or memory than allowed; call it now and then while adding states.
    pub(crate) fn check(&self, meter: &Meter) -> Result<()> {
        meter.states(self.state_count())?;
        meter.bytes(self.bytes())?;
        meter.time()
    }

    /// The one minimal automaton of the language.
    pub(crate) fn minimize(self, meter: &Meter) -> Result<ByteDfa> {
        self.check(meter)?;
        let trimmed = super::trim::trim(self);
        if trimmed.start == 0 {
            return Ok(ByteDfa::from_parts([0; 256], 1, vec![0], vec![false], ByteStateId::DEAD));
        }
        let blocks = super::minimize::equivalent(&trimmed, meter)?;
        super::quotient::canonical(&trimmed, &blocks, meter)
    }

    pub(super) fn row(&self, state: u32) -> &[Run] {
        let state = state as usize;
        let from = if state == 0 { 0 } else { self.ends[state - 1] };
        &self.runs[from..self.ends[state]]
    }

    /// For each state the states with a run into it, once for each run.
    pub(super) fn predecessors(&self) -> Csr {
        let states = 0..self.state_count() as u32;
        let edges = states.flat_map(|state| self.row(state).iter().map(move |run| (run.target, state)));
        Csr::new(self.state_count(), edges)
    }

    pub(super) fn bytes(&self) -> usize {
        self.runs.len() * size_of::<Run>() + self.ends.len() * 9
    }
}
