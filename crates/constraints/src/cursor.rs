//! A position in a text, for the readers of grammars and patterns.

/// A text and the current position.
pub(crate) struct TextCursor<'t> {
    pub(crate) text: &'t str,
    /// In bytes.
    pub(crate) at: usize,
}

impl<'t> TextCursor<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The unread text.
    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Skips `text` if it comes next, and returns whether it does.
    pub(crate) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Reads the next characters of a kind; may read none.
    pub(crate) fn eat_while(&mut self, is_one: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let found = &rest[..rest.find(|c| !is_one(c)).unwrap_or(rest.len())];
        self.at += found.len();
        found
    }
}
