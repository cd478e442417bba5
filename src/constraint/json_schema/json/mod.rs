//! JSON values with exact numbers, for schemas, the values in `enum` and `const`, and the values that are written.
//!
//! The numbers of a `serde_json::Value` have 64 bits. A [`Json`] holds every number as a [`Decimal`], so that one that is
//! read from a text keeps all digits; one that is made from a `Value` holds the numbers of that. Both are built by
//! [`build`], which names the place of whatever is refused. Apart from derived implementations nothing here recurses,
//! since a hostile text may be nested as deep as it is long.

mod build;
mod read;

use std::hash::{Hash, Hasher, RandomState};

use indexmap::IndexMap;

pub(crate) use self::build::Malformed;
use super::number::Decimal;

/// A JSON value. Numbers are compared by value, not by spelling. Objects are equal if their members are equal and in the
/// same order; [`is_same`](Json::is_same) ignores the order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Json {
    Null,
    Boolean(bool),
    Number(Decimal),
    String(String),
    Array(Vec<Json>),
    Object(Members),
}

/// The members of an object, in their order, each name once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members(IndexMap<String, Json, RandomState>);

impl Members {
    /// Adds a member, and returns whether its name is new.
    fn insert(&mut self, name: String, member: Json) -> bool {
        self.0.insert(name, member).is_none()
    }

    /// The member of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        // A schema with few keywords is asked for many: to compare names is faster than to hash them.
        const FEW: usize = 8;
        if self.0.len() <= FEW {
            return self.0.iter().find(|(known, _)| *known == name).map(|(_, member)| member);
        }
        self.0.get(name)
    }

    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Json> {
        self.0.values()
    }

    pub(crate) fn iter(&self) -> indexmap::map::Iter<'_, String, Json> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Members {
    type Item = (&'a String, &'a Json);
    type IntoIter = indexmap::map::Iter<'a, String, Json>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_slice() == other.0.as_slice()
    }
}

impl Eq for Members {}

impl Hash for Members {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_slice().hash(state);
    }
}

impl Json {
    /// The member of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Object(members) => members.get(name),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether it is an array or an object.
    pub(crate) fn is_nested(&self) -> bool {
        matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// Whether it is equal as JSON: the order of members makes no difference.
    pub(crate) fn is_same(&self, other: &Json) -> bool {
        match (self, other) {
            (Self::Array(a), Self::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b))
            }
            (Self::Object(a), Self::Object(b)) => {
                a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| a.is_same(b)))
            }
            _ => self == other,
        }
    }

    /// The value of a keyword such as `minLength`: an integer that is not negative, which may be spelled `2.0`; `None` for
    /// other values. A count beyond 64 bits is taken for the greatest of 64 bits.
    pub(crate) fn as_count(&self) -> Option<u64> {
        match self {
            Self::Number(number) => number.as_count(),
            _ => None,
        }
    }

    /// Whether arrays and objects are nested more than `depth` deep.
    pub(crate) fn is_deeper_than(&self, depth: usize) -> bool {
        let mut rest = vec![(self, 0)];
        while let Some((value, level)) = rest.pop() {
            match value {
                Self::Array(_) | Self::Object(_) if level == depth => return true,
                Self::Array(items) => rest.extend(items.iter().map(|item| (item, level + 1))),
                Self::Object(members) => rest.extend(members.values().map(|member| (member, level + 1))),
                _ => {}
            }
        }
        false
    }

    /// The compact text.
    pub(crate) fn text(&self) -> String {
        enum Part<'a> {
            Value(&'a Json),
            Name(&'a str),
            Punctuation(char),
        }
        let mut text = String::new();
        let mut rest = vec![Part::Value(self)];
        while let Some(part) = rest.pop() {
            match part {
                Part::Punctuation(character) => text.push(character),
                Part::Name(name) => text.extend([&quoted(name), ":"]),
                Part::Value(Self::Null) => text.push_str("null"),
                Part::Value(Self::Boolean(value)) => text.push_str(if *value { "true" } else { "false" }),
                Part::Value(Self::Number(number)) => text.push_str(&number.short_text()),
                Part::Value(Self::String(string)) => text.push_str(&quoted(string)),
                Part::Value(Self::Array(items)) => {
                    text.push('[');
                    rest.push(Part::Punctuation(']'));
                    for (at, item) in items.iter().enumerate().rev() {
                        rest.push(Part::Value(item));
                        rest.extend((at > 0).then_some(Part::Punctuation(',')));
                    }
                }
                Part::Value(Self::Object(members)) => {
                    text.push('{');
                    rest.push(Part::Punctuation('}'));
                    for (at, (name, member)) in members.iter().enumerate().rev() {
                        rest.extend([Part::Value(member), Part::Name(name)]);
                        rest.extend((at > 0).then_some(Part::Punctuation(',')));
                    }
                }
            }
        }
        text
    }

    /// Moves what it holds to `rest`.
    fn take_parts(&mut self, rest: &mut Vec<Json>) {
        match self {
            Self::Array(items) => rest.append(items),
            Self::Object(members) => rest.extend(std::mem::take(&mut members.0).into_values()),
            _ => {}
        }
    }
}

/// The JSON text of a string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// However deep it is nested.
impl Drop for Json {
    fn drop(&mut self) {
        let mut rest = Vec::new();
        self.take_parts(&mut rest);
        while let Some(mut part) = rest.pop() {
            part.take_parts(&mut rest);
        }
    }
}
