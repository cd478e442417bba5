//! An instance as the texts that a schema may ask for.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value};

/// Most texts of an instance.
const MOST: usize = 64;
/// Most references that are followed one after the other.
const DEEPEST: usize = 32;

/// The texts of `value`, compact and with `, ` and `: `, members in the orders that `schema` may want.
pub fn serialize(schema: &Value, value: &Value) -> Vec<String> {
    let arranger = Arranger { root: schema };
    let mut texts: Vec<String> = Vec::new();
    for value in arranger.arrange(value, schema, 0) {
        for text in [value.to_string(), spaced(&value)] {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
    texts
}

struct Arranger<'a> {
    root: &'a Value,
}

impl Arranger<'_> {
    /// `value` with its members in the orders that `schema` may want and its integers without a fraction.
    fn arrange(&self, value: &Value, schema: &Value, depth: usize) -> Vec<Value> {
        if depth > DEEPEST {
            return vec![value.clone()];
        }
        if let Some(target) = self.target(schema) {
            return self.arrange(value, target, depth + 1);
        }
        let listed =
            schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const"));
        if let Some(known) = listed.map(plain).find(|known| *known == plain(value)) {
            return vec![known];
        }
        for choice in ["anyOf", "oneOf"] {
            if let Some(branches) = schema.get(choice).and_then(Value::as_array) {
                let outer = self.members(value, schema, depth);
                let inner = branches.iter().flat_map(|branch| self.arrange(value, branch, depth + 1));
                return distinct(outer.into_iter().chain(inner));
            }
        }
        self.members(value, schema, depth)
    }

    fn members(&self, value: &Value, schema: &Value, depth: usize) -> Vec<Value> {
        match value {
            Value::Number(_) => distinct([plain(value), value.clone()]),
            Value::Array(items) => {
                product(items.iter().enumerate().map(|(at, item)| match self.item(schema, at) {
                    Some(schema) => self.arrange(item, schema, depth + 1),
                    None => vec![plain(item)],
                }))
                .into_iter()
                .map(Value::Array)
                .collect()
            }
            Value::Object(members) => {
                let mut properties: Vec<(&String, &Value)> = Vec::new();
                self.properties(schema, &mut properties, 0);
                let place = |name: &String| properties.iter().position(|(other, _)| *other == name);
                let mut names: Vec<&String> = members.keys().collect();
                names.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
                let rest = schema.get("additionalProperties");
                product(names.iter().map(|name| match place(name).map(|at| properties[at].1).or(rest) {
                    Some(schema) => self.arrange(&members[*name], schema, depth + 1),
                    None => vec![plain(&members[*name])],
                }))
                .into_iter()
                .map(|values| Value::Object(names.iter().map(|name| name.to_string()).zip(values).collect()))
                .collect()
            }
            scalar => vec![scalar.clone()],
        }
    }

    /// What a reference within the document leads to.
    fn target(&self, schema: &Value) -> Option<&Value> {
        let reference = schema.get("$ref")?.as_str()?;
        let (_, pointer) = reference.split_once('#')?;
        self.root.pointer(&pointer.replace("%24", "$"))
    }

    /// The schema of the item at `at`.
    fn item<'s>(&self, schema: &'s Value, at: usize) -> Option<&'s Value> {
        let items = schema.get("items");
        let first = schema.get("prefixItems").or(items).and_then(Value::as_array);
        let rest = if items.is_some_and(Value::is_array) { schema.get("additionalItems") } else { items };
        first.and_then(|first| first.get(at)).or(rest)
    }

    /// The properties that `schema` and all that holds beside it declare, in order.
    fn properties<'s>(&'s self, schema: &'s Value, found: &mut Vec<(&'s String, &'s Value)>, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if found.iter().all(|(other, _)| *other != name) {
                found.push((name, property));
            }
        }
        if let Some(target) = self.target(schema) {
            self.properties(target, found, depth + 1);
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.properties(part, found, depth + 1);
        }
    }
}

/// One of each, in all ways up to a number.
fn product(choices: impl Iterator<Item = Vec<Value>>) -> Vec<Vec<Value>> {
    choices.fold(vec![Vec::new()], |heads, choice| {
        let longer = heads.iter().flat_map(|head: &Vec<Value>| {
            choice.iter().map(move |last| head.iter().chain([last]).cloned().collect())
        });
        longer.take(MOST).collect()
    })
}

/// The values that differ in their text, up to a number.
fn distinct(values: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut texts: Vec<String> = Vec::new();
    let mut kept = Vec::new();
    for value in values {
        let text = value.to_string();
        if kept.len() < MOST && !texts.contains(&text) {
            texts.push(text);
            kept.push(value);
        }
    }
    kept
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
        Value::Object(members) => Value::Object(
            members.iter().map(|(name, member)| (name.clone(), plain(member))).collect::<Map<_, _>>(),
        ),
        scalar => scalar.clone(),
    }
}

/// `value` with a space after every comma and colon.
fn spaced(value: &Value) -> String {
    let mut text = Vec::new();
    match value.serialize(&mut Serializer::with_formatter(&mut text, Spaced)) {
        Ok(()) => String::from_utf8_lossy(&text).into_owned(),
        Err(_) => value.to_string(),
    }
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
