//! Tools: functions that a model may call, as one constraint and one reader of answers.
//!
//! ```text
//! Tools ──lower──▶ structural tag ──▶ Constraint      what a model may write
//!                        └──▶ machine ──▶ ToolReader  what it wrote: text, reasoning, calls
//! ```
//!
//! - `definition` has tools, `input` the texts of custom ones, `choice` the rules on calls,
//!   `reasoning` the text before the answer, `reply` the result;
//! - `format` has the texts around calls by family of models, `callable` the tools that the choice
//!   allows; `lower` and `harmony` convert both to a structural tag;
//! - `written` has calls as text, `prompt` the text about tools for a model, `locate` finds the
//!   tool of an error;
//! - `variants` reads the tools of a Rust enum, for `typed`;
//! - `machine` is the structural tag as a graph, which `reader` follows; `json` and `xml` find the
//!   end of arguments.

mod callable;
mod choice;
mod definition;
mod fields;
mod format;
mod harmony;
mod input;
mod json;
mod locate;
mod lower;
mod machine;
mod prompt;
mod reader;
mod reasoning;
mod reply;
#[cfg(test)]
mod tests;
#[cfg(feature = "typed")]
mod typed;
#[cfg(any(feature = "typed", test))]
mod variants;
mod written;
mod xml;

use std::collections::BTreeSet;

use serde_json::Value;

pub use self::choice::ToolChoice;
pub use self::definition::Tool;
pub use self::format::ToolFormat;
pub use self::input::ToolInput;
pub use self::reader::ToolReader;
pub use self::reasoning::Reasoning;
pub use self::reply::{Call, Reply, ReplyEvent};
use super::{Constraint, JsonOptions, StructuralTag};
use burn_dfa_common::{Error, Result};
use burn_dfa_vocabulary::{TokenId, TokenKind, Vocabulary};

/// Tools that a model may call, the format of calls, and whether a call is required.
///
/// ```
/// use burn_dfa_tokens::constraint::{Tool, ToolChoice, ToolFormat, Tools};
/// use burn_dfa_tokens::Limits;
/// use serde_json::json;
///
/// let schema =
///     json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let tools = Tools::new([Tool::new("weather").with_parameters(schema)])?
///     .with_format(ToolFormat::Hermes)
///     .with_choice(ToolChoice::Required);
/// let output =
///     "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>";
/// let automaton = tools.to_constraint()?.to_automaton(&Limits::default())?.unwrap();
/// assert!(automaton.matches(output.as_bytes()));
///
/// let reply = tools.read(output)?;
/// assert_eq!(reply.calls[0].name, "weather");
/// assert_eq!(reply.calls[0].arguments, r#"{"city": "Bern"}"#);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tools {
    tools: Vec<Tool>,
    choice: ToolChoice,
    format: ToolFormat,
    parallel: bool,
    reasoning: Option<Reasoning>,
}

