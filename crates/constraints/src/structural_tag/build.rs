//! Constructors of formats in Rust.

use serde_json::Value;

use super::format::{
    AnyText, Begin, Dispatch, End, Format, SchemaFormat, Style, Tag, TagsWithSeparator, TokenDispatch,
    TokenFormat, TokenRef, TokenTriggeredTags, TriggeredTags,
};
use crate::GrammarText;

fn texts(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    texts.into_iter().map(Into::into).collect()
}

fn tokens(tokens: impl IntoIterator<Item = impl Into<TokenRef>>) -> Vec<TokenRef> {
    tokens.into_iter().map(Into::into).collect()
}

impl Format {
    /// One text as it is.
    pub fn const_string(value: impl Into<String>) -> Self {
        Self::ConstString { value: value.into() }
    }

    /// JSON of a schema.
    pub fn json_schema(schema: Value) -> Self {
        SchemaFormat::new(schema).into()
    }

    /// A text of a grammar in EBNF.
    pub fn grammar(grammar: impl Into<String>) -> Self {
        Self::Grammar { grammar: grammar.into() }
    }

    /// A regular expression, matched as a whole.
    pub fn regex(pattern: impl Into<String>) -> Self {
        Self::Regex { pattern: pattern.into() }
    }

    /// Any text.
    pub fn any_text() -> Self {
        AnyText::new().into()
    }

    /// All elements, in order.
    pub fn sequence(elements: impl IntoIterator<Item = Self>) -> Self {
        Self::Sequence { elements: elements.into_iter().collect() }
    }

    /// One of the elements.
    pub fn or(elements: impl IntoIterator<Item = Self>) -> Self {
        Self::Or { elements: elements.into_iter().collect() }
    }

    /// The format once, or not at all.
    #[must_use]
    pub fn optional(self) -> Self {
        Self::Optional { content: Box::new(self) }
    }

    /// The format once or more often.
    #[must_use]
    pub fn plus(self) -> Self {
        Self::Plus { content: Box::new(self) }
    }

    /// The format any number of times.
    #[must_use]
    pub fn star(self) -> Self {
        Self::Star { content: Box::new(self) }
    }

    /// The format from `min` to `max` times; no upper bound if `max` is `None`.
    #[must_use]
    pub fn repeat(self, min: u32, max: Option<u32>) -> Self {
        Self::Repeat { min, max: max.map_or(-1, i64::from), content: Box::new(self) }
    }

    /// A text between two others; see [`Tag`].
    pub fn tag(begin: impl Into<Begin>, content: impl Into<Self>, end: impl Into<End>) -> Self {
        Tag::new(begin, content, end).into()
    }

    /// One token.
    pub fn token(token: impl Into<TokenRef>) -> Self {
        Self::Token { token: token.into() }
    }

    /// Any one token but some.
    pub fn exclude_token(excluded: impl IntoIterator<Item = impl Into<TokenRef>>) -> Self {
        Self::ExcludeToken { exclude_tokens: tokens(excluded) }
    }

    /// Any number of any tokens but some.
    pub fn any_tokens(excluded: impl IntoIterator<Item = impl Into<TokenRef>>) -> Self {
        Self::AnyTokens { exclude_tokens: tokens(excluded), max_tokens: None }
    }
}

impl SchemaFormat {
    /// JSON of a schema.
    pub fn new(json_schema: Value) -> Self {
        Self {
            json_schema,
            style: Style::Json,
            any_order: false,
            max_whitespace_cnt: None,
            excludes: Vec::new(),
        }
    }

    /// How values are written.
    #[must_use]
    pub fn with_style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Whether properties may come in any order.
    #[must_use]
    pub fn with_any_order(self, any_order: bool) -> Self {
        Self { any_order, ..self }
    }

    /// Most characters of white space between two tokens.
    #[must_use]
    pub fn with_max_whitespace(self, max: u32) -> Self {
        Self { max_whitespace_cnt: Some(max), ..self }
    }
}

impl AnyText {
    /// Any text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Most tokens.
    #[must_use]
    pub fn with_max_tokens(self, max: u32) -> Self {
        Self { max_tokens: Some(max), ..self }
    }

    /// Most characters.
    #[must_use]
    pub fn with_max_chars(self, max: u32) -> Self {
        Self { max_chars: Some(max), ..self }
    }
}

impl Tag {
    /// A text between its begin and its end.
    pub fn new(begin: impl Into<Begin>, content: impl Into<Format>, end: impl Into<End>) -> Self {
        Self { begin: begin.into(), content: Box::new(content.into()), end: end.into() }
    }
}

impl TriggeredTags {
    /// Free text with `triggers` that begin `tags`.
    pub fn new(
        triggers: impl IntoIterator<Item = impl Into<String>>,
        tags: impl IntoIterator<Item = Tag>,
    ) -> Self {
        Self {
            triggers: texts(triggers),
            tags: tags.into_iter().collect(),
            at_least_one: false,
            stop_after_first: false,
            excludes: Vec::new(),
        }
    }
}

