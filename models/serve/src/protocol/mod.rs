//! Requests and responses, as serde types with schemas for the OpenAPI description.
//!
//! - `body` reads a request: known fields by type, unknown fields with a warning, unsupported
//!   fields with a refusal; `warning` holds the warnings of an answer, `words` phrases errors;
//! - `constraint` holds the fields of a constraint, in the dialects of OpenAI, vLLM and SGLang;
//!   `sampling` the fields that choose tokens; `message` is a turn of a conversation, `template`
//!   the options of its rendering, `tool` the definition of a tool;
//! - `chat`, `completion`, `response`, `models` and `tokens` are the endpoints.

pub mod body;
pub mod chat;
pub mod completion;
pub mod constraint;
pub mod message;
pub mod models;
pub mod response;
pub mod sampling;
pub mod template;
pub mod tokens;
pub mod tool;
pub mod warning;
pub mod words;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Tokens of a request and its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens of all answers.
    pub completion_tokens: usize,
    /// The sum of both.
    pub total_tokens: usize,
    /// Details of the prompt's tokens.
    pub prompt_tokens_details: CachedTokens,
}

/// Details of a prompt's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct CachedTokens {
    /// Tokens that were copied from the prefix cache, since an earlier text began with them.
    pub cached_tokens: usize,
}

impl Usage {
    /// The usage of a prompt, before its answers.
    pub fn new(prompt_tokens: usize) -> Self {
        Self { prompt_tokens, total_tokens: prompt_tokens, ..Self::default() }
    }

    /// Counts more tokens of answers.
    pub fn add(&mut self, tokens: usize) {
        self.completion_tokens += tokens;
        self.total_tokens += tokens;
    }

    /// Counts further tokens of the prompt that came from the prefix cache.
    pub fn add_cached(&mut self, tokens: usize) {
        self.prompt_tokens_details.cached_tokens += tokens;
    }
}

/// `stream_options`.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub struct StreamOptions {
    /// Whether a last chunk reports the usage.
    #[serde(default)]
    pub include_usage: Option<bool>,
    /// Whether every chunk reports the usage so far. Only false is offered.
    #[serde(default)]
    pub continuous_usage_stats: Option<bool>,
}

/// One value, or several.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected one value of the type, or an array of them")]
pub enum OneOrMany<T> {
    /// One.
    One(T),
    /// Several.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// All of them.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(value) => vec![value],
            Self::Many(values) => values,
        }
    }
}

/// The reason for the end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It is complete.
    Stop,
    /// It used all its tokens. Under a constraint it is still complete, but the constraint would
    /// have allowed more.
    Length,
    /// It calls tools.
    ToolCalls,
}
