//! The request forms of OpenAI (`response_format`) and of vLLM (`structured_outputs`).
//!
//! Both are serde types, so that a server can have them as fields of its request; [`Constraint::from_request`]
//! takes either as JSON. What a form can ask for and this crate does not offer is refused by name, never
//! dropped. The order of a schema's properties is the order of the output: read requests with serde_json's
//! `preserve_order`, which this crate turns on.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::json_schema::{Json, JsonOptions, Malformed};
use super::{Constraint, RegexOptions, StructuralTag, Syntax};
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
/// assert!(ResponseFormat::Text {}.to_constraint()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ResponseFormat {
    /// No constraint.
    Text {},
    /// Any JSON object, as deep as [`JsonOptions`](super::JsonOptions) have it.
    JsonObject {},
    /// JSON that is valid under a schema.
    JsonSchema {
        /// The schema with its name.
        json_schema: NamedSchema,
    },
    /// A text of a grammar: the `format` of a custom tool.
    Grammar(GrammarFormat),
    /// Free text, tags and schemas.
    StructuralTag(StructuralTag),
}

/// The grammar of a custom tool, as chat completions write it, with everything under `grammar`, or as responses do, without.
///
/// ```
/// use burn_dfa::constraint::ResponseFormat;
/// use serde_json::json;
///
/// let definition = json!({"syntax": "lark", "definition": "start: /[0-9]+/ (\"+\" /[0-9]+/)*"});
/// let format: ResponseFormat = serde_json::from_value(json!({"type": "grammar", "grammar": definition}))?;
/// assert!(format.to_constraint()?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum GrammarFormat {
    /// `{"grammar": {"syntax": …, "definition": …}}`
    Within {
        /// The grammar.
        grammar: GrammarText,
    },
    /// `{"syntax": …, "definition": …}`
    Flat(GrammarText),
}

/// A grammar and its syntax.
///
/// ```
/// use burn_dfa::constraint::GrammarText;
/// use serde_json::json;
///
/// let text: GrammarText = serde_json::from_value(json!({"syntax": "regex", "definition": "a+"}))?;
/// assert!(text.to_constraint().is_ok());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrammarText {
    /// `lark` or `regex`; here also `gbnf` and `ebnf`.
    pub syntax: String,
    /// The text.
    pub definition: String,
    /// The rule where texts begin, which OpenAI does not ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
}

impl GrammarText {
    /// The constraint.
    ///
    /// # Errors
    /// - [`Error::is_request`]: a syntax that is none, or a start of a regex;
    /// - what [`Constraint::grammar`] and [`Constraint::regex`] refuse.
    pub fn to_constraint(&self) -> Result<Constraint> {
        self.read(&RegexOptions::default())
    }

