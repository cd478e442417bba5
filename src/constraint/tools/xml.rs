//! Arguments in elements of XML, which become JSON one by one.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use super::Tool;
use super::machine::Text;
use super::scan::Scan;
use crate::constraint::json_schema::{Json, Types, quoted};
use crate::constraint::structural_tag::{Marks, Values, values_of};
use crate::error::{Error, Result};

/// Arguments that are read byte by byte.
#[derive(Debug)]
pub(super) struct XmlScan {
    marks: Marks,
    schema: Json,
    /// What was found out of the schemas of properties.
    known: BTreeMap<String, Values>,
    /// What is in front of an element, its name or its value.
    place: Place,
    name: String,
    scan: Scan,
    text: Vec<u8>,
    is_first: bool,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Between,
    Name,
    Value,
}

/// What a byte completes.
pub(super) enum Read {
    Nothing,
    /// JSON text that belongs to the arguments.
    Json(String),
    /// All of it, with the JSON that comes last, and the number of the text that ended it.
    End(String, usize),
}

impl XmlScan {
    pub(super) fn new(tool: &Tool, marks: Marks) -> Result<Self> {
        Ok(Self {
            marks,
            schema: Json::of(&tool.schema())?,
            known: BTreeMap::new(),
            place: Place::Between,
            name: String::new(),
            scan: Scan::default(),
            text: Vec::new(),
            is_first: true,
        })
    }

    /// Reads a byte; one of `ends` comes behind the arguments.
    pub(super) fn push(&mut self, byte: u8, ends: &[Text]) -> Result<Read> {
        match self.place {
            Place::Between => {
                let marks: Vec<&str> =
                    [self.marks.open].into_iter().chain(ends.iter().map(|end| &*end.text)).collect();
                let found = self.scan.push(byte, &marks, &mut self.text);
                if !self.text.iter().all(u8::is_ascii_whitespace) {
                    return Err(Error::output("there is text between the arguments of a call"));
                }
                self.text.clear();
                match found {
                    None => {}
                    Some(0) => self.place = Place::Name,
                    Some(end) => {
                        let last = if self.is_first { "{}" } else { "}" };
                        return Ok(Read::End(last.to_owned(), end - 1));
                    }
                }
            }
            Place::Name => {
                if self.scan.push(byte, &[self.marks.named], &mut self.text).is_some() {
                    self.name = taken(&mut self.text)?;
                    self.place = Place::Value;
                }
            }
            Place::Value => {
                if self.scan.push(byte, &[self.marks.close], &mut self.text).is_some() {
                    self.place = Place::Between;
                    let text = taken(&mut self.text)?;
                    return self.property(&text).map(Read::Json);
                }
            }
        }
        Ok(Read::Nothing)
    }

    /// A property as JSON, with what comes before it in an object.
    fn property(&mut self, text: &str) -> Result<String> {
        let values = match self.known.get(&self.name) {
            Some(values) => *values,
            None => {
                let values = values_of(&self.schema, &self.name);
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

/// The JSON that a text stands for.
fn value(text: &str, values: Values) -> Option<String> {
    let trimmed = text.trim_matches([' ', '\t', '\r', '\n']);
    let others = values.types.except(Types::STRING);
    if type_of(trimmed).meets(others) {
        return Some(trimmed.to_owned());
    }
    if !values.types.meets(Types::STRING) {
        return None;
    }
    // White space belongs to a string that may be any, but for the line breaks of the format.
    let free = text.strip_prefix('\n').unwrap_or(text);
    let free = free.strip_suffix('\n').unwrap_or(free);
    Some(string(if values.any_string { free } else { trimmed }))
}

/// The type of a JSON text; none where it is no JSON.
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
