//! Literals, classes of characters, and the escapes in both.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::cursor::Cursor;
use super::form::{Expression, Node};
use burn_dfa_common::Result;

/// The escapes of a syntax.
pub(super) struct Escapes {
    /// The escaped characters and their values.
    pub(super) characters: &'static [(char, char)],
    /// Characters that are escaped only in a class, as themselves.
    pub(super) in_class: &'static str,
    /// Whether `\x` takes all following hex digits instead of two.
    pub(super) long_hex: bool,
    /// Whether literals and classes may contain line ends.
    pub(super) lines: bool,
    /// Whether `[^]` is any character.
    pub(super) any: bool,
}

/// Any character.
pub(super) fn any() -> Expression {
    Expression(Node::Class(vec![(char::MIN, char::MAX)]))
}

/// A literal, from its opening quote on.
pub(super) fn literal(cursor: &mut Cursor, escapes: &Escapes) -> Result<String> {
    let start = cursor.at;
    cursor.expect("\"", "before a literal")?;
    let mut text = String::new();
    loop {
        let at = cursor.at;
        match cursor.next() {
            Some('"') => return Ok(text),
            Some('\\') => text.push(escape(cursor, escapes, false)?),
            Some(c) if escapes.lines || !matches!(c, '\r' | '\n') => text.push(c),
            None => return Err(cursor.error(start, "a literal that is not closed; close it with `\"`")),
            Some(_) => {
                return Err(cursor.error(at, "a literal ends with its line; write `\\n` for a line end"));
            }
        }
    }
}

/// A class, from its opening bracket on.
pub(super) fn class(cursor: &mut Cursor, escapes: &Escapes) -> Result<Expression> {
    let start = cursor.at;
    cursor.expect("[", "before a class")?;
    let negated = cursor.eat("^");
    if cursor.eat("]") {
        if negated && escapes.any {
            return Ok(any());
        }
        return Err(cursor.error(start, "an empty class; write the characters in it, or `\\]` for a bracket"));
    }
    let mut ranges = Vec::new();
    while !cursor.eat("]") {
        let from = cursor.at;
        let first = class_character(cursor, escapes, start)?;
        // A hyphen is a character at the end of the class.
        let is_range = cursor.rest().starts_with('-') && !cursor.rest().starts_with("-]");
        let last = if is_range {
            cursor.next();
            class_character(cursor, escapes, start)?
        } else {
            first
        };
        if last < first {
            return Err(cursor.error(from, "a range whose ends are out of order"));
        }
        ranges.push(ClassUnicodeRange::new(first, last));
    }
    let mut class = ClassUnicode::new(ranges);
    if negated {
        class.negate();
    }
    if class.ranges().is_empty() {
        return Err(cursor.error(start, "a class of no character"));
    }
    let ranges = class.ranges().iter().map(|range| (range.start(), range.end()));
    Ok(Expression(Node::Class(ranges.collect())))
}

fn class_character(cursor: &mut Cursor, escapes: &Escapes, start: usize) -> Result<char> {
    let at = cursor.at;
    match cursor.next() {
        None => Err(cursor.error(start, "a class that is not closed; close it with `]`")),
        Some('\\') => escape(cursor, escapes, true),
        Some('\r' | '\n') if !escapes.lines => {
            Err(cursor.error(at, "a class ends with its line; write `\\n` for a line end"))
        }
        Some(c) => Ok(c),
    }
}

/// An escape after its backslash.
fn escape(cursor: &mut Cursor, escapes: &Escapes, in_class: bool) -> Result<char> {
    let start = cursor.at - 1;
    let Some(c) = cursor.next() else {
        return Err(cursor.error(start, "a `\\` at the end of the grammar"));
    };
    if in_class && escapes.in_class.contains(c) {
        return Ok(c);
    }
    match c {
        'x' if escapes.long_hex => hex(cursor, start, None),
        'x' => hex(cursor, start, Some(2)),
        'u' => hex(cursor, start, Some(4)),
        'U' => hex(cursor, start, Some(8)),
        c => match escapes.characters.iter().find(|(written, _)| *written == c) {
            Some(&(_, meant)) => Ok(meant),
            None => {
                let remedy = match c {
                    'd' | 'D' | 's' | 'S' | 'w' | 'W' => "; write ranges, such as `[0-9]`",
                    _ => "; write a backslash as `\\\\`",
                };
                Err(cursor.error(start, format!("`\\{}` is no escape here{remedy}", c.escape_debug())))
            }
        },
    }
}

/// The character with a hex number of `digits` digits, or of all following digits.
fn hex(cursor: &mut Cursor, start: usize, digits: Option<usize>) -> Result<char> {
    let rest = cursor.rest();
    let found = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
    let digits = match digits {
        None if found == 0 => return Err(cursor.error(start, "`\\x` wants hex digits")),
        Some(digits) if found < digits => {
            return Err(cursor.error(start, format!("this escape wants {digits} hex digits")));
        }
        digits => digits.unwrap_or(found),
    };
    cursor.at += digits;
    let number = rest[..digits].trim_start_matches('0');
    let code = if number.is_empty() { Ok(0) } else { u32::from_str_radix(number, 16) };
    let code = code.ok().filter(|&code| code <= u32::from(char::MAX));
    let code = code.ok_or_else(|| cursor.error(start, "characters end at `\\U0010FFFF`"))?;
    char::from_u32(code).ok_or_else(|| {
        cursor.error(start, "half a surrogate pair is no character; write the character itself, or its `\\U`")
    })
}
