//! Tools: functions that a model may call, as one constraint and one reader of what it answers.
//!
//! ```text
//! Tools ──lower──▶ structural tag ──▶ Constraint      what a model may write
//!                        └──▶ machine ──▶ ToolReader  what it wrote: text, reasoning, calls
//! ```
//!
//! - `definition` are tools, `choice` whether they are called, `reasoning` what may come before, `reply` what comes out;
//! - `format` has the texts around calls by family of models, `lower` and `harmony` make a structural tag of them;
//! - `variants` are the tools of a Rust enum, which `typed` takes;
//! - `machine` is this structural tag as a graph, which `reader` follows; `scan` finds marks in text, `json` and `xml` the end of
//!   arguments.

mod choice;
mod definition;
mod format;
mod harmony;
mod json;
mod lower;
mod machine;
mod reader;
mod reasoning;
mod reply;
mod scan;
#[cfg(test)]
mod tests;
#[cfg(feature = "typed")]
mod typed;
#[cfg(any(feature = "typed", test))]
mod variants;
mod xml;

use std::collections::BTreeSet;

use serde_json::Value;

pub use self::choice::ToolChoice;
pub use self::definition::Tool;
pub use self::format::ToolFormat;
pub use self::reader::ToolReader;
pub use self::reasoning::Reasoning;
pub use self::reply::{Call, Reply, ReplyEvent};
use super::{Constraint, StructuralTag};
use crate::error::{Error, Result};
use crate::vocabulary::{TokenId, TokenKind, Vocabulary};

/// Tools that a model may call, how it writes calls, and whether it has to.
///
/// ```
/// use burn_dfa::constraint::{Tool, ToolChoice, ToolFormat, Tools};
/// use burn_dfa::Limits;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let tools = Tools::new([Tool::new("weather").with_parameters(schema)])?
///     .with_format(ToolFormat::Hermes)
///     .with_choice(ToolChoice::Required);
/// let output = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>";
/// let automaton = tools.to_constraint()?.to_automaton(&Limits::default())?.unwrap();
/// assert!(automaton.matches(output.as_bytes()));
///
/// let reply = tools.read(output)?;
/// assert_eq!(reply.calls[0].name, "weather");
/// assert_eq!(reply.calls[0].arguments, r#"{"city": "Bern"}"#);
/// # Ok::<(), burn_dfa::Error>(())
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
    /// These tools, any number of which may be called in [plain](ToolFormat::Plain) JSON.
    ///
    /// # Errors
    /// [`Error::is_request`]: a name is empty, twice there or has other characters than [`Tool::name`] says; parameters are not
    /// those of an object.
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

    /// The tools of a request: its fields `tools`, `tool_choice` and `parallel_tool_calls`. Other fields are not looked at.
    ///
    /// ```
    /// use burn_dfa::constraint::{ToolChoice, Tools};
    /// use serde_json::json;
    ///
    /// let body = json!({"tools": [{"type": "function", "function": {"name": "now"}}], "tool_choice": "required"});
    /// let tools = Tools::from_request(&body)?;
    /// assert_eq!(tools.choice(), &ToolChoice::Required);
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::is_request`]: a field is malformed, and as [`new`](Self::new).
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

    /// The reasoning in front of the answer, of which there is none otherwise.
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

    /// The structural tag of what the model may write.
    ///
    /// With [`Auto`](ToolChoice::Auto) it is free text in which calls begin with a trigger, and a trigger is nothing else; after
    /// a call text goes on if there may be several, and ends otherwise. With [`Required`](ToolChoice::Required) a call comes
    /// first. With [`Named`](ToolChoice::Named) there is one call and nothing else, with [`None`](ToolChoice::None) text without
    /// triggers.
    ///
    /// # Errors
    /// - [`Error::is_request`]: the choice names a tool that there is not, or wants a call where there are no tools; the format has
    ///   other reasoning;
    /// - [`Error::is_input`]: the marks of the reasoning are empty, too long, or contradict one another.
    pub fn to_structural_tag(&self) -> Result<StructuralTag> {
        self.lower().map(|lowered| lowered.tag)
    }

    /// What the model may write.
    ///
    /// # Errors
    /// As [`to_structural_tag`](Self::to_structural_tag), and what [`Constraint::structural_tag`] refuses, such as parameters that
    /// cannot be honoured; the pointer is into the structural tag.
    pub fn to_constraint(&self) -> Result<Constraint> {
        Constraint::structural_tag(&self.to_structural_tag()?)
    }

    /// A vocabulary in which the marks of the format, and of reasoning between texts, are text.
    ///
    /// A special token is no text, so that a model whose tokenizer has `<|channel|>` as one token could not write it. Compile the
    /// constraint with this vocabulary, and decode with it what the reader is given. Tokens that end the sequence stay what they
    /// are.
    ///
    /// ```
    /// use burn_dfa::constraint::{ToolFormat, Tools};
    /// use burn_dfa::{TokenId, Vocabulary, vocabulary::TokenKind};
    ///
    /// let tokens = [(TokenKind::Special, "<|channel|>"), (TokenKind::Special, "<|return|>"), (TokenKind::Special, "<s>")];
    /// let vocabulary = Vocabulary::from_tokens(tokens)?.with_eos([TokenId(1)])?;
    /// let tools = Tools::new([])?.with_format(ToolFormat::Harmony);
    /// let texts = [0, 1, 2].map(TokenId).map(|id| tools.vocabulary(&vocabulary).unwrap().bytes(id).is_some());
    /// assert_eq!(texts, [true, false, false]);
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::is_vocabulary`]: never, where `vocabulary` is one.
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
    /// As [`reader`](Self::reader), and [`Error::is_output`]: the text does not have the format, or was cut off.
    pub fn read(&self, output: &str) -> Result<Reply> {
        let mut reader = self.reader()?;
        reader.push(output.as_bytes())?;
        reader.finish()?;
        Ok(reader.into_reply())
    }

    fn lower(&self) -> Result<lower::Lowered> {
        if let Some(reasoning) = &self.reasoning {
            reasoning.check()?;
        }
        lower::lower(self)
    }
}

impl Constraint {
    /// What a model may write that has tools; see [`Tools::to_constraint`].
    ///
    /// ```
    /// use burn_dfa::constraint::{Tool, Tools};
    /// use burn_dfa::{Constraint, Limits};
    ///
    /// let tools = Tools::new([Tool::new("now")])?;
    /// let automaton = Constraint::tools(&tools)?.to_automaton(&Limits::default())?.unwrap();
    /// assert!(automaton.matches(br#"It is {"name": "now", "arguments": {}}"#));
    /// assert!(!automaton.matches(br#"It is {"name": "then", "arguments": {}}"#));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn tools(tools: &Tools) -> Result<Self> {
        tools.to_constraint()
    }
}
