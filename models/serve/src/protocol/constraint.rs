//! The fields that hold a constraint.

use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::body::Body;
use crate::engine::Source;
use crate::error::{ApiError, Result};

/// What an answer has to be; at most one of these fields.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct ConstraintFields {
    /// OpenAI's form: `{"type": "text" | "json_object" | "json_schema" | "grammar" | "structural_tag", …}`.
    pub response_format: Option<Value>,
    /// vLLM's form: one of `json`, `regex`, `choice`, `grammar`, `ebnf`, `structural_tag`.
    pub structured_outputs: Option<Value>,
    /// A JSON schema (vLLM before 0.12).
    pub guided_json: Option<Value>,
    /// A regular expression (vLLM before 0.12).
    pub guided_regex: Option<String>,
    /// One of some texts (vLLM before 0.12).
    pub guided_choice: Option<Vec<String>>,
    /// A grammar in EBNF (vLLM before 0.12).
    pub guided_grammar: Option<String>,
    /// Any JSON object (vLLM before 0.12).
    pub guided_json_object: Option<bool>,
    /// A regular expression (SGLang).
    pub regex: Option<String>,
    /// A grammar in EBNF (SGLang).
    pub ebnf: Option<String>,
    /// A JSON schema as text (SGLang).
    pub json_schema: Option<Value>,
    /// A structural tag (SGLang).
    pub structural_tag: Option<Value>,
}

/// The fields, and the one of `structured_outputs` that each stands for.
const SAME: [(&str, &str); 8] = [
    ("guided_json", "json"),
    ("guided_regex", "regex"),
    ("guided_choice", "choice"),
    ("guided_grammar", "grammar"),
    ("regex", "regex"),
    ("ebnf", "ebnf"),
    ("json_schema", "json"),
    ("structural_tag", "structural_tag"),
];

/// Refuses a format without a schema that has other fields, such as a schema: it would be passed over.
///
/// # Errors
/// 400 with the name of the field.
pub fn check_format(format: &Value, param: &str) -> Result<()> {
    let Some(fields) = format.as_object() else { return Ok(()) };
    let is_bare = matches!(fields.get("type").and_then(Value::as_str), Some("text" | "json_object"));
    match fields.iter().find(|(name, value)| *name != "type" && !value.is_null()) {
        Some((name, _)) if is_bare => {
            let message =
                format!("`{param}` has a field `{name}`, which its type does not have: use `json_schema`");
            Err(ApiError::invalid(param, message).code("constraint_refused"))
        }
        _ => Ok(()),
    }
}

/// A constraint, and the field that it stands in.
#[derive(Clone, Debug)]
pub struct Given {
    /// What it is made from.
    pub source: Source,
    /// The field.
    pub param: &'static str,
}

impl Given {
    /// The request of a constraint that asks for JSON, as text.
    pub fn json(&self) -> Option<&str> {
        let Source::Request(text) = &self.source else { return None };
        let request: Value = serde_json::from_str(text).ok()?;
        let format = request["response_format"]["type"].as_str();
        let asks = matches!(format, Some("json_object" | "json_schema"))
            || !request["structured_outputs"]["json"].is_null();
        asks.then_some(text)
    }
}

impl ConstraintFields {
    /// The constraint; `None` for plain text. Schemas are taken from the text of the request.
    ///
    /// # Errors
    /// 400 where there are two.
    pub fn read(&self, body: &Body) -> Result<Option<Given>> {
        let mut given = Vec::new();
        let mut add = |param, name, raw: &str| {
            given.push(Given { source: Source::Request(format!("{{\"{name}\":{raw}}}")), param });
        };
        for param in ["response_format", "structured_outputs"] {
            if let Some(raw) = body.raw(param) {
                add(param, param, raw);
            }
        }
        if let Some(format) = &self.response_format {
            check_format(format, "response_format")?;
        }
        for (param, own) in SAME {
            if let Some(raw) = body.raw(param) {
                add(param, "structured_outputs", &format!("{{\"{own}\":{raw}}}"));
            }
        }
        if self.guided_json_object == Some(true) {
            add("guided_json_object", "response_format", "{\"type\":\"json_object\"}");
        }
        // Plain text beside a constraint asks for nothing.
        if given.len() > 1 && self.response_format == Some(json!({"type": "text"})) {
            given.retain(|given| given.param != "response_format");
        }
        if let [first, second, ..] = &given[..] {
            let message = format!("`{}` and `{}` are constraints: leave one out", first.param, second.param);
            return Err(ApiError::invalid(second.param, message));
        }
        Ok(given.pop())
    }
}
