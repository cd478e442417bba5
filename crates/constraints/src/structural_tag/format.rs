//! The formats of a structural tag, in their JSON form.
//!
//! Each type has the name and the fields of XGrammar's. Absent fields are not written either, so a
//! tag is written as it was read.

use serde::Serialize;
use serde_json::Value;

use crate::GrammarText;

/// A constraint on a text, or on a part of it.
///
/// A format is JSON with its `type`, or is built in Rust.
///
/// ```
/// use burn_dfa_tokens::constraint::{Format, StructuralTag, Tag};
/// use serde_json::json;
///
/// let built = Format::tag("<b>", Format::any_text(), "</b>");
/// let read = StructuralTag::try_from(&json!({
///     "type": "structural_tag",
///     "format": {"type": "tag", "begin": "<b>", "content": {"type": "any_text"}, "end": "</b>"}
/// }))?;
/// assert_eq!(read, StructuralTag::new(built));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// One text as it is.
    ConstString {
        /// The text.
        value: String,
    },
    /// JSON, or XML, of a schema.
    JsonSchema(SchemaFormat),
    /// A text of a grammar in XGrammar's [EBNF](super::super::Syntax::Ebnf).
    Grammar {
        /// The grammar; texts begin with `root`.
        grammar: String,
    },
    /// A text of a grammar in any syntax, such as the grammar of a custom tool. XGrammar does not
    /// have this format. Named classes of a regex are ASCII.
    GrammarText(GrammarText),
    /// A regular expression in XGrammar's syntax, matched as a whole.
    Regex {
        /// The pattern.
        pattern: String,
    },
    /// Any text.
    AnyText(AnyText),
    /// All elements, in order.
    Sequence {
        /// At least one.
        elements: Vec<Format>,
    },
    /// One of the elements.
    Or {
        /// At least one.
        elements: Vec<Format>,
    },
    /// Once or not at all.
    Optional {
        /// The optional format.
        content: Box<Format>,
    },
    /// Once or more often.
    Plus {
        /// The repeated format.
        content: Box<Format>,
    },
    /// Any number of times.
    Star {
        /// The repeated format.
        content: Box<Format>,
    },
    /// A number of times.
    Repeat {
        /// Minimum number of repetitions.
        min: u32,
        /// Maximum number of repetitions; -1 for no bound.
        max: i64,
        /// The repeated format.
        content: Box<Format>,
    },
    /// A text between two others.
    Tag(Tag),
    /// Free text with triggers that begin tags.
    TriggeredTags(TriggeredTags),
    /// Only tags, with a separator between two tags.
    TagsWithSeparator(TagsWithSeparator),
    /// Free text with patterns, each followed by its format.
    Dispatch(Dispatch),
    /// The old name of a schema in the style `qwen_xml`.
    QwenXmlParameter {
        /// The schema.
        json_schema: Value,
    },
    /// One token.
    Token {
        /// The token.
        token: TokenRef,
    },
    /// Any one token but some.
    ExcludeToken {
        /// The excluded tokens.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        exclude_tokens: Vec<TokenRef>,
    },
    /// Any number of any tokens but some.
    AnyTokens {
        /// The excluded tokens.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        exclude_tokens: Vec<TokenRef>,
        /// The maximum number of tokens.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u32>,
    },
    /// Any tokens, with trigger tokens that begin tags.
    TokenTriggeredTags(TokenTriggeredTags),
    /// Any tokens, with pattern tokens, each followed by its format.
    TokenDispatch(TokenDispatch),
}

/// A JSON schema, and how its values are written; see [`Format::JsonSchema`].
///
/// ```
/// use burn_dfa_tokens::constraint::{Format, SchemaFormat, Style};
/// use serde_json::json;
///
/// let schema =
///     json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let parameters: Format = SchemaFormat::new(schema).with_style(Style::QwenXml).into();
/// # let _ = parameters;
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SchemaFormat {
    /// The schema.
    pub json_schema: Value,
    /// How values are written.
    #[serde(skip_serializing_if = "is_default")]
    pub style: Style,
    /// Whether the properties of objects may come in any order, each at most once, and required
    /// ones exactly once.
    #[serde(skip_serializing_if = "is_default")]
    pub any_order: bool,
    /// Most characters of white space between two tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_whitespace_cnt: Option<u32>,
    /// Excluded texts of strings and names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
}

