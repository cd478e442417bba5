//! Items written in JSON: `%json {…}`, `%regex {…}`, `%llguidance {…}` and `%grammar_options {…}`.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::super::form::{Expression, Node};
use super::cursor::Cursor;
use super::guidance;
use super::tree::Options;
use crate::Constraint;
use burn_dfa_common::Result;

/// The value of `%regex`: a contiguous run of a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Structured {
    substring_chunks: Option<Vec<String>>,
    /// A text to be split into words, blanks and other characters.
    substring_words: Option<String>,
    /// To be cut into characters.
    substring_chars: Option<String>,
}

/// The options of `%llguidance` and `%grammar_options`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrammarOptions {
    allow_initial_skip: Option<bool>,
    allow_invalid_utf8: Option<bool>,
    ignore_once: Option<bool>,
    /// Selects the tokenization of forced text, which does not affect the language.
    #[serde(rename = "no_forcing")]
    _no_forcing: Option<bool>,
    skip_repetition: Option<String>,
}

impl<'t> Cursor<'t> {
    /// Reads a JSON value; returns its offset and its text.
    fn json(&mut self, directive: &str) -> Result<(usize, &'t str)> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        let (at, rest) = (self.at, self.rest());
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {
                self.at += values.byte_offset();
                Ok((at, &rest[..values.byte_offset()]))
            }
            Some(Err(error)) => Err(self.malformed(at, directive, &error)),
            None => Err(self.error(format!("expected JSON after `{directive}`, found {}", self.found()))),
        }
    }

    /// An error at the location given by `error` within the JSON text at `at`.
    fn malformed(
        &self,
        at: usize,
        directive: &str,
        error: &serde_json::Error,
    ) -> burn_dfa_common::error::Error {
        let text = &self.source.text[at..];
        let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
        let offset = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or_default();
        self.error_at(at + offset, format!("the JSON after `{directive}`: {reason}"))
    }

    fn deserialize<T: DeserializeOwned>(&mut self, directive: &str) -> Result<(usize, T)> {
        let (at, text) = self.json(directive)?;
        if !text.starts_with('{') {
            return Err(self.error_at(at, format!("expected an object after `{directive}`")));
        }
        let value = serde_json::from_str(text).map_err(|error| self.malformed(at, directive, &error))?;
        Ok((at, value))
    }

    /// Reads the schema after `%json`.
    pub(super) fn schema(&mut self) -> Result<Expression> {
        let (at, text) = self.json("%json")?;
        let options = guidance::options(text).map_err(|reason| self.error_at(at, reason))?;
        let constraint = Constraint::json_schema_from_str_with(text, &options)
            .map_err(|error| self.error_at(at, error.to_string()))?;
        Ok(Expression::constraint(constraint))
    }

    /// Reads the value of `%regex`.
    pub(super) fn structured_regex(&mut self) -> Result<Expression> {
        let (at, given) = self.deserialize::<Structured>("%regex")?;
        let pieces = match (given.substring_chunks, given.substring_words, given.substring_chars) {
            (Some(chunks), None, None) => chunks,
            (None, Some(text), None) => words(&text),
            (None, None, Some(text)) => text.chars().map(String::from).collect(),
            (None, None, None) => {
                let reason = "`%regex` needs `substring_chunks`, `substring_words` or `substring_chars`";
                return Err(self.error_at(at, reason));
            }
            _ => return Err(self.error_at(at, "`%regex` takes one of its names at a time")),
        };
        Ok(Expression(Node::Substring(Arc::from(pieces))))
    }

    /// Reads the value of `%llguidance` or `%grammar_options`, which overrides earlier ones.
    pub(super) fn options(&mut self, directive: &str, options: &mut Options) -> Result<()> {
        let (at, given) = self.deserialize::<GrammarOptions>(directive)?;
        if given.allow_invalid_utf8 == Some(true) {
            let reason =
                "`allow_invalid_utf8` is not supported: ask for bytes in a regex, such as `(?-u:\\xFF)`";
            return Err(self.error_at(at, reason));
        }
        options.leading = given.allow_initial_skip.unwrap_or(options.leading);
        options.once = given.ignore_once.unwrap_or(options.once);
        match given.skip_repetition.as_deref() {
            None => Ok(()),
            Some("once") => {
                options.once = true;
                Ok(())
            }
            Some(other) => {
                let reason = format!("`skip_repetition` may be \"once\", not {other:?}");
                Err(self.error_at(at, reason))
            }
        }
    }
}

/// The longest runs of letters, digits and `_`; of blanks; and of other characters.
fn words(text: &str) -> Vec<String> {
    let kind = |c: char| (c.is_whitespace(), c.is_alphanumeric() || c == '_');
    let mut words: Vec<String> = Vec::new();
    let mut last = None;
    for next in text.chars() {
        match words.last_mut() {
            Some(word) if last == Some(kind(next)) => word.push(next),
            _ => words.push(next.into()),
        }
        last = Some(kind(next));
    }
    words
}
