//! The texts of a model: its tokenizer, its vocabulary, its chat template, and its format of tool
//! calls.

use std::borrow::Cow;
use std::sync::Arc;

use burn_dfa::constraint::{Reasoning, ToolFormat, ToolInput, Tools};
use burn_dfa::{TokenId, Vocabulary};
use burn_dfa_decoder::{ChatPrompt, ChatTemplate, DecoderError, Pretrained, RenderOptions};
use serde_json::{Value, json};

use crate::config::{Config, ReasoningMode};
use crate::conversation::{ToolListPosition, with_calls_as_text, with_text};
use crate::error::{ApiError, Result};
use crate::protocol::template::Template;
use crate::protocol::warning::Warnings;
use crate::protocol::words;

/// Converts messages to tokens and tokens to text.
#[derive(Clone, Debug)]
pub struct TextModel {
    pretrained: Arc<Pretrained>,
    vocabulary: Vocabulary,
    tool_format: ToolFormat,
    reasoning: Option<Reasoning>,
    mode: ReasoningMode,
    /// Whether special tokens within messages are special.
    special_in_messages: bool,
    template_support: TemplateSupport,
}

/// The parts of a conversation that a chat template shows.
#[derive(Clone, Copy, Debug, Default)]
struct TemplateSupport {
    /// The definitions of tools.
    tools: bool,
    /// The calls of an assistant.
    calls: bool,
}

impl TemplateSupport {
    /// Checks what a template shows of a test tool.
    fn of(template: &ChatTemplate) -> Self {
        const NAME: &str = "tool_of_a_probe";
        let parameters = json!({"type": "object", "properties": {}});
        let function = json!({"name": NAME, "description": "A probe.", "parameters": parameters});
        let tools = [json!({"type": "function", "function": function})];
        let system = json!({"role": "system", "content": "Be brief."});
        let user = json!({"role": "user", "content": "Hi"});
        let shows = |messages: &[Value]| {
            template.render_json(messages, &tools, true).is_ok_and(|text| text.contains(NAME))
        };
        // Some templates show tools only with a system message.
        let tools = shows(std::slice::from_ref(&user)) || shows(&[system, user]);
        Self { tools, calls: template.source().contains("tool_calls") }
    }
}

