//! JSON values of `enum` and `const`: equality by value, and the one text of each.
//!
//! A [`Json`] is a value in canonical form: `1.0` and `1` are one integer. Its text is compact, object members
//! in the order in which they were given, strings with the escapes that JSON demands and no other.

use std::hash::{Hash, Hasher};

use serde_json::{Number, Value};

use super::number::Decimal;

/// 2^53: at and beyond it a 64-bit float no longer tells integers apart.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A JSON value whose numbers are canonical. Two are equal where their texts are.
#[derive(Clone, Debug)]
pub(super) struct Json {
    value: Value,
    text: Vec<u8>,
}

/// Why a value has no exact text.
pub(super) enum Inexact {
    /// A number that a 64-bit float may have rounded.
    Number(Number),
    /// Nesting beyond the limit.
    Depth,
}

impl Json {
    /// Makes numbers canonical; refuses what is nested deeper than `depth` or may have lost digits.
    pub(super) fn new(value: &Value, depth: usize) -> Result<Self, Inexact> {
        let value = canonical(value, depth)?;
        Ok(Self { text: text(&value), value })
    }

    /// A scalar that is canonical as it is.
    pub(super) fn scalar(value: Value) -> Self {
        Self::part(&value)
    }

    /// A part of a canonical value.
    pub(super) fn part(value: &Value) -> Self {
        Self { text: text(value), value: value.clone() }
    }

    /// The value. Its equality takes no account of the order of members.
    pub(super) fn value(&self) -> &Value {
        &self.value
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Json {}

impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

fn canonical(value: &Value, depth: usize) -> Result<Value, Inexact> {
    Ok(match value {
        Value::Number(n) => Value::Number(canonical_number(n)?),
        Value::Array(_) | Value::Object(_) if depth == 0 => return Err(Inexact::Depth),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| canonical(item, depth - 1)).collect::<Result<_, _>>()?)
        }
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, member)| Ok((name.clone(), canonical(member, depth - 1)?)))
                .collect::<Result<_, _>>()?,
        ),
        scalar => scalar.clone(),
    })
}

/// Integers without a fraction part. Fractions keep the shortest decimal that reads back as the same float.
fn canonical_number(number: &Number) -> Result<Number, Inexact> {
    if !number.is_f64() {
        return Ok(number.clone());
    }
    match number.as_f64() {
        Some(float) if float.abs() >= EXACT => Err(Inexact::Number(number.clone())),
        Some(float) if float.fract() == 0.0 => Ok(Number::from(float as i64)),
        _ => Ok(number.clone()),
    }
}

/// A count such as `minLength`: an integer, not negative, `2.0` included; `None` where it is no such thing.
/// Counts beyond 64 bits are the greatest.
pub(super) fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(n) if n.is_u64() => n.as_u64(),
        // A float out of range saturates.
        Value::Number(n) if n.is_f64() => {
            n.as_f64().filter(|float| *float >= 0.0 && float.fract() == 0.0).map(|float| float as u64)
        }
        _ => None,
    }
}

/// The compact text of a canonical value.
fn text(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a value has a text")
}

/// Whether two values are equal as JSON: `1` is `1.0`, and the order of members makes no difference.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || Decimal::new(a) == Decimal::new(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}
