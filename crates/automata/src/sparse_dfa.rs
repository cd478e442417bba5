//! Finished automata as rows of runs, smaller than a dense array with an entry for each state and
//! byte class.

use std::sync::Arc;

use super::canonical::{number, to_dense, trim};
use super::{ByteDfa, ByteStateId, Rows, SparseRows};
use burn_dfa_common::{Result, limits::Meter};

/// A deterministic automaton over bytes, trimmed and numbered like a [`ByteDfa`], but not minimal.
#[derive(Clone, Debug)]
pub struct SparseDfa {
    rows: Arc<SparseRows>,
    /// The least number of bytes to an accepting state; `u32::MAX` for the dead state.
    bytes_to_end: Vec<u32>,
}

impl SparseDfa {
    /// The automaton of some rows over bytes that starts at `start`; `None` if its language is
    /// empty.
    ///
    /// # Errors
    /// If a limit is breached.
    pub(super) fn new(rows: &Rows, start: u32, meter: &Meter) -> Result<Option<Self>> {
        if start == 0 {
            return Ok(None);
        }
        // Usually every reached state can reach the end, and nothing needs trimming.
        let reached = number(rows, start, |state| state, meter)?;
        let trimmed = trim(reached, ByteStateId::START.0, meter)?;
        Ok(trimmed
            .map(|trimmed| Self { rows: Arc::new(trimmed.rows.into()), bytes_to_end: trimmed.distances }))
    }

    /// The dense form of the automaton.
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn to_dense(&self, meter: &Meter) -> Result<ByteDfa> {
        to_dense(&self.rows, meter)
    }

    /// Reads each byte as the byte `read_as` gives for it. States keep their numbers, even if no
    /// run leads to them anymore, and their distances to the end, computed from the original runs.
    pub fn read_as(&self, read_as: &[u8; 256]) -> Self {
        Self { rows: Arc::new(self.rows.read_as(read_as)), bytes_to_end: self.bytes_to_end.clone() }
    }

    /// Its rows.
    pub fn rows(&self) -> &SparseRows {
        &self.rows
    }

    /// Its rows, shared.
    pub fn shared_rows(&self) -> Arc<SparseRows> {
        Arc::clone(&self.rows)
    }

    /// The least number of bytes from every state to an accepting state; `u32::MAX` if no path
    /// exists.
    pub fn bytes_to_end(&self) -> &[u32] {
        &self.bytes_to_end
    }
}

/// The automaton as rows; its states keep their numbers.
impl From<&ByteDfa> for SparseDfa {
    fn from(dfa: &ByteDfa) -> Self {
        let rows = Rows::from(dfa);
        let bytes_to_end = rows.distances();
        Self { rows: Arc::new(rows.into()), bytes_to_end }
    }
}
