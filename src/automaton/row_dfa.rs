//! Finished automata as rows of runs, which take less memory than a table with an entry for each state and byte class.

use super::canonical::{number, spread};
use super::classes::{ByteClasses, Distinctions};
use super::rows::Run;
use super::{ByteDfa, Rows};
use crate::error::Result;
use crate::limits::Meter;

/// A deterministic automaton over bytes, trimmed and numbered as a [`ByteDfa`] is, but not minimal.
#[derive(Clone, Debug)]
pub(crate) struct RowDfa {
    rows: Rows,
    classes: ByteClasses,
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

    fn of((rows, classes): (Rows, ByteClasses)) -> Self {
        let bytes_to_end = rows.distances();
        Self { rows, classes, bytes_to_end }
    }

    /// The automaton with its table written out.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn spread(&self, meter: &Meter) -> Result<ByteDfa> {
        spread(&self.rows, &self.classes, meter)
    }

    /// Writes the row of `state` by class; see [`ByteClasses::fill`].
    pub(crate) fn fill(&self, state: u32, by_class: &mut [u32], shift: u32) {
        self.classes.fill(self.row(state), by_class, shift);
    }

    /// Number of states, the dead one included.
    pub(crate) fn state_count(&self) -> usize {
        self.rows.state_count()
    }

    /// Number of classes of bytes.
    pub(crate) fn class_count(&self) -> usize {
        self.classes.count()
    }

    /// The class of every byte.
    pub(crate) fn classes(&self) -> &[u8; 256] {
        self.classes.of_bytes()
    }

    pub(crate) fn is_accepting(&self, state: u32) -> bool {
        self.rows.is_accepting(state)
    }

    /// The least number of bytes from every state to an accepting one; `u32::MAX` where there is no way.
    pub(crate) fn bytes_to_end(&self) -> &[u32] {
        &self.bytes_to_end
    }

    pub(crate) fn row(&self, state: u32) -> &[Run] {
        self.rows.row(state)
    }

    /// Memory in use, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes()
    }
}

/// The automaton as rows; its states keep their numbers.
impl From<&ByteDfa> for RowDfa {
    fn from(dfa: &ByteDfa) -> Self {
        let rows = Rows::from(dfa);
        let mut distinctions = Distinctions::new();
        (1..rows.state_count() as u32).for_each(|state| distinctions.add(rows.row(state)));
        let classes = distinctions.classes(&std::array::from_fn(|byte| byte as u8));
        Self::of((rows, classes))
    }
}
