//! [`ChatTemplate`]: renders messages as the text that a chat model expects.
//!
//! Tokenizers carry their template in Jinja, written for Python. It is rendered as Hugging Face
//! transformers renders it: with `trim_blocks` and `lstrip_blocks`, Python's methods on strings and
//! dictionaries, its `json.dumps` as `tojson`, its `str` of what is no text, `raise_exception`, `generation` blocks, and no
//! documents.
//!
//! A date is that of [`ChatTemplate::with_date`]. Without one, templates that have a fallback (Llama 3.2) take it, so that
//! the same messages always give the same text, and for those that have none (SmolLM3) it is today.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value, context};
use serde::Deserialize;

use crate::date::Date;
use crate::error::DecoderError;
use crate::json_text::tojson;
use crate::ordered::ordered;
use crate::python_text::write_str;

/// Instructions that a template may execute.
const FUEL: u64 = 10_000_000;
/// Name that a template goes by in messages.
const NAME: &str = "chat_template";

/// One turn of a conversation.
///
/// ```
/// use burn_dfa_decoder::Message;
///
/// let message = Message::user("Name a colour.");
/// assert_eq!(message, Message::new("user", "Name a colour."));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks: `system`, `user` or `assistant`.
    pub role: String,
    /// What they say.
    pub content: String,
}

impl Message {
    /// A message of any role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }

    /// What the model is told about its task.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }

    /// What the user says.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// What the model said.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }
}

/// The chat template of a tokenizer, with the special tokens it refers to.
///
/// # Example
///
/// ```
/// use burn_dfa_decoder::{ChatTemplate, Message};
///
/// let template = ChatTemplate::new(
///     "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'].strip() }}{{ eos_token }}{% endfor %}\
///      {% if add_generation_prompt %}<|assistant|>{% endif %}",
/// )?
/// .with_eos_token("</s>");
/// let text = template.render(&[Message::user(" Hello ")], true)?;
/// assert_eq!(text, "<|user|>Hello</s><|assistant|>");
/// # Ok::<(), burn_dfa_decoder::DecoderError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    bos_token: Option<String>,
    eos_token: Option<String>,
    /// Names and values that the template finds beside the messages.
    variables: BTreeMap<String, Value>,
}

/// The fields of `tokenizer_config.json` that a template needs.
#[derive(Deserialize)]
struct TokenizerConfig {
    #[serde(default)]
    chat_template: Option<Templates>,
    #[serde(default)]
    bos_token: Option<Token>,
    #[serde(default)]
    eos_token: Option<Token>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Templates {
    One(String),
    Named(Vec<Named>),
}

#[derive(Deserialize)]
struct Named {
    name: String,
    template: String,
}

/// A special token: its content alone, or an object with its settings.
#[derive(Deserialize)]
#[serde(untagged)]
enum Token {
    Plain(String),
    Added { content: String },
}

impl From<Token> for String {
    fn from(token: Token) -> Self {
        match token {
            Token::Plain(content) | Token::Added { content } => content,
        }
    }
}

impl ChatTemplate {
    /// Compiles a template; the special tokens are empty.
    ///
    /// # Errors
    /// When the template is not valid Jinja.
    pub fn new(source: impl Into<String>) -> Result<Self, DecoderError> {
        let mut environment = Environment::new();
        environment.set_syntax(
            SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(template_error)?,
        );
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", tojson);
        environment.add_filter("string", |value: &Value| {
            let mut text = String::new();
            write_str(value, &mut text).map(|()| text).map_err(Error::from)
        });
        environment.set_formatter(|out, _, value| write_str(value, out).map_err(Error::from));
        environment.add_function("raise_exception", |message: String| {
            Err::<Value, _>(Error::new(ErrorKind::InvalidOperation, message))
        });
        let source = source.into();
        environment.add_template_owned(NAME, without_generation(&source)).map_err(template_error)?;
        let mut template =
            Self { environment, source, bos_token: None, eos_token: None, variables: BTreeMap::new() };
        if template.source.contains("strftime_now") && !template.source.contains("strftime_now is ") {
            template.set_date(Date::today());
        }
        Ok(template)
    }

