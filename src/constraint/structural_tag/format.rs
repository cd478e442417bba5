//! The formats of a structural tag, as they are written in JSON.
//!
//! Each type has the name and the fields of XGrammar's. What is left out is not written either, so that what was read is what is
//! written.

use serde::Serialize;
use serde_json::Value;

/// What a text, or a part of it, has to be.
///
/// A format is JSON with its `type`, or is built in Rust.
///
/// ```
/// use burn_dfa::constraint::{Format, StructuralTag, Tag};
/// use serde_json::json;
///
/// let built = Format::tag("<b>", Format::any_text(), "</b>");
/// let read = StructuralTag::try_from(&json!({
///     "type": "structural_tag",
///     "format": {"type": "tag", "begin": "<b>", "content": {"type": "any_text"}, "end": "</b>"}
/// }))?;
/// assert_eq!(read, StructuralTag::new(built));
/// # Ok::<(), burn_dfa::Error>(())
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
    /// What a regular expression, as XGrammar reads it, matches as a whole.
    Regex {
        /// The pattern.
        pattern: String,
    },
    /// Any text.
    AnyText(AnyText),
    /// All of them, one after the other.
    Sequence {
        /// At least one.
        elements: Vec<Format>,
    },
    /// One of them.
    Or {
        /// At least one.
        elements: Vec<Format>,
    },
    /// Once or not at all.
    Optional {
        /// What comes.
        content: Box<Format>,
    },
    /// Once or more often.
    Plus {
        /// What comes.
        content: Box<Format>,
    },
    /// Any number of times.
    Star {
        /// What comes.
        content: Box<Format>,
    },
    /// A number of times.
    Repeat {
        /// At least so often.
        min: u32,
        /// At most so often; without a bound where it is -1.
        max: i64,
        /// What comes.
        content: Box<Format>,
    },
    /// A text between two others.
    Tag(Tag),
    /// Free text in which triggers begin tags.
    TriggeredTags(TriggeredTags),
    /// Tags with a separator between two of them, and nothing else.
    TagsWithSeparator(TagsWithSeparator),
    /// Free text in which patterns are followed by formats.
    Dispatch(Dispatch),
    /// The old name of a schema in the style `qwen_xml`.
    QwenXmlParameter {
        /// The schema.
        json_schema: Value,
    },
    /// One token.
    Token {
        /// Which one.
        token: TokenRef,
    },
    /// Any one token but some.
    ExcludeToken {
        /// Those that it is not.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        exclude_tokens: Vec<TokenRef>,
    },
    /// Any number of any tokens but some.
    AnyTokens {
        /// Those that do not come.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        exclude_tokens: Vec<TokenRef>,
        /// At most so many.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u32>,
    },
    /// Any tokens in which trigger tokens begin tags.
    TokenTriggeredTags(TokenTriggeredTags),
    /// Any tokens in which pattern tokens are followed by formats.
    TokenDispatch(TokenDispatch),
}

/// A JSON schema, and how its values are written; see [`Format::JsonSchema`].
///
/// ```
/// use burn_dfa::constraint::{Format, SchemaFormat, Style};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
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
    /// Whether the properties of objects may come in any order. Each comes once at most, and required ones do come.
    #[serde(skip_serializing_if = "is_default")]
    pub any_order: bool,
    /// Most characters of white space in one place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_whitespace_cnt: Option<u32>,
    /// Texts that strings and names do not contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
}

/// How the values of a schema are written.
///
/// In all styles but [`Json`](Self::Json) the outermost value is an object, whose properties are elements of XML. Strings are
/// written there as they are, without quotes and escapes; other values as JSON, or in [`CohereXml`](Self::CohereXml) as elements
/// again.
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
    /// MiniMax M3's; it is refused.
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
    /// All of them, by name.
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
/// use burn_dfa::constraint::{AnyText, Format};
///
/// let short: Format = AnyText::new().with_excludes(["<"]).with_max_chars(80).into();
/// # let _ = short;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AnyText {
    /// Texts that it does not contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// Most tokens that begin in it, see [`Expression::max_tokens`](crate::constraint::Expression::max_tokens). Where any are
    /// counted nothing may be recursive; with 2,147,483,647 there is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Most characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<u32>,
}