    fn read(&self, regexes: &RegexOptions) -> Result<Constraint> {
        match (self.syntax.as_str(), self.start.as_deref()) {
            ("regex", None) => Constraint::regex_with(&self.definition, regexes),
            ("regex", Some(_)) => Err(Error::request("a regex has no `start`; leave it out")),
            (name, start) => {
                let unknown = || format!("`{name}` is no syntax that is read: regex, lark, gbnf or ebnf");
                let syntax = name.parse().map_err(|_: Error| Error::request(unknown()))?;
                Constraint::given_grammar(syntax, &self.definition, start)
            }
        }
    }
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
        self.read(of_value, &RegexOptions::default())
    }

    /// The constraint, of whose schema `of_schema` makes one.
    fn read(
        &self,
        of_schema: impl FnOnce(&Value) -> Result<Constraint>,
        regexes: &RegexOptions,
    ) -> Result<Option<Constraint>> {
        match self {
            Self::Text {} => Ok(None),
            Self::JsonObject {} => Constraint::json_schema(serde_json::json!({"type": "object"})).map(Some),
            Self::JsonSchema { json_schema } => of_schema(&json_schema.schema).map(Some),
            Self::Grammar(GrammarFormat::Within { grammar } | GrammarFormat::Flat(grammar)) => {
                grammar.read(regexes).map(Some)
            }
            Self::StructuralTag(tag) => Constraint::structural_tag(tag).map(Some),
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
/// assert!(outputs.to_constraint().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StructuredOutputs {
    /// A JSON schema: an object, or a string that holds its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// A regular expression, as [`Constraint::regex`] takes it, without the character NUL, which vLLM refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// Strings of which the output is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Vec<String>>,
    /// A grammar in XGrammar's [EBNF](super::Syntax::Ebnf).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grammar: Option<String>,
    /// The same, as SGLang calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebnf: Option<String>,
    /// A [structural tag](StructuralTag): an object, or a string that holds its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structural_tag: Option<Value>,
    /// Fields that are not offered, such as `json_object`; refused by [`to_constraint`](Self::to_constraint)
    /// unless they are null.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl StructuredOutputs {
    /// The constraint.
    ///
    /// # Errors
    /// - [`Error::is_request`]: not exactly one of `json`, `regex`, `choice`, `grammar`, `ebnf` and `structural_tag`, or another field;
    /// - what [`Constraint::json_schema`], [`Constraint::regex`], [`Constraint::choice`] and [`Constraint::grammar`] refuse.
    pub fn to_constraint(&self) -> Result<Constraint> {
        self.read(of_value, &RegexOptions::default())
    }

    /// The constraint, of whose schema `of_schema` makes one.
    fn read(
        &self,
        of_schema: impl FnOnce(&Value) -> Result<Constraint>,
        regexes: &RegexOptions,
    ) -> Result<Constraint> {
        if let Some((name, _)) = self.other.iter().find(|(_, value)| !value.is_null()) {
            return Err(Error::request(format!(
                "`{name}` of `structured_outputs` is not offered; use one of `json`, `regex`, `choice`, `grammar`, `ebnf` and `structural_tag`"
            )));
        }
        let grammar = match (&self.grammar, &self.ebnf) {
            (Some(_), Some(_)) => return Err(Error::request(WANTED)),
            (one, other) => one.as_ref().or(other.as_ref()),
        };
        match (&self.json, &self.regex, &self.choice, grammar, &self.structural_tag) {
            (Some(Value::String(text)), None, None, None, None) => {
                let schema = Json::read(text).map_err(|malformed| {
                    Error::request(format!("`json` is a string that holds no JSON schema: {malformed}"))
                })?;
                Constraint::of_schema(schema, &JsonOptions::default())
            }
            (Some(schema), None, None, None, None) => of_schema(schema),
            (None, Some(regex), None, None, None) if regex.contains('\0') => Err(Error::request(
                "`regex` holds the character NUL, which engines that take this form refuse; write `\\x00`",
            )),
            (None, Some(regex), None, None, None) => Constraint::regex_with(regex, regexes),
            (None, None, Some(choice), None, None) => Constraint::choice(choice.iter().cloned()),
            (None, None, None, Some(grammar), None) => Constraint::grammar(Syntax::Ebnf, grammar),
            (None, None, None, None, Some(Value::String(text))) => {
                Constraint::structural_tag(&StructuralTag::read(text)?)
            }
            (None, None, None, None, Some(tag)) => Constraint::structural_tag(tag),
            _ => Err(Error::request(WANTED)),
        }
    }
}

const WANTED: &str = "`structured_outputs` wants exactly one of `json`, `regex`, `choice`, `grammar`, `ebnf` and `structural_tag`";

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
    /// - what [`Constraint::json_schema`], [`Constraint::regex`], [`Constraint::choice`] and [`Constraint::grammar`] refuse.
    pub fn from_request(request: &Value) -> Result<Option<Self>> {
        of_request(Json::of(request), &RegexOptions::default())
    }

    /// As [`from_request`](Self::from_request), of a request as text: each number of a schema counts with all of its
    /// digits, as in [`json_schema_from_str`](Self::json_schema_from_str).
    ///
    /// ```
    /// use burn_dfa::{Constraint, Limits};
    ///
    /// let body = r#"{"structured_outputs": {"json": {"const": 9007199254740993.0}}}"#;
    /// let dfa = Constraint::from_request_str(body)?.unwrap().to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(b"9007199254740993") && !dfa.matches(b"9007199254740992"));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there, and [`Error::is_request`] where the text is not JSON or has a name twice in an object.
    pub fn from_request_str(request: &str) -> Result<Option<Self>> {
        Self::from_request_str_with(request, &RegexOptions::default())
    }

    /// As [`from_request_str`](Self::from_request_str), with other options for its regexes: for `regex` of
    /// `structured_outputs`, and for a grammar of the syntax `regex`.
    ///
    /// ```
    /// use burn_dfa::constraint::RegexOptions;
    /// use burn_dfa::{Constraint, Limits};
    ///
    /// let body = r#"{"structured_outputs": {"regex": "\\d+"}}"#;
    /// let ascii = RegexOptions::new().with_ascii_classes(true);
    /// let constraint = Constraint::from_request_str_with(body, &ascii)?.unwrap();
    /// assert_eq!(constraint.definition().unwrap(), r#"{"regex":"[[:digit:]]+"}"#);
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn from_request_str_with(request: &str, regexes: &RegexOptions) -> Result<Option<Self>> {
        of_request(Json::read(request), regexes)
    }
}

