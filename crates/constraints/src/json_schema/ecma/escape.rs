//! Escapes of ECMA-262 patterns, and their sets of characters.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use super::cursor::{Cursor, Result};

/// The value of an escape.
pub(super) enum Escape {
    Char(char),
    Class(ClassUnicode),
}

impl Escape {
    pub(super) fn add_to(self, set: &mut ClassUnicode) {
        match self {
            Self::Char(c) => set.push(ClassUnicodeRange::new(c, c)),
            Self::Class(class) => set.union(&class),
        }
    }
}

/// Reads an escape after its `\`, in a pattern with this number of groups; `in_class` is true
/// between brackets.
pub(super) fn read(cursor: &mut Cursor, groups: u32, in_class: bool) -> Result<Escape> {
    let start = cursor.at - 1;
    let Some(c) = cursor.next() else {
        return Err(cursor.refuse(start, "a `\\` at the end"));
    };
    Ok(Escape::Char(match c {
        'd' | 'D' => return Ok(Escape::Class(set(&[('0', '9')], c == 'D'))),
        'w' | 'W' => {
            let word = [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
            return Ok(Escape::Class(set(&word, c == 'W')));
        }
        's' | 'S' => return Ok(Escape::Class(set(SPACE, c == 'S'))),
        'p' | 'P' => return property(cursor, start, c == 'P').map(Escape::Class),
        't' => '\t',
        'n' => '\n',
        'v' => '\x0b',
        'f' => '\x0c',
        'r' => '\r',
        'b' if in_class => '\x08',
        '0' if !cursor.peek().is_some_and(|c| c.is_ascii_digit()) => '\0',
        '1'..='9' if !in_class && is_reference(cursor, groups, start) => {
            return Err(cursor.refuse(start, "back-references are not offered; repeat what the group says"));
        }
        '0'..='7' => octal(cursor, start),
        'k' => {
            return Err(cursor.refuse(start, "back-references are not offered; repeat what the group says"));
        }
        'c' => match cursor.next() {
            Some(letter) if letter.is_ascii_alphabetic() => char::from(letter as u8 % 32),
            _ => return Err(cursor.refuse(start, "`\\c` wants a letter")),
        },
        'x' => {
            let code = hex(cursor, 2).ok_or_else(|| cursor.refuse(start, "`\\x` wants two hex digits"))?;
            char::from(code as u8)
        }
        'u' => unicode(cursor, start)?,
        c if c.is_ascii_alphanumeric() => {
            let instead = match c {
                'A' => "; write `^`",
                'Z' | 'z' => "; write `$`",
                'h' => "; write `[ \\t]`",
                'a' => "; write `\\x07`",
                'e' => "; write `\\x1b`",
                'Q' | 'E' => "; escape the characters one by one",
                _ => "",
            };
            return Err(cursor.refuse(start, format!("`\\{c}` is not an escape of ECMA-262{instead}")));
        }
        c => c,
    }))
}

/// Whether a decimal escape is the number of a group. Otherwise it is an octal escape (Annex B).
fn is_reference(cursor: &Cursor, groups: u32, start: usize) -> bool {
    let digits: String = cursor.text[start + 1..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().is_ok_and(|number: u32| number <= groups)
}

/// The character of an octal escape, at most `\\377`.
fn octal(cursor: &mut Cursor, start: usize) -> char {
    cursor.at = start + 1;
    let mut code = 0;
    while let Some(digit) =
        cursor.peek().and_then(|c| c.to_digit(8)).filter(|digit| code * 8 + digit <= 0o377)
    {
        let leading = cursor.at - start - 1;
        if leading == 3 {
            break;
        }
        cursor.at += 1;
        code = code * 8 + digit;
    }
    char::from(code as u8)
}

/// The line terminators; if `negated`, all other characters.
pub(super) fn terminators(negated: bool) -> ClassUnicode {
    set(&[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')], negated)
}

/// White space and line terminators of ECMA-262.
const SPACE: &[(char, char)] = &[
    ('\t', '\r'),
    (' ', ' '),
    ('\u{a0}', '\u{a0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202f}', '\u{202f}'),
    ('\u{205f}', '\u{205f}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{feff}', '\u{feff}'),
];

fn set(ranges: &[(char, char)], negated: bool) -> ClassUnicode {
    let mut set = ClassUnicode::new(ranges.iter().map(|&(low, high)| ClassUnicodeRange::new(low, high)));
    if negated {
        set.negate();
    }
    set
}

/// The number of `digits` hex digits.
fn hex(cursor: &mut Cursor, digits: usize) -> Option<u32> {
    let text = cursor.rest().get(..digits)?;
    let all = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = u32::from_str_radix(text, 16).ok().filter(|_| all)?;
    cursor.at += digits;
    Some(code)
}

/// `\uHHHH`, a pair of escapes for a character beyond 16 bits, or `\u{H…}`.
fn unicode(cursor: &mut Cursor, start: usize) -> Result<char> {
    let code = if cursor.eat("{") {
        let inner = cursor.rest().split('}').next().unwrap_or_default();
        let digits = inner.len();
        let significant = inner.trim_start_matches('0').len();
        // Longer numbers are not code points.
        let code = if digits > 0 && significant <= 6 { hex(cursor, digits) } else { None };
        code.filter(|_| cursor.eat("}"))
    } else {
        hex(cursor, 4).map(|high| {
            let low = cursor.at;
            match (high, cursor.eat("\\u").then(|| hex(cursor, 4)).flatten()) {
                (0xd800..=0xdbff, Some(second @ 0xdc00..=0xdfff)) => {
                    0x10000 + ((high - 0xd800) << 10) + (second - 0xdc00)
                }
                _ => {
                    cursor.at = low;
                    high
                }
            }
        })
    };
    let code = code.ok_or_else(|| cursor.refuse(start, "`\\u` wants four hex digits, or some in braces"))?;
    char::from_u32(code).ok_or_else(|| {
        cursor.refuse(
            start,
            "half a surrogate pair, or no code point: characters are code points; write `\\u{…}`",
        )
    })
}

/// `\p{…}`, with the names of ECMA-262: general categories, binary properties, `Script=…`.
fn property(cursor: &mut Cursor, start: usize, negated: bool) -> Result<ClassUnicode> {
    let unknown = "`\\p` wants a property of ECMA-262 in braces, such as `{L}`, `{Lu}` or `{Script=Greek}`";
    let refusal = cursor.refuse(start, unknown);
    if !cursor.eat("{") {
        return Err(refusal);
    }
    let name = cursor.rest().split('}').next().unwrap_or_default().to_owned();
    let (kind, value) = name.split_once('=').unwrap_or(("", &name));
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let kinds = ["", "General_Category", "gc", "Script", "sc", "Script_Extensions", "scx"];
    // `regex-syntax` ignores the case of names and takes a script without `Script=`. The standard
    // does neither.
    let exact =
        value.starts_with(|c: char| c.is_ascii_uppercase()) && !value.starts_with("Is") && plain(value);
    let is_script = kind.is_empty() && lookup("sc", value).is_some() && lookup("gc", value).is_none();
    let found = if kinds.contains(&kind) && exact && !is_script { lookup(kind, value) } else { None };
    match found {
        Some(mut class) if cursor.eat(&format!("{name}}}")) => {
            if negated {
                class.negate();
            }
            Ok(class)
        }
        _ => Err(refusal),
    }
}

fn lookup(kind: &str, value: &str) -> Option<ClassUnicode> {
    let separator = if kind.is_empty() { "" } else { "=" };
    let hir = regex_syntax::parse(&format!("\\p{{{kind}{separator}{value}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        _ => None,
    }
}
