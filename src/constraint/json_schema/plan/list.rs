//! Values of `enum`, to be found by value.

use std::collections::HashSet;

use serde_json::Value;

use crate::constraint::json_schema::number::Decimal;
use crate::constraint::json_schema::value::{Json, same};

/// Values in a set: scalars by their text, others one by one.
#[derive(Debug, Default)]
pub(super) struct List {
    scalars: HashSet<String>,
    others: Vec<Value>,
}

impl List {
    pub(super) fn new(values: &[Json]) -> Self {
        let mut list = Self::default();
        for value in values {
            match scalar(value.value()) {
                Some(text) => {
                    list.scalars.insert(text);
                }
                None => list.others.push(value.value().clone()),
            }
        }
        list
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        match scalar(value) {
            Some(text) => self.scalars.contains(&text),
            None => self.others.iter().any(|other| same(other, value)),
        }
    }
}

/// A text that equal scalars share and no others.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Bool(_) => Some(value.to_string()),
        Value::Number(number) => Some(Decimal::new(number).text()),
        Value::String(text) => Some(format!("\"{text}")),
        Value::Array(_) | Value::Object(_) => None,
    }
}
