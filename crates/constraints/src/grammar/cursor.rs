//! A position in the text of a grammar.

use std::ops::{Deref, DerefMut};

use super::source::Source;
use crate::cursor::TextCursor;
use burn_dfa_common::{Error, Result};

/// The text, the current position, and the rule at this position.
pub(super) struct Cursor<'t> {
    source: Source<'t>,
    text: TextCursor<'t>,
    pub(super) rule: Option<&'t str>,
}

/// Reads the text.
impl<'t> Deref for Cursor<'t> {
    type Target = TextCursor<'t>;

    fn deref(&self) -> &Self::Target {
        &self.text
    }
}

impl DerefMut for Cursor<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.text
    }
}

impl<'t> Cursor<'t> {
    /// # Errors
    /// The text exceeds the size limit of grammars.
    pub(super) fn new(text: &'t str) -> Result<Self> {
        Ok(Self { source: Source::new(text)?, text: TextCursor::new(text), rule: None })
    }

    pub(super) fn text(&self) -> &'t str {
        self.source.text
    }

    /// Skips white space and comments, from `#` to the end of the line; also line ends if `lines`.
    pub(super) fn space(&mut self, lines: bool) {
        let is_space = |c| matches!(c, ' ' | '\t') || lines && matches!(c, '\r' | '\n');
        loop {
            self.eat_while(is_space);
            if self.peek() != Some('#') {
                break;
            }
            self.eat_while(|c| !matches!(c, '\r' | '\n'));
        }
    }

    /// Skips `text`, or fails if other text comes next.
    pub(super) fn expect(&mut self, text: &str, purpose: &str) -> Result<()> {
        if self.eat(text) {
            return Ok(());
        }
        Err(self.error(self.at, format!("expected `{text}` {purpose}, found {}", self.found())))
    }

    /// The next character, for an error message.
    pub(super) fn found(&self) -> String {
        match self.peek() {
            None => "the end of the grammar".into(),
            Some('\r' | '\n') => "the end of the line".into(),
            Some(c) => format!("`{}`", c.escape_debug()),
        }
    }

    /// A number without a sign.
    pub(super) fn number(&mut self) -> Result<u32> {
        let start = self.at;
        let digits = self.eat_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.error(start, format!("expected a number, found {}", self.found())));
        }
        digits.parse().map_err(|_| self.error(start, "a number beyond 32 bits"))
    }

    /// An error at a byte offset.
    pub(super) fn error(&self, offset: usize, reason: impl Into<String>) -> Error {
        self.source.error(offset, self.rule, reason)
    }
}
