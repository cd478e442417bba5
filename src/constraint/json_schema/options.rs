//! Options of the JSON Schema compiler: how keywords are read, how values are written, and how deep they are nested.

use serde::Serialize;

use super::string::Spelling;
use crate::error::{Error, Result};

/// How the values of a JSON schema are written, where the schema leaves it open, and how deep they are nested.
///
/// A schema says which values are valid, not how they are spelled. The language of a constraint is that of the valid
/// values up to a depth, each with its properties in one order and with the white space and the spellings chosen here.
///
/// ```
/// use burn_dfa::constraint::{JsonOptions, Whitespace};
/// use burn_dfa::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_whitespace(Whitespace::Spaced);
/// let schema = json!({"type": "array", "items": {"type": "integer"}});
/// let dfa = Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(b"[1, 2]") && !dfa.matches(b"[1,2]"));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JsonOptions {
    /// White space between the tokens of JSON, at most 64 characters in one place. Default: none.
    pub whitespace: Whitespace,
    /// What stands between parts, and between a name and its value. Default: `,` and `:`; with
    /// others a text is not JSON.
    #[serde(skip_serializing_if = "Separators::are_json")]
    pub separators: Separators,
    /// What an object without `additionalProperties` allows. Default: any additional property, as the standard says.
    pub additional: Additional,
    /// The order of properties. Default: as declared, others last.
    pub order: Order,
    /// Whether `format` restricts strings. Default: known formats do.
    pub formats: Formats,
    /// How unknown formats and keywords are treated. Default: they are ignored, as the standard says.
    pub unknown: Unknown,
    /// How numbers are spelled. Default: [`Numbers::Plain`].
    pub numbers: Numbers,
    /// Whether characters beyond ASCII are written as `\uXXXX`. Default: no.
    pub ascii: bool,
    /// Which escapes may be used. Default: [`Escapes::Canonical`], those that are needed.
    pub escapes: Escapes,
    /// Most characters of a string that the schema does not bound. Default: no bound.
    pub max_string: Option<u64>,
    /// Most digits of a number's integer part and of its fraction. Default: no bound.
    pub max_digits: Option<usize>,
    /// How often a recursive reference is followed on the way from the root to a value. Default: as often as the stack is
    /// deep, see [`Limits::frames`](crate::Limits::frames); without one as often as is cheap, at most 8 times, which
    /// [`TokenTable::unrolled`](crate::TokenTable::unrolled) tells.
    pub recursion: Option<usize>,
    /// How deep arrays and objects are nested in places that allow any JSON. Default: as deep as the stack; without one
    /// as deep as is cheap, from 3 to 10 levels, which
    /// [`TokenTable::unrolled`](crate::TokenTable::unrolled) tells. Then an array directly within an array counts as two
    /// levels.
    pub any_depth: Option<usize>,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self {
            whitespace: Whitespace::Compact,
            separators: Separators::default(),
            additional: Additional::Standard,
            order: Order::Declared,
            formats: Formats::Assert,
            unknown: Unknown::Ignore,
            numbers: Numbers::Plain,
            ascii: false,
            escapes: Escapes::Canonical,
            max_string: None,
            max_digits: None,
            recursion: None,
            any_depth: None,
        }
    }
}

