//! Custom tools, with a text as input.

use serde_json::{Map, Value, json};

use super::fields::{as_text, field, nothing_else, object};
use crate::structural_tag::marks_of;
use crate::{Format, GrammarText, SchemaFormat, Style};
use burn_dfa_common::{Error, Result};

/// The property with the input, in formats that write arguments.
const INPUT: &str = "input";

/// The input of a custom tool: a text instead of a JSON object of arguments.
///
/// A call is written like a call of a function with one argument, `input`. A text of a grammar is
/// written in it without escapes: `{"name": "sql", "arguments": {"input": "SELECT "a""}}`. Such a
/// call is the last of an answer, so the end of the answer ends the text.
///
/// ```
/// use burn_dfa_tokens::constraint::{GrammarText, Tool, ToolChoice, ToolInput, Tools};
/// use serde_json::json;
///
/// let grammar = json!({"syntax": "lark", "definition": "start: \"add \" /[0-9]+/"});
/// let grammar: GrammarText = serde_json::from_value(grammar)?;
/// let tool = Tool::custom("calculator", ToolInput::Grammar(grammar));
/// let tools = Tools::new([tool])?.with_choice(ToolChoice::Required);
/// let reply = tools.read(r#"{"name": "calculator", "arguments": {"input": "add 12"}}"#)?;
/// assert_eq!(reply.calls[0].arguments, "add 12");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolInput {
    /// Any text.
    Text,
    /// A text of a grammar.
    Grammar(GrammarText),
}

impl ToolInput {
    /// Reads the `format` of a custom tool.
    ///
    /// # Errors
    /// The `format` is malformed.
    pub(super) fn read(format: Option<Value>) -> Result<Self> {
        let Some(format) = format else { return Ok(Self::Text) };
        let mut fields = object("the `format` of a custom tool", format)?;
        match fields.remove("type").as_ref().and_then(Value::as_str) {
            Some("text") => {
                nothing_else("the `format` of a custom tool", &fields)?;
                Ok(Self::Text)
            }
            Some("grammar") => {
                let mut within = match fields.remove("grammar") {
                    None => fields,
                    Some(grammar) => {
                        nothing_else("the `format` of a custom tool", &fields)?;
                        object("the `grammar` of a custom tool", grammar)?
                    }
                };
                let mut text = |name: &str| field(&mut within, name, as_text);
                let wants =
                    |name: &str| Error::request(format!("the grammar of a custom tool has no `{name}`"));
                let syntax = text("syntax")?.ok_or_else(|| wants("syntax"))?;
                let definition = text("definition")?.ok_or_else(|| wants("definition"))?;
                let start = text("start")?;
                nothing_else("the grammar of a custom tool", &within)?;
                Ok(Self::Grammar(GrammarText { syntax, definition, start }))
            }
            _ => {
                Err(Error::request("the `type` of the `format` of a custom tool is \"text\" or \"grammar\""))
            }
        }
    }

    /// As [`read`](Self::read) reads it, as chat completions have it.
    pub(super) fn format(&self) -> Value {
        match self {
            Self::Text => json!({"type": "text"}),
            Self::Grammar(grammar) => json!({"type": "grammar", "grammar": grammar}),
        }
    }

    /// The schema of arguments with the input.
    pub(super) fn schema() -> Value {
        json!({
            "type": "object", "properties": {INPUT: {"type": "string"}}, "required": [INPUT],
            "additionalProperties": false
        })
    }

    /// The input in `arguments`.
    ///
    /// # Errors
    /// The arguments have no input.
    pub(super) fn of_arguments(arguments: &str) -> Result<String> {
        let mut fields: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
        match fields.remove(INPUT) {
            Some(Value::String(input)) => Ok(input),
            _ => Err(Error::output("the call of a custom tool has no `input`")),
        }
    }
}

/// Arguments: the text before them, their format, and the text after them.
pub(super) struct Arguments {
    pub(super) before: String,
    pub(super) format: Format,
    pub(super) after: String,
}

impl Arguments {
    /// The arguments of a schema, or of a custom tool.
    pub(super) fn new(schema: Value, input: Option<&ToolInput>, style: Style) -> Self {
        let Some(ToolInput::Grammar(grammar)) = input else {
            let format = SchemaFormat::new(schema).with_style(style).into();
            return Self { before: String::new(), format, after: String::new() };
        };
        let (before, after) = match marks_of(style) {
            Some(marks) => marks.around(INPUT),
            None => (format!("{{\"{INPUT}\": \""), "\"}".to_owned()),
        };
        Self { before, format: grammar.clone().into(), after }
    }
}
