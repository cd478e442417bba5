//! [`ChatTemplate`]: renders messages as the text that a chat model expects.
//!
//! Tokenizers carry their template in Jinja, written for Python. Rendering follows Hugging Face
//! transformers: `trim_blocks` and `lstrip_blocks`, Python's methods on strings and dictionaries,
//! its `json.dumps` as `tojson`, its `str` for values other than texts, `raise_exception`,
//! `generation` blocks, and no documents.
//!
//! [`ChatTemplate::with_date`] sets the date. Without it, templates with a fallback date (Llama
//! 3.2) use their fallback, so that the same messages always give the same text. Templates without
//! a fallback (SmolLM3) use today's date.
//!
//! - `rendering` has the options, and `marks` encodes special tokens in messages as text;
//! - `bounds` limits what an untrusted template may do: `budget` counts bytes and work, `steps` and
//!   `work` make its instructions and operations count;
//! - `ordered`, `python_text`, `json_text` and `date` make values and texts as Python does.

mod bounds;
mod budget;
mod date;
mod json_text;
mod marks;
mod ordered;
mod python_text;
mod rendering;
mod steps;
mod work;

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value, context};
use serde::Deserialize;

use crate::error::DecoderError;
use budget::Bounded;
use date::Date;
use json_text::tojson;
pub use marks::ChatPrompt;
pub(crate) use marks::Marks;
use ordered::ordered;
use python_text::write_str;
pub use rendering::RenderOptions;

/// Name of the template in messages.
const NAME: &str = "chat_template";

/// One turn of a conversation.
///
/// ```
/// use burn_dfa_decoder::Message;
///
/// let message = Message::user("Name a color.");
/// assert_eq!(message, Message::new("user", "Name a color."));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The role: `system`, `user` or `assistant`.
    pub role: String,
    /// The text of the turn.
    pub content: String,
}

impl Message {
    /// A message of any role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }

    /// A message that describes the task to the model.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }

    /// A message of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }
}

/// The chat template of a tokenizer, and its special tokens.
///
/// # Example
///
/// ```
/// use burn_dfa_decoder::{ChatTemplate, Message};
///
/// let template = ChatTemplate::new(
///     "{% for m in messages %}\
///      <|{{ m['role'] }}|>{{ m['content'].strip() }}{{ eos_token }}{% endfor %}\
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
    syntax: SyntaxConfig,
    source: String,
    /// The source that is compiled.
    prepared: String,
    bos_token: Option<String>,
    eos_token: Option<String>,
    /// Further variables of the template.
    variables: BTreeMap<String, Value>,
}

