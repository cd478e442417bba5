//! The keywords of strings, arrays and objects.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::node::{Array, Node, NodeId, Object, Property, Text, Types};
use super::read::{Context, Purpose, Reader};
use super::{ecma, value};
use crate::error::Result;

impl<'a> Reader<'a> {
    /// One node for each type that is open, by the keywords for it.
    pub(super) fn shapes(&mut self, map: &'a Map<String, Value>, context: Context) -> Result<NodeId> {
        let types = context.types;
        let mut nodes = Vec::new();
        if types.meets(Types::NULL) {
            nodes.push(Node::Null);
        }
        if types.meets(Types::BOOLEAN) {
            nodes.push(Node::Boolean);
        }
        if types.meets(Types::FRACTION) {
            nodes.push(Node::Number);
        } else if types.meets(Types::INTEGER) {
            nodes.push(Node::Integer);
        }
        if types.meets(Types::STRING) {
            nodes.push(Node::String(self.text(map)?));
        }
        if types.meets(Types::ARRAY) {
            nodes.push(Node::Array(self.array(map, context)?));
        }
        if types.meets(Types::OBJECT) {
            nodes.push(Node::Object(self.object(map, context)?));
        }
        let ids = nodes.into_iter().map(|node| self.nodes.add(node, &self.at)).collect();
        Ok(self.nodes.add_union(ids, &self.at))
    }

    fn text(&self, map: &Map<String, Value>) -> Result<Text> {
        let pattern = match map.get("pattern") {
            None => None,
            Some(Value::String(pattern)) => {
                ecma::Pattern::parse(pattern).map_err(|error| {
                    self.error_at(
                        "pattern",
                        format!("at byte {} of the pattern: {}", error.offset, error.reason),
                    )
                })?;
                Some(pattern.clone())
            }
            Some(_) => return Err(self.error_at("pattern", "a pattern is a string")),
        };
        let min = self.count(map, "minLength")?.unwrap_or(0);
        Ok(Text { min, max: self.count(map, "maxLength")?, pattern })
    }

    fn array(&mut self, map: &'a Map<String, Value>, context: Context) -> Result<Array> {
        let min = self.count(map, "minItems")?.unwrap_or(0);
        let max = self.count(map, "maxItems")?;
        let items = match map.get("items") {
            _ if max == Some(0) => None,
            Some(Value::Array(_)) => {
                return Err(self.error_at("items", "a list of `items` is not offered; use one schema for all items, or an object with named properties"));
            }
            Some(items) => {
                let context = Context { types: Types::ALL, ..context };
                Some(self.below(&["items"], items, context)?)
            }
            None if context.purpose == Purpose::Filter => None,
            None => {
                return Err(
                    self.error("an array without `items` holds any JSON, which is not offered; add `items`")
                );
            }
        };
        Ok(Array { items, min, max })
    }

    fn object(&mut self, map: &'a Map<String, Value>, context: Context) -> Result<Object> {
        let filter = context.purpose == Purpose::Filter;
        let closed = match map.get("additionalProperties") {
            None => false,
            Some(Value::Bool(false)) => true,
            Some(Value::Bool(true)) if filter => false,
            Some(Value::Bool(true) | Value::Object(_)) => {
                return Err(self.error_at(
                    "additionalProperties",
                    "properties of other names are not offered; list them under `properties`, or remove it: silence closes an object here",
                ));
            }
            Some(_) => {
                return Err(self.error_at("additionalProperties", "a schema is an object or a boolean"));
            }
        };
        let mut required = self.required(map)?;
        let mut properties = Vec::new();
        match map.get("properties") {
            Some(Value::Object(members)) => {
                let context = Context { types: Types::ALL, ..context };
                for (name, schema) in members {
                    let schema = self.below(&["properties", name], schema, context)?;
                    let required = required.remove(name.as_str()).is_some();
                    properties.push(Property { name: name.clone(), schema, required });
                }
            }
            Some(_) => {
                return Err(self.error_at("properties", "`properties` is an object of schemas by name"));
            }
            None if closed || filter => {}
            None => {
                return Err(self.error(
                    "an object without `properties` holds any JSON, which is not offered; add `properties`, or `additionalProperties: false` for `{}` alone",
                ));
            }
        }
        if !filter && let Some((name, i)) = required.iter().min_by_key(|(_, i)| **i) {
            return Err(self.error_below(
                &["required", &i.to_string()],
                format!("{name:?} is required but is not among `properties`, and the object is closed; add it there"),
            ));
        }
        let mut foreign: Vec<String> = required.into_keys().map(str::to_owned).collect();
        foreign.sort_unstable();
        Ok(Object { properties, foreign, closed })
    }

    /// Required names with their first place in the list.
    fn required<'m>(&self, map: &'m Map<String, Value>) -> Result<HashMap<&'m str, usize>> {
        let mut names = HashMap::new();
        match map.get("required") {
            None => {}
            Some(Value::Array(list)) => {
                for (i, name) in list.iter().enumerate() {
                    let Some(name) = name.as_str() else {
                        return Err(self.error_below(&["required", &i.to_string()], "a name is a string"));
                    };
                    names.entry(name).or_insert(i);
                }
            }
            Some(_) => {
                return Err(self.error_at(
                    "required",
                    "`required` is a list of names, beside `properties` (the boolean of draft 3 is not offered)",
                ));
            }
        }
        Ok(names)
    }

    fn count(&self, map: &Map<String, Value>, name: &str) -> Result<Option<u64>> {
        let Some(value) = map.get(name) else { return Ok(None) };
        match value::count(value) {
            Some(count) => Ok(Some(count)),
            None => Err(self.error_at(name, format!("`{name}` is a count: an integer, not negative"))),
        }
    }
}
