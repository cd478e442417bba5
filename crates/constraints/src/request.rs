//! The request forms of OpenAI (`response_format`) and of vLLM (`structured_outputs`).
//!
//! Both are serde types, so a server can have them as fields of its request;
//! [`Constraint::from_request`] takes either as JSON. Features of a form that this crate does not
//! offer are rejected by name, never dropped. The order of a schema's properties is the order of
//! the output: read requests with serde_json's `preserve_order`, which this crate turns on.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::json_schema::{Json, JsonOptions, Malformed};
use super::{Additional, Constraint, RegexOptions, StructuralTag, Syntax, Whitespace, white_space};
use burn_dfa_common::{Error, Result};

/// Options for the constraints of a request, for details the request leaves open.
///
/// ```
/// use burn_dfa_tokens::constraint::{JsonOptions, RequestOptions, Whitespace};
/// use burn_dfa_tokens::{Constraint, Limits};
///
/// let json = JsonOptions::new().with_whitespace(Whitespace::Compact);
/// let options = RequestOptions::new().with_json(json);
/// let body = r#"{"structured_outputs": {"json": {"const": [1, 2]}}}"#;
/// let dfa = Constraint::from_request_str_with(body, &options)?
///     .unwrap()
///     .to_byte_dfa(&Limits::default())?
///     .unwrap();
/// assert!(dfa.matches(b"[1,2]") && !dfa.matches(b"[1, 2]"));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestOptions {
    /// Of `regex` of `structured_outputs`, and of a grammar of the syntax `regex`.
    pub regexes: RegexOptions,
    /// Of JSON schemas, and of `json_object`.
    pub json: JsonOptions,
    /// Of the schemas in structural tags. Default: [`StructuralTag::json_options`].
    pub tags: JsonOptions,
}

impl Default for RequestOptions {
    fn default() -> Self {
        let (regexes, json, tags) =
            (RegexOptions::default(), JsonOptions::default(), StructuralTag::json_options());
        Self { regexes, json, tags }
    }
}

impl RequestOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the options of [`regexes`](Self::regexes).
    pub fn with_regexes(self, regexes: RegexOptions) -> Self {
        Self { regexes, ..self }
    }

    /// Sets the options of [`json`](Self::json).
    pub fn with_json(self, json: JsonOptions) -> Self {
        Self { json, ..self }
    }

    /// Sets the options of [`tags`](Self::tags).
    pub fn with_tags(self, tags: JsonOptions) -> Self {
        Self { tags, ..self }
    }
}

/// OpenAI's `response_format`.
///
/// ```
/// use burn_dfa_tokens::constraint::ResponseFormat;
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
#[serde(expecting = "an object with a `type`")]
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

/// The grammar of a custom tool, as chat completions write it, with everything under `grammar`, or
/// as responses do, without.
///
/// ```
/// use burn_dfa_tokens::constraint::ResponseFormat;
/// use serde_json::json;
///
/// let definition = json!({"syntax": "lark", "definition": "start: /[0-9]+/ (\"+\" /[0-9]+/)*"});
/// let format: ResponseFormat =
///     serde_json::from_value(json!({"type": "grammar", "grammar": definition}))?;
/// assert!(format.to_constraint()?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
#[serde(
    expecting = "a grammar wants `syntax` and `definition`, both texts, and no other field: by themselves, or in an object `grammar`"
)]
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
/// use burn_dfa_tokens::constraint::GrammarText;
/// use serde_json::json;
///
/// let text: GrammarText = serde_json::from_value(json!({"syntax": "regex", "definition": "a+"}))?;
/// assert!(text.to_constraint().is_ok());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `syntax` and `definition`")]
pub struct GrammarText {
    /// `lark` or `regex`; here also `gbnf` and `ebnf`.
    pub syntax: String,
    /// The text.
    pub definition: String,
    /// The start rule, an extension to OpenAI's form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
}

impl GrammarText {
    /// Builds the constraint.
    ///
    /// # Errors
    /// - [`ErrorKind::Request`](crate::ErrorKind::Request): an unknown syntax, or a start rule for
    ///   a regex;
    /// - the errors of [`Constraint::grammar`] and [`Constraint::regex`].
    pub fn to_constraint(&self) -> Result<Constraint> {
        self.read(&RegexOptions::default())
    }

