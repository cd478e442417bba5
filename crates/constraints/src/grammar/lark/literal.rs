//! Strings, ranges of characters and regexes.

use std::sync::Arc;

use regex_syntax::ParserBuilder;

use super::super::form::{Expression, Node};
use super::cursor::Cursor;
use crate::Regex;
use burn_dfa_common::Result;

/// Most bytes of all patterns of a grammar together.
const MAX_PATTERNS: usize = 1 << 20;

/// Most named classes, such as `\w`, in all regexes: two bytes of pattern are 6 KB of ranges here.
const MAX_NAMED: usize = 1 << 14;

/// A string as it is written.
pub(super) struct Text {
    pub(super) text: String,
    /// The flag `i`.
    pub(super) any_case: bool,
}

impl Cursor<'_> {
    /// Reads a string, or a range from one to another.
    pub(super) fn string_or_range(&mut self) -> Result<Expression> {
        let at = self.at;
        let first = self.string()?;
        let behind = self.at;
        if !self.eat("..") {
            self.at = behind;
            return self.text(first, at);
        }
        self.blanks();
        let end = self.at;
        if self.peek() != Some('"') {
            return Err(
                self.error(format!("expected the last character of the range, found {}", self.found()))
            );
        }
        let last = self.string()?;
        let (first, last) = (self.character(&first, at)?, self.character(&last, end)?);
        if first > last {
            return Err(
                self.error_at(at, format!("the range from {first:?} to {last:?} is empty: swap them"))
            );
        }
        Ok(Expression(Node::Class(vec![(first, last)])))
    }

    fn character(&self, text: &Text, at: usize) -> Result<char> {
        if text.any_case {
            return Err(self.error_at(at, "the ends of a range take no flag"));
        }
        let mut chars = text.text.chars();
        match (chars.next(), chars.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(self.error_at(at, "each end of a range has to be a single character")),
        }
    }

    fn text(&mut self, text: Text, at: usize) -> Result<Expression> {
        if !text.any_case || text.text.is_empty() {
            return Ok(Expression::literal(&text.text));
        }
        let pattern = format!("(?i){}", regex_syntax::escape(&text.text));
        self.pattern(pattern, |_| at)
    }

    /// Reads a string without flags, as the value of the attribute `what`.
    pub(super) fn plain_string(&mut self, what: &str) -> Result<String> {
        self.blanks();
        let at = self.at;
        if self.peek() != Some('"') {
            return Err(self.error(format!("expected a string after `{what}=`, found {}", self.found())));
        }
        let text = self.string()?;
        if text.any_case {
            return Err(self.error_at(at, format!("the string after `{what}=` takes no flag")));
        }
        Ok(text.text)
    }

    /// Reads a string, at its quotation mark.
    fn string(&mut self) -> Result<Text> {
        let open = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let at = self.at;
            let Some(next) = self.peek().filter(|next| !matches!(next, '\n' | '\r')) else {
                return Err(self.error_at(open, "the string is not closed: `\"` is missing in its line"));
            };
            self.at += next.len_utf8();
            match next {
                '"' => break,
                '\\' => text.push(self.escape(at)?),
                '\0'..=' ' | '\u{7f}' if next != ' ' => {
                    let reason = format!("write the control character {next:?} as an escape");
                    return Err(self.error_at(at, reason));
                }
                other => text.push(other),
            }
        }
        let any_case = self.rest().starts_with('i');
        self.at += usize::from(any_case);
        Ok(Text { text, any_case })
    }

    /// Reads the escape after the backslash at `at`.
    fn escape(&mut self, at: usize) -> Result<char> {
        let escaped = self.peek().unwrap_or(' ');
        self.at += escaped.len_utf8();
        let unit = match escaped {
            '"' | '\\' | '/' => return Ok(escaped),
            'b' => return Ok('\u{8}'),
            'f' => return Ok('\u{c}'),
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            'x' => self.hexadecimal(2),
            'u' => self.hexadecimal(4),
            'U' => self.hexadecimal(8),
            _ => None,
        };
        let unit = match unit {
            // The first of two halves.
            Some(high @ 0xd800..=0xdbff) if self.rest().starts_with("\\u") => {
                self.at += 2;
                let low = self.hexadecimal(4).filter(|low| (0xdc00..=0xdfff).contains(low));
                low.map(|low| 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
            }
            unit => unit,
        };
        unit.and_then(char::from_u32).ok_or_else(|| {
            let known =
                r#"`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\xHH`, `\uHHHH` and `\UHHHHHHHH`"#;
            self.error_at(at, format!("no escape of a string: there are {known}"))
        })
    }

    fn hexadecimal(&mut self, digits: usize) -> Option<u32> {
        let digits =
            self.rest().get(..digits).filter(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()))?;
        self.at += digits.len();
        u32::from_str_radix(digits, 16).ok()
    }

    /// Reads a regex, at its slash.
    pub(super) fn regex(&mut self) -> Result<Expression> {
        let open = self.at;
        let rest = self.rest();
        let mut escaped = true;
        let end = rest.bytes().position(|byte| {
            let end = byte == b'/' && !escaped;
            escaped = byte == b'\\' && !escaped;
            end
        });
        let Some(end) = end else {
            return Err(self.error("the regex is not closed: `/` is missing"));
        };
        let body = &rest[1..end];
        let flags = &rest[end + 1..];
        let flags = &flags[..flags.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(flags.len())];
        if let Some(flag) = flags.chars().find(|flag| !"imsux".contains(*flag)) {
            let reason =
                format!("the flag `{flag}` of a regex is not supported; `i`, `m`, `s`, `u` and `x` are");
            return Err(self.error_at(open + end + 1, reason));
        }
        if !flags.contains('x')
            && let Some(newline) = body.find(['\n', '\r'])
        {
            let reason =
                r"the regex is not closed in its line: write the end of a line as `\n`, or add the flag `x`";
            return Err(self.error_at(open + 1 + newline, reason));
        }
        let prefix = if flags.is_empty() { String::new() } else { format!("(?{flags})") };
        let before = prefix.len();
        let (body, longer) = with_control_characters(body);
        let expression = self.pattern(prefix + &body, |offset| {
            let offset = offset.saturating_sub(before);
            open + 1 + offset - longer.partition_point(|&at| at < offset)
        })?;
        self.at = open + 1 + end + flags.len();
        Ok(expression)
    }

    /// The regex of a pattern; `offset_of` maps an offset in the pattern to the text.
    pub(super) fn pattern(
        &mut self,
        pattern: String,
        offset_of: impl Fn(usize) -> usize,
    ) -> Result<Expression> {
        if let Some(known) = self.regexes.get(&pattern) {
            return Ok(Expression(Node::Regex(Arc::clone(known))));
        }
        let named =
            pattern.as_bytes().windows(2).filter(|two| two[0] == b'\\' && b"wWdDsSpP".contains(&two[1]));
        self.spent.named += named.count();
        self.spent.pattern += pattern.len();
        if self.spent.pattern > MAX_PATTERNS || self.spent.named > MAX_NAMED {
            let reason = format!(
                "the regexes of the grammar have more than {MAX_PATTERNS} bytes or {MAX_NAMED} classes with a name; split it"
            );
            return Err(self.error_at(offset_of(0), reason));
        }
        let regex = Regex::parse(&pattern).map_err(|error| {
            let reason = error.to_string();
            // The error has the location in the grammar instead of the location in the pattern.
            let reason = reason.split_once(": ").map_or(reason.as_str(), |(_, reason)| reason);
            self.error_at(offset_of(error.offset().unwrap_or(0)), format!("the regex: {reason}"))
        })?;
        let looks = ParserBuilder::new().utf8(false).build().parse(&pattern);
        if looks.is_ok_and(|hir| !hir.properties().look_set().is_empty()) {
            let reason = r"look-around (`^`, `$`, `\b`) is not supported in terminals: a terminal is matched as a whole";
            return Err(self.error_at(offset_of(0), reason));
        }
        let regex = Arc::new(regex);
        self.regexes.insert(pattern, Arc::clone(&regex));
        Ok(Expression(Node::Regex(regex)))
    }
}

/// Rewrites `\cA` to `\cZ` in a pattern as `\x01` to `\x1A`; also returns the offsets of the added
/// bytes.
fn with_control_characters(pattern: &str) -> (String, Vec<usize>) {
    let (mut written, mut longer) = (String::with_capacity(pattern.len()), Vec::new());
    let mut rest = pattern;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        written.push_str(before);
        let length = 1 + escape[1..].chars().next().map_or(0, char::len_utf8);
        rest = match escape.as_bytes() {
            [_, b'c', letter, ..] if letter.is_ascii_alphabetic() => {
                written.push_str(&format!("\\x{:02x}", letter & 0x1f));
                longer.push(written.len() - 1);
                &escape[3..]
            }
            _ => {
                written.push_str(&escape[..length]);
                &escape[length..]
            }
        };
    }
    written.push_str(rest);
    (written, longer)
}
