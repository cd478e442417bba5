//! Values as Python writes them, for chat templates: `True`, `None`, `{'name': ['a', 1]}`.

use std::fmt::{self, Write};

use minijinja::Value;
use minijinja::value::ValueKind;

/// Writes a value as `str` gives it: a text as it is, all else as [`write_repr`].
pub(crate) fn write_str(value: &Value, to: &mut impl Write) -> fmt::Result {
    match value.as_str() {
        Some(text) => to.write_str(text),
        None if value.is_undefined() => Ok(()),
        None => write_repr(value, to),
    }
}

/// Writes a value as `repr` gives it.
pub(crate) fn write_repr(value: &Value, to: &mut impl Write) -> fmt::Result {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => to.write_str("None"),
        ValueKind::Bool => to.write_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::String => write_quoted(value.as_str().unwrap_or_default(), to),
        ValueKind::Seq | ValueKind::Iterable => {
            write_all(value, ['[', ']'], to, |item, to| write_repr(item, to))
        }
        ValueKind::Map => write_all(value, ['{', '}'], to, |name, to| {
            write_repr(name, to)?;
            to.write_str(": ")?;
            write_repr(&value.get_item(name).unwrap_or_default(), to)
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

/// In single quotes, or in double ones where only single ones occur.
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
