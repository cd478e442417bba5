//! JSON text, read with every digit of its numbers.

use json_event_parser::{JsonEvent, SliceJsonParser};

use super::build::Builder;
use super::{Json, Malformed};

impl Json {
    /// The value of a text (RFC 8259). A byte order mark at the start is skipped, as the standard
    /// allows. An object with duplicate names is rejected, because implementations do not agree on
    /// its meaning.
    ///
    /// # Errors
    /// The text is not JSON, a number has too many digits, or a string has half of a surrogate
    /// pair.
    pub(crate) fn read(text: &str) -> Result<Self, Malformed> {
        let mut parser = SliceJsonParser::new(text.as_bytes());
        let mut builder = Builder::default();
        loop {
            let event = parser.parse_next().map_err(|error| {
                let start = error.location().start;
                // The parser reads the bytes after such an escape as the other half, and may miss
                // the end of the string.
                let is_cause = |half: &usize| stops_at(text, start.offset as usize, *half);
                if let Some(half) = lone_surrogate(text).filter(is_cause) {
                    return builder.malformed(half_pair(text, half));
                }
                let (line, column) = (start.line + 1, start.column + 1);
                builder.malformed(format!(
                    "it is not JSON: at line {line}, column {column} (byte {}): {}",
                    start.offset,
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

/// The first byte of an escape of half a surrogate pair, such as `\ud800`, without its other half
/// in a string.
fn lone_surrogate(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let unit = |at: usize| {
        let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        at += match (unit(at), unit(at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => return Some(at),
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    None
}

/// Whether a parser may stop at the byte `position` because of the escape at the byte `half`: the
/// escape comes first, or it is in the string that begins at `position`.
fn stops_at(text: &str, position: usize, half: usize) -> bool {
    let Some(mut string) = text.get(position..half).and_then(|before| before.strip_prefix('"')) else {
        return half <= position;
    };
    while let Some(at) = string.find(['"', '\\']) {
        if string.as_bytes()[at] == b'"' {
            return false;
        }
        string = string.get(at + 2..).unwrap_or_default();
    }
    true
}

/// The error for half of a surrogate pair at this byte.
fn half_pair(text: &str, at: usize) -> String {
    let before = &text[..at];
    let line = 1 + before.matches('\n').count();
    let column = 1 + before[before.rfind('\n').map_or(0, |end| end + 1)..].chars().count();
    format!(
        "at line {line}, column {column} (byte {at}): the escape `{}` is half of a surrogate pair, and no character: write both \
         halves, or the character itself",
        &text[at..at + 6]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_surrogate_pair_is_refused_where_it_stands() {
        let texts = [
            (r#"{"enum": ["\ud800"]}"#, "/enum/0", r"\ud800", 11),
            (r#"{"enum": ["a", "\udc00 and so on, and so on"]}"#, "/enum/1", r"\udc00", 16),
            (r#"{"const": "\ud83d\ud83d\ude00"}"#, "/const", r"\ud83d", 11),
            (r#"{"const": "\uD83D\u0041"}"#, "/const", r"\uD83D", 11),
            (r#"{"const": "\\\ud800"}"#, "/const", r"\ud800", 13),
            (r#"{"properties": {"\udfff": {}}}"#, "/properties", r"\udfff", 17),
            (r#""\ud800"#, "", r"\ud800", 1),
        ];
        for (text, pointer, escape, byte) in texts {
            let Err(malformed) = Json::read(text) else { panic!("{text}") };
            assert_eq!(malformed.pointer, pointer, "{text}");
            let location = format!("at line 1, column {} (byte {byte}): the escape `{escape}`", byte + 1);
            assert!(malformed.reason.starts_with(&location), "{text}: {}", malformed.reason);
        }
        let below = Json::read("{\n \"\u{e9}\": \"\\ud800\"}").unwrap_err();
        assert!(below.reason.starts_with("at line 2, column 8 (byte 10)"), "{}", below.reason);
        // An earlier error comes first, and whole pairs and escaped escapes are valid.
        let before = Json::read(r#"{"a": x, "b": "\ud800"}"#).unwrap_err();
        assert!(before.reason.starts_with("it is not JSON"), "{}", before.reason);
        assert_eq!(Json::read(r#""\ud83d\ude00\\ud800""#), Ok(Json::String("\u{1F600}\\ud800".into())));
    }
}
