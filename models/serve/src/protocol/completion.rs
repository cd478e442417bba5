//! `/v1/completions`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::constraint::ConstraintFields;
use super::sampling::SamplingFields;
use super::{FinishReason, Usage};

/// A request, but for the fields that others have too.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct CompletionFields {
    /// The model.
    pub model: Option<String>,
    /// The text that the model goes on with, or its tokens, or several of either.
    pub prompt: Prompt,
    /// Most tokens of an answer. Default: 16, as OpenAI has it, or what the constraint needs.
    pub max_tokens: Option<usize>,
    /// Of how many of the likeliest tokens at each place the log-probabilities are told.
    pub logprobs: Option<usize>,
}

/// What the model goes on with.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Prompt {
    /// A text.
    Text(String),
    /// The tokens of a text.
    Tokens(Vec<u32>),
    /// Several texts.
    Texts(Vec<String>),
    /// The tokens of several texts.
    ManyTokens(Vec<Vec<u32>>),
}

/// A request.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct CompletionRequest {
    /// Its own fields.
    #[serde(flatten)]
    pub own: CompletionFields,
    /// How tokens are chosen.
    #[serde(flatten)]
    pub sampling: SamplingFields,
    /// What the answer has to be.
    #[serde(flatten)]
    pub constraint: ConstraintFields,
}

/// The answers to a request, or a part of them.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Completion {
    /// Of this request.
    pub id: String,
    /// `text_completion`.
    pub object: &'static str,
    /// Seconds since 1970.
    pub created: u64,
    /// The model.
    pub model: String,
    /// The answers.
    pub choices: Vec<CompletionChoice>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// An answer, or more of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CompletionChoice {
    /// Which of the answers.
    pub index: usize,
    /// The text.
    pub text: String,
    /// The log-probabilities, where they were asked for.
    pub logprobs: Option<CompletionLogprobs>,
    /// Why it ended.
    pub finish_reason: Option<FinishReason>,
}

/// Log-probabilities of the tokens of an answer.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct CompletionLogprobs {
    /// The texts of the tokens.
    pub tokens: Vec<String>,
    /// The log-probabilities of the tokens, before the constraint.
    pub token_logprobs: Vec<f32>,
    /// The likeliest tokens at each place.
    pub top_logprobs: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Where each token begins in the text.
    pub text_offset: Vec<usize>,
}
