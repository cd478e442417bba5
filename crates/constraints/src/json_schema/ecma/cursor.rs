//! A position in the text of a pattern.

use super::Refusal;

pub(super) type Result<T> = std::result::Result<T, Refusal>;

/// The pattern and the current position.
pub(super) struct Cursor<'a> {
    pub(super) pattern: &'a str,
    /// In bytes.
    pub(super) at: usize,
}

impl Cursor<'_> {
    pub(super) fn rest(&self) -> &str {
        &self.pattern[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Skips `text` if it comes next, and returns whether it does.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn refuse(&self, offset: usize, reason: impl Into<String>) -> Refusal {
        Refusal { offset, reason: reason.into() }
    }
}
