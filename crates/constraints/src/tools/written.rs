//! Calls as text in the format of a model: for prompts, and to distinguish a call from other text.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Value};

use super::format::{Layout, Wire};
use super::input::Arguments;
use super::{ToolFormat, Tools, harmony};
use crate::Style;
use crate::structural_tag::marks_of;

impl ToolFormat {
    /// Calls as a model of this format writes them, each a name and a JSON object of arguments.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::ToolFormat;
    /// use serde_json::json;
    ///
    /// let calls = [("weather", json!({"city": "Bern"}))];
    /// assert_eq!(
    ///     ToolFormat::Plain.write(&calls),
    ///     r#"{"name": "weather", "arguments": {"city": "Bern"}}"#
    /// );
    /// ```
    pub fn write(self, calls: &[(&str, Value)]) -> String {
        let style = self.wire().map_or(Style::Json, |wire| wire.style);
        let calls: Vec<_> = calls.iter().map(|(name, value)| (*name, arguments(style, value))).collect();
        self.write_raw(&calls)
    }

    /// The same, of arguments as text.
    pub(super) fn write_raw(self, calls: &[(&str, String)]) -> String {
        let Some(Wire { layout, before, between, after, .. }) = self.wire() else {
            return harmony::write(calls);
        };
        let calls: Vec<String> = calls
            .iter()
            .map(|(name, arguments)| format!("{before}{name}{between}{arguments}{after}"))
            .collect();
        match layout {
            Layout::Apart => calls.join("\n"),
            Layout::Either { .. } if calls.len() == 1 => calls.concat(),
            Layout::Section { open, separator, close } | Layout::Either { open, separator, close } => {
                format!("{open}{}{close}", calls.join(separator))
            }
        }
    }
}

impl Tools {
    /// The beginnings of answers that are only calls; `None` in Harmony, in which a message may
    /// come first.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::{Tool, ToolFormat, Tools};
    ///
    /// let tools = Tools::new([Tool::new("now")])?.with_format(ToolFormat::Llama31);
    /// assert_eq!(tools.beginnings(), Some(vec![r#"{"name": "now", "parameters": "#.to_owned()]));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn beginnings(&self) -> Option<Vec<String>> {
        let Wire { layout, before, between, style, .. } = self.format.wire()?;
        let opens: &[&str] = match layout {
            Layout::Apart => &[""],
            Layout::Section { open, .. } => &[open],
            Layout::Either { open, .. } => &["", open],
        };
        let of_tool = |tool: &super::Tool| {
            let within = Arguments::new(tool.schema(), tool.input.as_ref(), style).before;
            let name = tool.name.clone();
            opens.iter().map(move |open| format!("{open}{before}{name}{between}{within}"))
        };
        Some(self.tools.iter().flat_map(of_tool).collect())
    }
}

/// Arguments in a style.
fn arguments(style: Style, value: &Value) -> String {
    match (marks_of(style), value) {
        (Some(marks), Value::Object(fields)) => {
            let one = |(name, value): (&String, &Value)| {
                let text = value.as_str().map_or_else(|| spaced(value), str::to_owned);
                let (before, after) = marks.around(name);
                format!("{before}{text}{after}")
            };
            fields.iter().map(one).collect::<Vec<_>>().join("\n")
        }
        _ => spaced(value),
    }
}

/// JSON with a space after each comma and colon.
pub(super) fn spaced(value: &Value) -> String {
    let mut text = Vec::new();
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, Spaced));
    match written {
        Ok(()) => String::from_utf8_lossy(&text).into_owned(),
        // A value is always written to memory.
        Err(_) => value.to_string(),
    }
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

/// An object without properties.
pub(super) fn nothing() -> Value {
    Value::Object(Map::new())
}