    /// Sets the day that `strftime_now` gives; hours and smaller parts are not known to it.
    ///
    /// # Panics
    /// If there is no such day.
    ///
    /// # Example
    ///
    /// ```
    /// use burn_dfa_decoder::ChatTemplate;
    ///
    /// let template = ChatTemplate::new("Today is {{ strftime_now('%d %B %Y') }}.")?.with_date(2025, 2, 9);
    /// assert_eq!(template.render(&[], false)?, "Today is 09 February 2025.");
    /// # Ok::<(), burn_dfa_decoder::DecoderError>(())
    /// ```
    pub fn with_date(mut self, year: u16, month: u8, day: u8) -> Self {
        let date = Date::new(year, month, day);
        self.set_date(date.unwrap_or_else(|| panic!("there is no day {year}-{month}-{day}")));
        self
    }

    fn set_date(&mut self, date: Date) {
        self.environment.add_function("strftime_now", move |format: String| date.format(&format));
    }

    /// Sets a variable of the template, such as `enable_thinking`.
    ///
    /// # Example
    ///
    /// ```
    /// use burn_dfa_decoder::ChatTemplate;
    /// use serde_json::json;
    ///
    /// let template = ChatTemplate::new("{% if enable_thinking %}/think{% else %}/no_think{% endif %}")?;
    /// assert_eq!(template.with_variable("enable_thinking", &json!(true)).render(&[], true)?, "/think");
    /// # Ok::<(), burn_dfa_decoder::DecoderError>(())
    /// ```
    pub fn with_variable(mut self, name: impl Into<String>, value: &serde_json::Value) -> Self {
        self.variables.insert(name.into(), ordered(value));
        self
    }

    /// Sets what `bos_token` stands for.
    pub fn with_bos_token(mut self, token: impl Into<String>) -> Self {
        self.bos_token = Some(token.into());
        self
    }

    /// Sets what `eos_token` stands for.
    pub fn with_eos_token(mut self, token: impl Into<String>) -> Self {
        self.eos_token = Some(token.into());
        self
    }

    /// The template of a model, from the text of its `chat_template.jinja`, or else from `chat_template` in its
    /// `tokenizer_config.json` (of several, the one named `default`). `None` when there is none.
    ///
    /// # Errors
    /// When a text is not valid.
    pub fn from_files(
        tokenizer_config: Option<&str>,
        chat_template: Option<String>,
    ) -> Result<Option<Self>, DecoderError> {
        let config: Option<TokenizerConfig> = tokenizer_config
            .map(serde_json::from_str)
            .transpose()
            .map_err(|source| DecoderError::Json { file: "tokenizer_config.json".into(), source })?;
        let (inner, bos, eos) = match config {
            None => (None, None, None),
            Some(config) => (config.chat_template, config.bos_token, config.eos_token),
        };
        let source = chat_template.or(match inner {
            None => None,
            Some(Templates::One(source)) => Some(source),
            Some(Templates::Named(all)) => {
                all.into_iter().find(|named| named.name == "default").map(|named| named.template)
            }
        });
        let Some(source) = source else {
            return Ok(None);
        };
        let mut template = Self::new(source)?;
        template.bos_token = bos.map(String::from);
        template.eos_token = eos.map(String::from);
        Ok(Some(template))
    }

    /// Renders a conversation, followed by the opening of the model's turn where
    /// `add_generation_prompt` is set.
    ///
    /// The text holds the special tokens: encode it without adding them again.
    ///
    /// # Errors
    /// When the template refuses the messages (an unknown role, say), or fails.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, DecoderError> {
        self.render_with_tools(messages, &[], add_generation_prompt)
    }

