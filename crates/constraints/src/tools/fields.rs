//! The fields of tools in requests.

use serde_json::{Map, Value};

use burn_dfa_common::{Error, Result};

pub(super) fn object(what: &str, value: Value) -> Result<Map<String, Value>> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(Error::request(format!("{what} is not an object"))),
    }
}

/// Takes a field out; null is as good as none.
pub(super) fn field<T>(
    fields: &mut Map<String, Value>,
    name: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match read(&value) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::request(format!("the `{name}` of a tool is of another type"))),
        },
    }
}

pub(super) fn as_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Rejects the remaining fields.
pub(super) fn nothing_else(what: &str, fields: &Map<String, Value>) -> Result<()> {
    match fields.keys().next() {
        None => Ok(()),
        Some(name) => Err(Error::request(format!("{what} has a field `{name}`, which is not offered"))),
    }
}