impl TextModel {
    /// The texts of a model, with the options of the configuration.
    ///
    /// # Errors
    /// If the format of calls has no reasoning, but the configuration asks for it.
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
        let (mode, special_in_messages) = (config.reasoning, config.special_tokens_in_messages);
        let template_support = pretrained.chat_template().map(TemplateSupport::of).unwrap_or_default();
        if pretrained.chat_template().is_some() && !template_support.tools {
            tracing::info!(
                format = %tool_format,
                "the chat template does not show tools: where a request has some, the system message lists them"
            );
        }
        Ok(Self {
            pretrained,
            vocabulary,
            tool_format,
            reasoning,
            mode,
            special_in_messages,
            template_support,
        })
    }

    /// The vocabulary, with the marks around calls as text.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The format of calls.
    pub fn tool_format(&self) -> ToolFormat {
        self.tool_format
    }

    /// The reasoning at the beginning of answers.
    pub fn reasoning(&self) -> Option<&Reasoning> {
        self.reasoning.as_ref()
    }

    /// The marks around the reasoning before every answer, if only these marks separate it from the
    /// answer.
    pub fn marks(&self) -> Option<(&str, String)> {
        let is_always = matches!(self.mode, ReasoningMode::Always | ReasoningMode::Opened);
        let separates = is_always && self.tool_format != ToolFormat::Harmony;
        self.reasoning.as_ref().filter(|_| separates).map(Reasoning::delimiters)
    }

    /// Tools in the format of the model.
    pub fn tools(&self, tools: Tools) -> Tools {
        let tools = tools.with_format(self.tool_format);
        match &self.reasoning {
            None => tools,
            Some(reasoning) => tools.with_reasoning(reasoning.clone()),
        }
    }

    /// Renders a conversation, the field `param`, up to the model's turn. If the chat template does
    /// not show tools, the messages list them. Tools that the model still does not see, and
    /// variables that the template does not use, add warnings.
    ///
    /// # Errors
    /// 400 if there is no chat template, or it rejects the messages.
    pub fn render(
        &self,
        messages: &[Value],
        tools: Option<&Tools>,
        template: &Template,
        param: &str,
        warnings: &mut Warnings,
    ) -> Result<ChatPrompt> {
        let source = self.pretrained.chat_template().map(ChatTemplate::source).ok_or_else(|| {
            ApiError::invalid(param, "this model has no chat template: use /v1/completions")
        })?;
        for (name, _, param) in &template.variables {
            if !source.contains(name.as_str()) {
                let message = format!("`{param}`: the chat template of this model does not know `{name}`");
                warnings.add(*param, message);
            }
        }
        let variables = template.variables.iter().map(|(name, value, _)| (name.clone(), value.clone()));
        let options = RenderOptions::new()
            .with_generation_prompt(template.add_generation_prompt)
            .with_continued_message(template.continue_final_message)
            .with_variables(variables.collect());
        let as_text = |message: &Value| message["role"] == "tool" || !message["tool_calls"].is_null();
        let messages = match !self.template_support.calls && messages.iter().any(as_text) {
            true => Cow::Owned(with_calls_as_text(messages, self.tool_format)),
            false => Cow::Borrowed(messages),
        };
        let listed = tools.filter(|_| !self.template_support.tools);
        let definitions = if listed.is_some() { Vec::new() } else { definitions(tools) };
        let prompt = match listed {
            Some(tools) => self.render_listed(&messages, &tools.prompt(), &options),
            None => self.render_with(&messages, &definitions, &options),
        };
        let prompt = prompt.map_err(|error| {
            let param = match &template.variables[..] {
                _ if template.continue_final_message => "continue_final_message",
                _ if !definitions.is_empty() => "tools",
                [(_, _, of_variable), ..] => *of_variable,
                [] => param,
            };
            let reason = words::of_template(&error.to_string());
            ApiError::invalid(param, format!("the chat template does not take this: {reason}"))
        })?;
        if let Some(tools) = tools {
            let text = prompt.text();
            let unseen = tools.tools().iter().map(|tool| tool.name.as_str());
            let unseen: Vec<&str> = unseen.filter(|name| !text.contains(name)).collect();
            if !unseen.is_empty() {
                let unseen = unseen.join(", ");
                warnings.add("tools", format!("the model does not see these tools, since its chat template does not show them: {unseen}"));
            }
        }
        Ok(prompt)
    }

    /// A conversation with a text that lists tools, if the template accepts it.
    fn render_listed(
        &self,
        messages: &[Value],
        text: &str,
        options: &RenderOptions,
    ) -> std::result::Result<ChatPrompt, DecoderError> {
        for position in [ToolListPosition::System, ToolListPosition::User] {
            let Some(listed) = with_text(messages, text, position) else { continue };
            match self.render_with(&listed, &[], options) {
                Ok(prompt) if prompt.text().contains(text) => return Ok(prompt),
                // The template has no system messages, or drops their contents.
                Ok(_) | Err(_) => {}
            }
        }
        self.render_with(messages, &[], options)
    }

    fn render_with(
        &self,
        messages: &[Value],
        tools: &[Value],
        options: &RenderOptions,
    ) -> std::result::Result<ChatPrompt, DecoderError> {
        match self.pretrained.chat_template().filter(|_| self.special_in_messages) {
            Some(template) => template.render_json_with(messages, tools, options).map(ChatPrompt::from),
            None => self.pretrained.chat_prompt_with(messages, tools, options),
        }
    }

    /// The tokens of a conversation, the field `param`.
    ///
    /// # Errors
    /// 400 if the tokenizer fails.
    pub fn encode_chat(&self, prompt: &ChatPrompt, param: &str) -> Result<Vec<TokenId>> {
        let tokens = self.pretrained.encode_prompt(prompt);
        tokens.map_err(|error| ApiError::invalid(param, error.to_string()))
    }

    /// The tokens of a text, which is a prompt.
    ///
    /// # Errors
    /// 400 if the tokenizer fails.
    pub fn encode(&self, text: &str, with_special: bool) -> Result<Vec<TokenId>> {
        let encoding = self.pretrained.tokenizer().encode_fast(text, with_special);
        let encoding =
            encoding.map_err(|error| ApiError::invalid("prompt", format!("the tokenizer: {error}")))?;
        Ok(encoding.get_ids().iter().map(|&id| TokenId(id)).collect())
    }

    /// The text of some tokens, including special tokens.
    ///
    /// # Errors
    /// 400 if a number is not a token of the model.
    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= self.vocabulary.len()) {
            let vocab_size = self.vocabulary.len();
            return Err(ApiError::invalid(
                "tokens",
                format!("{token} is no token, of {vocab_size} that there are"),
            ));
        }
        let text = self.pretrained.tokenizer().decode(tokens, false);
        text.map_err(|error| ApiError::invalid("tokens", format!("the tokenizer: {error}")))
    }

    /// The text of one token.
    pub fn token_text(&self, token: TokenId) -> String {
        String::from_utf8_lossy(self.vocabulary.content(token).unwrap_or_default()).into_owned()
    }
}

/// The definitions of tools, in the form for chat templates: always with parameters, and custom
/// tools as functions.
fn definitions(tools: Option<&Tools>) -> Vec<Value> {
    let tools = tools.map(Tools::tools).unwrap_or_default();
    let definition = |tool: &burn_dfa::constraint::Tool| {
        let mut function = json!({"name": tool.name});
        let described = match &tool.input {
            Some(ToolInput::Grammar(grammar)) => {
                let of = tool.description.as_ref().map(|text| format!("{text}\n")).unwrap_or_default();
                let syntax = &grammar.syntax;
                Some(format!("{of}`input` is a text of this {syntax} grammar:\n{}", grammar.definition))
            }
            _ => tool.description.clone(),
        };
        if let Some(description) = described {
            function["description"] = description.into();
        }
        function["parameters"] = match (&tool.input, &tool.parameters) {
            (None, None) => json!({"type": "object", "properties": {}}),
            (None, Some(parameters)) => parameters.clone(),
            (Some(_), _) => tool.schema(),
        };
        if let Some(strict) = tool.strict {
            function["strict"] = strict.into();
        }
        json!({"type": "function", "function": function})
    };
    tools.iter().map(definition).collect()
}