    /// As [`render`](Self::render), with the tools that the model may call, each as in a request:
    /// `{"type": "function", "function": {"name": …, "description": …, "parameters": …}}`. Without any, `tools` is
    /// `none` in the template, as in transformers.
    ///
    /// A template that knows of no tools passes over them.
    ///
    /// # Errors
    /// As [`render`](Self::render), and when the template does not find what it looks for in a tool.
    ///
    /// # Example
    ///
    /// ```
    /// use burn_dfa_decoder::{ChatTemplate, Message};
    /// use serde_json::json;
    ///
    /// let template = ChatTemplate::new(
    ///     "{% for tool in tools or [] %}{{ tool['function']['name'] }}; {% endfor %}{{ messages[0]['content'] }}",
    /// )?;
    /// let tools = [json!({"type": "function", "function": {"name": "get_time"}})];
    /// let text = template.render_with_tools(&[Message::user("How late is it?")], &tools, true)?;
    /// assert_eq!(text, "get_time; How late is it?");
    /// # Ok::<(), burn_dfa_decoder::DecoderError>(())
    /// ```
    pub fn render_with_tools(
        &self,
        messages: &[Message],
        tools: &[serde_json::Value],
        add_generation_prompt: bool,
    ) -> Result<String, DecoderError> {
        let messages = messages
            .iter()
            .map(|message| {
                context! { role => message.role.as_str(), content => message.content.as_str() }
            })
            .collect();
        self.render_values(messages, tools, add_generation_prompt)
    }

    /// As [`render_with_tools`](Self::render_with_tools), of messages as a request has them, with whatever fields the template
    /// looks at, such as `tool_calls`.
    ///
    /// # Errors
    /// As there, and when the template does not find what it looks for in a message.
    ///
    /// # Example
    ///
    /// ```
    /// use burn_dfa_decoder::ChatTemplate;
    /// use serde_json::json;
    ///
    /// let template = ChatTemplate::new(
    ///     "{% for m in messages %}{{ m.content or m.tool_calls[0].function.name }}; {% endfor %}",
    /// )?;
    /// let call = json!({"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "get_time"}}]});
    /// let messages = [json!({"role": "user", "content": "How late is it?"}), call];
    /// assert_eq!(template.render_json(&messages, &[], true)?, "How late is it?; get_time; ");
    /// # Ok::<(), burn_dfa_decoder::DecoderError>(())
    /// ```
    pub fn render_json(
        &self,
        messages: &[serde_json::Value],
        tools: &[serde_json::Value],
        add_generation_prompt: bool,
    ) -> Result<String, DecoderError> {
        self.render_values(messages.iter().map(ordered).collect(), tools, add_generation_prompt)
    }

    /// The text of the template.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn render_values(
        &self,
        messages: Vec<Value>,
        tools: &[serde_json::Value],
        add_generation_prompt: bool,
    ) -> Result<String, DecoderError> {
        let tools = if tools.is_empty() { Value::from(()) } else { tools.iter().map(ordered).collect() };
        self.environment
            .get_template(NAME)
            .and_then(|template| {
                let variables = Value::from_object(self.variables.clone());
                template.render(context! {
                    messages => messages,
                    add_generation_prompt => add_generation_prompt,
                    bos_token => self.bos_token.as_deref().unwrap_or_default(),
                    eos_token => self.eos_token.as_deref().unwrap_or_default(),
                    tools => tools,
                    documents => Value::from(()),
                    ..variables
                })
            })
            .map_err(template_error)
    }
}

fn template_error(error: Error) -> DecoderError {
    DecoderError::Template { message: error.to_string() }
}

/// The template with its `generation` blocks, which mark what a model was trained on, as blocks that only bound the scope
/// of variables, as those do.
fn without_generation(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at + 2);
        text += before;
        rest = tag;
        let Some(end) = tag.find("%}") else { break };
        let name = tag[..end].trim_matches(['-', '+']).trim();
        let block = match name {
            "generation" => "with",
            "endgeneration" => "endwith",
            _ => continue,
        };
        text += &tag[..end].replace(name, block);
        rest = &tag[end..];
    }
    text + rest
}