impl TagsWithSeparator {
    /// Any number of `tags`.
    pub fn new(tags: impl IntoIterator<Item = Tag>, separator: impl Into<String>) -> Self {
        Self {
            tags: tags.into_iter().collect(),
            separator: separator.into(),
            at_least_one: false,
            stop_after_first: false,
        }
    }
}

impl Dispatch {
    /// Free text with patterns, each followed by its format, repeatedly.
    pub fn new(rules: impl IntoIterator<Item = (impl Into<String>, Format)>) -> Self {
        let rules = rules.into_iter().map(|(pattern, format)| (pattern.into(), format)).collect();
        Self { rules, again: true, excludes: Vec::new() }
    }

    /// Whether free text continues after a pattern with its format.
    #[must_use]
    pub fn with_again(self, again: bool) -> Self {
        Self { again, ..self }
    }
}

impl TokenTriggeredTags {
    /// Any tokens, with trigger tokens that begin `tags`.
    pub fn new(
        triggers: impl IntoIterator<Item = impl Into<TokenRef>>,
        tags: impl IntoIterator<Item = Tag>,
    ) -> Self {
        Self {
            trigger_tokens: tokens(triggers),
            tags: tags.into_iter().collect(),
            exclude_tokens: Vec::new(),
            at_least_one: false,
            stop_after_first: false,
        }
    }
}

impl TokenDispatch {
    /// Any tokens, with pattern tokens, each followed by its format, repeatedly.
    pub fn new(rules: impl IntoIterator<Item = (impl Into<TokenRef>, Format)>) -> Self {
        let rules = rules.into_iter().map(|(token, format)| (token.into(), format)).collect();
        Self { rules, again: true, exclude_tokens: Vec::new() }
    }

    /// Whether any tokens go on after a pattern with its format.
    #[must_use]
    pub fn with_again(self, again: bool) -> Self {
        Self { again, ..self }
    }
}

macro_rules! numbers_of_tags {
    ($($of:ident),*) => {
        $(impl $of {
            /// Whether there is at least one tag. In free text, it comes first.
            #[must_use]
            pub fn with_at_least_one(self, at_least_one: bool) -> Self {
                Self { at_least_one, ..self }
            }

            /// Whether the first tag is the end.
            #[must_use]
            pub fn with_stop_after_first(self, stop_after_first: bool) -> Self {
                Self { stop_after_first, ..self }
            }
        })*
    };
}

numbers_of_tags!(TriggeredTags, TagsWithSeparator, TokenTriggeredTags);

macro_rules! excluded_texts {
    ($($of:ident),*) => {
        $(impl $of {
            /// Excluded texts.
            #[must_use]
            pub fn with_excludes(self, excludes: impl IntoIterator<Item = impl Into<String>>) -> Self {
                Self { excludes: texts(excludes), ..self }
            }
        })*
    };
}

excluded_texts!(SchemaFormat, AnyText, TriggeredTags, Dispatch);

macro_rules! excluded_tokens {
    ($($of:ident),*) => {
        $(impl $of {
            /// Excluded tokens between tags or patterns.
            #[must_use]
            pub fn with_excludes(self, excludes: impl IntoIterator<Item = impl Into<TokenRef>>) -> Self {
                Self { exclude_tokens: tokens(excludes), ..self }
            }
        })*
    };
}

excluded_tokens!(TokenTriggeredTags, TokenDispatch);

macro_rules! formats {
    ($($of:ident => $variant:ident),*) => {
        $(impl From<$of> for Format {
            fn from(format: $of) -> Self {
                Self::$variant(format)
            }
        })*
    };
}

formats! {
    SchemaFormat => JsonSchema,
    GrammarText => GrammarText,
    AnyText => AnyText,
    Tag => Tag,
    TriggeredTags => TriggeredTags,
    TagsWithSeparator => TagsWithSeparator,
    Dispatch => Dispatch,
    TokenTriggeredTags => TokenTriggeredTags,
    TokenDispatch => TokenDispatch
}

impl From<&str> for Begin {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<TokenRef> for Begin {
    fn from(token: TokenRef) -> Self {
        Self::Token(TokenFormat { token })
    }
}

impl From<&str> for End {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl<const N: usize> From<[&str; N]> for End {
    fn from(ends: [&str; N]) -> Self {
        Self::Texts(texts(ends))
    }
}

impl From<TokenRef> for End {
    fn from(token: TokenRef) -> Self {
        Self::Token(TokenFormat { token })
    }
}

impl From<u32> for TokenRef {
    fn from(id: u32) -> Self {
        Self::Id(id)
    }
}

impl From<&str> for TokenRef {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}
