//! JSON values for templates. They keep the order of the JSON text, and become text as in Python.
//!
//! minijinja's own maps sort their keys. Its feature for ordered maps would make cargo build Burn a
//! second time, since Burn shares the dependency.

use std::fmt;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr};

use super::python_text::write_repr;

/// The same value, with the members of objects in their original order.
pub(crate) fn ordered(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::from(()),
        Json::Bool(is) => Value::from(*is),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            _ => Value::from(number.as_f64()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::from_object(Items(items.iter().map(ordered).collect())),
        Json::Object(members) => {
            let members = members.iter().map(|(name, value)| (Value::from(name.as_str()), ordered(value)));
            Value::from_object(Members(members.collect()))
        }
    }
}

/// The members of an object.
#[derive(Debug)]
struct Members(Vec<(Value, Value)>);

impl Object for Members {
    fn get_value(self: &Arc<Self>, name: &Value) -> Option<Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(name, _)| name.clone()).collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_repr(&Value::from_dyn_object(self.clone()), f)
    }
}

/// The items of an array.
#[derive(Debug)]
struct Items(Vec<Value>);

impl Object for Items {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, index: &Value) -> Option<Value> {
        self.0.get(index.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_repr(&Value::from_dyn_object(self.clone()), f)
    }
}
