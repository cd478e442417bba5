//! Generates JSON schemas from bytes: mostly well-formed, with interacting keywords.

use arbitrary::{Result, Unstructured};
use burn_dfa_tokens::constraint::{
    Additional, Escapes, Formats, JsonOptions, Numbers, Order, Separators, Unenforceable, Unknown, Whitespace,
};
use serde_json::{Map, Value, json};

use super::words::{pattern, text};

const TYPES: &[&str] = &["null", "boolean", "integer", "number", "string", "array", "object", "any"];
const NAMES: &[&str] = &["a", "b", "ab", "", "é", "\"", "a/b~", "$ref"];
const REFERENCES: &[&str] = &[
    "#",
    "#/$defs/a",
    "#/$defs/b",
    "#/properties/a",
    "#/items",
    "#a",
    "a",
    "#/allOf/0",
    "x:y#/$defs/a",
    "#/%",
    "#/$defs/a/items",
];
const FORMATS: &[&str] = &[
    "date",
    "time",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "uuid",
    "regex",
    "json-pointer",
    "relative-json-pointer",
    "uri-template",
    "idn-email",
    "iri",
    "int32",
    "int64",
    "float",
    "byte",
    "binary",
    "unknown",
];
const DRAFTS: &[&str] = &[
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
    "?",
];

/// A schema with definitions.
pub fn schema(choices: &mut Unstructured) -> Result<Value> {
    let mut root = below(choices, 4)?;
    if let Value::Object(map) = &mut root {
        if choices.ratio(1, 3)? {
            let defs = json!({"a": below(choices, 2)?, "b": below(choices, 2)?});
            map.insert("$defs".into(), defs);
        }
        if choices.ratio(1, 4)? {
            map.insert("$schema".into(), (*choices.choose(DRAFTS)?).into());
        }
    }
    Ok(root)
}

fn below(choices: &mut Unstructured, depth: u32) -> Result<Value> {
    if depth == 0 || choices.is_empty() {
        return Ok(json!(choices.arbitrary::<bool>()?));
    }
    let mut map = Map::new();
    for _ in 0..choices.int_in_range(0..=4)? {
        let (name, value) = keyword(choices, depth - 1)?;
        map.insert(name.into(), value);
    }
    Ok(Value::Object(map))
}

