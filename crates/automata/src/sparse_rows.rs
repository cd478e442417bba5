//! The rows of a finished automaton, the source of compiled constraints.

use super::classes::ByteClasses;
use super::{Rows, Run};

/// Rows, and the classes of bytes with equal transitions in all rows.
#[derive(Clone, Debug)]
pub struct SparseRows {
    rows: Rows,
    classes: ByteClasses,
}

impl SparseRows {
    /// The rows alone.
    pub fn rows(&self) -> &Rows {
        &self.rows
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

    /// All states except the dead one, with their rows.
    pub fn all(&self) -> impl Iterator<Item = (u32, &[Run])> + Clone {
        (1..self.state_count() as u32).map(|state| (state, self.row(state)))
    }

    /// Reads each byte as the byte `read_as` gives for it; states keep their numbers.
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
    pub fn class_count(&self) -> usize {
        self.classes.count()
    }

    /// The class of every byte.
    pub fn classes(&self) -> &[u8; 256] {
        self.classes.of_bytes()
    }

    /// Writes the row of `state` by class; see [`ByteClasses::fill`].
    pub fn fill(&self, state: u32, by_class: &mut [u32], shift: u32) {
        self.classes.fill(self.row(state), by_class, shift);
    }

    /// Approximate memory in use.
    pub fn bytes(&self) -> usize {
        self.rows.bytes()
    }
}

impl From<Rows> for SparseRows {
    fn from(rows: Rows) -> Self {
        let classes = ByteClasses::new(&rows);
        Self { rows, classes }
    }
}
