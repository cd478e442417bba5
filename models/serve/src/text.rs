//! The texts of a model: its tokenizer, its vocabulary, its chat template, and how it writes calls of tools.

use std::sync::Arc;

use burn_dfa::constraint::{Reasoning, ToolFormat, Tools};
use burn_dfa::{TokenId, Vocabulary};
use burn_dfa_decoder::Pretrained;
use serde_json::Value;

use crate::config::{Config, ReasoningMode};
use crate::error::{ApiError, Result};

/// What turns messages to tokens and tokens to text.
#[derive(Clone, Debug)]
pub struct TextModel {
    pretrained: Arc<Pretrained>,
    vocabulary: Vocabulary,
    tool_format: ToolFormat,
    reasoning: Option<Reasoning>,
    mode: ReasoningMode,
}

impl TextModel {
    /// The texts of a model, as the configuration has them.
    ///
    /// # Errors
    /// Where the format of calls has no reasoning, and answers are to begin with some.
    pub fn new(pretrained: Arc<Pretrained>, config: &Config) -> burn_dfa::Result<Self> {
        let of_template = || ToolFormat::of_template(pretrained.chat_template()?.source());
        let tool_format = config.tool_format.or_else(of_template).unwrap_or_default();
        let usual = || tool_format.reasoning().unwrap_or_else(Reasoning::think);
        let reasoning = match config.reasoning {
            ReasoningMode::None => None,
            ReasoningMode::Always => Some(usual()),
            ReasoningMode::Optional => Some(usual().optional()),
            ReasoningMode::Opened => Some(usual().opened()),
        };
        let plain = Tools::new([])?.with_format(tool_format);
        let plain = match &reasoning {
            None => plain,
            Some(reasoning) => plain.with_reasoning(reasoning.clone()),
        };
        plain.to_structural_tag()?;
        let vocabulary = plain.vocabulary(pretrained.vocabulary())?;
        Ok(Self { pretrained, vocabulary, tool_format, reasoning, mode: config.reasoning })
    }

    /// The vocabulary, in which the marks around calls are text.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// How calls are written.
    pub fn tool_format(&self) -> ToolFormat {
        self.tool_format
    }

    /// What answers begin with.
    pub fn reasoning(&self) -> Option<&Reasoning> {
        self.reasoning.as_ref()
    }

    /// The marks around the reasoning that comes in front of every answer, where it is told from the answer by them alone.
    pub fn marks(&self) -> Option<(&'static str, &'static str)> {
        let end = match self.tool_format {
            ToolFormat::Harmony => return None,
            ToolFormat::Hermes | ToolFormat::QwenXml => "</think>\n\n",
            _ => "</think>",
        };
        matches!(self.mode, ReasoningMode::Always | ReasoningMode::Opened).then_some(("<think>", end))
    }

    /// Tools in the format of the model.
    pub fn tools(&self, tools: Tools) -> Tools {
        let tools = tools.with_format(self.tool_format);
        match &self.reasoning {
            None => tools,
            Some(reasoning) => tools.with_reasoning(reasoning.clone()),
        }
    }

    /// The text of a conversation, up to where the model goes on.
    ///
    /// # Errors
    /// 400 where there is no chat template, or it refuses the messages.
    pub fn render(&self, messages: &[Value], tools: &[Value]) -> Result<String> {
        let template = self.pretrained.chat_template();
        let template = template.ok_or_else(|| {
            ApiError::invalid("messages", "this model has no chat template: use /v1/completions")
        })?;
        template.render_json(messages, tools, true).map_err(|error| {
            let with = if tools.is_empty() { "messages" } else { "tools" };
            ApiError::invalid(with, format!("the chat template does not take this: {error}"))
        })
    }

    /// The tokens of a text.
    ///
    /// # Errors
    /// 400 where the tokenizer fails.
    pub fn encode(&self, text: &str, with_special: bool) -> Result<Vec<TokenId>> {
        let encoding = self.pretrained.tokenizer().encode_fast(text, with_special);
        let encoding = encoding.map_err(|error| {
            ApiError::new(axum::http::StatusCode::BAD_REQUEST, format!("the tokenizer: {error}"))
        })?;
        Ok(encoding.get_ids().iter().map(|&id| TokenId(id)).collect())
    }

    /// The text of some tokens, special ones included.
    ///
    /// # Errors
    /// 400 where one is no token of the model.
    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= self.vocabulary.len()) {
            let most = self.vocabulary.len();
            return Err(ApiError::invalid(
                "tokens",
                format!("{token} is no token, of {most} that there are"),
            ));
        }
        let text = self.pretrained.tokenizer().decode(tokens, false);
        text.map_err(|error| ApiError::invalid("tokens", format!("the tokenizer: {error}")))
    }

    /// The text of one token.
    pub fn piece(&self, token: TokenId) -> String {
        String::from_utf8_lossy(self.vocabulary.content(token).unwrap_or_default()).into_owned()
    }
}
