//! Automata under construction: deterministic, but neither trimmed nor minimal.

use super::Rows;
use super::rows::Run;
use burn_dfa_common::{Result, limits::Meter};

/// A deterministic automaton over *symbols*: the classes of any partition of the bytes.
///
/// [`minimize`](Self::minimize) is the only conversion to a [`ByteDfa`](super::ByteDfa).
#[derive(Clone, Debug)]
pub struct UnminimizedDfa {
    /// Symbol of each byte.
    pub(super) symbols: [u8; 256],
    pub(super) rows: Rows,
    /// 0 if the language is empty.
    pub(super) start: u32,
}

impl UnminimizedDfa {
    /// Only the dead state, over `symbols`.
    pub fn new(symbols: [u8; 256]) -> Self {
        Self { symbols, rows: Rows::new(), start: 0 }
    }

    /// Only the dead state; every byte is its own symbol.
    pub fn over_bytes() -> Self {
        Self::new(std::array::from_fn(|byte| byte as u8))
    }

    /// Adds a state; see [`Rows::push`].
    pub fn push(&mut self, accepting: bool, runs: impl IntoIterator<Item = impl Into<Run>>) -> u32 {
        self.rows.push(accepting, runs)
    }

    /// Makes `state` the start; without this call the language is empty.
    pub fn set_start(&mut self, state: u32) {
        self.start = state;
    }

    /// The states.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The first state; 0 if the language is empty.
    pub fn start(&self) -> u32 {
        self.start
    }

    /// Number of states, the dead one included.
    pub fn state_count(&self) -> usize {
        self.rows.state_count()
    }

    /// Refuses to exceed the limits of states, memory or time; call it regularly while adding
    /// states.
    pub fn check(&self, meter: &Meter) -> Result<()> {
        self.rows.check(meter)
    }
}
