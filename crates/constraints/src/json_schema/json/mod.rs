//! JSON values with exact numbers, for schemas, the values in `enum` and `const`, and written
//! values.
//!
//! The numbers of a `serde_json::Value` have 64 bits. A [`Json`] holds every number as a
//! [`Decimal`]: read from a text, it keeps all digits; made from a `Value`, it holds the numbers of
//! the `Value`. Both are built by [`build`], which locates every error. Apart from derived
//! implementations nothing here recurses, because a hostile text may be nested as deep as it is
//! long.

mod build;
mod read;

use std::hash::{Hash, Hasher, RandomState};
use std::iter::{Chain, Map};
use std::slice;

use indexmap::IndexMap;

pub(crate) use self::build::Malformed;
use super::number::Decimal;
use crate::json_pointer;

/// A JSON value. Numbers are compared by value, not by spelling. Objects are equal if their members
/// are equal and in the same order; [`is_same`](Json::is_same) ignores the order.
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
pub(crate) struct Members {
    /// All members, if there are at most [`FEW`](Self::FEW).
    few: Vec<(String, Json)>,
    /// All members, if there are more.
    many: IndexMap<String, Json, RandomState>,
}

/// The name and the value of each member.
pub(crate) type Iter<'a> = Chain<
    Map<slice::Iter<'a, (String, Json)>, fn(&'a (String, Json)) -> (&'a String, &'a Json)>,
    indexmap::map::Iter<'a, String, Json>,
>;

impl Members {
    /// Most objects of a schema have few members and many lookups: comparing names is faster than
    /// hashing.
    const FEW: usize = 8;

    /// Adds a member, and returns whether its name is new.
    fn insert(&mut self, name: String, member: Json) -> bool {
        if self.many.is_empty() {
            if let Some((_, known)) = self.few.iter_mut().find(|(known, _)| *known == name) {
                *known = member;
                return false;
            }
            if self.few.len() < Self::FEW {
                self.few.push((name, member));
                return true;
            }
            self.many = self.few.drain(..).collect();
        }
        self.many.insert(name, member).is_none()
    }

    /// Replaces the value of the last member.
    fn set_last(&mut self, member: Json) {
        let few = self.few.last_mut().map(|(_, last)| last);
        if let Some(last) = few.or_else(|| self.many.last_mut().map(|(_, last)| last)) {
            *last = member;
        }
    }

    /// The name of the last member.
    fn last_name(&self) -> Option<&String> {
        self.few.last().map(|(name, _)| name).or_else(|| self.many.last().map(|(name, _)| name))
    }

    /// The member of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        if self.many.is_empty() {
            return self.few.iter().find(|(known, _)| *known == name).map(|(_, member)| member);
        }
        self.many.get(name)
    }

    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.iter().map(|(name, _)| name)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Json> {
        self.iter().map(|(_, member)| member)
    }

    pub(crate) fn iter(&self) -> Iter<'_> {
        let few: slice::Iter<'_, (String, Json)> = self.few.iter();
        few.map((|(name, member)| (name, member)) as fn(&(String, Json)) -> (&String, &Json))
            .chain(&self.many)
    }

    /// The values alone.
    fn take_values(&mut self) -> impl Iterator<Item = Json> {
        let Self { few, many } = std::mem::take(self);
        few.into_iter().chain(many).map(|(_, member)| member)
    }
}

impl FromIterator<(String, Json)> for Members {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(all: I) -> Self {
        let mut members = Self::default();
        for (name, member) in all {
            members.insert(name, member);
        }
        members
    }
}

impl<'a> IntoIterator for &'a Members {
    type Item = (&'a String, &'a Json);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other)
    }
}

impl Eq for Members {}

impl Hash for Members {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.iter().for_each(|member| member.hash(state));
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

    /// The target of a JSON pointer.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Json> {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return None;
        }
        json_pointer::tokens(pointer).try_fold(self, |json, token| match json {
            Self::Array(items) => items.get(token.parse::<usize>().ok()?),
            other => other.get(&token),
        })
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

    /// The value of a keyword such as `minLength`: a nonnegative integer, possibly spelled `2.0`;
    /// `None` for other values. A count beyond 64 bits becomes the greatest of 64 bits.
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
        enum Fragment<'a> {
            Value(&'a Json),
            Name(&'a str),
            Punctuation(char),
        }
        let mut text = String::new();
        let mut rest = vec![Fragment::Value(self)];
        while let Some(fragment) = rest.pop() {
            match fragment {
                Fragment::Punctuation(character) => text.push(character),
                Fragment::Name(name) => text.extend([&quoted(name), ":"]),
                Fragment::Value(Self::Null) => text.push_str("null"),
                Fragment::Value(Self::Boolean(value)) => text.push_str(if *value { "true" } else { "false" }),
                Fragment::Value(Self::Number(number)) => text.push_str(&number.short_text()),
                Fragment::Value(Self::String(string)) => text.push_str(&quoted(string)),
                Fragment::Value(Self::Array(items)) => {
                    text.push('[');
                    rest.push(Fragment::Punctuation(']'));
                    for (at, item) in items.iter().enumerate().rev() {
                        rest.push(Fragment::Value(item));
                        rest.extend((at > 0).then_some(Fragment::Punctuation(',')));
                    }
                }
                Fragment::Value(Self::Object(members)) => {
                    text.push('{');
                    rest.push(Fragment::Punctuation('}'));
                    for (left, (name, member)) in (1..).zip(members.iter().rev()) {
                        rest.extend([Fragment::Value(member), Fragment::Name(name)]);
                        rest.extend((left < members.len()).then_some(Fragment::Punctuation(',')));
                    }
                }
            }
        }
        text
    }

    /// Moves its items or members to `rest`.
    fn take_children(&mut self, rest: &mut Vec<Json>) {
        match self {
            Self::Array(items) => rest.append(items),
            Self::Object(members) => rest.extend(members.take_values()),
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
        self.take_children(&mut rest);
        while let Some(mut child) = rest.pop() {
            child.take_children(&mut rest);
        }
    }
}