impl JsonOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// White space between tokens.
    pub fn with_whitespace(mut self, whitespace: Whitespace) -> Self {
        self.whitespace = whitespace;
        self
    }

    /// What stands between parts, and between a name and its value.
    pub fn with_separators(mut self, separators: Separators) -> Self {
        self.separators = separators;
        self
    }

    /// What objects without `additionalProperties` allow.
    pub fn with_additional(mut self, additional: Additional) -> Self {
        self.additional = additional;
        self
    }

    /// The order of properties.
    pub fn with_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Whether `format` restricts strings.
    pub fn with_formats(mut self, formats: Formats) -> Self {
        self.formats = formats;
        self
    }

    /// How unknown formats and keywords are treated.
    pub fn with_unknown(mut self, unknown: Unknown) -> Self {
        self.unknown = unknown;
        self
    }

    /// How numbers are spelled.
    pub fn with_numbers(mut self, numbers: Numbers) -> Self {
        self.numbers = numbers;
        self
    }

    /// Whether characters beyond ASCII are written as `\uXXXX`.
    pub fn with_ascii(mut self, ascii: bool) -> Self {
        self.ascii = ascii;
        self
    }

    /// Which escapes may be used.
    pub fn with_escapes(mut self, escapes: Escapes) -> Self {
        self.escapes = escapes;
        self
    }

    /// Most characters of a string that the schema does not bound.
    pub fn with_max_string(mut self, characters: u64) -> Self {
        self.max_string = Some(characters);
        self
    }

    /// Most digits of a number's integer part and of its fraction.
    pub fn with_max_digits(mut self, digits: usize) -> Self {
        self.max_digits = Some(digits);
        self
    }

    /// How often a recursive reference is followed.
    pub fn with_recursion(mut self, times: usize) -> Self {
        self.recursion = Some(times);
        self
    }

    /// How deep arrays and objects are nested in places that allow any JSON.
    pub fn with_any_depth(mut self, levels: usize) -> Self {
        self.any_depth = Some(levels);
        self
    }

    pub(super) fn spelling(&self) -> Spelling {
        Spelling { ascii: self.ascii, escapes: self.escapes }
    }
}

/// White space between the tokens of JSON.
///
/// ```
/// use burn_dfa::constraint::{JsonOptions, Whitespace};
/// use burn_dfa::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_whitespace(Whitespace::Pretty(2));
/// let schema = json!({"type": "array", "items": {"type": "integer"}});
/// let dfa = Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(b"[\n  1,\n  2\n]") && !dfa.matches(b"[1,2]"));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Whitespace {
    /// None.
    Compact,
    /// One space after `,` and `:`, as Python's `json.dumps` writes.
    Spaced,
    /// Members and items on lines of their own, indented by this number of spaces per level; one space after `:`.
    Pretty(usize),
    /// Up to this number of spaces, tabs and line ends between any two tokens.
    Flexible(usize),
}

/// What stands between two items or members, and between a name and its value; white space comes beside it.
///
/// A separator has 1 to 64 bytes. That of items does not begin with a digit, `.`, `e`, `E`, `]` or `}`, which may belong to
/// the value before it or close the array; where white space is [flexible](Whitespace::Flexible), none begins with it.
///
/// ```
/// use burn_dfa::constraint::{JsonOptions, Separators};
/// use burn_dfa::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_separators(Separators { item: ";".into(), key: "=".into() });
/// let schema = json!({"const": {"a": 1, "b": 2}});
/// let dfa = Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(br#"{"a"=1;"b"=2}"#) && !dfa.matches(br#"{"a":1,"b":2}"#));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Separators {
    /// Between two items, and between two members.
    pub item: String,
    /// Between a name and its value.
    pub key: String,
}

impl Default for Separators {
    /// Those of JSON.
    fn default() -> Self {
        Self { item: ",".into(), key: ":".into() }
    }
}

impl Separators {
    /// Most bytes of one.
    const MAX_BYTES: usize = 64;

    fn are_json(&self) -> bool {
        self.item == "," && self.key == ":"
    }

    /// # Errors
    /// Where it would not be clear where one begins.
    pub(super) fn check(&self, whitespace: Whitespace) -> Result<()> {
        for separator in [&self.item, &self.key] {
            let reason = match separator.chars().next() {
                None => "is empty",
                Some(_) if separator.len() > Self::MAX_BYTES => "has more than 64 bytes",
                Some(' ' | '\t' | '\n' | '\r') if matches!(whitespace, Whitespace::Flexible(_)) => {
                    "begins with white space, and there may be white space before it"
                }
                _ => continue,
            };
            return Err(Error::input(format!("the separator {separator:?} {reason}")));
        }
        if self.item.starts_with(|first: char| first.is_ascii_digit() || ".eE]}".contains(first)) {
            let item = &self.item;
            return Err(Error::input(format!(
                "the separator {item:?} may belong to the value before it, or close it"
            )));
        }
        Ok(())
    }
}

