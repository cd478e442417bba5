//! Constraints by Rust types.
//!
//! The JSON schema that schemars derives for a type says what its `Deserialize` reads, with two gaps that are closed
//! here. Objects are left open, since serde skips fields that it does not know: nothing unknown is written. And the
//! numbers of some types have bounds in their name alone.

use std::collections::BTreeSet;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use super::{Constraint, JsonOptions};
use crate::error::{Error, Result};

/// Digits before the point of a number and after it. No 64-bit integer has more, and no 64-bit float overflows.
const DIGITS: usize = 20;

/// What no number of so many digits reaches. A bound leaves exponents out, with which 32-bit floats would overflow.
const BEYOND: f64 = 1e20;

impl Constraint {
    /// JSON that a type reads: the schema that schemars has for it, without properties that it does not name.
    ///
    /// What is generated under it is read with [`Output::parse`](crate::generation::Output::parse);
    /// [`generate_as`](crate::generation::generate_as) does both. Fields come in the order in which the type declares
    /// them; one that may be left out (an `Option`, or with a default) may be missing.
    ///
    /// ```
    /// use burn_dfa::{Constraint, Limits};
    /// use schemars::JsonSchema;
    ///
    /// #[derive(JsonSchema)]
    /// struct Point {
    ///     x: u8,
    ///     y: Option<bool>,
    /// }
    ///
    /// let dfa = Constraint::of::<Point>()?.to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(br#"{"x":255,"y":true}"#) && dfa.matches(br#"{"x":0}"#));
    /// assert!(!dfa.matches(br#"{"x":256}"#) && !dfa.matches(br#"{"x":0,"z":0}"#));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::is_schema`]: the schema asks for what [`json_schema`](Self::json_schema) refuses. A set, which wants
    /// `uniqueItems`, is refused when it is compiled.
    pub fn of<T: JsonSchema>() -> Result<Self> {
        let options = JsonOptions { max_digits: Some(DIGITS), ..JsonOptions::default() };
        Self::json_schema_with(narrowed(&schema_of::<T>()), &options)
    }

    /// The bare name of a variant of an enum without fields, as serde spells it.
    ///
    /// What is generated under it is read with [`Output::parse_name`](crate::generation::Output::parse_name);
    /// [`choose`](crate::generation::choose) does both.
    ///
    /// ```
    /// use burn_dfa::{Constraint, Limits};
    /// use schemars::JsonSchema;
    ///
    /// #[derive(JsonSchema)]
    /// #[serde(rename_all = "kebab-case")]
    /// enum Mood {
    ///     Cheerful,
    ///     DeadSerious,
    /// }
    ///
    /// let dfa = Constraint::choice_of::<Mood>()?.to_byte_dfa(&Limits::default())?.unwrap();
    /// assert!(dfa.matches(b"dead-serious") && !dfa.matches(b"DeadSerious"));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::is_schema`]: the type is anything else.
    pub fn choice_of<T: JsonSchema>() -> Result<Self> {
        let mut found = Vec::new();
        if !names(&schema_of::<T>(), &mut found) || found.is_empty() {
            return Err(Error::schema(
                "",
                format!(
                    "a choice takes an enum whose variants have no fields, which {} is not: use `Constraint::of`",
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

/// How much a schema says of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All of it.
    Whole,
    /// Another schema says more of the same value.
    Partial,
}

/// Closes objects against properties that nothing names, and bounds pointer-sized integers and 32-bit floats.
pub(super) fn narrowed(schema: &Value) -> Value {
    // Definitions that are partial somewhere are left open there, and closed where they are the whole.
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

/// What says which properties an object has.
const NAMING: [&str; 5] = ["$ref", "properties", "allOf", "anyOf", "oneOf"];

/// Where the definitions are.
const DEFINITIONS: &str = "#/$defs/";

/// Closes a schema and those in it; definitions in `partial` are known to be partial somewhere, `found`
/// are those that are.
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
        // It sees through references and branches, where `additionalProperties` does not.
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

/// Bounds numbers whose bounds are in the name of their format alone.
fn bound(map: &mut Map<String, Value>) {
    // The width of the first two is that of the machine; no other reader knows them.
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

/// Collects the strings of which a value of the schema is one; false where it may be something else.
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
