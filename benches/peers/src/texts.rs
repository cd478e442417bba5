//! The texts of an instance: compact, with the members of its objects in each order that an engine
//! may require.
//!
//! Engines write properties in the order of their declaration in the schema. If `anyOf`, `allOf`
//! and references declare properties in several schemas, several orders are possible, and engines
//! differ. The caller tries all of them.

use serde_json::{Map, Value};

/// The maximum number of texts of one instance.
const MAX: usize = 8;

/// The maximum number of references and combinations on the path to a declaration.
const HOPS: usize = 12;

/// The texts of `value` under `schema`; the last one keeps the order of `value`.
pub fn of(value: &Value, schema: &Value) -> Vec<String> {
    let mut texts: Vec<String> =
        arrangements(value, schema, schema).iter().map(Value::to_string).take(MAX).collect();
    let as_written = value.to_string();
    if !texts.contains(&as_written) {
        texts.push(as_written);
    }
    texts
}

/// The declarations for the parts of a value, for one choice of branches.
#[derive(Clone, Default)]
struct Declared<'a> {
    properties: Vec<(&'a str, &'a Value)>,
    additional: Option<&'a Value>,
    prefix: &'a [Value],
    items: Option<&'a Value>,
}

impl<'a> Declared<'a> {
    fn of_one_object(schema: &'a Map<String, Value>) -> Self {
        let list = |name: &str| schema.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let prefix = list("prefixItems");
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        Self {
            properties: properties.map(|(name, schema)| (name.as_str(), schema)).collect(),
            additional: schema.get("additionalProperties"),
            prefix: if prefix.is_empty() { list("items") } else { prefix },
            items: schema.get("items").filter(|items| items.is_object()).or(schema.get("additionalItems")),
        }
    }

    /// The declarations of both; `self` comes first.
    fn and(&self, other: &Self) -> Self {
        let new =
            other.properties.iter().filter(|(name, _)| self.properties.iter().all(|(own, _)| own != name));
        Self {
            properties: self.properties.iter().chain(new).copied().collect(),
            additional: self.additional.or(other.additional),
            prefix: if self.prefix.is_empty() { other.prefix } else { self.prefix },
            items: self.items.or(other.items),
        }
    }

    fn property(&self, name: &str) -> &'a Value {
        let own = self.properties.iter().find(|(own, _)| *own == name).map(|(_, schema)| *schema);
        own.or(self.additional).unwrap_or(&Value::Null)
    }

    fn item(&self, index: usize) -> &'a Value {
        self.prefix.get(index).or(self.items).unwrap_or(&Value::Null)
    }
}

/// The readings of `schema`: one for each choice of branches.
fn readings<'a>(schema: &'a Value, root: &'a Value, hops: usize) -> Vec<Declared<'a>> {
    let Some((keywords, hops)) = schema.as_object().zip(hops.checked_sub(1)) else {
        return vec![Declared::default()];
    };
    let mut readings = vec![Declared::of_one_object(keywords)];
    let both = |readings: &[Declared<'a>], others: &[Declared<'a>]| -> Vec<Declared<'a>> {
        readings.iter().flat_map(|one| others.iter().map(|other| one.and(other))).take(MAX).collect()
    };
    let target =
        keywords.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    if let Some(target) = target.and_then(|pointer| root.pointer(pointer)) {
        readings = both(&readings, &self::readings(target, root, hops));
    }
    let branches = |name: &str| keywords.get(name).and_then(Value::as_array).into_iter().flatten();
    for branch in branches("allOf") {
        readings = both(&readings, &self::readings(branch, root, hops));
    }
    for name in ["anyOf", "oneOf"] {
        let others: Vec<_> = branches(name).flat_map(|branch| self::readings(branch, root, hops)).collect();
        if !others.is_empty() {
            readings = both(&readings, &others);
        }
    }
    readings
}

/// `value` with its members in each possible order, and with integral floats as integers too.
fn arrangements(value: &Value, schema: &Value, root: &Value) -> Vec<Value> {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                vec![Value::from(float as i64), value.clone()]
            }
            _ => vec![value.clone()],
        },
        Value::Array(items) => {
            let all = readings(schema, root, HOPS).into_iter().flat_map(|declared| {
                let items = items.iter().enumerate();
                product(items.map(|(index, item)| arrangements(item, declared.item(index), root)))
            });
            distinct(all.map(Value::Array))
        }
        Value::Object(members) => {
            let all = readings(schema, root, HOPS).into_iter().flat_map(|declared| {
                let order = |name: &String| declared.properties.iter().position(|(other, _)| other == name);
                let mut names: Vec<&String> = members.keys().collect();
                names.sort_by_key(|name| order(name).unwrap_or(usize::MAX));
                let choices =
                    names.iter().map(|name| arrangements(&members[*name], declared.property(name), root));
                let named =
                    |values: Vec<Value>| names.iter().map(|name| name.to_string()).zip(values).collect();
                product(choices).into_iter().map(|values| Value::Object(named(values))).collect::<Vec<_>>()
            });
            distinct(all)
        }
        scalar => vec![scalar.clone()],
    }
}

/// The first few of `values` with different texts: equality of objects ignores the order of
/// members.
fn distinct(values: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut texts = Vec::new();
    let mut distinct = Vec::new();
    for value in values {
        let text = value.to_string();
        if !texts.contains(&text) {
            texts.push(text);
            distinct.push(value);
        }
        if distinct.len() == MAX {
            break;
        }
    }
    distinct
}

/// All combinations of one value per choice, up to [`MAX`].
fn product(choices: impl Iterator<Item = Vec<Value>>) -> Vec<Vec<Value>> {
    choices.fold(vec![Vec::new()], |heads, choice| {
        let longer = heads.iter().flat_map(|head| {
            choice.iter().map(|last| head.iter().cloned().chain([last.clone()]).collect::<Vec<_>>())
        });
        longer.take(MAX).collect()
    })
}
