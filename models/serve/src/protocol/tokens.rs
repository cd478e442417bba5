//! `/tokenize` and `/detokenize`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A text, or a conversation.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct TokenizeRequest {
    /// The model.
    pub model: Option<String>,
    /// A text.
    pub prompt: Option<String>,
    /// A conversation, through the chat template.
    pub messages: Option<Vec<Value>>,
    /// The tools of the conversation.
    pub tools: Option<Vec<Value>>,
    /// Whether the tokenizer's own special tokens stand around a text. Default: true.
    pub add_special_tokens: Option<bool>,
    /// Whether the tokens have their texts beside them.
    pub return_token_strs: Option<bool>,
}

/// The tokens of a text.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Tokenized {
    /// How many.
    pub count: usize,
    /// Tokens of prompt and answer together.
    pub max_model_len: usize,
    /// The tokens.
    pub tokens: Vec<u32>,
    /// Their texts, where they were asked for.
    pub token_strs: Option<Vec<String>>,
}

/// Tokens.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct DetokenizeRequest {
    /// The model.
    pub model: Option<String>,
    /// The tokens.
    pub tokens: Vec<u32>,
}

/// The text of some tokens.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Detokenized {
    /// The text.
    pub prompt: String,
}
