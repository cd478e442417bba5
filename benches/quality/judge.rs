//! Judges an answer: is it JSON, does it fit the schema, and are its values right?

use std::collections::BTreeMap;

use serde_json::{Deserializer, Value};

/// The expected answer of a prompt.
pub struct Expected {
    /// The schema of the answer.
    pub schema: Value,
    /// The right values of each field; `None` if any values are right. A field with an empty string
    /// among its values may be absent.
    pub values: Option<BTreeMap<String, Vec<Value>>>,
    /// The function whose arguments are asked for. A free answer may write them as the value of
    /// this name.
    pub function: Option<String>,
}

/// The properties of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the answer is JSON, or holds a JSON object within other text.
    pub is_json: bool,
    /// Whether the JSON is valid against the schema.
    pub fits: bool,
    /// Whether the JSON is an object of exactly the right values.
    pub is_right: bool,
    /// The number of fields with a right value.
    pub right_values: usize,
}

/// Judges the text of an answer.
pub fn judge(text: &str, expected: &Expected) -> Verdict {
    let Some(value) = find_json(text).map(|value| unwrap(value, expected.function.as_deref())) else {
        return Verdict::default();
    };
    let fits = jsonschema::validator_for(&expected.schema).is_ok_and(|schema| schema.is_valid(&value));
    let verdict = Verdict { is_json: true, fits, ..Verdict::default() };
    let (Some(fields), Value::Object(found)) = (&expected.values, &value) else { return verdict };
    let right = |(name, values): &(&String, &Vec<Value>)| match found.get(*name) {
        Some(value) => values.iter().any(|right| equal(value, right)),
        None => values.contains(&Value::from("")),
    };
    let right_values = fields.iter().filter(right).count();
    let is_right = right_values == fields.len() && found.keys().all(|name| fields.contains_key(name));
    Verdict { is_right, right_values, ..verdict }
}

/// The JSON of a text: the whole text, the first block of code, or the value that begins with the
/// first brace.
fn find_json(text: &str) -> Option<Value> {
    let mut text = text.trim();
    if let Some(fenced) = text.strip_prefix("```") {
        let block = fenced.split("```").next().unwrap_or_default();
        text = block.strip_prefix("json").unwrap_or(block);
    }
    serde_json::from_str(text).ok().or_else(|| {
        let from_brace = &text[text.find('{')?..];
        Deserializer::from_str(from_brace).into_iter().next()?.ok()
    })
}

/// The arguments of an answer that wraps them in the name of the function.
fn unwrap(mut value: Value, function: Option<&str>) -> Value {
    let wrapped = match (value.as_object_mut(), function) {
        (Some(object), Some(name)) if object.len() == 1 => object.get_mut(name),
        _ => None,
    };
    match wrapped {
        Some(arguments) if arguments.is_object() => arguments.take(),
        _ => value,
    }
}

/// Whether two values are equal: numbers by their value, and strings without regard to case and
/// surrounding white space.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::String(a), Value::String(b)) => a.trim().to_lowercase() == b.trim().to_lowercase(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let has_equal = |(name, value)| b.get(name).is_some_and(|other| equal(value, other));
            a.len() == b.len() && a.iter().all(has_equal)
        }
        _ => a == b,
    }
}
