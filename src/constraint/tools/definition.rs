//! Tools as requests define them.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::constraint::json_schema::Json;
use crate::error::{Error, Result};

/// Most bytes of a name.
const MAX_NAME: usize = 128;

/// The keywords that do not say which properties an object has.
const PLAIN: [&str; 7] = ["type", "properties", "required", "title", "description", "$schema", "$comment"];

/// A function that a model may call: a name, and a JSON schema of its arguments.
///
/// As JSON it is what chat completions take, with everything under `function`, or what responses take, without; it is written
/// in the first form. Unknown fields are refused.
///
/// ```
/// use burn_dfa::constraint::Tool;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
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
    /// How the model calls it: letters and digits of ASCII, `_`, `-`, `.`, `:` and `/`, at most 128 of them.
    pub name: String,
    /// What it does, for the prompt.
    pub description: Option<String>,
    /// The schema of its arguments, which are an object; without one there are none.
    pub parameters: Option<Value>,
    /// Whether arguments fit the schema. Where it is false they are any object; where it is not said they do fit.
    pub strict: Option<bool>,
}

impl Tool {
    /// A tool without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: None, parameters: None, strict: None }
    }

    /// What it does.
    #[must_use]
    pub fn with_description(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// The schema of its arguments.
    #[must_use]
    pub fn with_parameters(self, schema: Value) -> Self {
        Self { parameters: Some(schema), ..self }
    }

    /// Whether arguments fit the schema.
    #[must_use]
    pub fn with_strict(self, strict: bool) -> Self {
        Self { strict: Some(strict), ..self }
    }

    /// The schema that arguments fit: of a tool that declares no parameters, an empty object alone.
    pub(super) fn schema(&self) -> Value {
        match (&self.parameters, self.strict) {
            (_, Some(false)) => json!({"type": "object"}),
            (Some(Value::Object(schema)), _) => {
                let mut schema = schema.clone();
                // Beside a reference some drafts read nothing else.
                if !schema.contains_key("$ref") {
                    schema.entry("type").or_insert("object".into());
                }
                // To a schema an object that declares nothing may have any properties; a tool that declares none has none.
                let declares_none = schema.get("properties").is_some_and(|of| *of == json!({}))
                    && schema.get("required").is_none_or(|of| *of == json!([]));
                if declares_none && schema.keys().all(|keyword| PLAIN.contains(&keyword.as_str())) {
                    schema.insert("additionalProperties".into(), false.into());
                }
                Value::Object(schema)
            }
            (Some(schema), _) => schema.clone(),
            (None, _) => json!({"type": "object", "properties": {}, "additionalProperties": false}),
        }
    }

    /// Refuses a name that no format can write, and parameters that are no schema of objects.
    pub(super) fn check(&self) -> Result<()> {
        let Self { name, parameters, .. } = self;
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
        match fields.remove("type") {
            Some(Value::String(kind)) if kind == "function" => {}
            other => {
                let other = other.unwrap_or_default();
                return Err(Error::request(format!(
                    "a tool of the type {} is not offered; the type is \"function\"",
                    Json::of(&other).map_or_else(|_| "…".to_owned(), |json| json.text())
                )));
            }
        }
        if let Some(function) = fields.remove("function") {
            nothing_else("a tool", &fields)?;
            fields = object("the `function` of a tool", function)?;
        }
        let tool = Self {
            name: field(&mut fields, "name", as_text)?
                .ok_or_else(|| Error::request("a tool has no `name`"))?,
            description: field(&mut fields, "description", as_text)?,
            parameters: fields.remove("parameters").filter(|value| !value.is_null()),
            strict: field(&mut fields, "strict", |value| value.as_bool())?,
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
        let Self { name, description, parameters, strict } = self;
        Chat { function: Function { name, description, parameters, strict: *strict } }.serialize(serializer)
    }
}

pub(super) fn object(what: &str, value: Value) -> Result<Map<String, Value>> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(Error::request(format!("{what} is not an object"))),
    }
}

/// Takes a field out; null is as good as none.
pub(super) fn field<T>(
    fields: &mut Map<String, Value>,
    name: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match read(&value) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::request(format!("the `{name}` of a tool is of another type"))),
        },
    }
}

pub(super) fn as_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Refuses fields that were not taken.
pub(super) fn nothing_else(what: &str, fields: &Map<String, Value>) -> Result<()> {
    match fields.keys().next() {
        None => Ok(()),
        Some(name) => Err(Error::request(format!("{what} has a field `{name}`, which is not offered"))),
    }
}