fn keyword(choices: &mut Unstructured, depth: u32) -> Result<(&'static str, Value)> {
    let list = |choices: &mut Unstructured| -> Result<Value> {
        let count = choices.int_in_range(0..=3)?;
        (0..count).map(|_| below(choices, depth)).collect::<Result<Vec<_>>>().map(Value::Array)
    };
    let members = |choices: &mut Unstructured| -> Result<Value> {
        let mut map = Map::new();
        for _ in 0..choices.int_in_range(0..=3)? {
            map.insert((*choices.choose(NAMES)?).into(), below(choices, depth)?);
        }
        Ok(Value::Object(map))
    };
    let one_of = |choices: &mut Unstructured, names: &[&'static str]| choices.choose(names).copied();
    Ok(match choices.int_in_range(0..=17)? {
        0 | 1 => ("type", one_of(choices, TYPES)?.into()),
        2 => {
            let types = [one_of(choices, TYPES)?, one_of(choices, TYPES)?];
            ("type", json!(types))
        }
        3 => {
            let count = choices.int_in_range(0..=4)?;
            ("enum", (0..count).map(|_| value(choices, 2)).collect::<Result<Vec<_>>>()?.into())
        }
        4 => ("const", value(choices, 2)?),
        5 => (one_of(choices, &["allOf", "anyOf", "oneOf", "prefixItems"])?, list(choices)?),
        6 => (one_of(choices, &["not", "if", "then", "else"])?, below(choices, depth)?),
        7 | 8 => (
            one_of(choices, &["properties", "properties", "dependentSchemas", "definitions"])?,
            members(choices)?,
        ),
        9 => {
            let count = choices.int_in_range(0..=3)?;
            let names =
                (0..count).map(|_| Ok((*choices.choose(NAMES)?).into())).collect::<Result<Vec<Value>>>()?;
            ("required", names.into())
        }
        10 => {
            let names = [
                "additionalProperties",
                "unevaluatedProperties",
                "unevaluatedItems",
                "propertyNames",
                "additionalItems",
            ];
            (one_of(choices, &names)?, below(choices, depth)?)
        }
        11 => (one_of(choices, &["items", "items", "contains"])?, below(choices, depth)?),
        12 => {
            let names = [
                "minLength",
                "maxLength",
                "minItems",
                "maxItems",
                "minProperties",
                "maxProperties",
                "minContains",
                "maxContains",
            ];
            (one_of(choices, &names)?, count(choices)?)
        }
        13 => {
            let names = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
            (one_of(choices, &names)?, number(choices)?)
        }
        14 => ("pattern", pattern(choices)?.into()),
        15 => ("format", one_of(choices, FORMATS)?.into()),
        16 => match choices.int_in_range(0..=3)? {
            0 => ("uniqueItems", choices.arbitrary::<bool>()?.into()),
            1 => ("$id", one_of(choices, &["a", "#a", "x:y"])?.into()),
            2 => ("$anchor", one_of(choices, &["a", "b"])?.into()),
            _ => {
                let mut map = Map::new();
                map.insert(pattern(choices)?, below(choices, depth)?);
                ("patternProperties", map.into())
            }
        },
        _ => (
            one_of(choices, &["$ref", "$ref", "$dynamicRef", "$recursiveRef"])?,
            one_of(choices, REFERENCES)?.into(),
        ),
    })
}

fn count(choices: &mut Unstructured) -> Result<Value> {
    Ok(match choices.int_in_range(0..=6)? {
        0..=3 => json!(choices.int_in_range(0..=6)?),
        4 => json!(u64::MAX),
        5 => json!(1e300),
        _ => json!(choices.arbitrary::<i16>()?),
    })
}

fn number(choices: &mut Unstructured) -> Result<Value> {
    Ok(match choices.int_in_range(0..=9)? {
        0 => json!(1e308),
        1 => json!(-1e308),
        2 => json!(1e-300),
        3 => json!(u64::MAX),
        4 => json!(i64::MIN),
        5 => json!(f64::from(choices.arbitrary::<i16>()?) / 100.0),
        6 => json!(choices.arbitrary::<f64>()?),
        _ => json!(choices.int_in_range(-20..=20)?),
    })
}

fn value(choices: &mut Unstructured, depth: u32) -> Result<Value> {
    Ok(match choices.int_in_range(0..=if depth == 0 { 3 } else { 5 })? {
        0 => Value::Null,
        1 => choices.arbitrary::<bool>()?.into(),
        2 => number(choices)?,
        3 => text(choices)?.into(),
        4 => {
            let count = choices.int_in_range(0..=2)?;
            (0..count).map(|_| value(choices, depth - 1)).collect::<Result<Vec<_>>>()?.into()
        }
        _ => {
            let mut map = Map::new();
            for _ in 0..choices.int_in_range(0..=2)? {
                map.insert((*choices.choose(NAMES)?).into(), value(choices, depth - 1)?);
            }
            map.into()
        }
    })
}

/// Any options, with small counts.
pub fn options(choices: &mut Unstructured) -> Result<JsonOptions> {
    let few = |choices: &mut Unstructured| choices.int_in_range(0..=3usize);
    Ok(JsonOptions {
        whitespace: match choices.int_in_range(0..=6)? {
            0 => Whitespace::Compact,
            1 => Whitespace::Pretty(few(choices)?),
            2 => Whitespace::Flexible(few(choices)?),
            _ => Whitespace::Spaced,
        },
        separators: Separators::default(),
        additional: if choices.ratio(1, 4)? { Additional::Closed } else { Additional::Standard },
        order: if choices.ratio(1, 4)? { Order::RequiredFirst } else { Order::Declared },
        formats: if choices.ratio(1, 8)? { Formats::Annotate } else { Formats::Assert },
        unknown: if choices.ratio(1, 8)? { Unknown::Refuse } else { Unknown::Ignore },
        unenforceable: if choices.ratio(1, 8)? { Unenforceable::Ignore } else { Unenforceable::Refuse },
        numbers: if choices.ratio(1, 4)? { Numbers::Any } else { Numbers::Plain },
        ascii: choices.ratio(1, 4)?,
        escapes: if choices.ratio(1, 8)? { Escapes::Any } else { Escapes::Canonical },
        max_string: if choices.ratio(1, 4)? { Some(few(choices)? as u64) } else { None },
        max_digits: if choices.ratio(1, 4)? { Some(few(choices)?) } else { None },
        recursion: if choices.ratio(1, 4)? { Some(few(choices)?) } else { None },
        any_depth: if choices.ratio(1, 4)? { Some(few(choices)?) } else { None },
    })
}
