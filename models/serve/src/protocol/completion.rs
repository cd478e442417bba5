//! `/v1/completions`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::constraint::ConstraintFields;
use super::sampling::SamplingFields;
use super::warning::Warning;
use super::{FinishReason, Usage};

/// The fields of a request that other endpoints do not share.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct CompletionFields {
    /// The model.
    pub model: Option<String>,
    /// The text that the model continues, or its tokens, or several texts or lists of tokens.
    pub prompt: Prompt,
    /// Whether the tokenizer adds its special tokens to a text, such as a beginning-of-sequence
    /// token. Default: true.
    pub add_special_tokens: Option<bool>,
    /// Maximum number of tokens of an answer. Default: 16, like OpenAI, or with a constraint the
    /// rest of the row.
    pub max_tokens: Option<usize>,
    /// The number of most likely tokens at each position whose log-probabilities are included.
    pub logprobs: Option<usize>,
    /// Whether the text of an answer begins with its prompt.
    pub echo: Option<bool>,
}

/// The text that the model continues.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected a text, an array of texts, an array of tokens, or an array of arrays of tokens"
)]
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
    /// The fields of this endpoint.
    #[serde(flatten)]
    pub own: CompletionFields,
    /// How tokens are chosen.
    #[serde(flatten)]
    pub sampling: SamplingFields,
    /// The constraint of the answer.
    #[serde(flatten)]
    pub constraint: ConstraintFields,
}

/// The answers to a request, or a part of them.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Completion {
    /// The identifier of this request.
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
    /// Parts of the request that have no effect; in a stream in its first chunk, or in the last
    /// chunk of an answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// An answer, or more of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CompletionChoice {
    /// The index of the answer.
    pub index: usize,
    /// The text.
    pub text: String,
    /// The log-probabilities, if requested.
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
    /// The most likely tokens at each position.
    pub top_logprobs: Vec<serde_json::Map<String, serde_json::Value>>,
    /// The offset of each token in the text.
    pub text_offset: Vec<usize>,
}
