//! Arguments in XML elements, converted to JSON one by one.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use super::Tool;
use super::machine::Text;
use crate::json_schema::{self, Json, Schema, Types, Values, quoted};
use crate::structural_tag::Marks;
use crate::{JsonOptions, Unenforceable};
use burn_dfa_common::matcher::TextMatcher;
use burn_dfa_common::{Error, Result};

/// Arguments, read byte by byte.
#[derive(Debug)]
pub(super) struct XmlScan {
    marks: Marks,
    /// `None` if it cannot be honored; then each argument may have any value.
    schema: Option<Schema>,
    /// Declared names that contain the end marker of names.
    longer: Vec<String>,
    /// The possible values of properties, from their schemas.
    known: BTreeMap<String, Values>,
    /// Whether it is before an element, in its name or in its value.
    state: ScanState,
    name: String,
    /// The beginning of an element, or an end of the arguments.
    between: TextMatcher,
    /// The end of a name.
    named: TextMatcher,
    /// The end of a value.
    close: TextMatcher,
    text: Vec<u8>,
    is_first: bool,
}

#[derive(Clone, Copy, Debug)]
enum ScanState {
    Between,
    Name,
    Value,
}

/// The result of a byte.
pub(super) enum Read {
    Nothing,
    /// JSON text of the arguments.
    Json(String),
    /// The end of the arguments, with their last JSON, and the number of the end text.
    End(String, usize),
}

impl XmlScan {
    /// Reads the arguments of a call of `tool`; one of `ends` follows them.
    pub(super) fn new(tool: &Tool, marks: Marks, ends: &[Text]) -> Result<Self> {
        let options = JsonOptions::new().with_unenforceable(Unenforceable::Ignore);
        let schema = json_schema::parse(&Json::of(&tool.schema())?, &options).ok();
        let mut longer = schema.as_ref().map(Schema::declared).unwrap_or_default();
        longer.retain(|name| name.contains(marks.named));
        let between = [marks.open].into_iter().chain(ends.iter().map(|end| &*end.text));
        Ok(Self {
            marks,
            longer,
            schema,
            known: BTreeMap::new(),
            state: ScanState::Between,
            name: String::new(),
            between: TextMatcher::new(between),
            named: TextMatcher::new([marks.named]),
            close: TextMatcher::new([marks.close]),
            text: Vec::new(),
            is_first: true,
        })
    }

    /// Reads a byte.
    pub(super) fn push(&mut self, byte: u8) -> Result<Read> {
        match self.state {
            ScanState::Between => {
                let found = self.between.push(byte, &mut self.text);
                if !self.text.iter().all(u8::is_ascii_whitespace) {
                    return Err(Error::output("there is text between the arguments of a call"));
                }
                self.text.clear();
                match found {
                    None => {}
                    Some(0) => self.state = ScanState::Name,
                    Some(end) => {
                        let last = if self.is_first { "{}" } else { "}" };
                        return Ok(Read::End(last.to_owned(), end - 1));
                    }
                }
            }
            ScanState::Name => {
                if self.named.push(byte, &mut self.text).is_some() {
                    let ended = [&self.text[..], self.marks.named.as_bytes()].concat();
                    if self.longer.iter().any(|name| name.as_bytes().starts_with(&ended)) {
                        self.text = ended;
                    } else {
                        self.name = taken(&mut self.text)?;
                        self.state = ScanState::Value;
                    }
                }
            }
            ScanState::Value => {
                if self.close.push(byte, &mut self.text).is_some() {
                    self.state = ScanState::Between;
                    let text = taken(&mut self.text)?;
                    return self.property(&text).map(Read::Json);
                }
            }
        }
        Ok(Read::Nothing)
    }

    /// A property as JSON, with the text before it in an object.
    fn property(&mut self, text: &str) -> Result<String> {
        let values = match self.known.get(&self.name) {
            Some(values) => *values,
            None => {
                let of = |schema: &Schema| schema.values_of(&self.name);
                let values = self.schema.as_ref().map_or(Values::ALL, of);
                self.known.insert(self.name.clone(), values);
                values
            }
        };
        let value = value(text, values).ok_or_else(|| {
            Error::output(format!("the argument {:?} of a call is not of its type", self.name))
        })?;
        let before = if std::mem::take(&mut self.is_first) { '{' } else { ',' };
        Ok(format!("{before}{}:{value}", string(&self.name)))
    }
}

/// The JSON value of a text.
fn value(text: &str, values: Values) -> Option<String> {
    let trimmed = text.trim_matches([' ', '\t', '\r', '\n']);
    let others = values.types.except(Types::STRING);
    if type_of(trimmed).meets(others) {
        return Some(trimmed.to_owned());
    }
    if !values.types.meets(Types::STRING) {
        return None;
    }
    // White space belongs to an unrestricted string, except the line breaks of the format.
    let free = text.strip_prefix('\n').unwrap_or(text);
    let free = free.strip_suffix('\n').unwrap_or(free);
    Some(string(if values.any_string { free } else { trimmed }))
}

/// The type of a JSON text; none if it is not JSON.
fn type_of(text: &str) -> Types {
    let is_json = || serde_json::from_str::<IgnoredAny>(text).is_ok();
    match text.bytes().next() {
        Some(b'{') if is_json() => Types::OBJECT,
        Some(b'[') if is_json() => Types::ARRAY,
        Some(b'{' | b'[' | b'"') | None => Types::NONE,
        Some(_) => Json::read(text).map_or(Types::NONE, |json| Types::of(&json)),
    }
}

fn string(text: &str) -> String {
    String::from_utf8_lossy(&quoted(text)).into_owned()
}

fn taken(text: &mut Vec<u8>) -> Result<String> {
    String::from_utf8(std::mem::take(text)).map_err(|_| Error::output("the output is not UTF-8"))
}
