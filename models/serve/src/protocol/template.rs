//! The fields that set how a conversation becomes a prompt.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::{ApiError, Result};

/// How a conversation becomes a prompt.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct TemplateFields {
    /// Variables of the chat template, such as `enable_thinking`.
    pub chat_template_kwargs: Option<Map<String, Value>>,
    /// The reasoning effort: a variable of chat templates that use it.
    pub reasoning_effort: Option<String>,
    /// Whether the opening of the model's turn follows the messages. Default: true, unless the last
    /// message is continued.
    pub add_generation_prompt: Option<bool>,
    /// Whether the answer continues the last message.
    pub continue_final_message: Option<bool>,
}

/// Checked options for turning a conversation into a prompt.
#[derive(Clone, Debug)]
pub struct Template {
    /// Variables of the chat template, each with the field that sets it.
    pub variables: Vec<(String, Value, &'static str)>,
    /// Whether the opening of the model's turn follows.
    pub add_generation_prompt: bool,
    /// Whether the answer continues the last message.
    pub continue_final_message: bool,
}

/// A variable of templates. Its value in `chat_template_kwargs` overrides the field.
pub const EFFORT: &str = "reasoning_effort";

impl TemplateFields {
    /// Checks the fields.
    ///
    /// # Errors
    /// 400 if they contradict one another.
    pub fn read(&self) -> Result<Template> {
        const VARIABLES: &str = "chat_template_kwargs";
        let continues = self.continue_final_message.unwrap_or(false);
        if continues && self.add_generation_prompt == Some(true) {
            let message = "`continue_final_message` goes on with the last message, and `add_generation_prompt` begins another: leave one out";
            return Err(ApiError::invalid("continue_final_message", message));
        }
        let given = self.chat_template_kwargs.iter().flatten();
        let mut variables: Vec<_> =
            given.map(|(name, value)| (name.clone(), value.clone(), VARIABLES)).collect();
        if let Some(effort) = &self.reasoning_effort
            && !variables.iter().any(|(name, ..)| name == EFFORT)
        {
            variables.push((EFFORT.to_owned(), effort.as_str().into(), EFFORT));
        }
        Ok(Template {
            variables,
            add_generation_prompt: self.add_generation_prompt.unwrap_or(!continues),
            continue_final_message: continues,
        })
    }
}
