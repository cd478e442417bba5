//! Builds a [`Json`] from its parts, in the order of its text.

use std::fmt;

use serde_json::{Number, Value};

use super::{Json, Members};
use crate::json_pointer::push;
use crate::json_schema::number::Decimal;

/// The reason why a text or a value was rejected, and its location.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Malformed {
    /// JSON pointer of the innermost open value.
    pub(crate) pointer: String,
    pub(crate) reason: String,
}

/// The reason, and the location unless it is the root.
impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "at {}: ", self.pointer)?;
        }
        f.write_str(&self.reason)
    }
}

/// The open arrays and objects, from the outside in.
#[derive(Default)]
pub(super) struct Builder {
    open: Vec<Open>,
    done: Option<Json>,
}

enum Open {
    Array(Vec<Json>),
    /// The members so far, and whether the value of the last one comes next.
    Object(Members, bool),
}

impl Builder {
    pub(super) fn array(&mut self) {
        self.open.push(Open::Array(Vec::new()));
    }

    pub(super) fn object(&mut self) {
        self.open.push(Open::Object(Members::default(), false));
    }

    /// The name of the next member.
    pub(super) fn name(&mut self, name: String) -> Result<(), Malformed> {
        let Some(Open::Object(members, is_named)) = self.open.last_mut() else { return Ok(()) };
        if members.contains_key(&name) {
            *is_named = false;
            let mut malformed = self.malformed("its object has this name twice; leave one of them out");
            push(&mut malformed.pointer, &name);
            return Err(malformed);
        }
        *is_named = members.insert(name, Json::Null);
        Ok(())
    }

    /// Closes the innermost array or object.
    pub(super) fn end(&mut self) {
        match self.open.pop() {
            Some(Open::Array(items)) => self.value(Json::Array(items)),
            Some(Open::Object(members, _)) => self.value(Json::Object(members)),
            None => {}
        }
    }

    pub(super) fn number(&mut self, text: &str) -> Result<(), Malformed> {
        match Decimal::parse(text) {
            Ok(number) => self.value(Json::Number(number)),
            Err(too_long) => return Err(self.malformed(too_long.to_string())),
        }
        Ok(())
    }

    /// Adds a complete value.
    pub(super) fn value(&mut self, value: Json) {
        match self.open.last_mut() {
            Some(Open::Array(items)) => items.push(value),
            Some(Open::Object(members, is_named)) => {
                members.set_last(value);
                *is_named = false;
            }
            None => self.done = Some(value),
        }
    }

    /// The value, if it is complete.
    pub(super) fn finish(self) -> Option<Json> {
        self.done
    }

    /// An error at the current location.
    pub(super) fn malformed(&self, reason: impl Into<String>) -> Malformed {
        let mut pointer = String::new();
        for open in &self.open {
            match open {
                Open::Array(items) => push(&mut pointer, &items.len().to_string()),
                Open::Object(members, is_named) => {
                    if let Some(name) = members.last_name().filter(|_| *is_named) {
                        push(&mut pointer, name);
                    }
                }
            }
        }
        Malformed { pointer, reason: reason.into() }
    }
}

impl Json {
    /// The same value as a `Value`. A float becomes the shortest decimal that reads back as the
    /// same float.
    ///
    /// # Errors
    /// A number with too many digits, possible only in a `Value` of arbitrary precision.
    pub(crate) fn of(value: &Value) -> Result<Self, Malformed> {
        enum Event<'a> {
            Value(&'a Value),
            Name(&'a String),
            End,
        }
        let mut builder = Builder::default();
        let mut rest = vec![Event::Value(value)];
        while let Some(event) = rest.pop() {
            match event {
                Event::End => builder.end(),
                Event::Name(name) => builder.name(name.clone())?,
                Event::Value(Value::Null) => builder.value(Self::Null),
                Event::Value(Value::Bool(value)) => builder.value(Self::Boolean(*value)),
                Event::Value(Value::Number(number)) => builder.number(&number.to_string())?,
                Event::Value(Value::String(text)) => builder.value(Self::String(text.clone())),
                Event::Value(Value::Array(items)) => {
                    builder.array();
                    rest.push(Event::End);
                    rest.extend(items.iter().rev().map(Event::Value));
                }
                Event::Value(Value::Object(members)) => {
                    builder.object();
                    rest.push(Event::End);
                    for (name, member) in members.iter().rev() {
                        rest.extend([Event::Value(member), Event::Name(name)]);
                    }
                }
            }
        }
        Ok(builder.finish().unwrap_or(Self::Null))
    }

    /// The nearest `Value`: integers of 64 bits are exact, other numbers become 64-bit floats. It
    /// recurses: the caller has to bound the depth.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Bool(*value),
            Self::Number(number) => {
                let text = number.short_text();
                let signed = text.parse::<i64>().map(Number::from);
                let integer = signed.or_else(|_| text.parse::<u64>().map(Number::from));
                Value::Number(integer.unwrap_or_else(|_| {
                    let float = text.parse().unwrap_or(f64::MAX);
                    Number::from_f64(float).unwrap_or_else(|| 0.into())
                }))
            }
            Self::String(text) => Value::String(text.clone()),
            Self::Array(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(members) => {
                members.iter().map(|(name, member)| (name.clone(), member.to_value())).collect()
            }
        }
    }
}