/// The style of the values of a schema.
///
/// In all styles but [`Json`](Self::Json) the outermost value is an object, whose properties are
/// XML elements. Strings in them are written without quotes and escapes; other values as JSON, or
/// in [`CohereXml`](Self::CohereXml) as elements again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Style {
    /// JSON.
    #[default]
    Json,
    /// `<parameter=name>value</parameter>`
    QwenXml,
    /// `<parameter name="name">value</parameter>`
    MinimaxXml,
    /// MiniMax M3's style, which is rejected.
    MinimaxM3Xml,
    /// `<｜DSML｜parameter name="name" string="true">value</｜DSML｜parameter>`
    DeepseekXml,
    /// `<arg_key>name</arg_key><arg_value>value</arg_value>`
    GlmXml,
    /// `<cofl:value name="name" type="raw">value</cofl:value>`
    CohereXml,
    /// `<|open|>argument key="name" type="string"<|sep|>value<|close|>argument<|sep|>`
    KimiK3Xml,
    /// `<｜DSML｜ parameter name="name" string="true">value</｜DSML｜ parameter>`
    #[serde(rename = "deepseek_v4_1_xml")]
    DeepseekV41Xml,
}

impl Style {
    /// All styles, by name.
    pub(super) const NAMES: [(&'static str, Self); 9] = [
        ("json", Self::Json),
        ("qwen_xml", Self::QwenXml),
        ("minimax_xml", Self::MinimaxXml),
        ("minimax_m3_xml", Self::MinimaxM3Xml),
        ("deepseek_xml", Self::DeepseekXml),
        ("glm_xml", Self::GlmXml),
        ("cohere_xml", Self::CohereXml),
        ("kimi_k3_xml", Self::KimiK3Xml),
        ("deepseek_v4_1_xml", Self::DeepseekV41Xml),
    ];
}

/// Any text; see [`Format::AnyText`]. It does not contain the `end` of the tag around it.
///
/// ```
/// use burn_dfa_tokens::constraint::{AnyText, Format};
///
/// let short: Format = AnyText::new().with_excludes(["<"]).with_max_chars(80).into();
/// # let _ = short;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AnyText {
    /// Excluded texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// Most tokens that begin in it, see [`Expression::max_tokens`](crate::Expression::max_tokens).
    /// With counted tokens, nothing may be recursive; 2,147,483,647 means no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Most characters; 2,147,483,647 means no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<u32>,
}

/// A text between its begin and its end; see [`Format::Tag`].
///
/// ```
/// use burn_dfa_tokens::constraint::{Format, Tag};
///
/// let tag = Tag::new("<answer>", Format::regex("[0-9]+"), ["</answer>", "</a>"]);
/// assert_eq!(tag.end, ["</answer>", "</a>"].into());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Tag {
    /// The begin of the tag.
    pub begin: Begin,
    /// The content of the tag.
    pub content: Box<Format>,
    /// The end of the tag.
    pub end: End,
}

/// The begin of a [`Tag`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Begin {
    /// A text, possibly empty.
    Text(String),
    /// A token.
    Token(TokenFormat),
}

/// The end of a [`Tag`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum End {
    /// A text, possibly empty.
    Text(String),
    /// One text of a non-empty list.
    Texts(Vec<String>),
    /// A token.
    Token(TokenFormat),
}

