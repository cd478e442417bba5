//! Constraints by Rust types.
//!
//! The JSON schema that schemars derives for a type describes the input of its `Deserialize`, with
//! two gaps that are closed here. First, objects are open, because serde skips unknown fields: here
//! objects have no unknown fields. Second, the bounds of some number types appear only in their
//! format names.

use std::collections::BTreeSet;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use super::{Constraint, JsonOptions};
use burn_dfa_common::{Error, Result};

/// Digits before the point of a number and after it. No 64-bit integer has more, and no 64-bit
/// float overflows.
const DIGITS: usize = 20;

/// A bound that no number of [`DIGITS`] digits reaches without an exponent. It keeps exponents,
/// which add up to 99 digits, from overflowing a 32-bit float.
const BEYOND: f64 = 1e20;

impl Constraint {
    /// JSON that a type reads: its schemars schema, without undeclared properties.
    ///
    /// Read the output with `Output::parse`; `generate_as` does both. Fields come in the order in
    /// which the type declares them; an optional field (an `Option`, or with a default) may be
    /// missing.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    /// use schemars::JsonSchema;
    ///
    /// #[derive(JsonSchema)]
    /// struct Point {
    ///     x: u8,
    ///     y: Option<bool>,
    /// }
    ///
    /// let dfa = Constraint::from_type::<Point>()?.to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(br#"{"x": 255, "y": true}"#) && dfa.matches(br#"{"x": 0}"#));
    /// assert!(!dfa.matches(br#"{"x": 256}"#) && !dfa.matches(br#"{"x": 0, "z": 0}"#));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema): [`json_schema`](Self::json_schema) rejects
    /// the schema. A set, which needs `uniqueItems`, is rejected at compilation.
    pub fn from_type<T: JsonSchema>() -> Result<Self> {
        Self::from_type_with::<T>(&JsonOptions::default())
    }

    /// Like [`from_type`](Self::from_type), with other options. If the options bound no digits, a
    /// number has at most 20 on either side of the point, so no number is too large for its type.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::{JsonOptions, Whitespace};
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let compact = JsonOptions::new().with_whitespace(Whitespace::Compact);
    /// let dfa = Constraint::from_type_with::<Vec<u8>>(&compact)?
    ///     .to_byte_dfa(&Limits::default())?
    ///     .unwrap();
    /// assert!(dfa.matches(b"[1,2]") && !dfa.matches(b"[1, 2]"));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`from_type`](Self::from_type).
    pub fn from_type_with<T: JsonSchema>(options: &JsonOptions) -> Result<Self> {
        let options = JsonOptions { max_digits: options.max_digits.or(Some(DIGITS)), ..options.clone() };
        Self::json_schema_with(narrowed(&schema_of::<T>()), &options)
    }

    /// The bare name of a variant of a fieldless enum, as serde spells it.
    ///
    /// Read the output with `Output::parse_name`; `generate_choice` does both.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    /// use schemars::JsonSchema;
    ///
    /// #[derive(JsonSchema)]
    /// #[serde(rename_all = "kebab-case")]
    /// enum Mood {
    ///     Cheerful,
    ///     DeadSerious,
    /// }
    ///
    /// let dfa = Constraint::choice_from_type::<Mood>()?.to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(b"dead-serious") && !dfa.matches(b"DeadSerious"));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema): the type is not a fieldless enum.
    pub fn choice_from_type<T: JsonSchema>() -> Result<Self> {
        let mut found = Vec::new();
        if !names(&schema_of::<T>(), &mut found) || found.is_empty() {
            return Err(Error::schema(
                "",
                format!(
                    "a choice takes an enum whose variants have no fields, which {} is not: use `Constraint::from_type`",
                    std::any::type_name::<T>()
                ),
            ));
        }
        Self::choice(found)
    }
}

pub(super) fn schema_of<T: JsonSchema>() -> Value {
    SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

/// The extent of a schema: all of a value's properties, or a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All of it.
    Whole,
    /// Another schema applies to the same value, too.
    Partial,
}