/// A text between what begins and what ends it; see [`Format::Tag`].
///
/// ```
/// use burn_dfa::constraint::{Format, Tag};
///
/// let tag = Tag::new("<answer>", Format::regex("[0-9]+"), ["</answer>", "</a>"]);
/// assert_eq!(tag.end, ["</answer>", "</a>"].into());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Tag {
    /// What begins it.
    pub begin: Begin,
    /// What it holds.
    pub content: Box<Format>,
    /// What ends it.
    pub end: End,
}

/// What begins a [`Tag`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Begin {
    /// A text, which may be empty.
    Text(String),
    /// A token.
    Token(TokenFormat),
}

/// What ends a [`Tag`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum End {
    /// A text, which may be empty.
    Text(String),
    /// One of some texts, of which there is at least one.
    Texts(Vec<String>),
    /// A token.
    Token(TokenFormat),
}

/// Free text in which triggers begin tags; see [`Format::TriggeredTags`].
///
/// A trigger is how the `begin` of its tags begins, and each tag has one. The trigger that is complete first counts, and of
/// several that are complete at once the longest. A trigger that is not complete is free text.
///
/// ```
/// use burn_dfa::constraint::{Format, StructuralTag, Tag, TriggeredTags};
/// use burn_dfa::{Constraint, Limits};
///
/// let tags = ["f", "g"].map(|name| Tag::new(&*format!("<call={name}>"), Format::regex("[0-9]*"), "</call>"));
/// let calls = TriggeredTags::new(["<call="], tags);
/// let constraint = Constraint::structural_tag(&StructuralTag::new(calls))?;
/// let automaton = constraint.to_automaton(&Limits::default())?.unwrap();
/// assert!(automaton.matches(b"2 < 3, so <call=g>23</call> will do"));
/// assert!(!automaton.matches(b"<call=h>23</call>"));
/// # Ok::<(), burn_dfa::Error>(())
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
    /// Texts that free text does not contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
}

/// Tags with a separator between two of them; see [`Format::TagsWithSeparator`].
///
/// ```
/// use burn_dfa::constraint::{Format, Tag, TagsWithSeparator};
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
    /// What stands between two of them; it may be empty.
    pub separator: String,
    /// Whether there is a tag at all.
    #[serde(skip_serializing_if = "is_default")]
    pub at_least_one: bool,
    /// Whether the first tag is the end.
    #[serde(skip_serializing_if = "is_default")]
    pub stop_after_first: bool,
}

/// Free text in which patterns are followed by formats; see [`Format::Dispatch`].
///
/// The pattern that is complete first counts. Unlike [`TriggeredTags`] the free text may contain the `end` of the tag around it,
/// unless that is excluded.
///
/// ```
/// use burn_dfa::constraint::{Dispatch, Format};
///
/// let dispatch: Format = Dispatch::new([("@", Format::regex("[a-z]+"))]).into();
/// # let _ = dispatch;
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Dispatch {
    /// Patterns, none of them empty, and what follows each.
    pub rules: Vec<(String, Format)>,
    /// Whether free text goes on after that.
    #[serde(rename = "loop", skip_serializing_if = "is_true")]
    pub again: bool,
    /// Texts that free text does not contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
}

/// A token by its id, or all tokens by their text, as grammars name them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum TokenRef {
    /// An id.
    Id(u32),
    /// Every token whose text this is, such as the special token `<think>`; tokens that are read as text are among them.
    Text(String),
}

/// A token that begins or ends a [`Tag`], with its type beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "token")]
pub struct TokenFormat {
    /// Which one.
    pub token: TokenRef,
}

/// Any tokens in which trigger tokens begin tags; see [`Format::TokenTriggeredTags`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TokenTriggeredTags {
    /// The tokens with which the tags begin.
    pub trigger_tokens: Vec<TokenRef>,
    /// The tags, each of which begins with a token.
    pub tags: Vec<Tag>,
    /// Tokens that do not come between tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_tokens: Vec<TokenRef>,
    /// Whether a tag comes first.
    #[serde(skip_serializing_if = "is_default")]
    pub at_least_one: bool,
    /// Whether the first tag is the end.
    #[serde(skip_serializing_if = "is_default")]
    pub stop_after_first: bool,
}

/// Any tokens in which pattern tokens are followed by formats; see [`Format::TokenDispatch`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TokenDispatch {
    /// Tokens, and what follows each.
    pub rules: Vec<(TokenRef, Format)>,
    /// Whether any tokens go on after that.
    #[serde(rename = "loop", skip_serializing_if = "is_true")]
    pub again: bool,
    /// Tokens that do not come between.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_tokens: Vec<TokenRef>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_true(value: &bool) -> bool {
    *value
}
