//! `/tokenize` and `/detokenize`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::template::TemplateFields;

/// A text, or a conversation.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct TokenizeRequest {
    /// The text or the conversation.
    #[serde(flatten)]
    pub own: TokenizeFields,
    /// How the conversation becomes a prompt.
    #[serde(flatten)]
    pub template: TemplateFields,
}

/// The fields of a text, or of a conversation.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct TokenizeFields {
    /// The model.
    pub model: Option<String>,
    /// A text.
    pub prompt: Option<String>,
    /// A conversation, through the chat template.
    pub messages: Option<Vec<Value>>,
    /// The tools of the conversation.
    pub tools: Option<Vec<Value>>,
    /// Whether the tokenizer adds its special tokens to a text. Default: true.
    pub add_special_tokens: Option<bool>,
    /// Whether the response includes the text of each token.
    pub return_token_strs: Option<bool>,
}

/// The tokens of a text.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Tokenized {
    /// The number of tokens.
    pub count: usize,
    /// Tokens of prompt and answer together.
    pub max_model_len: usize,
    /// The tokens.
    pub tokens: Vec<u32>,
    /// The text of each token, if requested.
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
