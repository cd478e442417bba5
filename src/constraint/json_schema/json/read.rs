//! JSON text, read with every digit of its numbers.

use json_event_parser::{JsonEvent, SliceJsonParser};

use super::build::Builder;
use super::{Json, Malformed};

impl Json {
    /// The value of a text (RFC 8259). A byte order mark in front is skipped, as the standard allows. An object with two
    /// members of one name is refused, since implementations do not agree on what it means.
    ///
    /// # Errors
    /// Where the text is not JSON, or a number has too many digits.
    pub(crate) fn read(text: &str) -> Result<Self, Malformed> {
        let mut parser = SliceJsonParser::new(text.as_bytes());
        let mut builder = Builder::default();
        loop {
            let event = parser.parse_next().map_err(|error| {
                let place = error.location().start;
                let (line, column) = (place.line + 1, place.column + 1);
                builder.malformed(format!(
                    "it is not JSON: at line {line}, column {column} (byte {}): {}",
                    place.offset,
                    error.message()
                ))
            })?;
            match event {
                JsonEvent::Null => builder.value(Self::Null),
                JsonEvent::Boolean(value) => builder.value(Self::Boolean(value)),
                JsonEvent::Number(text) => builder.number(&text)?,
                JsonEvent::String(text) => builder.value(Self::String(text.into_owned())),
                JsonEvent::StartArray => builder.array(),
                JsonEvent::StartObject => builder.object(),
                JsonEvent::ObjectKey(name) => builder.name(name.into_owned())?,
                JsonEvent::EndArray | JsonEvent::EndObject => builder.end(),
                JsonEvent::Eof => return Ok(builder.finish().unwrap_or(Self::Null)),
            }
        }
    }
}