impl Tools {
    /// These tools, with any number of calls in [plain](ToolFormat::Plain) JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Request`](crate::ErrorKind::Request): a name is empty, duplicate or has
    /// characters not listed at [`Tool::name`]; parameters are not a schema of objects.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Result<Self> {
        let tools: Vec<Tool> = tools.into_iter().collect();
        let mut names = BTreeSet::new();
        for tool in &tools {
            tool.check()?;
            if !names.insert(tool.name.as_str()) {
                return Err(Error::request(format!("two tools have the name {:?}", tool.name)));
            }
        }
        Ok(Self {
            tools,
            choice: ToolChoice::Auto,
            format: ToolFormat::Plain,
            parallel: true,
            reasoning: None,
        })
    }

    /// The tools of a request: its fields `tools`, `tool_choice` and `parallel_tool_calls`. Other
    /// fields are not looked at.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::{ToolChoice, Tools};
    /// use serde_json::json;
    ///
    /// let tool = json!({"type": "function", "function": {"name": "now"}});
    /// let body = json!({"tools": [tool], "tool_choice": "required"});
    /// let tools = Tools::from_request(&body)?;
    /// assert_eq!(tools.choice(), &ToolChoice::Required);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Request`](crate::ErrorKind::Request): a field is malformed, and as
    /// [`new`](Self::new).
    pub fn from_request(request: &Value) -> Result<Self> {
        let field = |name: &str| request.get(name).filter(|value| !value.is_null());
        let tools = match field("tools") {
            None => Vec::new(),
            Some(Value::Array(tools)) => {
                let read = |(i, tool): (usize, &Value)| {
                    Tool::try_from(tool.clone()).map_err(|error| error.within(&format!("tools[{i}]")))
                };
                tools.iter().enumerate().map(read).collect::<Result<_>>()?
            }
            Some(_) => return Err(Error::request("`tools` is not an array")),
        };
        let mut own = Self::new(tools)?;
        if let Some(choice) = field("tool_choice") {
            own.choice = ToolChoice::try_from(choice.clone())?;
        }
        if let Some(parallel) = field("parallel_tool_calls") {
            own.parallel = parallel
                .as_bool()
                .ok_or_else(|| Error::request("`parallel_tool_calls` is neither true nor false"))?;
        }
        Ok(own)
    }

    /// How the model writes calls.
    #[must_use]
    pub fn with_format(self, format: ToolFormat) -> Self {
        Self { format, ..self }
    }

    /// Whether tools are called.
    #[must_use]
    pub fn with_choice(self, choice: ToolChoice) -> Self {
        Self { choice, ..self }
    }

    /// Whether several tools may be called in one answer.
    #[must_use]
    pub fn with_parallel(self, parallel: bool) -> Self {
        Self { parallel, ..self }
    }

    /// Sets the reasoning before the answer; without it there is none.
    #[must_use]
    pub fn with_reasoning(self, reasoning: Reasoning) -> Self {
        Self { reasoning: Some(reasoning), ..self }
    }

    /// The tools, in their order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Whether tools are called.
    pub fn choice(&self) -> &ToolChoice {
        &self.choice
    }

    /// How the model writes calls.
    pub fn format(&self) -> ToolFormat {
        self.format
    }

    /// The structural tag of the model's output.
    ///
    /// With [`Auto`](ToolChoice::Auto) it is free text in which every trigger begins a call; after
    /// a call, text continues if several calls are allowed, and ends otherwise. With
    /// [`Required`](ToolChoice::Required) a call comes first. With [`Named`](ToolChoice::Named) the
    /// output is exactly one call, with [`None`](ToolChoice::None) text without triggers.
    ///
    /// # Errors
    /// - [`ErrorKind::Request`](crate::ErrorKind::Request): the choice names an unknown tool, or
    ///   requires a call without tools; the format has other reasoning;
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): the marks of the reasoning are empty, too
    ///   long, or contradict one another.
    pub fn to_structural_tag(&self) -> Result<StructuralTag> {
        self.lower().map(|lowered| lowered.tag)
    }

    /// How arguments are written: as [structural tags](StructuralTag::json_options) are, with the
    /// white space of the [format](ToolFormat::whitespace).
    pub fn json_options(&self) -> JsonOptions {
        StructuralTag::json_options().with_whitespace(self.format.whitespace())
    }

    /// The constraint on the model's output.
    ///
    /// # Errors
    /// See [`to_structural_tag`](Self::to_structural_tag) and [`Constraint::structural_tag`], for
    /// example for parameters that cannot be honored; the pointer is into the structural tag.
    pub fn to_constraint(&self) -> Result<Constraint> {
        self.to_constraint_with(&self.json_options())
    }

    /// Like [`to_constraint`](Self::to_constraint), with other options for arguments, for example
    /// for a model trained on calls with compact arguments.
    ///
    /// ```
    /// use burn_dfa_tokens::Limits;
    /// use burn_dfa_tokens::constraint::{Tool, ToolChoice, Tools, Whitespace};
    /// use serde_json::json;
    ///
    /// let city = json!({"city": {"const": "Bern"}});
    /// let schema = json!({"type": "object", "properties": city, "required": ["city"]});
    /// let tools = Tools::new([Tool::new("weather").with_parameters(schema)])?
    ///     .with_choice(ToolChoice::Required);
    /// let compact = tools.json_options().with_whitespace(Whitespace::Compact);
    /// let automaton =
    ///     tools.to_constraint_with(&compact)?.to_automaton(&Limits::default())?.unwrap();
    /// assert!(automaton.matches(br#"{"name": "weather", "arguments": {"city":"Bern"}}"#));
    /// assert!(!automaton.matches(br#"{"name": "weather", "arguments": {"city": "Bern"}}"#));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`to_constraint`](Self::to_constraint).
    pub fn to_constraint_with(&self, options: &JsonOptions) -> Result<Constraint> {
        Constraint::structural_tag_with(&self.to_structural_tag()?, options)
    }

    /// A vocabulary with the marks of the format, and of reasoning between texts, as ordinary text.
    ///
    /// A special token is not text, so a model whose tokenizer has `<|channel|>` as one token could
    /// not write it. Compile the constraint with this vocabulary, and decode the input of the
    /// reader with it. End-of-sequence tokens are unchanged.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::{ToolFormat, Tools};
    /// use burn_dfa_tokens::vocabulary::TokenKind;
    /// use burn_dfa_tokens::{TokenId, Vocabulary};
    ///
    /// let tokens = [
    ///     (TokenKind::Special, "<|channel|>"),
    ///     (TokenKind::Special, "<|return|>"),
    ///     (TokenKind::Special, "<s>"),
    /// ];
    /// let vocabulary = Vocabulary::from_tokens(tokens)?.with_eos([TokenId(1)])?;
    /// let tools = Tools::new([])?.with_format(ToolFormat::Harmony);
    /// let texts = [0, 1, 2]
    ///     .map(TokenId)
    ///     .map(|id| tools.vocabulary(&vocabulary).unwrap().bytes(id).is_some());
    /// assert_eq!(texts, [true, false, false]);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary): never, for a valid `vocabulary`.
    pub fn vocabulary(&self, vocabulary: &Vocabulary) -> Result<Vocabulary> {
        let marks: BTreeSet<&[u8]> = self
            .reasoning
            .iter()
            .flat_map(Reasoning::marks)
            .chain(self.format.marks().iter().copied())
            .map(str::as_bytes)
            .collect();
        let tokens = (0..vocabulary.len() as u32).map(TokenId).map(|id| {
            let content = vocabulary.content(id).unwrap_or_default();
            let kind = match vocabulary.kind(id) {
                TokenKind::Special if marks.contains(content) => TokenKind::Added,
                kind => kind,
            };
            (kind, content)
        });
        Vocabulary::from_tokens(tokens)?.with_eos(vocabulary.eos().iter().copied())
    }

    /// A reader of one answer.
    ///
    /// # Errors
    /// As [`to_structural_tag`](Self::to_structural_tag).
    pub fn reader(&self) -> Result<ToolReader> {
        ToolReader::new(self)
    }

    /// Reads a whole answer.
    ///
    /// # Errors
    /// As [`reader`](Self::reader), and [`ErrorKind::Output`](crate::ErrorKind::Output): the text
    /// does not have the format, or was cut off.
    pub fn read(&self, output: &str) -> Result<Reply> {
        let mut reader = self.reader()?;
        reader.push(output.as_bytes())?;
        reader.finish()?;
        Ok(reader.into_reply())
    }

    fn lower(&self) -> Result<lower::LoweredTools> {
        if let Some(reasoning) = &self.reasoning {
            reasoning.check()?;
        }
        lower::lower(self)
    }
}

impl Constraint {
    /// The output of a model with tools; see [`Tools::to_constraint`].
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::{Tool, Tools};
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let tools = Tools::new([Tool::new("now")])?;
    /// let automaton = Constraint::tools(&tools)?.to_automaton(&Limits::default())?.unwrap();
    /// assert!(automaton.matches(br#"It is {"name": "now", "arguments": {}}"#));
    /// assert!(!automaton.matches(br#"It is {"name": "then", "arguments": {}}"#));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`Tools::to_constraint`].
    pub fn tools(tools: &Tools) -> Result<Self> {
        tools.to_constraint()
    }
}
