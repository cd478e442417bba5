//! Reasoning before an answer.

use crate::{AnyText, Format, TokenRef};
use burn_dfa_common::{Error, Result};

/// Most bytes of a mark.
const MAX_MARK: usize = 256;

/// The text between two marks before an answer, such as `<think>…</think>`.
///
/// ```
/// use burn_dfa_tokens::constraint::{Reasoning, Tools};
/// use burn_dfa_tokens::Limits;
///
/// // The template of the chat wrote `<think>` already.
/// let tools = Tools::new([])?.with_reasoning(Reasoning::think().opened());
/// let automaton = tools.to_constraint()?.to_automaton(&Limits::default())?.unwrap();
/// assert!(automaton.matches(b"2 + 2 is 4.</think>4"));
/// assert_eq!(tools.read("2 + 2 is 4.</think>4")?.reasoning, "2 + 2 is 4.");
/// # Ok::<(), burn_dfa_tokens::Error>(())
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

    /// Tokens between two special tokens, given by their texts. A [`ToolReader`](super::ToolReader)
    /// reads these texts, so its input must include special tokens.
    pub fn tokens(begin: impl Into<String>, end: impl Into<String>) -> Self {
        Self { are_tokens: true, ..Self::text(begin, end) }
    }

    /// Text between `<think>` and `</think>`.
    pub fn think() -> Self {
        Self::text("<think>", "</think>")
    }

    /// Sets the text between the end of the reasoning and the answer, such as two line breaks.
    /// Without it, a required call begins at once.
    #[must_use]
    pub fn with_after(self, after: impl Into<String>) -> Self {
        Self { after: after.into(), ..self }
    }

    /// Reasoning that begins in the prompt.
    #[must_use]
    pub fn opened(self) -> Self {
        Self { is_open: true, ..self }
    }

    /// Reasoning that may be omitted.
    #[must_use]
    pub fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }

    /// The texts around the reasoning in an answer: the begin, and the end with the
    /// [text after it](Self::with_after).
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::Reasoning;
    ///
    /// let reasoning = Reasoning::think().with_after("\n\n");
    /// assert_eq!(reasoning.delimiters(), ("<think>", "</think>\n\n".to_owned()));
    /// ```
    pub fn delimiters(&self) -> (&str, String) {
        (&self.begin, format!("{}{}", self.end, self.after))
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

    /// Whether the reasoning has exactly these text marks, begins in the output, and has no text
    /// after it.
    pub(super) fn is_between(&self, begin: &str, end: &str) -> bool {
        self.begin == begin && self.end == end && !self.are_tokens && !self.is_open && self.after.is_empty()
    }

    /// The format before the answer, and the begin of the reasoning itself.
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

    /// Excluded texts of an answer.
    pub(super) fn marks(&self) -> impl Iterator<Item = &str> {
        let texts = [self.begin.as_str(), self.end.as_str()];
        texts.into_iter().filter(|_| !self.are_tokens)
    }
}