/// The template named `default` of several named templates, or the only template.
fn default_template(mut all: Vec<Named>) -> Result<String, DecoderError> {
    let default = all.iter().position(|named| named.name == "default");
    match default.or((all.len() == 1).then_some(0)) {
        Some(index) => Ok(all.swap_remove(index).template),
        None => {
            let names: Vec<&str> = all.iter().map(|named| named.name.as_str()).collect();
            Err(DecoderError::Template {
                message: format!(
                    "tokenizer_config.json names {}, and none is `default`: write the template that you want to \
                     chat_template.jinja in the folder",
                    if names.is_empty() {
                        "no templates".to_owned()
                    } else {
                        format!("the templates {}", names.join(", "))
                    }
                ),
            })
        }
    }
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
        let syntax =
            SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(template_error)?;
        bounds::bind(&mut environment);
        environment.add_filter("tojson", tojson);
        environment.add_filter("string", |value: &Value| budget::written(|to| write_str(value, to)));
        // In Jinja, `none` is not iterable, but an undefined value is.
        environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
        environment.set_formatter(|out, _, value| write_str(value, &mut Bounded(out)).map_err(Error::from));
        environment.add_function("raise_exception", |message: String| {
            Err::<Value, _>(Error::new(ErrorKind::InvalidOperation, message))
        });
        let source = source.into();
        let check = || {
            let prepared = bounds::prepared(&without_generation(&source), &syntax);
            let prepared = prepared.map_err(|error| error.to_string())?;
            bounds::check(NAME, &prepared, &syntax).map_err(|error| error.to_string())?;
            Ok(prepared)
        };
        let prepared = bounds::on_thread(check).map_err(|message| DecoderError::Template { message })?;
        let (bos_token, eos_token, variables) = (None, None, BTreeMap::new());
        let mut template = Self { environment, syntax, source, prepared, bos_token, eos_token, variables };
        if template.source.contains("strftime_now") && !template.source.contains("strftime_now is ") {
            template.set_date(Date::today());
        }
        Ok(template)
    }

    /// Sets the day for `strftime_now`, which gives no hours, minutes or seconds.
    ///
    /// # Panics
    /// If the date does not exist.
    ///
    /// # Example
    ///
    /// ```
    /// use burn_dfa_decoder::ChatTemplate;
    ///
    /// let template =
    ///     ChatTemplate::new("Today is {{ strftime_now('%d %B %Y') }}.")?.with_date(2025, 2, 9);
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
    /// let template =
    ///     ChatTemplate::new("{% if enable_thinking %}/think{% else %}/no_think{% endif %}")?;
    /// assert_eq!(
    ///     template.with_variable("enable_thinking", &json!(true)).render(&[], true)?,
    ///     "/think"
    /// );
    /// # Ok::<(), burn_dfa_decoder::DecoderError>(())
    /// ```
    pub fn with_variable(mut self, name: impl Into<String>, value: &serde_json::Value) -> Self {
        self.variables.insert(name.into(), ordered(value));
        self
    }

    /// Sets the text of `bos_token`.
    pub fn with_bos_token(mut self, token: impl Into<String>) -> Self {
        self.bos_token = Some(token.into());
        self
    }

    /// Sets the text of `eos_token`.
    pub fn with_eos_token(mut self, token: impl Into<String>) -> Self {
        self.eos_token = Some(token.into());
        self
    }

    /// Reads the template of a model from the text of its `chat_template.jinja`, or else from
    /// `chat_template` in its `tokenizer_config.json` (of several templates, the one named
    /// `default`). `None` if neither has a template.
    ///
    /// # Errors
    /// A text is not valid, or none of several templates is named `default`.
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
            Some(Templates::Named(all)) => Some(default_template(all)?),
        });
        let Some(source) = source else {
            return Ok(None);
        };
        let mut template = Self::new(source)?;
        template.bos_token = bos.map(String::from);
        template.eos_token = eos.map(String::from);
        Ok(Some(template))
    }

    /// Renders a conversation. If `add_generation_prompt` is set, the opening of the model's turn
    /// follows.
    ///
    /// The text holds the special tokens: encode it without adding them again.
    ///
    /// # Errors
    /// The template rejects the messages (an unknown role, say), or fails.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, DecoderError> {
        self.render_with_tools(messages, &[], add_generation_prompt)
    }

    /// Like [`render`](Self::render), with the tools that the model may call, each as in a request:
    /// `{"type": "function", "function": {"name": …, "description": …, "parameters": …}}`. Without
    /// tools, `tools` is `none` in the template, as in transformers.
    ///
    /// A template that does not mention tools ignores them.
    ///
    /// # Errors
    /// As [`render`](Self::render), and if a tool lacks a field that the template reads.
    ///
    /// # Example
    ///
    /// ```
    /// use burn_dfa_decoder::{ChatTemplate, Message};
    /// use serde_json::json;
    ///
    /// let template = ChatTemplate::new(
    ///     "{% for tool in tools or [] %}{{ tool['function']['name'] }}; {% endfor %}\
    ///      {{ messages[0]['content'] }}",
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
        let one = |Message { role, content }: &Message| context! { role => role.as_str(), content => content.as_str() };
        let options = RenderOptions::new().with_generation_prompt(add_generation_prompt);
        self.render_values(|| messages.iter().map(one).collect(), tools, &options)
    }

    /// Like [`render_with_tools`](Self::render_with_tools), for messages as in a request, with any
    /// fields that the template reads, such as `tool_calls`.
    ///
    /// # Errors
    /// As there, and if a message lacks a field that the template reads.
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
    /// let call = json!({"type": "function", "function": {"name": "get_time"}});
    /// let call = json!({"role": "assistant", "tool_calls": [call]});
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
        let options = RenderOptions::new().with_generation_prompt(add_generation_prompt);
        self.render_json_with(messages, tools, &options)
    }

    /// Like [`render_json`](Self::render_json), with variables. If the model continues the last
    /// message, the text ends with the content of this message.
    ///
    /// # Errors
    /// As there; and if a variable has the name of a built-in variable, the last message has no
    /// text to continue, or the template does not write its text.
    pub fn render_json_with(
        &self,
        messages: &[serde_json::Value],
        tools: &[serde_json::Value],
        options: &RenderOptions,
    ) -> Result<String, DecoderError> {
        options.check()?;
        if !options.continue_final_message {
            return self.render_values(|| messages.iter().map(ordered).collect(), tools, options);
        }
        let marked = rendering::marked(messages)?;
        let options = options.clone().with_generation_prompt(false);
        rendering::up_to_mark(self.render_values(|| marked.iter().map(ordered).collect(), tools, &options)?)
    }

    /// The text of the template.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders the result of `messages` on a thread with a large stack: values may be nested
    /// deeply.
    fn render_values(
        &self,
        messages: impl FnOnce() -> Vec<Value> + Send,
        tools: &[serde_json::Value],
        options: &RenderOptions,
    ) -> Result<String, DecoderError> {
        let render = || {
            let tools = if tools.is_empty() { Value::from(()) } else { tools.iter().map(ordered).collect() };
            let mut variables = self.variables.clone();
            variables.extend(options.variables.iter().map(|(name, value)| (name.clone(), ordered(value))));
            let variables = Value::from_object(variables);
            let root = context! {
                messages => messages(),
                add_generation_prompt => options.add_generation_prompt,
                bos_token => self.bos_token.as_deref().unwrap_or_default(),
                eos_token => self.eos_token.as_deref().unwrap_or_default(),
                tools => tools,
                documents => Value::from(()),
                ..variables
            };
            let rendered = bounds::render(&self.environment, NAME, &self.prepared, &self.syntax, root);
            rendered.map_err(|error| error.to_string())
        };
        bounds::on_thread(render).map_err(|message| DecoderError::Template { message })
    }
}

fn template_error(error: Error) -> DecoderError {
    DecoderError::Template { message: error.to_string() }
}

/// Turns the `generation` blocks of a template, which mark text for training, into `with` blocks,
/// since both bound the scope of variables.
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
