//! A grammar's text, and errors with a location in it.

use burn_dfa_common::{Error, Result};

/// Most bytes of a grammar.
const MAX_BYTES: usize = 16 << 20;

/// Most characters of a line in an error message.
const SHOWN: usize = 80;

/// The text of a grammar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'t> {
    pub(super) text: &'t str,
}

impl<'t> Source<'t> {
    /// # Errors
    /// The text exceeds the size limit of grammars.
    pub(super) fn new(text: &'t str) -> Result<Self> {
        let source = Self { text };
        if text.len() > MAX_BYTES {
            return Err(source.error(0, None, format!("it is longer than {MAX_BYTES} bytes; split it")));
        }
        Ok(source)
    }

    /// An error at a byte offset, within a rule if known.
    pub(super) fn error(&self, offset: usize, rule: Option<&str>, reason: impl Into<String>) -> Error {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let line = 1 + before.matches('\n').count();
        let ahead = before[begin..].chars().count();
        let whole = self.text[begin..].lines().next().unwrap_or_default();
        // The part of a long line around the offset.
        let skipped = ahead.saturating_sub(SHOWN / 2);
        let shown = whole.chars().skip(skipped).take(SHOWN).map(|c| if c.is_control() { ' ' } else { c });
        let snippet = format!("{}\n{}^", shown.collect::<String>(), " ".repeat(ahead - skipped));
        Error::grammar(line, ahead + 1, rule.map(str::to_owned), reason.into(), snippet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_the_place() {
        let source = Source::new("root ::= a\na ::= \u{e9} %").unwrap();
        let error = source.error(source.text.len() - 1, Some("a"), "`%` means nothing here");
        assert_eq!(error.location(), Some((2, 9)));
        assert_eq!(
            error.to_string(),
            "grammar, line 2, column 9, in the rule `a`: `%` means nothing here\n    a ::= \u{e9} %\n            ^"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{}%{}", "x".repeat(1000), "y".repeat(1000));
        let error = Source::new(&text).unwrap().error(1000, None, "no").to_string();
        assert!(error.lines().all(|line| line.chars().count() <= SHOWN + 4), "{error}");
        assert_eq!(error.lines().last().unwrap().chars().count(), SHOWN / 2 + 5);
    }
}
