//! The rows of a finished automaton: what tables are written from.

use super::classes::{ByteClasses, Distinctions};
use super::{Rows, Run};

/// Rows, and the classes of the bytes that they do not tell apart.
#[derive(Clone, Debug)]
pub(crate) struct ByteRows {
    rows: Rows,
    classes: ByteClasses,
}

impl ByteRows {
    /// Rows of which the classes are known.
    pub(super) fn new(rows: Rows, classes: ByteClasses) -> Self {
        Self { rows, classes }
    }

    /// The rows alone.
    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Number of states, the dead one included.
    pub(crate) fn state_count(&self) -> usize {
        self.rows.state_count()
    }

    pub(crate) fn is_accepting(&self, state: u32) -> bool {
        self.rows.is_accepting(state)
    }

    pub(crate) fn row(&self, state: u32) -> &[Run] {
        self.rows.row(state)
    }

    /// All states but the dead one, with their rows.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &[Run])> + Clone {
        (1..self.state_count() as u32).map(|state| (state, self.row(state)))
    }

    /// The rows where each byte is read as the byte `read_as` says; states keep their numbers.
    pub(super) fn read_as(&self, read_as: &[u8; 256]) -> Self {
        let mut rows = Rows::new();
        for (state, row) in self.all() {
            let mut next = [0; 256];
            row.iter().for_each(|run| next[run.first as usize..=run.last as usize].fill(run.target));
            let runs = (0..=u8::MAX).map(|byte| (byte, byte, next[read_as[byte as usize] as usize]));
            rows.push(self.is_accepting(state), runs);
        }
        rows.into()
    }

    /// Number of classes of bytes.
    pub(crate) fn class_count(&self) -> usize {
        self.classes.count()
    }

    /// The class of every byte.
    pub(crate) fn classes(&self) -> &[u8; 256] {
        self.classes.of_bytes()
    }

    /// Writes the row of `state` by class; see [`ByteClasses::fill`].
    pub(crate) fn fill(&self, state: u32, by_class: &mut [u32], shift: u32) {
        self.classes.fill(self.row(state), by_class, shift);
    }

    /// Memory in use, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes()
    }
}

impl From<Rows> for ByteRows {
    fn from(rows: Rows) -> Self {
        let mut distinctions = Distinctions::new(rows.state_count());
        (1..rows.state_count() as u32).for_each(|state| distinctions.add(rows.row(state)));
        let classes = distinctions.classes(&std::array::from_fn(|byte| byte as u8));
        Self { rows, classes }
    }
}
