//! Attributes of rules: `name[lazy, max_chars=10, capture="x", temperature=0.7] ::= …`.
//!
//! `lazy`, `max_chars` and `max_tokens` change the language of the rule and are kept. `capture`,
//! its variants and `temperature` are instructions for a host and do not change the language: they
//! are checked and ignored.

use crate::grammar::builder::MAX_TOKENS;
use crate::grammar::cursor::Cursor;
use burn_dfa_common::Result;

/// The attributes that change the language of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    /// A text of the rule ends as soon as it can.
    pub(super) lazy: bool,
    /// Most characters of a text of the rule.
    pub(super) max_chars: Option<usize>,
    /// Most tokens that begin in the rule, at least 1.
    pub(super) max_tokens: Option<u32>,
}

/// The text after attributes and their opening bracket; `None` if they are not closed on their
/// line.
pub(super) fn after(text: &str) -> Option<&str> {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(&text[at + 1..]),
            '\r' | '\n' => return None,
            _ => {}
        }
    }
    None
}

/// Reads the attributes, possibly none, of the rule with its name at `offset`.
pub(super) fn read(cursor: &mut Cursor, offset: usize) -> Result<Attributes> {
    let mut attributes = Attributes::default();
    let mut seen = Vec::new();
    if !cursor.eat("[") {
        return Ok(attributes);
    }
    loop {
        cursor.space(false);
        let at = cursor.at;
        let name = cursor.eat_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if seen.contains(&name) {
            return Err(cursor.error(at, format!("the attribute `{name}` stands twice")));
        }
        seen.push(name);
        attribute(cursor, name, at, &mut attributes)?;
        cursor.space(false);
        if !cursor.eat(",") {
            break;
        }
    }
    cursor.expect("]", "after the attributes of a rule")?;
    if seen.contains(&"capture_hidden_body_rule_id") != seen.contains(&"capture_hidden_marker_rule_id") {
        let reason =
            "`capture_hidden_body_rule_id` and `capture_hidden_marker_rule_id` stand together or not at all";
        return Err(cursor.error(offset, reason));
    }
    Ok(attributes)
}

fn attribute(cursor: &mut Cursor, name: &str, at: usize, attributes: &mut Attributes) -> Result<()> {
    match name {
        "lazy" => attributes.lazy = true,
        "max_chars" => attributes.max_chars = Some(integer(cursor)? as usize),
        "temperature" => temperature(cursor)?,
        "stop_capture" => string(cursor)?,
        "capture" => {
            cursor.space(false);
            if cursor.peek() == Some('=') {
                string(cursor)?;
            }
        }
        "capture_hidden_suffix_bytes" | "capture_hidden_stop_bytes" => {
            if integer(cursor)? == 0 {
                return Err(cursor.error(at, format!("`{name}` is a number of bytes from 1 on")));
            }
        }
        "capture_hidden_body_rule_id" | "capture_hidden_marker_rule_id" => {
            integer(cursor)?;
        }
        "max_tokens" => {
            let max_tokens = integer(cursor)?;
            if !(1..=MAX_TOKENS).contains(&max_tokens) {
                return Err(cursor.error(at, format!("`max_tokens` is a number from 1 to {MAX_TOKENS}")));
            }
            attributes.max_tokens = Some(max_tokens);
        }
        "" => {
            return Err(
                cursor.error(at, format!("expected the name of an attribute, found {}", cursor.found()))
            );
        }
        _ => return Err(cursor.error(at, format!("no attribute is called `{name}`"))),
    }
    Ok(())
}

fn value(cursor: &mut Cursor) -> Result<()> {
    cursor.space(false);
    cursor.expect("=", "before the value of an attribute")?;
    cursor.space(false);
    Ok(())
}

fn integer(cursor: &mut Cursor) -> Result<u32> {
    value(cursor)?;
    let at = cursor.at;
    let number = cursor.number()?;
    if number > i32::MAX.unsigned_abs() {
        return Err(cursor.error(at, format!("an attribute is at most {}", i32::MAX)));
    }
    Ok(number)
}

/// A text without escapes.
fn string(cursor: &mut Cursor) -> Result<()> {
    value(cursor)?;
    let at = cursor.at;
    cursor.expect("\"", "before the name of a capture")?;
    let text = cursor.eat_while(|c| !matches!(c, '"' | '\\' | '\r' | '\n'));
    cursor.expect("\"", "after the name of a capture")?;
    if text.is_empty() {
        return Err(cursor.error(at, "the name of a capture is empty"));
    }
    Ok(())
}

fn temperature(cursor: &mut Cursor) -> Result<()> {
    value(cursor)?;
    let at = cursor.at;
    let text = cursor.eat_while(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    match text.parse::<f64>() {
        Ok(number) if (0.0..=f64::from(f32::MAX)).contains(&number) => Ok(()),
        _ => Err(cursor.error(at, "a temperature is a finite number from 0 on")),
    }
}
