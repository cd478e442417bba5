//! Which values of an `enum` the keywords beside it admit.
//!
//! Read as the standard has it: an object is open where `additionalProperties` is silent, items are any JSON
//! where `items` is.

use serde_json::Value;

use super::lower::Pieces;
use super::node::{Node, NodeId, Types};
use super::value::{count_of, string_text, type_of};
use crate::error::Result;
use crate::limits::Meter;

/// Whether `value` is valid under the node `id`. Strings ask the automata in `pieces`.
pub(super) fn admits(pieces: &Pieces, id: NodeId, value: &Value, meter: &Meter) -> Result<bool> {
    meter.time()?;
    let admits = |id: NodeId, value: &Value| admits(pieces, id, value, meter);
    Ok(match (pieces.node(id), value) {
        (Node::Null, Value::Null) | (Node::Boolean, Value::Bool(_)) => true,
        (Node::Number, Value::Number(_)) => true,
        (Node::Integer, Value::Number(_)) => type_of(value) == Types::INTEGER,
        (Node::String(_), Value::String(string)) => pieces.get(id).matches(&string_text(string)),
        (Node::Array(array), Value::Array(items)) => {
            count_of(items) >= array.min
                && array.max.is_none_or(|max| count_of(items) <= max)
                && match array.items {
                    None => true,
                    Some(each) => all(items, |item| admits(each, item))?,
                }
        }
        (Node::Object(object), Value::Object(members)) => {
            object.foreign.iter().all(|name| members.contains_key(name))
                && (!object.closed
                    || members.keys().all(|name| object.properties.iter().any(|p| p.name == *name)))
                && all(&object.properties, |property| match members.get(&property.name) {
                    Some(member) => admits(property.schema, member),
                    None => Ok(!property.required),
                })?
        }
        (Node::Values { values, filter }, value) => {
            values.iter().any(|known| known.value() == value)
                && match filter {
                    Some(filter) => admits(*filter, value)?,
                    None => true,
                }
        }
        (Node::Union(ids), value) => !all(ids, |&id| Ok(!admits(id, value)?))?,
        (Node::Both(a, b), value) => admits(*a, value)? && admits(*b, value)?,
        _ => false,
    })
}

/// Whether `test` holds of all `items`, as far as the first of which it does not.
fn all<T>(items: &[T], mut test: impl FnMut(&T) -> Result<bool>) -> Result<bool> {
    for item in items {
        if !test(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}
