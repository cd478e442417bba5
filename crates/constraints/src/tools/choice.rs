//! Whether tools are called.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::fields::{as_text, field, nothing_else, object};
use burn_dfa_common::{Error, Result};

/// Whether tools are called, OpenAI's `tool_choice`.
///
/// ```
/// use burn_dfa_tokens::constraint::ToolChoice;
/// use serde_json::json;
///
/// let read = |value| serde_json::from_value::<ToolChoice>(value);
/// assert_eq!(read(json!("required"))?, ToolChoice::Required);
/// let named = json!({"type": "function", "function": {"name": "weather"}});
/// assert_eq!(read(named)?, ToolChoice::Named("weather".into()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "Value")]
pub enum ToolChoice {
    /// Text with optional calls of tools.
    #[default]
    Auto,
    /// At least one tool is called, and no text comes before.
    Required,
    /// Exactly one call of this tool.
    Named(String),
    /// As [`Auto`](Self::Auto) or [`Required`](Self::Required), of some of the tools.
    Allowed {
        /// The tools that may be called.
        names: Vec<String>,
        /// Whether one is.
        required: bool,
    },
    /// Text in which no call can begin.
    None,
}

impl TryFrom<Value> for ToolChoice {
    type Error = Error;

    fn try_from(value: Value) -> Result<Self> {
        match value {
            Value::String(name) => match name.as_str() {
                "auto" => Ok(Self::Auto),
                "required" => Ok(Self::Required),
                "none" => Ok(Self::None),
                _ => Err(Error::request(WANTED)),
            },
            value => {
                let mut fields = object("`tool_choice`", value)?;
                match fields.remove("type").as_ref().and_then(Value::as_str) {
                    Some(kind @ ("function" | "custom")) => Ok(Self::Named(named(kind, fields)?)),
                    Some("allowed_tools") => allowed(fields),
                    _ => Err(Error::request(WANTED)),
                }
            }
        }
    }
}

const WANTED: &str = "`tool_choice` is \"auto\", \"required\", \"none\", {\"type\": \"function\", \"function\": {\"name\": …}}, or \
                      {\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": …, \"tools\": […]}}";

/// The fields of the object in the field `name`, as in chat completions, or the fields next to it,
/// as in responses.
fn inner(name: &str, mut fields: Map<String, Value>) -> Result<Map<String, Value>> {
    match fields.remove(name) {
        None => Ok(fields),
        Some(inner) => {
            nothing_else("`tool_choice`", &fields)?;
            object(&format!("the `{name}` of `tool_choice`"), inner)
        }
    }
}

/// The name of a tool of this type.
fn named(kind: &str, fields: Map<String, Value>) -> Result<String> {
    let mut fields = inner(kind, fields)?;
    let name = field(&mut fields, "name", as_text)?.ok_or_else(|| Error::request(WANTED))?;
    nothing_else("`tool_choice`", &fields)?;
    Ok(name)
}

/// Some of the tools.
fn allowed(fields: Map<String, Value>) -> Result<ToolChoice> {
    let mut fields = inner("allowed_tools", fields)?;
    let required = match fields.remove("mode").as_ref().and_then(Value::as_str) {
        Some("auto") => false,
        Some("required") => true,
        _ => return Err(Error::request("the `mode` of `allowed_tools` is \"auto\" or \"required\"")),
    };
    let Some(Value::Array(tools)) = fields.remove("tools") else {
        return Err(Error::request("the `tools` of `allowed_tools` are not an array"));
    };
    nothing_else("`allowed_tools`", &fields)?;
    let name = |tool| {
        let mut fields = object("a tool of `allowed_tools`", tool)?;
        match fields.remove("type").as_ref().and_then(Value::as_str) {
            Some(kind @ ("function" | "custom")) => named(kind, fields),
            _ => Err(Error::request(
                "a tool of `allowed_tools` has another `type` than \"function\" and \"custom\"",
            )),
        }
    };
    Ok(ToolChoice::Allowed { names: tools.into_iter().map(name).collect::<Result<_>>()?, required })
}

/// A tool, by its name.
fn function(name: &String) -> Value {
    json!({"type": "function", "function": {"name": name}})
}

impl Serialize for ToolChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Required => serializer.serialize_str("required"),
            Self::None => serializer.serialize_str("none"),
            Self::Named(name) => function(name).serialize(serializer),
            Self::Allowed { names, required } => {
                let mode = if *required { "required" } else { "auto" };
                let tools: Vec<Value> = names.iter().map(function).collect();
                let allowed = json!({"mode": mode, "tools": tools});
                json!({"type": "allowed_tools", "allowed_tools": allowed}).serialize(serializer)
            }
        }
    }
}
