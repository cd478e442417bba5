//! Options of the JSON Schema compiler: the treatment of keywords, the spelling of values, and
//! their nesting depth.

use std::str::FromStr;

use serde::Serialize;

use burn_dfa_common::{Error, Result};

/// The spelling of the values of a JSON schema, as far as the schema leaves it open, and their
/// nesting depth.
///
/// A schema selects valid values, not their spelling. The language of a constraint is the valid
/// values up to a depth, each with its properties in one order and with the white space and the
/// spellings chosen here.
///
/// ```
/// use burn_dfa_tokens::constraint::{JsonOptions, Whitespace};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_whitespace(Whitespace::Compact);
/// let schema = json!({"type": "array", "items": {"type": "integer"}});
/// let dfa =
///     Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(b"[1,2]") && !dfa.matches(b"[1, 2]"));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JsonOptions {
    /// White space between the tokens of JSON, at most 64 characters between two tokens. Default:
    /// [`Whitespace::Spaced`], as most models write JSON.
    pub whitespace: Whitespace,
    /// The separators between parts, and between a name and its value. Default: `,` and `:`; with
    /// other separators the text is not JSON.
    #[serde(skip_serializing_if = "Separators::are_json")]
    pub separators: Separators,
    /// The additional properties of an object without `additionalProperties`. Default: any, as in
    /// the standard.
    pub additional: Additional,
    /// The order of properties. Default: as declared, others last.
    pub order: Order,
    /// Whether `format` restricts strings. Default: known formats do.
    pub formats: Formats,
    /// The treatment of unknown formats and keywords. Default: they are ignored, as in the
    /// standard.
    pub unknown: Unknown,
    /// The treatment of `uniqueItems`, and of counts of undeclared properties, if no automaton can
    /// enforce them. Default: they are rejected.
    #[serde(skip_serializing_if = "Unenforceable::is_refused")]
    pub unenforceable: Unenforceable,
    /// How the numbers of the type `integer` are spelled. Default: [`Numbers::Plain`], digits
    /// alone.
    pub numbers: Numbers,
    /// Whether characters beyond ASCII are written as `\uXXXX`. Default: no.
    pub ascii: bool,
    /// The allowed escapes. Default: [`Escapes::Canonical`], only required escapes.
    pub escapes: Escapes,
    /// Most characters of a string without a bound in the schema. Default: no bound.
    pub max_string: Option<u64>,
    /// Most digits of a number's integer part and of its fraction. Default: no bound. An exponent
    /// has two at most.
    pub max_digits: Option<usize>,
    /// The number of times a recursive reference is followed on the path from the root to a value.
    /// Default: up to the depth of the stack, see [`Limits::frames`](crate::Limits::frames).
    /// Without a stack: as often as is cheap, at most 8 times, as reported by
    /// `CompiledConstraint::unrolled`.
    pub recursion: Option<usize>,
    /// The nesting depth of arrays and objects in any JSON. Default: up to the depth of the stack.
    /// Without a stack: as deep as is cheap, from 3 to 10 levels, as reported by
    /// `CompiledConstraint::unrolled`; an array directly within an array then counts as two levels.
    pub any_depth: Option<usize>,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self {
            whitespace: Whitespace::Spaced,
            separators: Separators::default(),
            additional: Additional::Standard,
            order: Order::Declared,
            formats: Formats::Assert,
            unknown: Unknown::Ignore,
            unenforceable: Unenforceable::Refuse,
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

    /// Sets the separators between parts, and between a name and its value.
    pub fn with_separators(mut self, separators: Separators) -> Self {
        self.separators = separators;
        self
    }

    /// Sets the additional properties of objects without `additionalProperties`.
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

    /// Sets the treatment of `uniqueItems` and counts if no automaton can enforce them.
    pub fn with_unenforceable(mut self, unenforceable: Unenforceable) -> Self {
        self.unenforceable = unenforceable;
        self
    }

    /// How the numbers of the type `integer` are spelled.
    pub fn with_numbers(mut self, numbers: Numbers) -> Self {
        self.numbers = numbers;
        self
    }

    /// Whether characters beyond ASCII are written as `\uXXXX`.
    pub fn with_ascii(mut self, ascii: bool) -> Self {
        self.ascii = ascii;
        self
    }

    /// Sets the allowed escapes.
    pub fn with_escapes(mut self, escapes: Escapes) -> Self {
        self.escapes = escapes;
        self
    }

    /// Sets the most characters of a string without a bound in the schema.
    pub fn with_max_string(mut self, characters: u64) -> Self {
        self.max_string = Some(characters);
        self
    }

    /// Most digits of a number's integer part and of its fraction.
    pub fn with_max_digits(mut self, digits: usize) -> Self {
        self.max_digits = Some(digits);
        self
    }

    /// Sets the number of times a recursive reference is followed.
    ///
    /// A compilation to the greatest depth, 500 levels, takes at most 2 MiB of stack in an
    /// optimized build and at most 4 MiB in an unoptimized one.
    pub fn with_recursion(mut self, times: usize) -> Self {
        self.recursion = Some(times);
        self
    }

    /// Sets the nesting depth of arrays and objects in any JSON.
    ///
    /// A compilation to the greatest depth, 500 levels, takes at most 2 MiB of stack in an
    /// optimized build and at most 4 MiB in an unoptimized one.
    pub fn with_any_depth(mut self, levels: usize) -> Self {
        self.any_depth = Some(levels);
        self
    }
}

