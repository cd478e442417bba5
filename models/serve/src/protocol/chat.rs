//! `/v1/chat/completions`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::constraint::ConstraintFields;
use super::sampling::SamplingFields;
use super::{FinishReason, Usage};

/// A request, but for the fields that others have too.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ChatFields {
    /// The model.
    pub model: Option<String>,
    /// The conversation.
    pub messages: Vec<Value>,
    /// Most tokens of an answer. Default: what is left of a row.
    pub max_completion_tokens: Option<usize>,
    /// The same, by its old name.
    pub max_tokens: Option<usize>,
    /// Tools that the model may call.
    pub tools: Option<Vec<Value>>,
    /// Whether it calls them: `auto`, `required`, `none`, or one by name.
    pub tool_choice: Option<Value>,
    /// Whether it may call several.
    pub parallel_tool_calls: Option<bool>,
    /// Whether the log-probabilities of the tokens are told.
    pub logprobs: Option<bool>,
    /// Of how many of the likeliest tokens at each place.
    pub top_logprobs: Option<usize>,
    /// Whether the chunks of a stream tell how many tokens were legal under the constraint, where each of theirs was chosen.
    /// This is a field of this server's own.
    pub legal_tokens: Option<bool>,
}

/// A request.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ChatRequest {
    /// Its own fields.
    #[serde(flatten)]
    pub own: ChatFields,
    /// How tokens are chosen.
    #[serde(flatten)]
    pub sampling: SamplingFields,
    /// What the answer has to be.
    #[serde(flatten)]
    pub constraint: ConstraintFields,
}

/// The answers to a request.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatCompletion {
    /// Of this request.
    pub id: String,
    /// `chat.completion`.
    pub object: &'static str,
    /// Seconds since 1970.
    pub created: u64,
    /// The model.
    pub model: String,
    /// The answers.
    pub choices: Vec<ChatChoice>,
    /// Tokens.
    pub usage: Usage,
}

/// An answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatChoice {
    /// Which of the answers.
    pub index: usize,
    /// The answer.
    pub message: AnswerMessage,
    /// The log-probabilities, where they were asked for.
    pub logprobs: Option<ChatLogprobs>,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

/// What the model says.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AnswerMessage {
    /// `assistant`.
    pub role: &'static str,
    /// The text; null where there are calls and nothing else.
    pub content: Option<String>,
    /// The reasoning in front of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Always null.
    pub refusal: Option<String>,
    /// The calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
}

/// A call of a tool.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolCall {
    /// Of this call.
    pub id: String,
    /// `function`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What is called.
    pub function: FunctionCall,
}

/// A function and its arguments.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FunctionCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments, as JSON.
    pub arguments: String,
}

/// A part of an answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatChunk {
    /// Of this request.
    pub id: String,
    /// `chat.completion.chunk`.
    pub object: &'static str,
    /// Seconds since 1970.
    pub created: u64,
    /// The model.
    pub model: String,
    /// At most one answer; none where the usage is told.
    pub choices: Vec<ChunkChoice>,
    /// Tokens, in the last chunk where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// More of an answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChunkChoice {
    /// Which of the answers.
    pub index: usize,
    /// What is new.
    pub delta: ChatDelta,
    /// The log-probabilities of what is new, where they were asked for.
    pub logprobs: Option<ChatLogprobs>,
    /// How many tokens were legal where each of the new ones was chosen, where this was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub legal_tokens: Vec<usize>,
    /// Why it ended, in its last chunk.
    pub finish_reason: Option<FinishReason>,
}

/// What is new of an answer.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct ChatDelta {
    /// `assistant`, in the first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// More text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// More reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// More of a call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<CallDelta>,
}

/// What is new of a call.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallDelta {
    /// Which of the calls.
    pub index: usize,
    /// Of this call, in its first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `function`, in its first chunk.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// What is new.
    pub function: FunctionDelta,
}

/// What is new of a function and its arguments.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FunctionDelta {
    /// The name of the tool, in the first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More of the arguments.
    pub arguments: String,
}

/// Log-probabilities of the tokens of an answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatLogprobs {
    /// One for each token.
    pub content: Vec<TokenLogprob>,
}

/// The log-probability of a token.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TokenLogprob {
    /// Its text.
    pub token: String,
    /// Before the constraint.
    pub logprob: f32,
    /// Its bytes.
    pub bytes: Option<Vec<u8>>,
    /// The likeliest tokens at its place.
    pub top_logprobs: Vec<TopLogprob>,
}

/// The log-probability of a token that may have been chosen.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TopLogprob {
    /// Its text.
    pub token: String,
    /// Before the constraint.
    pub logprob: f32,
    /// Its bytes.
    pub bytes: Option<Vec<u8>>,
}
