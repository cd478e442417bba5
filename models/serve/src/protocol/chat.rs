//! `/v1/chat/completions`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::constraint::ConstraintFields;
use super::sampling::SamplingFields;
use super::template::TemplateFields;
use super::warning::Warning;
use super::{FinishReason, Usage};

/// The fields of a request that other endpoints do not share.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ChatFields {
    /// The model.
    pub model: Option<String>,
    /// The conversation.
    pub messages: Vec<Value>,
    /// Maximum number of tokens of an answer. Default: the rest of a row.
    pub max_completion_tokens: Option<usize>,
    /// The same, by its old name.
    pub max_tokens: Option<usize>,
    /// Tools that the model may call.
    pub tools: Option<Vec<Value>>,
    /// Whether the model calls tools: `auto`, `required`, `none`, or one tool by name.
    pub tool_choice: Option<Value>,
    /// Whether the model may call several tools.
    pub parallel_tool_calls: Option<bool>,
    /// Whether the answer includes the log-probabilities of its tokens.
    pub logprobs: Option<bool>,
    /// The number of most likely tokens at each position.
    pub top_logprobs: Option<usize>,
    /// Whether an answer that continues an assistant's message begins with this message.
    pub echo: Option<bool>,
    /// Whether the chunks of a stream include, for each of their tokens, the number of tokens that
    /// were legal under the constraint. Only this server has this field.
    pub legal_tokens: Option<bool>,
}

/// A request.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct ChatRequest {
    /// The fields of this endpoint.
    #[serde(flatten)]
    pub own: ChatFields,
    /// How the conversation becomes a prompt.
    #[serde(flatten)]
    pub template: TemplateFields,
    /// How tokens are chosen.
    #[serde(flatten)]
    pub sampling: SamplingFields,
    /// The constraint of the answer.
    #[serde(flatten)]
    pub constraint: ConstraintFields,
}

/// The answers to a request.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatCompletion {
    /// The identifier of this request.
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
    /// Parts of the request that have no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// An answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatChoice {
    /// The index of the answer.
    pub index: usize,
    /// The answer.
    pub message: AnswerMessage,
    /// The log-probabilities, if requested.
    pub logprobs: Option<ChatLogprobs>,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

/// The message of the model.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AnswerMessage {
    /// `assistant`.
    pub role: &'static str,
    /// The text; null if there are only calls and no echo.
    pub content: Option<String>,
    /// The reasoning before the text.
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
    /// The identifier of this call.
    pub id: String,
    /// `function` or `custom`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The function that is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionCall>,
    /// The custom tool that is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomCall>,
}

/// A function and its arguments.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FunctionCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments, as JSON.
    pub arguments: String,
}

/// A custom tool and its input.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CustomCall {
    /// The name of the tool.
    pub name: String,
    /// The input, verbatim.
    pub input: String,
}

/// A part of an answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatChunk {
    /// The identifier of this request.
    pub id: String,
    /// `chat.completion.chunk`.
    pub object: &'static str,
    /// Seconds since 1970.
    pub created: u64,
    /// The model.
    pub model: String,
    /// At most one answer; none in the chunk with the usage.
    pub choices: Vec<ChunkChoice>,
    /// Tokens, in the last chunk if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Parts of the request that have no effect, in the first chunk, or in the last chunk of an
    /// answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// More of an answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChunkChoice {
    /// The index of the answer.
    pub index: usize,
    /// The new part.
    pub delta: ChatDelta,
    /// The log-probabilities of the new tokens, if requested.
    pub logprobs: Option<ChatLogprobs>,
    /// For each new token, the number of tokens that were legal at its position, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub legal_tokens: Vec<usize>,
    /// Why it ended, in its last chunk.
    pub finish_reason: Option<FinishReason>,
}

/// The new part of an answer.
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

/// The new part of a call.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallDelta {
    /// The index of the call.
    pub index: usize,
    /// The identifier of this call, in its first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `function` or `custom`, in its first chunk.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The new part of a function call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionDelta>,
    /// The new part of a call of a custom tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomDelta>,
}

/// The new part of a function and its arguments.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FunctionDelta {
    /// The name of the tool, in the first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More of the arguments.
    pub arguments: String,
}

/// The new part of a custom tool and its input.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CustomDelta {
    /// The name of the tool, in the first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More of the input.
    pub input: String,
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
    /// The most likely tokens at its position.
    pub top_logprobs: Vec<TopLogprob>,
}

/// The log-probability of an alternative token.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TopLogprob {
    /// Its text.
    pub token: String,
    /// Before the constraint.
    pub logprob: f32,
    /// Its bytes.
    pub bytes: Option<Vec<u8>>,
}
