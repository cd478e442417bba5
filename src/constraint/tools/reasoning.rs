//! Reasoning in front of an answer.

use crate::constraint::{AnyText, Format, TokenRef};
use crate::error::{Error, Result};

/// Most bytes of a mark.
const MAX_MARK: usize = 256;

/// The text between two marks that comes before an answer, such as `<think>…</think>`.
///
/// ```
/// use burn_dfa::constraint::{Reasoning, Tools};
/// use burn_dfa::Limits;
///
/// // The template of the chat wrote `<think>` already.
/// let tools = Tools::new([])?.with_reasoning(Reasoning::think().opened());
/// let automaton = tools.to_constraint()?.to_automaton(&Limits::default())?.unwrap();
/// assert!(automaton.matches(b"2 + 2 is 4.</think>4"));
/// assert_eq!(tools.read("2 + 2 is 4.</think>4")?.reasoning, "2 + 2 is 4.");
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reasoning {
    begin: String,
    end: String,
    after: String,
    are_tokens: bool,
    is_open: bool,
    is_optional: bool,
}

impl Reasoning {
    /// Text between two texts.
    pub fn text(begin: impl Into<String>, end: impl Into<String>) -> Self {
        let (begin, end) = (begin.into(), end.into());
        let after = String::new();
        Self { begin, end, after, are_tokens: false, is_open: false, is_optional: false }
    }

    /// Tokens between two special tokens, which are told by their texts. A [`ToolReader`](super::ToolReader) reads these texts,
    /// so special tokens must not be left out of what it is given.
    pub fn tokens(begin: impl Into<String>, end: impl Into<String>) -> Self {
        Self { are_tokens: true, ..Self::text(begin, end) }
    }

    /// Text between `<think>` and `</think>`.
    pub fn think() -> Self {
        Self::text("<think>", "</think>")
    }

    /// The text that comes between the end of the reasoning and the answer, such as two line breaks. Without it an answer that
    /// has to be a call begins at once.
    #[must_use]
    pub fn with_after(self, after: impl Into<String>) -> Self {
        Self { after: after.into(), ..self }
    }

    /// Reasoning whose beginning is in the prompt already.
    #[must_use]
    pub fn opened(self) -> Self {
        Self { is_open: true, ..self }
    }

    /// Reasoning that may be left out.
    #[must_use]
    pub fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.begin.is_empty() || self.end.is_empty() {
            return Err(Error::input("reasoning begins and ends with texts that are not empty"));
        }
        if [&self.begin, &self.end, &self.after].into_iter().any(|mark| mark.len() > MAX_MARK) {
            return Err(Error::input(format!("a mark of reasoning is longer than {MAX_MARK} bytes")));
        }
        if self.is_open && self.is_optional {
            return Err(Error::input("reasoning that is open already cannot be left out"));
        }
        Ok(())
    }

    /// Whether the marks are these, and comes as a whole.
    pub(super) fn is_between(&self, begin: &str, end: &str) -> bool {
        self.begin == begin && self.end == end && !self.are_tokens && !self.is_open && self.after.is_empty()
    }

    /// What the output begins with in front of its answer, and how the reasoning itself begins.
    pub(super) fn format(&self) -> (Format, String) {
        let begin = if self.is_open { "" } else { self.begin.as_str() };
        let text = if self.are_tokens {
            let end = TokenRef::from(self.end.as_str());
            let content = Format::any_tokens([self.begin.as_str()]);
            match self.is_open {
                true => Format::tag("", content, end),
                false => Format::tag(TokenRef::from(begin), content, end),
            }
        } else {
            let content = AnyText::new().with_excludes([self.begin.as_str()]);
            Format::tag(begin, content, self.end.as_str())
        };
        let whole = match self.after.is_empty() {
            true => text,
            false => Format::sequence([text, Format::const_string(self.after.as_str())]),
        };
        (if self.is_optional { whole.optional() } else { whole }, begin.to_owned())
    }

    /// Texts that an answer does not contain.
    pub(super) fn marks(&self) -> impl Iterator<Item = &str> {
        let texts = [self.begin.as_str(), self.end.as_str()];
        texts.into_iter().filter(|_| !self.are_tokens)
    }
}
