//! A position in the text of a grammar: blanks, names and numbers.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::super::source::Source;
use crate::Regex;
use crate::cursor::TextCursor;
use burn_dfa_common::{Error, Result};

/// Most groups, options, complements and grammars within each other.
const MAX_NESTING: usize = 128;

/// The text of a grammar, the current offset, and what was read before it.
pub(super) struct Cursor<'t> {
    pub(super) source: Source<'t>,
    position: TextCursor<'t>,
    /// The current definition.
    pub(super) rule: Option<&'t str>,
    /// Number of open brackets in this definition: a line ends only if none is open.
    pub(super) brackets: usize,
    nesting: usize,
    /// Whether a part of this definition depends on the parameter of a rule.
    pub(super) depends: bool,
    /// The arguments of templates so far, by text.
    pub(super) arguments: HashMap<&'t str, usize>,
    /// The regexes so far, by pattern.
    pub(super) regexes: HashMap<String, Arc<Regex>>,
    /// The used part of the budgets for regexes and tokens.
    pub(super) spent: Spent,
}

/// Constructs whose cost exceeds the length of their text.
#[derive(Default)]
pub(super) struct Spent {
    /// Bytes of patterns.
    pub(super) pattern: usize,
    /// Named classes, such as `\w`.
    pub(super) named: usize,
    /// Ids of tokens.
    pub(super) tokens: usize,
}

/// A name, and its kind by its letters.
#[derive(Clone, Copy)]
pub(super) struct Name<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// Whether its letters are capitals.
    pub(super) capital: bool,
}

/// Reads the text.
impl<'t> Deref for Cursor<'t> {
    type Target = TextCursor<'t>;

    fn deref(&self) -> &Self::Target {
        &self.position
    }
}

impl DerefMut for Cursor<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.position
    }
}

impl<'t> Cursor<'t> {
    pub(super) fn new(source: Source<'t>) -> Self {
        Self {
            source,
            position: TextCursor::new(source.text),
            rule: None,
            brackets: 0,
            nesting: 0,
            depends: false,
            arguments: HashMap::new(),
            regexes: HashMap::new(),
            spent: Spent::default(),
        }
    }

    /// An error at an offset.
    pub(super) fn error_at(&self, offset: usize, reason: impl Into<String>) -> Error {
        self.source.error(offset, self.rule, reason)
    }

    /// An error at the current position.
    pub(super) fn error(&self, reason: impl Into<String>) -> Error {
        self.error_at(self.at, reason)
    }

    /// The next character, for an error message.
    pub(super) fn found(&self) -> String {
        match self.peek() {
            None => "the end of the text".into(),
            Some('\n' | '\r') => "the end of the line".into(),
            Some(other) => format!("`{}`", other.escape_debug()),
        }
    }

    /// Skips blanks and comments, and the ends of lines within brackets.
    pub(super) fn blanks(&mut self) {
        if self.brackets > 0 {
            return self.lines();
        }
        loop {
            self.eat_while(|c| matches!(c, ' ' | '\t' | '\u{c}'));
            if !self.comment() && !self.join() {
                return;
            }
        }
    }

    /// Skips blanks, comments and the ends of lines.
    pub(super) fn lines(&mut self) {
        loop {
            self.eat_while(|c| matches!(c, ' ' | '\t' | '\u{c}' | '\n' | '\r'));
            if !self.comment() && !self.join() {
                return;
            }
        }
    }

    fn comment(&mut self) -> bool {
        let found = self.rest().starts_with('#') || self.rest().starts_with("//");
        if found {
            self.eat_while(|c| !matches!(c, '\n' | '\r'));
        }
        found
    }

    /// Skips a backslash at the end of a line, and the end of the line.
    fn join(&mut self) -> bool {
        let Some(behind) = self.rest().strip_prefix('\\') else { return false };
        let behind = behind.trim_start_matches(' ');
        let next = behind.strip_prefix("\r\n").or_else(|| behind.strip_prefix('\n'));
        if let Some(next) = next {
            self.at = self.source.text.len() - next.len();
        }
        next.is_some()
    }

    /// Skips blanks, and `text` if it comes next; returns whether it does.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        self.blanks();
        self.position.eat(text)
    }

    /// Skips blanks and `text`.
    ///
    /// # Errors
    /// Another text comes next.
    pub(super) fn expect(&mut self, text: &str, context: &str) -> Result<()> {
        if self.eat(text) {
            return Ok(());
        }
        Err(self.error(format!("expected `{text}` {context}, found {}", self.found())))
    }

    /// Reads the closing bracket of the bracket at `open`.
    pub(super) fn close(&mut self, text: &str, open: usize) -> Result<()> {
        if self.eat(text) {
            return Ok(());
        }
        let opened = &self.source.text[open..=open];
        Err(self.error(format!("expected `{text}`, which closes `{opened}`, found {}", self.found())))
    }

    /// Whether a name comes next.
    pub(super) fn at_name(&self) -> bool {
        self.peek().is_some_and(|next| next.is_ascii_alphabetic() || next == '_')
    }

    /// Reads a name.
    pub(super) fn name(&mut self, what: &str) -> Result<Name<'t>> {
        self.blanks();
        if !self.at_name() {
            return Err(self.error(format!("expected {what}, found {}", self.found())));
        }
        let (at, rest) = (self.at, self.rest());
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(rest.len());
        let mut text = &rest[..end];
        // Of `a->b` the dash belongs to the arrow.
        if rest[end..].starts_with('>') {
            text = text.trim_end_matches('-');
        }
        let capital = text.bytes().any(|byte| byte.is_ascii_uppercase());
        if capital == text.bytes().any(|byte| byte.is_ascii_lowercase()) {
            let reason = if capital { "mixes small letters and capitals" } else { "has no letter" };
            return Err(self.error(format!(
                "the name `{text}` {reason}: a rule is written in small letters, a terminal in capitals"
            )));
        }
        self.at += text.len();
        Ok(Name { text, at, capital })
    }

    /// Reads a number without sign, point or exponent.
    pub(super) fn count(&mut self) -> Result<usize> {
        self.blanks();
        let at = self.at;
        let digits = self.eat_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.error(format!("expected a number from 0 on, found {}", self.found())));
        }
        let count = digits.parse::<u32>().ok().filter(|&count| i32::try_from(count).is_ok());
        let count = count.ok_or_else(|| self.error_at(at, format!("a count is at most {}", i32::MAX)))?;
        Ok(count as usize)
    }

    /// Reads one nesting level deeper.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting == MAX_NESTING {
            return Err(self.error(format!("more than {MAX_NESTING} levels of nesting: name a part of it")));
        }
        self.nesting += 1;
        let read = read(self);
        self.nesting -= 1;
        read
    }

    /// Reads the text within brackets.
    pub(super) fn bracketed<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.deeper(|cursor| {
            cursor.brackets += 1;
            let read = read(cursor);
            cursor.brackets -= 1;
            read
        })
    }
}