/// White space between the tokens of JSON.
///
/// A model writes better values in the style it has read most: in the calls of a benchmark, a model
/// of 135 million parameters got 29 right with [`Spaced`](Self::Spaced) and 20 with
/// [`Compact`](Self::Compact). Choose `Compact` for a model trained on compact JSON, and to save
/// tokens.
///
/// ```
/// use burn_dfa_tokens::constraint::{JsonOptions, Whitespace};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_whitespace(Whitespace::Pretty(2));
/// let schema = json!({"type": "array", "items": {"type": "integer"}});
/// let dfa =
///     Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(b"[\n  1,\n  2\n]") && !dfa.matches(b"[1, 2]"));
/// assert_eq!("pretty".parse(), Ok(Whitespace::Pretty(2)));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Whitespace {
    /// None.
    Compact,
    /// One space after `,` and `:`, as Python's `json.dumps` writes.
    #[default]
    Spaced,
    /// Members and items on separate lines, indented by this number of spaces per level; one space
    /// after `:`.
    Pretty(usize),
    /// Up to this number of spaces, tabs and line ends between any two tokens.
    Flexible(usize),
}

impl Whitespace {
    /// Flexible white space without a given number: up to 16 characters between two tokens, because
    /// an output has to end.
    pub const FLEXIBLE: Self = Self::Flexible(16);

    /// The styles by their names in options and arguments. `pretty` indents by two spaces.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("compact", Self::Compact),
        ("spaced", Self::Spaced),
        ("pretty", Self::Pretty(2)),
        ("flexible", Self::FLEXIBLE),
    ];
}

impl FromStr for Whitespace {
    type Err = Error;

    /// One of the [named](Self::NAMED) styles.
    fn from_str(name: &str) -> Result<Self> {
        let named = Self::NAMED.iter().find(|(known, _)| *known == name);
        named.map(|&(_, style)| style).ok_or_else(|| {
            let known = Self::NAMED.map(|(name, _)| name).join(", ");
            Error::input(format!("{name:?} is no style of white space; these are: {known}"))
        })
    }
}

/// The separators between two items or members, and between a name and its value; white space is
/// added to them.
///
/// A separator has 1 to 64 bytes. The item separator does not begin with a digit, `.`, `e`, `E`,
/// `]` or `}`, which may belong to the value before it or close the array. With
/// [flexible](Whitespace::Flexible) white space, no separator begins with white space.
///
/// ```
/// use burn_dfa_tokens::constraint::{JsonOptions, Separators};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let options =
///     JsonOptions::new().with_separators(Separators { item: ";".into(), key: "=".into() });
/// let schema = json!({"const": {"a": 1, "b": 2}});
/// let dfa =
///     Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(br#"{"a"= 1; "b"= 2}"#) && !dfa.matches(br#"{"a": 1, "b": 2}"#));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Separators {
    /// Between two items, and between two members.
    pub item: String,
    /// Between a name and its value.
    pub key: String,
}

impl Default for Separators {
    /// The separators of JSON.
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
    /// The start of a separator would be ambiguous.
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

/// The additional properties of an object without `additionalProperties`.
///
/// ```
/// use burn_dfa_tokens::constraint::{JsonOptions, Additional};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_additional(Additional::Closed);
/// let schema = json!({"type": "object", "properties": {"a": {"const": 1}}});
/// let dfa =
///     Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(br#"{"a": 1}"#) && !dfa.matches(br#"{"a": 1, "b": 2}"#));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Additional {
    /// Any additional property, as in the standard.
    Standard,
    /// No additional property, if the object declares properties.
    Closed,
}

/// The order of an object's properties.
///
/// ```
/// use burn_dfa_tokens::constraint::{JsonOptions, Order};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_order(Order::RequiredFirst);
/// let schema = json!({
///     "properties": {"a": {"const": 1}, "b": {"const": 2}},
///     "type": "object", "required": ["b"], "additionalProperties": false
/// });
/// let dfa =
///     Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(br#"{"b": 2, "a": 1}"#) && !dfa.matches(br#"{"a": 1, "b": 2}"#));
/// # Ok::<(), burn_dfa_tokens::Error>(())
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
/// use burn_dfa_tokens::constraint::{JsonOptions, Formats};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_formats(Formats::Annotate);
/// let schema = json!({"type": "string", "format": "date"});
/// let dfa =
///     Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(br#""tomorrow""#)); // by default a date alone
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Formats {
    /// Known formats restrict strings.
    Assert,
    /// No format is asserted; formats are annotations.
    Annotate,
}

