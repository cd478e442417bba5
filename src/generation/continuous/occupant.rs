//! The request of a row that is not idle.

use crate::generation::row::Row;
use burn_dfa_tokens::Error;

/// A request in a row.
pub(super) struct Occupant<'m> {
    pub(super) row: Row<'m>,
    pub(super) progress: Progress,
    /// The number of copied tokens of the prompt, after its first read.
    pub(super) cached: Option<usize>,
    pub(super) error: Option<Error>,
}

/// The progress of a row.
pub(super) enum Progress {
    /// Its prompt is being read, or its constraint compiled.
    Reading,
    /// It began `steps` steps after the host's last read; its first token is not read yet.
    Begun { steps: usize },
    /// Its first token was read.
    Running,
}

impl<'m> Occupant<'m> {
    /// A request whose prompt is not read.
    pub(super) fn new(row: Row<'m>) -> Self {
        Self { row, progress: Progress::Reading, cached: None, error: None }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.error.is_some() || self.row.is_finished()
    }

    /// Whether the row has begun and not ended.
    pub(super) fn is_running(&self) -> bool {
        !self.is_finished() && !matches!(self.progress, Progress::Reading)
    }
}
