//! Tools as defined by requests.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::ToolInput;
use super::fields::{as_text, field, nothing_else, object};
use crate::json_schema::Json;
use burn_dfa_common::{Error, Result};

/// Most bytes of a name.
const MAX_NAME: usize = 128;

/// The keywords of a schema that declares properties by `properties` alone.
const PLAIN: [&str; 7] = ["type", "properties", "required", "title", "description", "$schema", "$comment"];

/// A function that a model may call: a name, and a JSON schema of its arguments. Or a custom tool,
/// with an [input](Self::input) that is a text.
///
/// Its JSON form is the form of chat completions, with everything under `function` or `custom`, or
/// of responses, without this level; it is written in the first form. Unknown fields are rejected.
///
/// ```
/// use burn_dfa_tokens::constraint::Tool;
/// use serde_json::json;
///
/// let schema =
///     json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let built = Tool::new("weather").with_parameters(schema.clone());
/// let chat = json!({"type": "function", "function": {"name": "weather", "parameters": schema}});
/// assert_eq!(serde_json::from_value::<Tool>(chat)?, built);
/// let responses = json!({"type": "function", "name": "weather", "parameters": schema});
/// assert_eq!(serde_json::from_value::<Tool>(responses)?, built);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
#[non_exhaustive]
pub struct Tool {
    /// The name in calls: ASCII letters and digits, `_`, `-`, `.`, `:` and `/`, at most 128
    /// characters.
    pub name: String,
    /// The purpose of the tool, for the prompt.
    pub description: Option<String>,
    /// The schema of its arguments, which are an object; without a schema it has no arguments.
    pub parameters: Option<Value>,
    /// Whether keywords that cannot be enforced are refused. Arguments fit the schema with any
    /// value; a server ignores such keywords, with a warning, unless this is true.
    pub strict: Option<bool>,
    /// The input of a custom tool instead of arguments; `None` for a function.
    pub input: Option<ToolInput>,
}

impl Tool {
    /// A tool without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: None, parameters: None, strict: None, input: None }
    }

    /// A custom tool with a text as input.
    pub fn custom(name: impl Into<String>, input: ToolInput) -> Self {
        Self { input: Some(input), ..Self::new(name) }
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// The schema of its arguments.
    #[must_use]
    pub fn with_parameters(self, schema: Value) -> Self {
        Self { parameters: Some(schema), ..self }
    }

    /// Sets whether keywords that cannot be enforced are refused.
    #[must_use]
    pub fn with_strict(self, strict: bool) -> Self {
        Self { strict: Some(strict), ..self }
    }

    /// The schema of the arguments: for a tool without declared parameters, only an empty object.
    pub fn schema(&self) -> Value {
        if self.input.is_some() {
            return ToolInput::schema();
        }
        match &self.parameters {
            Some(Value::Object(schema)) => {
                let mut schema = schema.clone();
                // Some drafts ignore all keywords next to a reference.
                if !schema.contains_key("$ref") {
                    schema.entry("type").or_insert("object".into());
                }
                // By JSON Schema, an object without declared properties may have any properties; a
                // tool without declared parameters has none.
                let declares_none = schema.get("properties").is_some_and(|of| *of == json!({}))
                    && schema.get("required").is_none_or(|of| *of == json!([]));
                if declares_none && schema.keys().all(|keyword| PLAIN.contains(&keyword.as_str())) {
                    schema.insert("additionalProperties".into(), false.into());
                }
                Value::Object(schema)
            }
            Some(schema) => schema.clone(),
            None => json!({"type": "object", "properties": {}, "additionalProperties": false}),
        }
    }

    /// Rejects a name that no format can write, and parameters other than a schema of objects.
    pub(super) fn check(&self) -> Result<()> {
        let Self { name, parameters, input, .. } = self;
        if name.is_empty() {
            return Err(Error::request("a tool has an empty name"));
        }
        if name.len() > MAX_NAME {
            return Err(Error::request(format!("the name of a tool is longer than {MAX_NAME} bytes")));
        }
        let is_sane = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
        if !name.bytes().all(is_sane) {
            return Err(Error::request(format!(
                "the tool {name:?} has a name with other characters than letters and digits of ASCII, `_`, `-`, `.`, `:` and `/`"
            )));
        }
        let Some(schema) = parameters else { return Ok(()) };
        let wrong = |reason: &str| Error::request(format!("the `parameters` of the tool {name:?} {reason}"));
        if input.is_some() {
            return Err(wrong("are given, and a custom tool has none"));
        }
        let Value::Object(schema) = schema else {
            return Err(wrong("are no schema, which is an object"));
        };
        match schema.get("type") {
            None => Ok(()),
            Some(Value::String(kind)) if kind == "object" => Ok(()),
            Some(_) => Err(wrong("want the `type` \"object\"")),
        }
    }
}

impl TryFrom<Value> for Tool {
    type Error = Error;

    fn try_from(value: Value) -> Result<Self> {
        let mut fields = object("a tool", value)?;
        let kind = match fields.remove("type") {
            Some(Value::String(kind)) if kind == "function" => "function",
            Some(Value::String(kind)) if kind == "custom" => "custom",
            other => {
                let other = other.unwrap_or_default();
                return Err(Error::request(format!(
                    "a tool of the type {} is not offered; the type is \"function\" or \"custom\"",
                    Json::of(&other).map_or_else(|_| "…".to_owned(), |json| json.text())
                )));
            }
        };
        if let Some(inner) = fields.remove(kind) {
            nothing_else("a tool", &fields)?;
            fields = object(&format!("the `{kind}` of a tool"), inner)?;
        }
        if kind == "custom" {
            let name = field(&mut fields, "name", as_text)?;
            let tool = Self {
                description: field(&mut fields, "description", as_text)?,
                ..Self::custom(
                    name.ok_or_else(|| Error::request("a tool has no `name`"))?,
                    ToolInput::read(fields.remove("format").filter(|value| !value.is_null()))?,
                )
            };
            nothing_else("a custom tool", &fields)?;
            return Ok(tool);
        }
        let tool = Self {
            name: field(&mut fields, "name", as_text)?
                .ok_or_else(|| Error::request("a tool has no `name`"))?,
            description: field(&mut fields, "description", as_text)?,
            parameters: fields.remove("parameters").filter(|value| !value.is_null()),
            strict: field(&mut fields, "strict", |value| value.as_bool())?,
            input: None,
        };
        nothing_else("a tool", &fields)?;
        Ok(tool)
    }
}

impl Serialize for Tool {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'t> {
            name: &'t str,
            #[serde(skip_serializing_if = "Option::is_none")]
            description: &'t Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            parameters: &'t Option<Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            strict: Option<bool>,
        }
        #[derive(Serialize)]
        #[serde(tag = "type", rename = "function")]
        struct Chat<'t> {
            function: Function<'t>,
        }
        let Self { name, description, parameters, strict, input } = self;
        if let Some(input) = input {
            let mut custom = json!({"name": name, "format": input.format()});
            if let Some(description) = description {
                custom["description"] = description.as_str().into();
            }
            return json!({"type": "custom", "custom": custom}).serialize(serializer);
        }
        Chat { function: Function { name, description, parameters, strict: *strict } }.serialize(serializer)
    }
}
