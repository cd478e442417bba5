//! Splits a JSON text into the texts of its parts. Numbers keep all digits, whereas a
//! `serde_json::Value` rounds them to 64 bits.

use std::collections::BTreeMap;

use json_event_parser::{JsonEvent, SliceJsonParser, WriterJsonSerializer};

use crate::output::Result;

/// The parts of a value, each as compact text.
pub enum Parts {
    Array(Vec<String>),
    Object(Members),
    Scalar,
}

/// The members of an object by name; the last of equal names wins.
pub type Members = BTreeMap<String, String>;

/// Splits `text`.
///
/// # Errors
/// If `text` is not JSON.
pub fn parts(text: &str) -> Result<Parts> {
    let mut parser = SliceJsonParser::new(text.as_bytes());
    let mut parts = match parser.parse_next()? {
        JsonEvent::StartArray => Parts::Array(Vec::new()),
        JsonEvent::StartObject => Parts::Object(Members::new()),
        _ => Parts::Scalar,
    };
    let mut name = String::new();
    let mut part = WriterJsonSerializer::new(Vec::new());
    let mut depth = 0;
    loop {
        let event = parser.parse_next()?;
        match event {
            JsonEvent::Eof => return Ok(parts),
            JsonEvent::EndArray | JsonEvent::EndObject if depth == 0 => continue,
            JsonEvent::ObjectKey(key) if depth == 0 => {
                name = key.into_owned();
                continue;
            }
            JsonEvent::StartArray | JsonEvent::StartObject => depth += 1,
            JsonEvent::EndArray | JsonEvent::EndObject => depth -= 1,
            _ => {}
        }
        part.serialize_event(event)?;
        if depth == 0 {
            let done = std::mem::replace(&mut part, WriterJsonSerializer::new(Vec::new()));
            let text = String::from_utf8(done.finish()?)?;
            match &mut parts {
                Parts::Array(items) => items.push(text),
                Parts::Object(members) => {
                    members.insert(std::mem::take(&mut name), text);
                }
                Parts::Scalar => {}
            }
        }
    }
}

/// The items of an array.
pub fn items(text: &str) -> Option<Vec<String>> {
    match parts(text) {
        Ok(Parts::Array(items)) => Some(items),
        _ => None,
    }
}

/// The members of an object.
pub fn members(text: &str) -> Option<Members> {
    match parts(text) {
        Ok(Parts::Object(members)) => Some(members),
        _ => None,
    }
}

/// A string.
pub fn string(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}