/// Free text with triggers that begin tags; see [`Format::TriggeredTags`].
///
/// A trigger is a prefix of the `begin` of its tags, and each tag has one. The first complete
/// trigger counts; if several are complete at once, the longest. An incomplete trigger is free
/// text.
///
/// ```
/// use burn_dfa_tokens::constraint::{Format, StructuralTag, Tag, TriggeredTags};
/// use burn_dfa_tokens::{Constraint, Limits};
///
/// let tags = ["f", "g"]
///     .map(|name| Tag::new(&*format!("<call={name}>"), Format::regex("[0-9]*"), "</call>"));
/// let calls = TriggeredTags::new(["<call="], tags);
/// let constraint = Constraint::structural_tag(&StructuralTag::new(calls))?;
/// let automaton = constraint.to_automaton(&Limits::default())?.unwrap();
/// assert!(automaton.matches(b"2 < 3, so <call=g>23</call> will do"));
/// assert!(!automaton.matches(b"<call=h>23</call>"));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TriggeredTags {
    /// The triggers, none of them empty.
    pub triggers: Vec<String>,
    /// The tags.
    pub tags: Vec<Tag>,
    /// Whether a tag comes first, before any free text.
    #[serde(skip_serializing_if = "is_default")]
    pub at_least_one: bool,
    /// Whether the first tag is the end.
    #[serde(skip_serializing_if = "is_default")]
    pub stop_after_first: bool,
    /// Excluded texts of free text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
}

/// Tags with a separator between two tags; see [`Format::TagsWithSeparator`].
///
/// ```
/// use burn_dfa_tokens::constraint::{Format, Tag, TagsWithSeparator};
///
/// let tag = Tag::new("<b>", Format::any_text(), "</b>");
/// let list: Format = TagsWithSeparator::new([tag], ", ").with_at_least_one(true).into();
/// # let _ = list;
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TagsWithSeparator {
    /// The tags.
    pub tags: Vec<Tag>,
    /// The separator between two tags, possibly empty.
    pub separator: String,
    /// Whether at least one tag is required.
    #[serde(skip_serializing_if = "is_default")]
    pub at_least_one: bool,
    /// Whether the first tag is the end.
    #[serde(skip_serializing_if = "is_default")]
    pub stop_after_first: bool,
}

/// Free text with patterns, each followed by its format; see [`Format::Dispatch`].
///
/// The first complete pattern counts. Unlike [`TriggeredTags`], the free text may contain the `end`
/// of the enclosing tag, unless it is excluded.
///
/// ```
/// use burn_dfa_tokens::constraint::{Dispatch, Format};
///
/// let dispatch: Format = Dispatch::new([("@", Format::regex("[a-z]+"))]).into();
/// # let _ = dispatch;
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Dispatch {
    /// Non-empty patterns, each with the format after it.
    pub rules: Vec<(String, Format)>,
    /// Whether free text continues after the format.
    #[serde(rename = "loop", skip_serializing_if = "is_true")]
    pub again: bool,
    /// Excluded texts of free text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
}

/// A token by its id, or all tokens by their text, as in grammars.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum TokenRef {
    /// An id.
    Id(u32),
    /// Every token with this text, such as the special token `<think>`, including ordinary text
    /// tokens.
    Text(String),
}

/// A token as the begin or end of a [`Tag`], with its type next to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "token")]
pub struct TokenFormat {
    /// The token.
    pub token: TokenRef,
}

/// Any tokens, with trigger tokens that begin tags; see [`Format::TokenTriggeredTags`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TokenTriggeredTags {
    /// The first tokens of the tags.
    pub trigger_tokens: Vec<TokenRef>,
    /// The tags; each begins with a token.
    pub tags: Vec<Tag>,
    /// Excluded tokens between tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_tokens: Vec<TokenRef>,
    /// Whether a tag comes first.
    #[serde(skip_serializing_if = "is_default")]
    pub at_least_one: bool,
    /// Whether the first tag is the end.
    #[serde(skip_serializing_if = "is_default")]
    pub stop_after_first: bool,
}

/// Any tokens, with pattern tokens, each followed by its format; see [`Format::TokenDispatch`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TokenDispatch {
    /// Tokens, each with the format after it.
    pub rules: Vec<(TokenRef, Format)>,
    /// Whether any tokens continue after the format.
    #[serde(rename = "loop", skip_serializing_if = "is_true")]
    pub again: bool,
    /// Excluded tokens between patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_tokens: Vec<TokenRef>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_true(value: &bool) -> bool {
    *value
}
