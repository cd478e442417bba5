//! The texts of the styles.

use super::super::format::Style;
use crate::json_schema::Types;

/// How a style writes properties.
#[derive(Clone, Copy)]
pub(super) struct Markup {
    /// The text before a name.
    pub(super) open: &'static str,
    /// The text after a name.
    pub(super) named: &'static str,
    /// White space may follow this text, and then the begin of a value.
    pub(super) value: Option<&'static str>,
    /// The text after a value.
    pub(super) close: &'static str,
    pub(super) kinds: Kinds,
}

/// The type information in a style.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kinds {
    /// Nothing.
    None,
    /// Whether it is a string.
    String,
    /// The type.
    Type,
    /// Whether it is text, JSON, a list or a dictionary; the latter two are XML again.
    Nested,
}

impl Markup {
    /// The markup of a supported style of XML.
    pub(super) fn of(style: Style) -> Option<Self> {
        let plain = Self { open: "", named: "", value: None, close: "", kinds: Kinds::None };
        Some(match style {
            Style::QwenXml => Self { open: "<parameter=", named: ">", close: "</parameter>", ..plain },
            Style::MinimaxXml => {
                Self { open: "<parameter name=\"", named: "\">", close: "</parameter>", ..plain }
            }
            Style::DeepseekXml => Self {
                open: "<｜DSML｜parameter name=\"",
                named: "\" string=\"",
                close: "</｜DSML｜parameter>",
                kinds: Kinds::String,
                ..plain
            },
            Style::DeepseekV41Xml => Self {
                open: "<｜DSML｜ parameter name=\"",
                named: "\" string=\"",
                close: "</｜DSML｜ parameter>",
                kinds: Kinds::String,
                ..plain
            },
            Style::GlmXml => Self {
                open: "<arg_key>",
                named: "</arg_key>",
                value: Some("<arg_value>"),
                close: "</arg_value>",
                ..plain
            },
            Style::CohereXml => Self {
                open: "<cofl:value name=\"",
                named: "\" type=\"",
                close: "</cofl:value>",
                kinds: Kinds::Nested,
                ..plain
            },
            Style::KimiK3Xml => Self {
                open: "<|open|>argument key=\"",
                named: "\" type=\"",
                close: "<|close|>argument<|sep|>",
                kinds: Kinds::Type,
                ..plain
            },
            Style::Json | Style::MinimaxM3Xml => return None,
        })
    }

    /// The escaped characters of names, with their escapes.
    pub(super) fn escapes(&self) -> &'static [(u8, &'static str)] {
        match self.kinds {
            Kinds::Nested => &[(b'&', "&amp;"), (b'<', "&lt;"), (b'>', "&gt;"), (b'"', "&quot;")],
            Kinds::Type => &[(b'&', "&amp;"), (b'"', "&quot;")],
            Kinds::None | Kinds::String => &[],
        }
    }

    /// A name, as it is written.
    pub(super) fn name(&self, name: &str) -> Vec<u8> {
        let written = |byte: u8| match self.escapes().iter().find(|(escaped, _)| *escaped == byte) {
            Some((_, text)) => text.as_bytes().to_vec(),
            None => vec![byte],
        };
        name.bytes().flat_map(written).collect()
    }

    /// Whether the end marker of a name occurs before the end of the name `written`.
    pub(super) fn ends_within(&self, written: &[u8]) -> bool {
        let named = self.named.as_bytes();
        let whole = [written, named].concat();
        whole.windows(named.len().max(1)).position(|part| part == named).is_some_and(|at| at < written.len())
    }
}

/// The names of types in JSON.
pub(super) const TYPES: [(&str, Types); 7] = [
    ("string", Types::STRING),
    ("number", Types::NUMBER),
    ("integer", Types::INTEGER),
    ("boolean", Types::BOOLEAN),
    ("null", Types::NULL),
    ("object", Types::OBJECT),
    ("array", Types::ARRAY),
];
