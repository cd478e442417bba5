//! What clients send and get, as serde types with schemas for the OpenAPI description.
//!
//! - `body` reads a request: known fields by their types, unknown ones with a warning, those that are not offered with a refusal;
//! - `constraint` are the fields that hold a constraint, in the dialects of OpenAI, vLLM and SGLang; `sampling` those that choose
//!   tokens; `message` is a turn of a conversation;
//! - `chat`, `completion`, `response`, `models` and `tokens` are the endpoints.

pub mod body;
pub mod chat;
pub mod completion;
pub mod constraint;
pub mod message;
pub mod models;
pub mod response;
pub mod sampling;
pub mod tokens;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Tokens of a request and its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens of all answers.
    pub completion_tokens: usize,
    /// Both together.
    pub total_tokens: usize,
    /// Of the tokens of the prompt.
    pub prompt_tokens_details: CachedTokens,
}

/// Of the tokens of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct CachedTokens {
    /// Those that were not read anew, since a text before began with them.
    pub cached_tokens: usize,
}

impl Usage {
    /// Of a prompt, before its answers.
    pub fn new(prompt_tokens: usize) -> Self {
        Self { prompt_tokens, total_tokens: prompt_tokens, ..Self::default() }
    }

    /// Counts more tokens of answers.
    pub fn add(&mut self, tokens: usize) {
        self.completion_tokens += tokens;
        self.total_tokens += tokens;
    }

    /// Counts more tokens of the prompt that were not read anew.
    pub fn add_cached(&mut self, tokens: usize) {
        self.prompt_tokens_details.cached_tokens += tokens;
    }
}

/// `stream_options`.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
pub struct StreamOptions {
    /// Whether a last chunk tells the usage.
    #[serde(default)]
    pub include_usage: Option<bool>,
    /// Whether every chunk tells the usage so far.
    #[serde(default)]
    pub continuous_usage_stats: Option<bool>,
}

/// One value, or several.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged)]
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

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It is complete.
    Stop,
    /// It took all tokens that it might; never under a constraint.
    Length,
    /// It calls tools.
    ToolCalls,
}
