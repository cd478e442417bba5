//! Automata under construction: deterministic, but neither trimmed nor minimal.

use super::Rows;
use super::rows::Run;
use crate::error::Result;
use crate::limits::Meter;

/// A deterministic automaton over *symbols*: the classes of any partition of the bytes.
///
/// [`minimize`](Self::minimize) is the only way to a [`ByteDfa`](super::ByteDfa).
#[derive(Clone, Debug)]
pub(crate) struct RawDfa {
    /// Symbol of each byte.
    pub(super) symbols: [u8; 256],
    pub(super) rows: Rows,
    /// 0 where the language is empty.
    pub(super) start: u32,
}

impl RawDfa {
    /// No states but the dead one, over `symbols`.
    pub(crate) fn new(symbols: [u8; 256]) -> Self {
        Self { symbols, rows: Rows::new(), start: 0 }
    }

    /// No states but the dead one; every byte is its own symbol.
    pub(crate) fn over_bytes() -> Self {
        Self::new(std::array::from_fn(|byte| byte as u8))
    }

    /// Adds a state; see [`Rows::push`].
    pub(crate) fn push(&mut self, accepting: bool, runs: impl IntoIterator<Item = impl Into<Run>>) -> u32 {
        self.rows.push(accepting, runs)
    }

    /// Makes `state` the start; without this call the language is empty.
    pub(crate) fn set_start(&mut self, state: u32) {
        self.start = state;
    }

    /// The states.
    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The first state; 0 where the language is empty.
    pub(crate) fn start(&self) -> u32 {
        self.start
    }

    /// Number of states, the dead one included.
    pub(crate) fn state_count(&self) -> usize {
        self.rows.state_count()
    }

    /// Refuses more states, memory or time than allowed; call it now and then while adding states.
    pub(crate) fn check(&self, meter: &Meter) -> Result<()> {
        self.rows.check(meter)
    }
}
