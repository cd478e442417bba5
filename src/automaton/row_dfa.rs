//! Finished automata as rows of runs, which take less memory than a table with an entry for each state and byte class.

use std::sync::Arc;

use super::canonical::{number, spread};
use super::{ByteDfa, ByteRows, Rows};
use crate::error::Result;
use crate::limits::Meter;

/// A deterministic automaton over bytes, trimmed and numbered as a [`ByteDfa`] is, but not minimal.
#[derive(Clone, Debug)]
pub(crate) struct RowDfa {
    rows: Arc<ByteRows>,
    /// The least number of bytes to an accepting state; `u32::MAX` in the dead one.
    bytes_to_end: Vec<u32>,
}

impl RowDfa {
    /// The automaton of some rows over bytes that begins at `start`; `None` where its language is empty.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn new(rows: &Rows, start: u32, meter: &Meter) -> Result<Option<Self>> {
        if start == 0 {
            return Ok(None);
        }
        let bytes = std::array::from_fn(|byte| byte as u8);
        let found = Self::of(number(rows, start, |state| state, &bytes, meter)?);
        // Usually every state that was reached can reach the end, and nothing is left to trim.
        if !found.bytes_to_end[1..].contains(&u32::MAX) {
            return Ok(Some(found));
        }
        let distances = rows.distances();
        let live = |state: u32| if distances[state as usize] == u32::MAX { 0 } else { state };
        if live(start) == 0 {
            return Ok(None);
        }
        number(rows, start, live, &bytes, meter).map(|numbered| Some(Self::of(numbered)))
    }

    fn of(rows: ByteRows) -> Self {
        let bytes_to_end = rows.rows().distances();
        Self { rows: Arc::new(rows), bytes_to_end }
    }

    /// The automaton with its table written out.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn spread(&self, meter: &Meter) -> Result<ByteDfa> {
        spread(&self.rows, meter)
    }

    /// The same where each byte is read as the byte `read_as` says; states keep their numbers, even where no run is left that
    /// leads to them, and their distances to the end, which are those by all runs.
    pub(crate) fn read_as(&self, read_as: &[u8; 256]) -> Self {
        Self { rows: Arc::new(self.rows.read_as(read_as)), bytes_to_end: self.bytes_to_end.clone() }
    }

    /// Its rows.
    pub(crate) fn rows(&self) -> &ByteRows {
        &self.rows
    }

    /// Its rows, shared.
    pub(crate) fn shared_rows(&self) -> Arc<ByteRows> {
        Arc::clone(&self.rows)
    }

    /// The least number of bytes from every state to an accepting one; `u32::MAX` where there is no way.
    pub(crate) fn bytes_to_end(&self) -> &[u32] {
        &self.bytes_to_end
    }
}

/// The automaton as rows; its states keep their numbers.
impl From<&ByteDfa> for RowDfa {
    fn from(dfa: &ByteDfa) -> Self {
        Self::of(Rows::from(dfa).into())
    }
}
