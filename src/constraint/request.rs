//! The request forms of OpenAI (`response_format`) and of vLLM (`structured_outputs`).
//!
//! Both are serde types, so that a server can have them as fields of its request; [`Constraint::from_request`]
//! takes either as JSON. What a form can ask for and this crate does not offer is refused by name, never
//! dropped. The order of a schema's properties is the order of the output: read requests with serde_json's
//! `preserve_order`, which this crate turns on.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Constraint;
use crate::error::{Error, Result};

/// OpenAI's `response_format`.
///
/// ```
/// use burn_dfa::constraint::ResponseFormat;
/// use serde_json::json;
///
/// let format: ResponseFormat = serde_json::from_value(json!({
///     "type": "json_schema",
///     "json_schema": {"name": "answer", "strict": true, "schema": {"enum": ["yes", "no"]}}
/// }))?;
/// assert!(format.to_constraint()?.is_some());
/// assert!(ResponseFormat::Text.to_constraint()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ResponseFormat {
    /// No constraint.
    Text,
    /// Any JSON object, as deep as [`JsonOptions`](super::JsonOptions) have it.
    JsonObject,
    /// JSON that is valid under a schema.
    JsonSchema {
        /// The schema with its name.
        json_schema: NamedSchema,
    },
}

/// The `json_schema` of a [`ResponseFormat`].
///
/// ```
/// use burn_dfa::constraint::NamedSchema;
/// use serde_json::json;
///
/// let named: NamedSchema = serde_json::from_value(json!({"name": "n", "schema": {"type": "null"}}))?;
/// assert_eq!(named.name.as_deref(), Some("n"));
/// assert_eq!(named.strict, None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedSchema {
    /// A name for the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the schema is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema.
    pub schema: Value,
    /// Whether the output has to be valid. It will be, whatever this says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

impl ResponseFormat {
    /// The constraint; `None` for plain text.
    ///
    /// # Errors
    /// [`Error::is_schema`]: a schema that is malformed or cannot be honoured.
    pub fn to_constraint(&self) -> Result<Option<Constraint>> {
        match self {
            Self::Text => Ok(None),
            Self::JsonObject => Constraint::json_schema(serde_json::json!({"type": "object"})).map(Some),
            Self::JsonSchema { json_schema } => Constraint::of_schema(&json_schema.schema).map(Some),
        }
    }
}

/// vLLM's `structured_outputs`: exactly one of its fields.
///
/// ```
/// use burn_dfa::constraint::StructuredOutputs;
/// use serde_json::json;
///
/// let outputs: StructuredOutputs = serde_json::from_value(json!({"choice": ["yes", "no"]}))?;
/// let constraint = outputs.to_constraint()?;
/// # let _ = constraint;
/// let outputs: StructuredOutputs = serde_json::from_value(json!({"grammar": "root ::= \"a\""}))?;
/// assert!(outputs.to_constraint().unwrap_err().is_request());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StructuredOutputs {
    /// A JSON schema: an object, or a string that holds its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// A regular expression, as [`Constraint::regex`] takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// Strings of which the output is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Vec<String>>,
    /// Fields that are not offered, such as `grammar`; refused by [`to_constraint`](Self::to_constraint)
    /// unless they are null.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl StructuredOutputs {
    /// The constraint.
    ///
    /// # Errors
    /// - [`Error::is_request`]: not exactly one of `json`, `regex` and `choice`, or another field;
    /// - what [`Constraint::json_schema`], [`Constraint::regex`] and [`Constraint::choice`] refuse.
    pub fn to_constraint(&self) -> Result<Constraint> {
        if let Some((name, _)) = self.other.iter().find(|(_, value)| !value.is_null()) {
            return Err(Error::request(format!(
                "`{name}` of `structured_outputs` is not offered; use one of `json`, `regex` and `choice`"
            )));
        }
        match (&self.json, &self.regex, &self.choice) {
            (Some(Value::String(text)), None, None) => {
                let schema = serde_json::from_str(text).map_err(|error| {
                    Error::request(format!("`json` is a string that holds no JSON: {error}"))
                })?;
                Constraint::json_schema(schema)
            }
            (Some(schema), None, None) => Constraint::of_schema(schema),
            (None, Some(regex), None) => Constraint::regex(regex),
            (None, None, Some(choice)) => Constraint::choice(choice.iter().cloned()),
            _ => {
                Err(Error::request("`structured_outputs` wants exactly one of `json`, `regex` and `choice`"))
            }
        }
    }
}

impl TryFrom<&StructuredOutputs> for Constraint {
    type Error = Error;

    fn try_from(outputs: &StructuredOutputs) -> Result<Self> {
        outputs.to_constraint()
    }
}

impl Constraint {
    /// The constraint of a request; `None` where it asks for plain text.
    ///
    /// `request` is OpenAI's `response_format`, vLLM's `structured_outputs`, or an object that has one of them
    /// under its name, such as the whole body of a chat completion. A body with neither asks for plain text
    /// only if it says so: `{"response_format": {"type": "text"}}`.
    ///
    /// ```
    /// use burn_dfa::Constraint;
    /// use serde_json::json;
    ///
    /// let body = json!({"model": "m", "structured_outputs": {"regex": "[0-9]+"}});
    /// assert!(Constraint::from_request(&body)?.is_some());
    /// assert!(Constraint::from_request(&json!({"type": "text"}))?.is_none());
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::is_request`]: neither form, both at once, malformed, or asking for what is not offered;
    /// - what [`Constraint::json_schema`], [`Constraint::regex`] and [`Constraint::choice`] refuse.
    pub fn from_request(request: &Value) -> Result<Option<Self>> {
        let Value::Object(fields) = request else {
            return Err(Error::request("a request is an object"));
        };
        if is_deep(request) {
            return Err(Error::request(format!("it is nested more than {MAX_DEPTH} deep")));
        }
        let field = |name| fields.get(name).filter(|value| !value.is_null());
        match (field("response_format"), field("structured_outputs")) {
            (Some(_), Some(_)) => {
                Err(Error::request("both `response_format` and `structured_outputs`: leave one out"))
            }
            (Some(format), None) => read::<ResponseFormat>("response_format", format)?.to_constraint(),
            (None, Some(outputs)) => {
                read::<StructuredOutputs>("structured_outputs", outputs)?.to_constraint().map(Some)
            }
            // A JSON schema has a `type` too.
            (None, None) if fields.contains_key("type") => {
                read::<ResponseFormat>("response_format", request)?.to_constraint()
            }
            (None, None) => {
                read::<StructuredOutputs>("structured_outputs", request)?.to_constraint().map(Some)
            }
        }
    }
}

/// Deepest nesting of a request: more than a schema may have, and little enough for what reads it by recursion.
const MAX_DEPTH: usize = 512;

fn is_deep(request: &Value) -> bool {
    let mut rest = vec![(request, 0)];
    while let Some((value, depth)) = rest.pop() {
        if depth > MAX_DEPTH {
            return true;
        }
        match value {
            Value::Array(items) => rest.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => rest.extend(members.values().map(|member| (member, depth + 1))),
            _ => {}
        }
    }
    false
}

fn read<T: for<'de> Deserialize<'de>>(name: &str, value: &Value) -> Result<T> {
    T::deserialize(value).map_err(|error| Error::request(format!("`{name}`: {error}")))
}