/// What an object without `additionalProperties` allows.
///
/// ```
/// use burn_dfa::constraint::{JsonOptions, Additional};
/// use burn_dfa::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_additional(Additional::Closed);
/// let schema = json!({"type": "object", "properties": {"a": {"const": 1}}});
/// let dfa = Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(br#"{"a":1}"#) && !dfa.matches(br#"{"a":1,"b":2}"#));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Additional {
    /// Any additional property, as the standard says.
    Standard,
    /// No additional property, if the object declares properties.
    Closed,
}

/// The order of an object's properties.
///
/// ```
/// use burn_dfa::constraint::{JsonOptions, Order};
/// use burn_dfa::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_order(Order::RequiredFirst);
/// let schema = json!({
///     "properties": {"a": {"const": 1}, "b": {"const": 2}},
///     "type": "object", "required": ["b"], "additionalProperties": false
/// });
/// let dfa = Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(br#"{"b":2,"a":1}"#) && !dfa.matches(br#"{"a":1,"b":2}"#));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Order {
    /// As the schema declares them; additional ones last.
    Declared,
    /// Required ones first, then as declared.
    RequiredFirst,
}

/// Whether `format` restricts strings.
///
/// ```
/// use burn_dfa::constraint::{JsonOptions, Formats};
/// use burn_dfa::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_formats(Formats::Annotate);
/// let schema = json!({"type": "string", "format": "date"});
/// let dfa = Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(br#""tomorrow""#)); // by default a date alone
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Formats {
    /// Known formats restrict strings.
    Assert,
    /// No format does; they are annotations.
    Annotate,
}

/// How unknown formats and keywords are treated.
///
/// ```
/// use burn_dfa::constraint::{JsonOptions, Unknown};
/// use burn_dfa::Constraint;
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_unknown(Unknown::Refuse);
/// let misspelled = json!({"type": "string", "maxlength": 5});
/// let error = Constraint::json_schema_with(misspelled, &options).and_then(|constraint| constraint.to_byte_dfa(&Default::default()));
/// assert_eq!(error.unwrap_err().pointer(), Some("/maxlength"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unknown {
    /// They are ignored, as the standard says.
    Ignore,
    /// They are refused, since one may be a typo of a keyword that restricts.
    Refuse,
}

/// How numbers are spelled.
///
/// ```
/// use burn_dfa::constraint::{JsonOptions, Numbers};
/// use burn_dfa::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_numbers(Numbers::Any);
/// let schema = json!({"type": "integer"});
/// let dfa = Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(b"1.0")); // by default 1 alone
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Numbers {
    /// Integers are digits without a fraction. Numbers have no exponent if the schema restricts their value.
    Plain,
    /// Integers may have a fraction of zeros as well, and zero a sign (`1.0`, `-0`).
    Any,
}

/// Which characters of a string may be escaped.
///
/// ```
/// use burn_dfa::constraint::{JsonOptions, Escapes};
/// use burn_dfa::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_escapes(Escapes::Any);
/// let schema = json!({"const": "a"});
/// let dfa = Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(br#""a""#) && dfa.matches(br#""\u0061""#));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Escapes {
    /// Only characters that must be escaped: `"`, `\` and control characters. Each has its short escape if there is one
    /// (`\"` `\\` `\b` `\f` `\n` `\r` `\t`); control characters have the long one as well (`\u000a`, hex digits in either
    /// case).
    #[default]
    Canonical,
    /// As [`Canonical`](Self::Canonical), and any character as `\u` with its number.
    Numbered,
    /// All characters, in every way that JSON allows: `\/`, `\u0061`, or unescaped.
    Any,
}