    /// The constraint, by other options for a regex.
    pub(super) fn read(&self, regexes: &RegexOptions) -> Result<Constraint> {
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
/// use burn_dfa_tokens::constraint::NamedSchema;
/// use serde_json::json;
///
/// let named: NamedSchema =
///     serde_json::from_value(json!({"name": "n", "schema": {"type": "null"}}))?;
/// assert_eq!(named.name.as_deref(), Some("n"));
/// assert_eq!(named.strict, None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a `schema`")]
pub struct NamedSchema {
    /// A name for the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The purpose of the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema.
    pub schema: Value,
    /// Whether the output has to be valid. The output is valid with either value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

impl ResponseFormat {
    /// Builds the constraint; `None` for plain text.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema): a schema is malformed or cannot be honored.
    pub fn to_constraint(&self) -> Result<Option<Constraint>> {
        self.read(None, &RequestOptions::default())
    }

    /// Builds the constraint. `exact` is its schema with all digits of its numbers, if known.
    fn read(&self, exact: Option<&Json>, options: &RequestOptions) -> Result<Option<Constraint>> {
        match self {
            Self::Text {} => Ok(None),
            Self::JsonObject {} => {
                of_schema(None, &serde_json::json!({"type": "object"}), &options.json).map(Some)
            }
            Self::JsonSchema { json_schema } => {
                of_schema(exact, &json_schema.schema, &options.json).map(Some)
            }
            Self::Grammar(GrammarFormat::Within { grammar } | GrammarFormat::Flat(grammar)) => {
                grammar.read(&options.regexes).map(Some)
            }
            Self::StructuralTag(tag) => Constraint::structural_tag_with(tag, &options.tags).map(Some),
        }
    }
}

/// vLLM's `structured_outputs`: exactly one of its constraints, and how JSON is written.
///
/// ```
/// use burn_dfa_tokens::constraint::StructuredOutputs;
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
#[serde(expecting = "an object")]
pub struct StructuredOutputs {
    /// A JSON schema: an object, or a string with its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// A regular expression, as for [`Constraint::regex`], without the character NUL, which vLLM
    /// rejects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The possible outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Vec<String>>,
    /// A grammar in XGrammar's [EBNF](super::Syntax::Ebnf) or in [Lark](super::Syntax::Lark). As in
    /// vLLM, it is Lark if no line outside of comments has `::=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grammar: Option<String>,
    /// A grammar in XGrammar's EBNF, as SGLang calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebnf: Option<String>,
    /// A [structural tag](StructuralTag): an object, or a string with its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structural_tag: Option<Value>,
    /// Whether the output is any JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json_object: Option<bool>,
    /// A regular expression of the white space between two tokens of JSON. The output has the
    /// widest of these styles whose white space the pattern always matches:
    /// [flexible](Whitespace::Flexible), with as many characters as the pattern matches;
    /// [spaced](Whitespace::Spaced); [compact](Whitespace::Compact).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whitespace_pattern: Option<String>,
    /// Whether to omit white space between the tokens of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_any_whitespace: Option<bool>,
    /// Whether objects have only declared properties if the schema leaves that open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_additional_properties: Option<bool>,
    /// Unsupported fields; rejected by [`to_constraint`](Self::to_constraint) unless they are null,
    /// or settings of vLLM's backends that change nothing here: `disable_fallback`, and
    /// `_backend_was_auto` with the value false.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl StructuredOutputs {
    /// Builds the constraint.
    ///
    /// # Errors
    /// - [`ErrorKind::Request`](crate::ErrorKind::Request): not exactly one of `json`,
    ///   `json_object`, `regex`, `choice`, `grammar`, `ebnf` and `structural_tag`; another field; a
    ///   `whitespace_pattern` without the empty text;
    /// - the errors of [`Constraint::json_schema`], [`Constraint::regex`], [`Constraint::choice`]
    ///   and [`Constraint::grammar`].
    pub fn to_constraint(&self) -> Result<Constraint> {
        self.read(None, &RequestOptions::default())
    }

    /// Builds the constraint. `exact` is its schema with all digits of its numbers, if known.
    fn read(&self, exact: Option<&Json>, options: &RequestOptions) -> Result<Constraint> {
        let is_neutral = |name: &str, value: &Value| match value {
            Value::Null => true,
            // There is one backend, so no other one is tried in either case.
            Value::Bool(_) if name == "disable_fallback" => true,
            Value::Bool(false) => name == "_backend_was_auto",
            _ => false,
        };
        if let Some((name, _)) = self.other.iter().find(|(name, value)| !is_neutral(name, value)) {
            return Err(Error::request(format!("`{name}` of `structured_outputs` is not offered: {WANTED}")));
        }
        let constraints = [
            self.json.is_some(),
            self.json_object == Some(true),
            self.regex.is_some(),
            self.choice.is_some(),
            self.grammar.is_some(),
            self.ebnf.is_some(),
            self.structural_tag.is_some(),
        ];
        if constraints.into_iter().filter(|&is_given| is_given).count() != 1 {
            return Err(Error::request(WANTED));
        }
        let options = &self.over(options)?;
        if let Some(schema) = &self.json {
            return match schema {
                Value::String(text) => {
                    let schema = Json::read(text).map_err(|malformed| {
                        Error::request(format!("`json` is a string that holds no JSON schema: {malformed}"))
                    })?;
                    Constraint::of_schema(schema, &options.json)
                }
                schema => of_schema(exact, schema, &options.json),
            };
        }
        if let Some(regex) = &self.regex {
            if regex.contains('\0') {
                return Err(Error::request(
                    "`regex` holds the character NUL, which engines that take this form refuse; write `\\x00`",
                ));
            }
            return Constraint::regex_with(regex, &options.regexes);
        }
        if let Some(choices) = &self.choice {
            return Constraint::choice(choices.iter().cloned());
        }
        if let Some(grammar) = &self.grammar {
            let syntax = if is_lark(grammar) { Syntax::Lark } else { Syntax::Ebnf };
            return Constraint::grammar(syntax, grammar);
        }
        if let Some(grammar) = &self.ebnf {
            return Constraint::grammar(Syntax::Ebnf, grammar);
        }
        match &self.structural_tag {
            Some(Value::String(text)) => {
                Constraint::structural_tag_with(&StructuralTag::read(text)?, &options.tags)
            }
            Some(tag) => Constraint::structural_tag_with(tag, &options.tags),
            None => of_schema(None, &serde_json::json!({"type": "object"}), &options.json),
        }
    }

    /// `options`, overridden by the JSON options of the request.
    fn over(&self, options: &RequestOptions) -> Result<RequestOptions> {
        let mut options = options.clone();
        let allowed = self.whitespace_pattern.as_deref().map(white_space::of_pattern).transpose()?;
        let whitespace = match self.disable_any_whitespace {
            Some(true) => Some(Whitespace::Compact),
            _ => allowed,
        };
        for json in [&mut options.json, &mut options.tags] {
            json.whitespace = whitespace.unwrap_or(json.whitespace);
            if self.disable_additional_properties == Some(true) {
                json.additional = Additional::Closed;
            }
        }
        Ok(options)
    }
}

/// Whether a grammar is in Lark, by vLLM's rule: no line outside of comments has `::=`.
fn is_lark(grammar: &str) -> bool {
    let code = |line: &str| {
        let end = [line.find('#'), line.find("//")].into_iter().flatten().min();
        line[..end.unwrap_or(line.len())].contains("::=")
    };
    !grammar.trim().is_empty() && !grammar.lines().any(code)
}

const WANTED: &str = "`structured_outputs` wants exactly one of `json`, `json_object`, `regex`, `choice`, `grammar`, `ebnf` and `structural_tag`";

impl TryFrom<&StructuredOutputs> for Constraint {
    type Error = Error;

    fn try_from(outputs: &StructuredOutputs) -> Result<Self> {
        outputs.to_constraint()
    }
}

impl Constraint {
    /// The constraint of a request; `None` if it asks for plain text.
    ///
    /// `request` is OpenAI's `response_format`, vLLM's `structured_outputs`, or an object with one
    /// of them under its name, such as the whole body of a chat completion. A body with neither
    /// must ask for plain text explicitly: `{"response_format": {"type": "text"}}`.
    ///
    /// ```
    /// use burn_dfa_tokens::Constraint;
    /// use serde_json::json;
    ///
    /// let body = json!({"model": "m", "structured_outputs": {"regex": "[0-9]+"}});
    /// assert!(Constraint::from_request(&body)?.is_some());
    /// assert!(Constraint::from_request(&json!({"type": "text"}))?.is_none());
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::Request`](crate::ErrorKind::Request): neither form, both at once, malformed,
    ///   or with unsupported features;
    /// - the errors of [`Constraint::json_schema`], [`Constraint::regex`], [`Constraint::choice`]
    ///   and [`Constraint::grammar`].
    pub fn from_request(request: &Value) -> Result<Option<Self>> {
        of_request(Json::of(request), &RequestOptions::default())
    }

    /// Like [`from_request`](Self::from_request), for a request as text: all digits of each number
    /// of a schema count, as in [`json_schema_from_str`](Self::json_schema_from_str).
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let body = r#"{"structured_outputs": {"json": {"const": 9007199254740993.0}}}"#;
    /// let dfa =
    ///     Constraint::from_request_str(body)?.unwrap().to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(b"9007199254740993") && !dfa.matches(b"9007199254740992"));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`from_request`](Self::from_request); also
    /// [`ErrorKind::Request`](crate::ErrorKind::Request) if the text is not JSON or has a duplicate
    /// name in an object.
    pub fn from_request_str(request: &str) -> Result<Option<Self>> {
        Self::from_request_str_with(request, &RequestOptions::default())
    }

    /// Like [`from_request_str`](Self::from_request_str), with other options for its regexes and
    /// schemas.
    ///
    /// ```
    /// use burn_dfa_tokens::Constraint;
    /// use burn_dfa_tokens::constraint::{RegexOptions, RequestOptions};
    ///
    /// let body = r#"{"structured_outputs": {"regex": "\\d+"}}"#;
    /// let ascii =
    ///     RequestOptions::new().with_regexes(RegexOptions::new().with_ascii_classes(true));
    /// let constraint = Constraint::from_request_str_with(body, &ascii)?.unwrap();
    /// assert_eq!(constraint.definition().unwrap(), r#"{"regex":"[[:digit:]]+"}"#);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`from_request_str`](Self::from_request_str).
    pub fn from_request_str_with(request: &str, options: &RequestOptions) -> Result<Option<Self>> {
        of_request(Json::read(request), options)
    }
}

/// Deepest nesting of a request: deeper than a schema may be, and small enough for recursive
/// readers.
const MAX_DEPTH: usize = 512;

fn of_request(
    request: std::result::Result<Json, Malformed>,
    options: &RequestOptions,
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
        (Some(format), None) => response_format(format, options),
        (None, Some(outputs)) => structured_outputs(outputs, options),
        // A JSON schema has a `type` too.
        (None, None) if request.get("type").is_some() => response_format(request, options),
        (None, None) => structured_outputs(request, options),
    }
}

fn response_format(format: &Json, options: &RequestOptions) -> Result<Option<Constraint>> {
    if !matches!(format, Json::Object(_)) {
        return Err(Error::request("`response_format` is not an object with a `type`"));
    }
    if format.get("type").and_then(Json::as_str) == Some("structural_tag") {
        let tag = StructuralTag::of_json(format)?;
        return Constraint::structural_tag_with(&tag, &options.tags).map(Some);
    }
    let schema = format.get("json_schema").and_then(|named| named.get("schema"));
    read::<ResponseFormat>("response_format", format)?.read(schema, options)
}

fn structured_outputs(outputs: &Json, options: &RequestOptions) -> Result<Option<Constraint>> {
    if let Some(tag @ Json::Object(_)) = outputs.get("structural_tag") {
        // With all digits of its numbers; the form keeps fewer.
        StructuralTag::of_json(tag)?;
    }
    let form = read::<StructuredOutputs>("structured_outputs", outputs)?;
    form.read(outputs.get("json"), options).map(Some)
}

/// The constraint of a schema, `exact` as the request has it or `rounded` as `serde_json` reads it.
fn of_schema(exact: Option<&Json>, rounded: &Value, options: &JsonOptions) -> Result<Constraint> {
    let schema = match exact {
        Some(schema) => schema.clone(),
        None => Json::of(rounded)?,
    };
    Constraint::of_schema(schema, options)
}

fn read<T: for<'de> Deserialize<'de>>(name: &str, value: &Json) -> Result<T> {
    T::deserialize(&value.to_value()).map_err(|error| Error::request(format!("`{name}`: {error}")))
}
