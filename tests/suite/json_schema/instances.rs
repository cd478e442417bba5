//! Instances as texts: members in the order of the schema; and schemas with silence made explicit.

use serde_json::{Map, Value};

/// `schema` with `additionalProperties: false` wherever it is silent about properties.
pub fn close(schema: &Value) -> Value {
    let each = |members: &Map<String, Value>| {
        members.iter().map(|(name, schema)| (name.clone(), close(schema))).collect::<Map<_, _>>()
    };
    let Value::Object(keywords) = schema else { return schema.clone() };
    let mut closed = Map::new();
    for (name, value) in keywords {
        let value = match (name.as_str(), value) {
            ("properties" | "definitions" | "$defs", Value::Object(members)) => Value::Object(each(members)),
            ("anyOf", Value::Array(branches)) => branches.iter().map(close).collect(),
            ("items", value) => close(value),
            _ => value.clone(),
        };
        closed.insert(name.clone(), value);
    }
    if keywords.contains_key("properties") && !keywords.contains_key("additionalProperties") {
        closed.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(closed)
}

/// `value` with its members in the orders that `schema` may want and its integers without a fraction.
pub fn arrangements(value: &Value, schema: &Value, root: &Value) -> Vec<Value> {
    const MOST: usize = 64;
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let pointer = reference.split_once('#').map_or("", |(_, pointer)| pointer).replace("%24", "$");
        return match root.pointer(&pointer) {
            Some(target) => arrangements(value, target, root),
            None => vec![value.clone()],
        };
    }
    let listed =
        schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const"));
    if let Some(known) = listed.map(plain).find(|known| *known == plain(value)) {
        return vec![known];
    }
    if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
        let mut all: Vec<Value> =
            branches.iter().flat_map(|branch| arrangements(value, branch, root)).collect();
        all.truncate(MOST);
        return all;
    }
    match value {
        Value::Number(_) => vec![plain(value), value.clone()],
        Value::Array(items) => product(items.iter().map(|item| match schema.get("items") {
            Some(schema) => arrangements(item, schema, root),
            None => vec![item.clone()],
        }))
        .into_iter()
        .map(Value::Array)
        .collect(),
        Value::Object(members) => {
            let nothing = Map::new();
            let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_by_key(|name| properties.keys().position(|p| p == *name).unwrap_or(usize::MAX));
            product(names.iter().map(|name| match properties.get(*name) {
                Some(schema) => arrangements(&members[*name], schema, root),
                None => vec![members[*name].clone()],
            }))
            .into_iter()
            .map(|values| Value::Object(names.iter().map(|name| name.to_string()).zip(values).collect()))
            .collect()
        }
        scalar => vec![scalar.clone()],
    }
}

/// One of each, in all ways up to a number.
fn product(choices: impl Iterator<Item = Vec<Value>>) -> Vec<Vec<Value>> {
    let mut all = vec![Vec::new()];
    for choice in choices {
        all = all
            .iter()
            .flat_map(|head: &Vec<Value>| {
                choice.iter().map(move |last| head.iter().chain([last]).cloned().collect())
            })
            .take(64)
            .collect();
    }
    all
}

/// `value` with its integers without a fraction or an exponent.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(n) => match n.as_f64() {
            Some(float) if n.is_f64() && float.fract() == 0.0 && float.abs() < 1e18 => {
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, member)| (name.clone(), plain(member))).collect())
        }
        scalar => scalar.clone(),
    }
}