/// Closes objects against undeclared properties, and bounds pointer-sized integers and 32-bit
/// floats.
pub(super) fn narrowed(schema: &Value) -> Value {
    // A definition used anywhere as part of a larger schema stays open in `$defs`, and each
    // reference that is a whole schema closes it.
    let mut partial = BTreeSet::new();
    loop {
        let (mut narrow, mut found) = (schema.clone(), partial.clone());
        close(&mut narrow, Extent::Whole, &partial, &mut found);
        if found == partial {
            return narrow;
        }
        partial = found;
    }
}

/// The keywords that declare the properties of an object.
const NAMING: [&str; 5] = ["$ref", "properties", "allOf", "anyOf", "oneOf"];

/// The prefix of references to definitions.
const DEFINITIONS: &str = "#/$defs/";

/// Closes a schema and its subschemas. `partial` has the definitions known to be part of a larger
/// schema; `found` collects them.
fn close(schema: &mut Value, extent: Extent, partial: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    let Value::Object(map) = schema else { return };
    bound(map);
    let alone = NAMING.iter().filter(|key| map.contains_key(**key)).count() == 1;
    let inner = if alone { extent } else { Extent::Partial };
    for (key, below) in map.iter_mut() {
        match (key.as_str(), below) {
            ("properties" | "patternProperties", Value::Object(all)) => {
                all.values_mut().for_each(|schema| close(schema, Extent::Whole, partial, found));
            }
            ("$defs", Value::Object(all)) => {
                for (name, schema) in all {
                    let extent = if partial.contains(name) { Extent::Partial } else { Extent::Whole };
                    close(schema, extent, partial, found);
                }
            }
            ("prefixItems", Value::Array(all)) => {
                all.iter_mut().for_each(|schema| close(schema, Extent::Whole, partial, found));
            }
            ("anyOf" | "oneOf", Value::Array(all)) => {
                all.iter_mut().for_each(|schema| close(schema, inner, partial, found));
            }
            ("allOf", Value::Array(all)) => {
                all.iter_mut().for_each(|schema| close(schema, Extent::Partial, partial, found));
            }
            ("items" | "additionalProperties", below) => close(below, Extent::Whole, partial, found),
            _ => {}
        }
    }
    let definition = map.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix(DEFINITIONS));
    if let Some(name) = definition.filter(|_| inner == Extent::Partial) {
        found.insert(name.to_owned());
    }
    let is_open = !map.contains_key("additionalProperties") && !map.contains_key("unevaluatedProperties");
    let closes = if !alone || map.contains_key("allOf") {
        // `unevaluatedProperties` sees through references and branches; `additionalProperties` does
        // not.
        NAMING.iter().any(|key| map.contains_key(*key)).then_some("unevaluatedProperties")
    } else if map.contains_key("properties") {
        Some("additionalProperties")
    } else {
        definition.filter(|name| partial.contains(*name)).map(|_| "unevaluatedProperties")
    };
    if let Some(key) = closes.filter(|_| extent == Extent::Whole && is_open) {
        map.insert(key.into(), false.into());
    }
}

/// Bounds numbers whose bounds appear only in their format name.
fn bound(map: &mut Map<String, Value>) {
    // The machine determines the width of the first two; no other reader knows them.
    let format = match map.get("format").and_then(Value::as_str) {
        Some("int") => {
            if isize::BITS == 64 {
                "int64"
            } else {
                "int32"
            }
        }
        Some("uint") => {
            if usize::BITS == 64 {
                "uint64"
            } else {
                "uint32"
            }
        }
        Some("float") => {
            map.entry("minimum").or_insert((-BEYOND).into());
            map.entry("maximum").or_insert(BEYOND.into());
            return;
        }
        _ => return,
    };
    map.insert("format".into(), format.into());
}

/// Collects the possible string values of the schema; false if other values are possible.
fn names(schema: &Value, found: &mut Vec<String>) -> bool {
    let mut string = |value: &Value| value.as_str().map(|name| found.push(name.to_owned())).is_some();
    if let Some(value) = schema.get("const") {
        string(value)
    } else if let Some(Value::Array(values)) = schema.get("enum") {
        values.iter().all(string)
    } else if let Some(Value::Array(branches)) = schema.get("oneOf").or(schema.get("anyOf")) {
        branches.iter().all(|branch| names(branch, found))
    } else {
        false
    }
}
