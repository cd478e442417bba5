//! Refusals at a position in the text of a pattern.

use super::Refusal;
pub(super) use crate::cursor::TextCursor as Cursor;

pub(super) type Result<T> = std::result::Result<T, Refusal>;

impl Cursor<'_> {
    pub(super) fn refuse(&self, offset: usize, reason: impl Into<String>) -> Refusal {
        Refusal { offset, reason: reason.into() }
    }
}
