//! The rows of a corpus: constraints with instances and their verdicts.

use burn_dfa::constraint::Syntax;
use burn_dfa::{TokenId, Vocabulary};

/// A constraint with instances.
pub struct Row {
    pub id: String,
    pub source: Source,
    pub tests: Vec<Test>,
    pub prefixes: Vec<Prefix>,
    pub compiles: Compiles,
    /// The row's own vocabulary, if any.
    pub vocabulary: Option<Vocabulary>,
}

/// Whether a constraint must compile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compiles {
    /// It must, by default.
    #[default]
    Must,
    /// The row demands it, which counts as a verdict.
    SaysMust,
    /// It must be refused.
    MustNot,
    /// Dialects disagree.
    May,
}

/// A prefix of a text.
pub struct Prefix {
    pub begin: Begin,
    /// Whether some continuation completes it.
    pub viable: bool,
}

/// The content of a prefix.
#[derive(PartialEq, Eq)]
pub enum Begin {
    Text(String),
    Tokens(Vec<TokenId>),
}

impl Row {
    /// Whether the constraint counts tokens, so the verdict on a text may depend on its
    /// tokenization.
    pub fn counts_tokens(&self) -> bool {
        let (Source::Grammar { text, .. } | Source::Tag { text, .. }) = &self.source else { return false };
        let given = |rest: &str| {
            rest.trim_start_matches(['"', ' ', ':', '=']).starts_with(|c: char| c.is_ascii_digit())
        };
        text.split("max_tokens").skip(1).any(given)
    }
}

/// The source of a constraint.
pub enum Source {
    /// As text.
    Schema(String),
    Regex(String),
    Grammar {
        syntax: Syntax,
        text: String,
        start: Option<String>,
    },
    /// A structural tag as JSON; with `compact`, its schemas allow no white space.
    Tag {
        text: String,
        compact: bool,
    },
    /// The body of a request for a chat completion, as JSON.
    Request(String),
}

/// An instance with its verdict.
pub struct Test {
    pub instance: Instance,
    pub valid: bool,
    /// Invalid only if `format` is asserted.
    pub needs_format: bool,
}

/// An instance to be accepted or rejected.
pub enum Instance {
    /// The value of this text, with its numbers as spelled.
    Value(String),
    /// Exactly this text.
    Text(String),
    /// This text, or its scalars as spelled, in the order and with the white space of the schema.
    TextOfValue(String),
    Tokens(Vec<TokenId>),
}
