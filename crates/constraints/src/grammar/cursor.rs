//! A position in the text of a grammar.

use super::source::Source;
use burn_dfa_common::{Error, Result};

/// The text, the current position, and the rule at this position.
pub(super) struct Cursor<'t> {
    source: Source<'t>,
    /// In bytes.
    pub(super) at: usize,
    pub(super) rule: Option<&'t str>,
}

impl<'t> Cursor<'t> {
    /// # Errors
    /// The text exceeds the size limit of grammars.
    pub(super) fn new(text: &'t str) -> Result<Self> {
        Ok(Self { source: Source::new(text)?, at: 0, rule: None })
    }

    pub(super) fn text(&self) -> &'t str {
        self.source.text
    }

    /// The unread text.
    pub(super) fn rest(&self) -> &'t str {
        &self.source.text[self.at..]
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

    /// Reads the next characters of a kind; may read none.
    pub(super) fn eat_while(&mut self, is_one: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let found = &rest[..rest.find(|c| !is_one(c)).unwrap_or(rest.len())];
        self.at += found.len();
        found
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
