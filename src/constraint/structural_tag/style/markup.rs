//! The texts of the styles.

use super::super::format::Style;
use crate::constraint::json_schema::Types;

/// How a style writes properties.
#[derive(Clone, Copy)]
pub(super) struct Markup {
    /// In front of a name.
    pub(super) open: &'static str,
    /// Behind a name.
    pub(super) named: &'static str,
    /// White space may come behind this, and then what begins a value.
    pub(super) value: Option<&'static str>,
    /// Behind a value.
    pub(super) close: &'static str,
    pub(super) kinds: Kinds,
}

/// What a style says of the types of values.
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
    /// There are no elements: it is JSON.
    Json,
}

impl Markup {
    /// Of a style that is offered.
    pub(super) fn of(style: Style) -> Option<Self> {
        let plain = Self { open: "", named: "", value: None, close: "", kinds: Kinds::None };
        Some(match style {
            Style::Json => Self { kinds: Kinds::Json, ..plain },
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
            Style::MinimaxM3Xml => return None,
        })
    }

    /// A name, as it is written.
    pub(super) fn name(&self, name: &str) -> String {
        match self.kinds {
            Kinds::Nested => {
                name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
            }
            _ => name.to_owned(),
        }
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
