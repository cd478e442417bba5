//! XGrammar's regular expressions, translated to ECMA-262.
//!
//! Patterns match as a whole. As in ECMA-262, `\d` and `\w` are ASCII, `^` and `$` are the ends of
//! the text, captures are groups, lazy quantifiers are like greedy ones, and look-ahead is exact; a
//! pattern sees only its own text, not the surrounding text. Unlike in ECMA-262
//! - `.` is any character, but not a line feed if flags without `s` are given;
//! - `\s` is white space of ASCII, `\a` and `\e` are the control characters BEL and ESC,
//!   `(?P<name>…)` is a group;
//! - a pattern that begins with `(?i)`, or has the flag `i`, ignores the case of ASCII letters.
//!
//! As in XGrammar, `\b`, `\p`, look-behind, back-references, empty classes and braces without a
//! count are rejected. XGrammar ignores look-ahead, and `^` and `$` anywhere; here they are
//! honored.

use crate::Regex;

/// Most characters of a pattern in an error message.
const SHOWN: usize = 20;

/// The flags of `flags="…"`.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    /// Whether flags are given and `.` excludes line feeds unless `s` is set.
    dot_is_no_line_feed: bool,
    ignore_case: bool,
}

impl Flags {
    pub(super) fn read(flags: &str) -> Result<Self, String> {
        if let Some(flag) = flags.chars().find(|flag| !"isu".contains(*flag)) {
            return Err(format!(
                "there is no flag `{}`; the flags are `i`, `s` and `u`",
                flag.escape_debug()
            ));
        }
        Ok(Self { dot_is_no_line_feed: !flags.contains('s'), ignore_case: flags.contains('i') })
    }
}

/// Reads a pattern.
///
/// # Errors
/// The reason why the pattern is rejected.
pub(super) fn read(pattern: &str, mut flags: Flags) -> Result<Regex, String> {
    let mut rest = pattern;
    if let Some(after) = pattern.strip_prefix("(?i)") {
        flags.ignore_case = true;
        rest = after;
    }
    let dot = if flags.dot_is_no_line_feed { "[^\\n]" } else { "[^]" };
    let refuse =
        |(at, reason)| format!("at byte {} of the pattern: {reason}", at + pattern.len() - rest.len());
    let translated = Translator { pattern: rest, at: 0, out: String::new() }.run(dot).map_err(refuse)?;
    Regex::ecma(&translated, flags.ignore_case).map_err(|(at, reason)| {
        let near: String = translated[at..].chars().take(SHOWN).collect();
        format!("at `{}` in the pattern: {reason}", near.escape_debug())
    })
}

type Refusal = (usize, &'static str);

/// A pattern as far as it was translated.
struct Translator<'p> {
    pattern: &'p str,
    at: usize,
    out: String,
}

impl Translator<'_> {
    fn run(mut self, dot: &str) -> Result<String, Refusal> {
        while let Some(c) = self.next() {
            let start = self.at - c.len_utf8();
            match c {
                '\\' => self.escape(start, false)?,
                '[' => self.class(start)?,
                ']' => return Err((start, "a `]` without its `[`; write `\\]`")),
                '.' => self.out.push_str(dot),
                '{' => self.count(start)?,
                '(' if self.rest().starts_with("?P<") => {
                    self.at += "?P".len();
                    self.out.push_str("(?");
                }
                '(' if self.rest().starts_with("?<=") || self.rest().starts_with("?<!") => {
                    return Err((start, "there is no look-behind; write out what stands before"));
                }
                c => self.out.push(c),
            }
        }
        Ok(self.out)
    }

    fn rest(&self) -> &str {
        &self.pattern[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// An escape after its backslash.
    fn escape(&mut self, start: usize, in_class: bool) -> Result<(), Refusal> {
        let translated = match self.next() {
            None => return Err((start, "a `\\` at the end")),
            Some('s') if in_class => " \\t-\\r",
            Some('s') => "[ \\t-\\r]",
            Some('S') if in_class => "\\0-\\x08\\x0e-\\x1f!-\\u{10FFFF}",
            Some('S') => "[^ \\t-\\r]",
            Some('a') => "\\x07",
            Some('e') => "\\x1b",
            Some('b' | 'B') if !in_class => {
                return Err((start, "there are no word boundaries; write out what stands before and after"));
            }
            Some('p' | 'P') => {
                return Err((start, "there are no classes of Unicode properties; write ranges"));
            }
            Some('1'..='9' | 'k') => {
                return Err((start, "there are no back-references; repeat what the group says"));
            }
            Some('0') if self.rest().starts_with(|c: char| c.is_ascii_digit()) => {
                return Err((start, "a digit after `\\0`; write `\\x00`"));
            }
            Some(c) => {
                self.out.extend(['\\', c]);
                if c == 'u' && self.rest().starts_with('{') {
                    // Digits, not a count.
                    let digits = self.rest()[1..].bytes().take_while(u8::is_ascii_hexdigit).count();
                    self.out.push_str(&self.pattern[self.at..self.at + 1 + digits]);
                    self.at += 1 + digits;
                }
                return Ok(());
            }
        };
        self.out.push_str(translated);
        Ok(())
    }

    /// A class after its `[`.
    fn class(&mut self, start: usize) -> Result<(), Refusal> {
        self.out.push('[');
        if self.rest().starts_with('^') {
            self.at += 1;
            self.out.push('^');
        }
        if self.rest().starts_with(']') {
            return Err((start, "an empty class; write `\\]` for a bracket"));
        }
        let first = self.at;
        while let Some(c) = self.next() {
            let at = self.at - c.len_utf8();
            match c {
                '\\' => {
                    let is_class = self.rest().starts_with(['d', 'D', 's', 'S', 'w', 'W']);
                    if is_class && at > first + 1 && self.pattern[..at].ends_with('-') {
                        return Err((at, "a class as the end of a range; write the `-` as `\\-`"));
                    }
                    self.escape(at, true)?;
                }
                ']' => {
                    self.out.push(']');
                    return Ok(());
                }
                c => self.out.push(c),
            }
        }
        Err((start, "a class that is not closed"))
    }

    /// `{n}`, `{n,}` or `{n,m}` after its brace, perhaps with spaces.
    fn count(&mut self, start: usize) -> Result<(), Refusal> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | ' '));
        let inner = end.filter(|&end| rest[end..].starts_with('}')).map(|end| &rest[..end]);
        let (low, high) = inner.map_or(("", None), |inner| match inner.split_once(',') {
            Some((low, high)) => (low.trim(), Some(high.trim())),
            None => (inner.trim(), None),
        });
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if low.is_empty() || !is_number(low) || !high.is_none_or(is_number) {
            return Err((start, "a `{` that begins no count; write `\\{`"));
        }
        let high = high.map(|high| format!(",{high}")).unwrap_or_default();
        let count = format!("{{{low}{high}}}");
        self.at += inner.map_or(0, str::len) + 1;
        self.out.push_str(&count);
        Ok(())
    }
}