/// How unknown formats and keywords are treated.
///
/// ```
/// use burn_dfa_tokens::constraint::{JsonOptions, Unknown};
/// use burn_dfa_tokens::Constraint;
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_unknown(Unknown::Refuse);
/// let misspelled = json!({"type": "string", "maxlength": 5});
/// let error = Constraint::json_schema_with(misspelled, &options)
///     .and_then(|constraint| constraint.to_byte_dfa(&Default::default()));
/// assert_eq!(error.unwrap_err().pointer(), Some("/maxlength"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unknown {
    /// They are ignored, as in the standard.
    Ignore,
    /// They are rejected, because one may be a typo of a keyword that restricts.
    Refuse,
}

/// The treatment of keywords that a finite automaton cannot enforce: `uniqueItems` if the items
/// come from no short list, and `minProperties` if it depends on the names of undeclared properties
/// being distinct.
///
/// ```
/// use burn_dfa_tokens::constraint::{JsonOptions, Treatment, Unenforceable};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_unenforceable(Unenforceable::Ignore);
/// let set = json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true});
/// assert!(Constraint::json_schema(set.clone())?.to_automaton(&Limits::default()).is_err());
///
/// let constraint = Constraint::json_schema_with(set, &options)?;
/// assert!(constraint.to_automaton(&Limits::default())?.unwrap().matches(br#"["a"]"#));
/// let notes = constraint.explain(&Limits::default());
/// assert_eq!(notes[0].pointer, "/uniqueItems");
/// assert!(matches!(notes[0].treatment, Treatment::Unenforceable(_)));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unenforceable {
    /// They are rejected.
    Refuse,
    /// They are ignored, and [`Constraint::explain`](crate::Constraint::explain) has a note for
    /// each. Undeclared properties are counted as if their names were distinct. Check the value
    /// after generation.
    Ignore,
}

impl Unenforceable {
    fn is_refused(&self) -> bool {
        matches!(self, Self::Refuse)
    }
}

/// The spelling of numbers of the type `integer`.
///
/// Other numbers are spelled as in JSON: with a sign, with a fraction that may end in zeros, with
/// an exponent.
///
/// ```
/// use burn_dfa_tokens::constraint::{JsonOptions, Numbers};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let matches = |schema, numbers, text: &str| {
///     let options = JsonOptions::new().with_numbers(numbers);
///     let dfa = Constraint::json_schema_with(schema, &options)?
///         .to_byte_dfa(&Limits::default())?
///         .unwrap();
///     Ok::<_, burn_dfa_tokens::Error>(dfa.matches(text.as_bytes()))
/// };
/// assert!(matches(json!({"type": "number"}), Numbers::Plain, "1.0")?);
/// assert!(!matches(json!({"type": "integer"}), Numbers::Plain, "1.0")?);
/// assert!(matches(json!({"type": "integer"}), Numbers::Any, "1.0")?);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Numbers {
    /// Digits alone, and a sign unless the number is zero.
    Plain,
    /// As in the draft of the schema: since draft 6 every number with the value of an integer
    /// (`1.0`, `1e1`, `-0`), in draft 4 as [`Plain`](Self::Plain).
    Any,
}

/// The characters of a string that may be escaped.
///
/// ```
/// use burn_dfa_tokens::constraint::{JsonOptions, Escapes};
/// use burn_dfa_tokens::{Constraint, Limits};
/// use serde_json::json;
///
/// let options = JsonOptions::new().with_escapes(Escapes::Any);
/// let schema = json!({"const": "a"});
/// let dfa =
///     Constraint::json_schema_with(schema, &options)?.to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(br#""a""#) && dfa.matches(br#""\u0061""#));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Escapes {
    /// Only characters that must be escaped: `"`, `\` and control characters. Each has its short
    /// escape if one exists (`\"` `\\` `\b` `\f` `\n` `\r` `\t`); control characters have the long
    /// one too (`\u000a`, hex digits in either case).
    #[default]
    Canonical,
    /// As [`Canonical`](Self::Canonical), and any character as `\u` with its number.
    Numbered,
    /// All characters, in every spelling of JSON: `\/`, `\u0061`, or unescaped.
    Any,
    /// As [`Canonical`](Self::Canonical). In strings and names with restrictions on length alone,
    /// any character may also be a `\u` escape, as in llguidance.
    NumberedFree,
}
