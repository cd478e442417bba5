//! Whether tools are called.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::definition::{as_text, field, nothing_else, object};
use crate::error::{Error, Result};

/// Whether tools are called, OpenAI's `tool_choice`.
///
/// ```
/// use burn_dfa::constraint::ToolChoice;
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
    /// Text, in which tools may be called.
    #[default]
    Auto,
    /// At least one tool is called, and no text comes before.
    Required,
    /// This tool is called, once.
    Named(String),
    /// Text in which no call can begin.
    None,
}

impl TryFrom<Value> for ToolChoice {
    type Error = Error;

    fn try_from(value: Value) -> Result<Self> {
        const WANTED: &str = "`tool_choice` is \"auto\", \"required\", \"none\" or {\"type\": \"function\", \"function\": {\"name\": …}}";
        match value {
            Value::String(name) => match name.as_str() {
                "auto" => Ok(Self::Auto),
                "required" => Ok(Self::Required),
                "none" => Ok(Self::None),
                _ => Err(Error::request(WANTED)),
            },
            value => {
                let mut fields = object("`tool_choice`", value)?;
                if fields.remove("type") != Some(json!("function")) {
                    return Err(Error::request(WANTED));
                }
                if let Some(function) = fields.remove("function") {
                    nothing_else("`tool_choice`", &fields)?;
                    fields = object("the `function` of `tool_choice`", function)?;
                }
                let name = field(&mut fields, "name", as_text)?.ok_or_else(|| Error::request(WANTED))?;
                nothing_else("`tool_choice`", &fields)?;
                Ok(Self::Named(name))
            }
        }
    }
}

impl Serialize for ToolChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Required => serializer.serialize_str("required"),
            Self::None => serializer.serialize_str("none"),
            Self::Named(name) => {
                json!({"type": "function", "function": {"name": name}}).serialize(serializer)
            }
        }
    }
}
