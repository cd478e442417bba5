//! The fields that hold a constraint.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::body::Body;
use crate::constraints::{ConstraintText, Source};
use crate::error::{ApiError, Result};

/// The constraint of an answer; at most one of these fields.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct ConstraintFields {
    /// OpenAI's form:
    /// `{"type": "text" | "json_object" | "json_schema" | "grammar" | "structural_tag", …}`.
    pub response_format: Option<Value>,
    /// vLLM's form: one of `json`, `json_object`, `regex`, `choice`, `grammar`, `ebnf`,
    /// `structural_tag`, and the style of JSON: `whitespace_pattern`, `disable_any_whitespace`,
    /// `disable_additional_properties`.
    pub structured_outputs: Option<Value>,
    /// A JSON schema (vLLM before 0.12).
    pub guided_json: Option<Value>,
    /// A regular expression (vLLM before 0.12).
    pub guided_regex: Option<String>,
    /// One of some texts (vLLM before 0.12).
    pub guided_choice: Option<Vec<String>>,
    /// A grammar in EBNF or Lark (vLLM before 0.12).
    pub guided_grammar: Option<String>,
    /// Any JSON object (vLLM before 0.12).
    pub guided_json_object: Option<bool>,
    /// A regular expression of the white space in JSON (vLLM before 0.12).
    pub guided_whitespace_pattern: Option<String>,
    /// The name of a backend, which is ignored, and its options: `disable-any-whitespace`,
    /// `no-additional-properties`, `no-fallback` (vLLM before 0.12).
    pub guided_decoding_backend: Option<String>,
    /// A regular expression (SGLang).
    pub regex: Option<String>,
    /// A grammar in EBNF (SGLang).
    pub ebnf: Option<String>,
    /// A JSON schema as text (SGLang).
    pub json_schema: Option<Value>,
    /// A structural tag (SGLang).
    pub structural_tag: Option<Value>,
}

/// The fields, and the equivalent field of `structured_outputs`.
const ALIASES: [(&str, &str); 8] = [
    ("guided_json", "json"),
    ("guided_regex", "regex"),
    ("guided_choice", "choice"),
    ("guided_grammar", "grammar"),
    ("regex", "regex"),
    ("ebnf", "ebnf"),
    ("json_schema", "json"),
    ("structural_tag", "structural_tag"),
];

/// Refuses a format without a schema that has further fields, such as a schema, which would be
/// ignored.
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

/// A constraint, and its field.
#[derive(Clone, Debug)]
pub struct ConstraintParam {
    /// The source of the constraint.
    pub source: Source,
    /// The field.
    pub param: &'static str,
}

impl ConstraintParam {
    /// The constraint of a request in a field.
    pub fn new(text: String, param: &'static str, strict: bool) -> Self {
        Self { source: Source::Request(ConstraintText { text, strict }), param }
    }

    /// The source, if it describes JSON.
    pub fn json(&self) -> Option<&ConstraintText> {
        let Source::Request(constraint) = &self.source else { return None };
        let request: Value = serde_json::from_str(&constraint.text).ok()?;
        let format = request["response_format"]["type"].as_str();
        let outputs = &request["structured_outputs"];
        let asks = matches!(format, Some("json_object" | "json_schema"))
            || !outputs["json"].is_null()
            || outputs["json_object"] == true;
        asks.then_some(constraint)
    }
}

/// Whether the answer is plain text. Fields other than the type were refused.
pub fn is_text(format: &Value) -> bool {
    format["type"] == "text"
}

impl ConstraintFields {
    /// The constraint; `None` for plain text. Schemas are taken from the text of the request.
    ///
    /// # Errors
    /// 400 if there are two constraints, or one is malformed.
    pub fn read(&self, body: &mut Body) -> Result<Option<ConstraintParam>> {
        let mut given = Vec::new();
        let strict =
            self.response_format.as_ref().is_some_and(|format| format["json_schema"]["strict"] == true);
        for param in ["response_format", "structured_outputs"] {
            if let Some(raw) = body.raw(param) {
                let strict = strict && param == "response_format";
                given.push(ConstraintParam::new(format!("{{\"{param}\":{raw}}}"), param, strict));
            }
        }
        if let Some(format) = &self.response_format {
            check_format(format, "response_format")?;
        }
        let (style, of_style) = self.guided_style(body)?;
        let mut add = |param: &'static str, own: &str, raw: &str, style: &str| {
            let text = format!("{{\"structured_outputs\":{{\"{own}\":{raw}{style}}}}}");
            given.push(ConstraintParam::new(text, param, false));
        };
        for (param, own) in ALIASES {
            if let Some(raw) = body.raw(param) {
                add(param, own, raw, if param.starts_with("guided_") { &style } else { "" });
            }
        }
        if self.guided_json_object == Some(true) {
            add("guided_json_object", "json_object", "true", &style);
        }
        // Plain text adds no constraint, like a missing format.
        if self.response_format.as_ref().is_some_and(is_text) {
            given.retain(|given| given.param != "response_format");
        }
        // Only schemas have a style.
        if !given.iter().any(|given| matches!(given.param, "guided_json" | "guided_json_object")) {
            of_style.into_iter().for_each(|field| body.warnings.ignore(field));
        }
        if let [first, second, ..] = &given[..] {
            let message = format!("`{}` and `{}` are constraints: leave one out", first.param, second.param);
            return Err(ApiError::invalid(second.param, message));
        }
        Ok(given.pop())
    }

    /// The style of JSON, as fields of `structured_outputs`, and the fields of the request that set
    /// it.
    fn guided_style(&self, body: &mut Body) -> Result<(String, Vec<&'static str>)> {
        const BACKEND: &str = "guided_decoding_backend";
        let (mut style, mut fields) = (String::new(), Vec::new());
        if let Some(raw) = body.raw("guided_whitespace_pattern") {
            style.push_str(&format!(",\"whitespace_pattern\":{raw}"));
            fields.push("guided_whitespace_pattern");
        }
        let Some(backend) = &self.guided_decoding_backend else { return Ok((style, fields)) };
        let before = style.len();
        let options = backend.split_once(':').map_or("", |(_, options)| options);
        for option in options.split(',').filter(|option| !option.is_empty()) {
            style.push_str(match option {
                "disable-any-whitespace" => ",\"disable_any_whitespace\":true",
                "no-additional-properties" => ",\"disable_additional_properties\":true",
                "no-fallback" => "",
                _ => {
                    let message = format!(
                        "`{BACKEND}` has the option {option:?}, which is not offered: disable-any-whitespace, no-additional-properties and no-fallback are"
                    );
                    return Err(ApiError::unsupported(BACKEND, message));
                }
            });
        }
        if style.len() > before {
            fields.push(BACKEND);
        } else {
            body.warnings.ignore(BACKEND);
        }
        Ok((style, fields))
    }
}
