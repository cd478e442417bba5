//! Writes values as text.

use super::json::Json;
use super::options::{JsonOptions, Separators, Whitespace};
use super::string;

/// The text of a value at nesting depth `level`, with the least white space allowed by the options.
pub(super) fn write(value: &Json, options: &JsonOptions, level: usize) -> Vec<u8> {
    let mut writer = Writer { options, text: Vec::new() };
    writer.value(value, level);
    writer.text
}

/// A string's text, quotes included.
pub(super) fn quoted(text: &str, options: &JsonOptions) -> Vec<u8> {
    let mut writer = Writer { options, text: Vec::new() };
    writer.string(text);
    writer.text
}

/// Punctuation with the white space of the options.
pub(super) struct Punctuation<'a> {
    separators: &'a Separators,
    indent: Option<usize>,
    spaced: bool,
}

impl<'a> Punctuation<'a> {
    pub(super) fn of(options: &'a JsonOptions) -> Self {
        let (indent, spaced) = match options.whitespace {
            Whitespace::Spaced => (None, true),
            Whitespace::Pretty(indent) => (Some(indent), true),
            _ => (None, false),
        };
        Self { separators: &options.separators, indent, spaced }
    }

    /// Between two parts on `level`.
    pub(super) fn comma(&self, level: usize, text: &mut Vec<u8>) {
        text.extend_from_slice(self.separators.item.as_bytes());
        if self.indent.is_some() {
            self.line(level, text);
        } else if self.spaced {
            text.push(b' ');
        }
    }

    pub(super) fn colon(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.separators.key.as_bytes());
        if self.spaced {
            text.push(b' ');
        }
    }

    /// A new line on `level`, if the text is indented.
    pub(super) fn line(&self, level: usize, text: &mut Vec<u8>) {
        if let Some(indent) = self.indent {
            text.push(b'\n');
            text.extend(std::iter::repeat_n(b' ', level * indent));
        }
    }
}

struct Writer<'a> {
    options: &'a JsonOptions,
    text: Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Json, level: usize) {
        match value {
            Json::Null => self.text.extend_from_slice(b"null"),
            Json::Boolean(value) => self.text.extend_from_slice(if *value { b"true" } else { b"false" }),
            Json::Number(number) => self.text.extend_from_slice(number.text().as_bytes()),
            Json::String(text) => self.string(text),
            Json::Array(items) => {
                let parts = items.iter().map(|item| (None, item));
                self.parts([b'[', b']'], items.is_empty(), parts, level);
            }
            Json::Object(members) => {
                let parts = members.iter().map(|(name, member)| (Some(name), member));
                self.parts([b'{', b'}'], members.is_empty(), parts, level);
            }
        }
    }

    fn parts<'v>(
        &mut self,
        [open, close]: [u8; 2],
        empty: bool,
        parts: impl Iterator<Item = (Option<&'v String>, &'v Json)>,
        level: usize,
    ) {
        let punctuation = Punctuation::of(self.options);
        self.text.push(open);
        for (at, (name, value)) in parts.enumerate() {
            if at == 0 {
                punctuation.line(level + 1, &mut self.text);
            } else {
                punctuation.comma(level + 1, &mut self.text);
            }
            if let Some(name) = name {
                self.string(name);
                punctuation.colon(&mut self.text);
            }
            self.value(value, level + 1);
        }
        if !empty {
            punctuation.line(level, &mut self.text);
        }
        self.text.push(close);
    }

    fn string(&mut self, text: &str) {
        self.text.push(b'"');
        string::write(text, self.options.spelling(), &mut self.text);
        self.text.push(b'"');
    }
}
