//! Writes values like Python, for chat templates: `True`, `None`, `{'name': ['a', 1]}`.

use std::fmt::{self, Write};

use minijinja::Value;
use minijinja::value::ValueKind;

use super::budget::MAX_DEPTH;

/// Writes a value like `str`: a text unchanged, any other value as [`write_repr`] does.
pub(crate) fn write_str(value: &Value, to: &mut impl Write) -> fmt::Result {
    match value.as_str() {
        Some(text) => to.write_str(text),
        None if value.is_undefined() => Ok(()),
        None => write_repr(value, to),
    }
}

/// Writes a value like `repr`. Deeply nested values are an error.
pub(crate) fn write_repr(value: &Value, to: &mut impl Write) -> fmt::Result {
    write_nested(value, to, 0)
}

fn write_nested(value: &Value, to: &mut impl Write, level: usize) -> fmt::Result {
    if level > MAX_DEPTH {
        return Err(fmt::Error);
    }
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => to.write_str("None"),
        ValueKind::Bool => to.write_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::String => write_quoted(value.as_str().unwrap_or_default(), to),
        ValueKind::Seq | ValueKind::Iterable => {
            write_all(value, ['[', ']'], to, |item, to| write_nested(item, to, level + 1))
        }
        ValueKind::Map => write_all(value, ['{', '}'], to, |name, to| {
            write_nested(name, to, level + 1)?;
            to.write_str(": ")?;
            write_nested(&value.get_item(name).unwrap_or_default(), to, level + 1)
        }),
        _ => write!(to, "{value}"),
    }
}

fn write_all<W: Write>(
    value: &Value,
    [open, close]: [char; 2],
    to: &mut W,
    mut write: impl FnMut(&Value, &mut W) -> fmt::Result,
) -> fmt::Result {
    to.write_char(open)?;
    for (at, item) in value.try_iter().map_err(|_| fmt::Error)?.enumerate() {
        if at > 0 {
            to.write_str(", ")?;
        }
        write(&item, to)?;
    }
    to.write_char(close)
}

/// Writes single quotes, or double quotes if the text contains only single quotes.
fn write_quoted(text: &str, to: &mut impl Write) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    to.write_char(quote)?;
    for char in text.chars() {
        match char {
            '\n' => to.write_str("\\n")?,
            '\r' => to.write_str("\\r")?,
            '\t' => to.write_str("\\t")?,
            '\\' => to.write_str("\\\\")?,
            _ if char == quote => write!(to, "\\{char}")?,
            _ if char.is_ascii_control() => write!(to, "\\x{:02x}", char as u32)?,
            _ => to.write_char(char)?,
        }
    }
    to.write_char(quote)
}