/// Deepest nesting of a request: more than a schema may have, and little enough for what reads it by recursion.
const MAX_DEPTH: usize = 512;

fn of_request(
    request: std::result::Result<Json, Malformed>,
    regexes: &RegexOptions,
) -> Result<Option<Constraint>> {
    let request = &request.map_err(|malformed| Error::request(malformed.to_string()))?;
    if !matches!(request, Json::Object(_)) {
        return Err(Error::request("a request is an object"));
    }
    if request.is_deeper_than(MAX_DEPTH) {
        return Err(Error::request(format!("it is nested more than {MAX_DEPTH} deep")));
    }
    let field = |name| request.get(name).filter(|value| **value != Json::Null);
    match (field("response_format"), field("structured_outputs")) {
        (Some(_), Some(_)) => {
            Err(Error::request("both `response_format` and `structured_outputs`: leave one out"))
        }
        (Some(format), None) => response_format(format, regexes),
        (None, Some(outputs)) => structured_outputs(outputs, regexes),
        // A JSON schema has a `type` too.
        (None, None) if request.get("type").is_some() => response_format(request, regexes),
        (None, None) => structured_outputs(request, regexes),
    }
}

fn response_format(format: &Json, regexes: &RegexOptions) -> Result<Option<Constraint>> {
    if format.get("type").and_then(Json::as_str) == Some("structural_tag") {
        return Constraint::structural_tag(&StructuralTag::of_json(format)?).map(Some);
    }
    let schema = || format.get("json_schema")?.get("schema");
    read::<ResponseFormat>("response_format", format)?.read(|rounded| of_json(schema(), rounded), regexes)
}

fn structured_outputs(outputs: &Json, regexes: &RegexOptions) -> Result<Option<Constraint>> {
    if let Some(tag @ Json::Object(_)) = outputs.get("structural_tag") {
        // With the digits of its numbers, of which the form has fewer.
        StructuralTag::of_json(tag)?;
    }
    let form = read::<StructuredOutputs>("structured_outputs", outputs)?;
    form.read(|rounded| of_json(outputs.get("json"), rounded), regexes).map(Some)
}

/// The constraint of a schema as the request has it, of which a form holds what `serde_json` rounds.
fn of_json(schema: Option<&Json>, rounded: &Value) -> Result<Constraint> {
    match schema {
        Some(schema) => Constraint::of_schema(schema.clone(), &JsonOptions::default()),
        None => of_value(rounded),
    }
}

fn of_value(schema: &Value) -> Result<Constraint> {
    Constraint::of_schema(Json::of(schema)?, &JsonOptions::default())
}

fn read<T: for<'de> Deserialize<'de>>(name: &str, value: &Json) -> Result<T> {
    T::deserialize(&value.to_value()).map_err(|error| Error::request(format!("`{name}`: {error}")))
}
