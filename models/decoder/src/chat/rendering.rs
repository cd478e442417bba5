//! Options for rendering a conversation: its variables, and the end of its text.

use serde_json::{Map, Value};

use crate::error::DecoderError;

/// Options for rendering a conversation, apart from its messages and tools.
///
/// ```
/// use burn_dfa_decoder::{ChatTemplate, RenderOptions};
/// use serde_json::json;
///
/// let template = ChatTemplate::new(
///     "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}</s>{% endfor %}\
///      {% if add_generation_prompt %}<|assistant|>{% endif %}",
/// )?;
/// let messages = [json!({"role": "assistant", "content": "The answer is"})];
/// let options = RenderOptions::new().with_continued_message(true);
/// assert_eq!(template.render_json_with(&messages, &[], &options)?, "<|assistant|>The answer is");
/// # Ok::<(), burn_dfa_decoder::DecoderError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RenderOptions {
    /// Whether the opening of the model's turn follows the messages. Default: true.
    pub add_generation_prompt: bool,
    /// Whether the text ends with the content of the last message, so that the model continues it.
    /// The opening of a turn is left out in this case. Default: false.
    pub continue_final_message: bool,
    /// Variables of the template, such as `enable_thinking`.
    pub variables: Map<String, Value>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self { add_generation_prompt: true, continue_final_message: false, variables: Map::new() }
    }
}

impl RenderOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the opening of the model's turn follows.
    #[must_use]
    pub fn with_generation_prompt(self, add_generation_prompt: bool) -> Self {
        Self { add_generation_prompt, ..self }
    }

    /// Whether the model continues the last message.
    #[must_use]
    pub fn with_continued_message(self, continue_final_message: bool) -> Self {
        Self { continue_final_message, ..self }
    }

    /// Sets variables of the template.
    #[must_use]
    pub fn with_variables(self, variables: Map<String, Value>) -> Self {
        Self { variables, ..self }
    }

    /// Refuses variables with the names of built-in variables.
    ///
    /// # Errors
    /// A template error that names the variable.
    pub(crate) fn check(&self) -> Result<(), DecoderError> {
        const OWN: [&str; 6] =
            ["messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"];
        match self.variables.keys().find(|name| OWN.contains(&name.as_str())) {
            Some(name) => Err(wrong(format!("the variable `{name}` is one of its own; choose another name"))),
            None => Ok(()),
        }
    }
}

/// A mark after the last message, to find the end of its content. The space shows whether the
/// template trims the content.
const END: &str = "\u{10fffe} ";

/// Appends a mark to the content of the last message.
///
/// # Errors
/// The last message has no text.
pub(crate) fn marked(messages: &[Value]) -> Result<Vec<Value>, DecoderError> {
    let mut messages = messages.to_vec();
    let last = messages.last_mut().and_then(|message| message.get_mut("content"));
    match last {
        Some(Value::String(content)) => content.push_str(END),
        _ => return Err(wrong("the last message has no text that the model could continue".into())),
    }
    Ok(messages)
}

/// Cuts a rendered conversation off at its mark.
///
/// # Errors
/// The mark is missing.
pub(crate) fn up_to_mark(mut text: String) -> Result<String, DecoderError> {
    let Some(at) = text.rfind(END.trim_end()) else {
        return Err(wrong(
            "it does not write the last message as it is, so the model cannot continue it".into(),
        ));
    };
    let is_trimmed = !text[at..].starts_with(END);
    text.truncate(at);
    if is_trimmed {
        text.truncate(text.trim_end().len());
    }
    Ok(text)
}

fn wrong(message: String) -> DecoderError {
    DecoderError::Template { message }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ChatTemplate;

    fn render(template: &str, messages: Value, options: &RenderOptions) -> Result<String, DecoderError> {
        let messages = messages.as_array().expect("messages").clone();
        ChatTemplate::new(template)?.render_json_with(&messages, &[], options)
    }

    #[test]
    fn the_last_message_is_open() {
        let options = RenderOptions::new().with_continued_message(true);
        let plain = "{% for m in messages %}<{{ m.content }}>{% endfor %}";
        let two = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b "}]);
        assert_eq!(render(plain, two.clone(), &options).expect("it renders"), "<a><b ");
        let trimmed = "{% for m in messages %}<{{ m.content | trim }}>{% endfor %}";
        assert_eq!(render(trimmed, two, &options).expect("it renders"), "<a><b");
        for messages in [json!([]), json!([{"role": "assistant", "content": null}])] {
            let error = render(plain, messages, &options).expect_err("there is nothing to continue");
            assert!(error.to_string().contains("no text"), "{error}");
        }
        let without =
            "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}";
        let error = render(without, json!([{"role": "assistant", "content": "b"}]), &options);
        assert!(error.expect_err("it is not written").to_string().contains("as it is"));
    }

    #[test]
    fn variables_have_names_of_their_own() {
        let with = |name: &str| {
            let variables = [(name.to_owned(), json!("x"))].into_iter().collect();
            render("{{ mood }}", json!([]), &RenderOptions::new().with_variables(variables))
        };
        assert_eq!(with("mood").expect("it renders"), "x");
        assert!(with("messages").expect_err("it has messages").to_string().contains("`messages`"));
    }
}
