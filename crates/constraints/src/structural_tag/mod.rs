//! Structural tags: free text, tags and schemas, in the JSON form of XGrammar, vLLM, SGLang and
//! TensorRT-LLM.
//!
//! ```text
//! JSON ──read──▶ StructuralTag ──lower──▶ Grammar
//! ```
//!
//! - `format` has the formats, `build` constructs them in Rust;
//! - `read` reads them from JSON, `location` locates errors;
//! - `lower` converts them to expressions; `free_text` is text with triggers, `words` are triggers
//!   with their continuations, `style` writes the values of schemas.

mod build;
mod format;
mod free_text;
mod location;
mod lower;
mod read;
mod style;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;

use serde::ser::{Serialize, SerializeStruct, Serializer};

pub use self::format::{
    AnyText, Begin, Dispatch, End, Format, SchemaFormat, Style, Tag, TagsWithSeparator, TokenDispatch,
    TokenFormat, TokenRef, TokenTriggeredTags, TriggeredTags,
};
pub(crate) use self::style::{Marks, Styled, marks_of};
use super::grammar::GivenGrammar;
use super::json_schema::Json;
use super::{Additional, Constraint, JsonOptions, Kind, Whitespace};
use burn_dfa_common::{Error, Result};

/// Deepest nesting of the input.
const MAX_DEPTH: usize = 512;

/// A structural tag: a [format](Format) of the whole text.
///
/// It is read from JSON, `{"type": "structural_tag", "format": …}` or in the old form
/// `{"triggers": …, "structures": …}`, or built in Rust.
///
/// ```
/// use burn_dfa_tokens::constraint::{Format, StructuralTag};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let schema =
///     json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let thought = Format::tag("<think>", Format::any_text(), "</think>");
/// let call = Format::tag("<call>", Format::json_schema(schema), "</call>");
/// let tag = StructuralTag::new(Format::sequence([thought, call]));
/// let automaton = Constraint::structural_tag(&tag)?.to_automaton(&Limits::default())?.unwrap();
/// assert!(automaton.matches(br#"<think>Where?</think><call>{"city": "Bern"}</call>"#));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StructuralTag {
    /// The format of the whole text.
    pub format: Format,
}

impl StructuralTag {
    /// Texts of a format.
    pub fn new(format: impl Into<Format>) -> Self {
        Self { format: format.into() }
    }

    /// The options of the schemas in structural tags, as strict as in XGrammar. An object with
    /// declared properties has no others unless `additionalProperties` allows them, and properties
    /// come in the order in which they are declared. White space may come between the tokens of
    /// JSON, as with XGrammar's default `any_whitespace`: up to 16 characters between two tokens,
    /// unless `max_whitespace_cnt` sets another limit.
    pub fn json_options() -> JsonOptions {
        JsonOptions::new().with_additional(Additional::Closed).with_whitespace(Whitespace::FLEXIBLE)
    }

    /// Reads a structural tag from JSON text.
    ///
    /// # Errors
    /// [`ErrorKind::StructuralTag`](crate::ErrorKind::StructuralTag): malformed, with the JSON
    /// [`pointer`](Error::pointer).
    pub fn read(text: &str) -> Result<Self> {
        let malformed =
            |error: super::json_schema::Malformed| Error::structural_tag(error.pointer, error.reason);
        Self::of_json(&Json::read(text).map_err(malformed)?)
    }

    pub(super) fn of_json(json: &Json) -> Result<Self> {
        if json.is_deeper_than(MAX_DEPTH) {
            return Err(Error::structural_tag("", format!("it is nested more than {MAX_DEPTH} deep")));
        }
        read::read(json)
    }
}

impl Serialize for StructuralTag {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut tag = serializer.serialize_struct("StructuralTag", 2)?;
        tag.serialize_field("type", "structural_tag")?;
        tag.serialize_field("format", &self.format)?;
        tag.end()
    }
}

impl Constraint {
    /// The texts of a structural tag, given as JSON or built in Rust. Its schemas are read with the
    /// [options](StructuralTag::json_options) of structural tags.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    /// use serde_json::json;
    ///
    /// let tag = json!({"type": "structural_tag", "format": {
    ///     "type": "triggered_tags",
    ///     "triggers": ["<call="],
    ///     "tags": [{
    ///         "begin": "<call=add>",
    ///         "content": {"type": "regex", "pattern": "\\d+,\\d+"},
    ///         "end": "</call>"
    ///     }]
    /// }});
    /// let automaton =
    ///     Constraint::structural_tag(&tag)?.to_automaton(&Limits::default())?.unwrap();
    /// assert!(automaton.matches(b"Let me see: <call=add>1,2</call>"));
    /// assert!(!automaton.matches(b"<call=sub>1,2</call>"));
    ///
    /// let error =
    ///     Constraint::structural_tag(&json!({"format": {"type": "const_string"}})).unwrap_err();
    /// assert_eq!(error.pointer(), Some("/format"));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::StructuralTag`](crate::ErrorKind::StructuralTag): the tag is malformed or
    ///   cannot be honored exactly, with the JSON [`pointer`](Error::pointer);
    /// - [`ErrorKind::Schema`](crate::ErrorKind::Schema): a schema is malformed or cannot be
    ///   honored, with the pointer into the structural tag.
    pub fn structural_tag<T>(tag: T) -> Result<Self>
    where
        StructuralTag: TryFrom<T, Error = Error>,
    {
        Self::structural_tag_with(tag, &StructuralTag::json_options())
    }

    /// Like [`structural_tag`](Self::structural_tag), with other options for its schemas.
    ///
    /// # Errors
    /// See [`structural_tag`](Self::structural_tag).
    pub fn structural_tag_with<T>(tag: T, options: &JsonOptions) -> Result<Self>
    where
        StructuralTag: TryFrom<T, Error = Error>,
    {
        let tag = StructuralTag::try_from(tag)?;
        let grammar = lower::lower(&tag, options)?;
        let given = GivenGrammar::Tag(Box::new(tag), Box::new(options.clone()));
        Ok(Kind::Grammar(Arc::new(grammar), Some(Arc::new(given))).into())
    }
}
