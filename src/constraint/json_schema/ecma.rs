//! `pattern`: regular expressions of ECMA-262, read with the flag `u` on and searched for.
//!
//! What the language of matches depends on is translated exactly: `\d` and `\w` are ASCII, `\s` is
//! ECMA's white space, `.` is no line terminator, `^` and `$` are the ends of the string, a character is a code
//! point. Captures are groups and laziness is void: which of several matches is found makes no difference.
//! Of what `u` forbids and Annex B of the standard allows, the unambiguous is allowed: `\-`, a `{` or `]` that
//! stands for itself, a class such as `[\w-.]`. Refused, with the byte offset: back-references, look-around other
//! than `\b` and `\B`, octal escapes, unknown escapes, halves of surrogate pairs, modifiers such as `(?i:`.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, Look, Repetition};

use super::escape::{self, Escape};

/// Deepest nesting of groups.
const MAX_DEPTH: usize = 100;

/// Why a pattern is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// In bytes.
    pub(super) offset: usize,
    pub(super) reason: String,
}

pub(super) type Result<T> = std::result::Result<T, Refusal>;

/// What `pattern` matches, before it is searched for.
pub(super) fn parse(pattern: &str) -> Result<Hir> {
    let mut parser = Parser { pattern, at: 0, depth: 0 };
    let hir = parser.disjunction()?;
    match parser.peek() {
        None => Ok(hir),
        Some(_) => Err(parser.refuse(parser.at, "a `)` without its `(`")),
    }
}

/// A cursor over a pattern.
pub(super) struct Parser<'a> {
    pub(super) pattern: &'a str,
    pub(super) at: usize,
    depth: usize,
}

impl Parser<'_> {
    pub(super) fn rest(&self) -> &str {
        &self.pattern[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Steps over `text` where it comes next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn refuse(&self, offset: usize, reason: impl Into<String>) -> Refusal {
        Refusal { offset, reason: reason.into() }
    }

    fn disjunction(&mut self) -> Result<Hir> {
        let mut branches = vec![self.alternative()?];
        while self.eat("|") {
            branches.push(self.alternative()?);
        }
        Ok(Hir::alternation(branches))
    }

    fn alternative(&mut self) -> Result<Hir> {
        let mut terms = Vec::new();
        while !matches!(self.peek(), None | Some('|' | ')')) {
            terms.push(self.term()?);
        }
        Ok(Hir::concat(terms))
    }

    fn term(&mut self) -> Result<Hir> {
        let start = self.at;
        let assertion =
            [("^", Look::Start), ("$", Look::End), (r"\b", Look::WordAscii), (r"\B", Look::WordAsciiNegate)]
                .into_iter()
                .find(|(text, _)| self.eat(text));
        if let Some((_, look)) = assertion {
            return Ok(Hir::look(look));
        }
        let atom = match self.next() {
            Some('(') => self.group(start)?,
            Some('[') => class(self.class(start)?),
            Some('.') => class(escape::terminators(true)),
            Some('\\') => match escape::read(self, false)? {
                Escape::Char(c) => literal(c),
                Escape::Class(set) => class(set),
            },
            Some('*' | '+' | '?') => return Err(self.refuse(start, "a quantifier with nothing to repeat")),
            Some('{') if self.braces(start)?.is_some() => {
                return Err(self.refuse(start, "a quantifier with nothing to repeat"));
            }
            Some(c) => literal(c),
            None => return Ok(Hir::empty()),
        };
        self.quantified(atom)
    }

    fn group(&mut self, start: usize) -> Result<Hir> {
        if self.eat("?") && !self.eat(":") {
            if ["=", "!", "<=", "<!"].iter().any(|look| self.rest().starts_with(look)) {
                return Err(self
                    .refuse(start, "look-ahead and look-behind are not offered; say what may come instead"));
            }
            if !self.eat("<") {
                return Err(self.refuse(
                    start,
                    "a group is one of `(…)`, `(?:…)` and `(?<name>…)`; modifiers are not offered",
                ));
            }
            let name = self.rest().split('>').next().unwrap_or_default().to_owned();
            let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            if name.is_empty() || !name.chars().all(plain) || !self.eat(&(name + ">")) {
                return Err(self.refuse(start, "a group's name is made of letters, digits, `_` and `$`"));
            }
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.refuse(start, format!("groups are nested more than {MAX_DEPTH} deep")));
        }
        let inner = self.disjunction()?;
        self.depth -= 1;
        if !self.eat(")") {
            return Err(self.refuse(start, "a group that is not closed"));
        }
        Ok(inner)
    }

    fn quantified(&mut self, atom: Hir) -> Result<Hir> {
        let start = self.at;
        let (min, max) = match self.next() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') if self.rest().starts_with(',') => {
                return Err(self.refuse(start, "`{,` is a quantifier in some dialects, and stands for itself in others; write `{0,` or `\\{,`"));
            }
            Some('{') => match self.braces(start)? {
                Some(counts) => counts,
                None => {
                    self.at = start;
                    return Ok(atom);
                }
            },
            _ => {
                self.at = start;
                return Ok(atom);
            }
        };
        self.eat("?"); // lazy
        Ok(Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(atom) }))
    }

    /// The counts of `{n}`, `{n,}` or `{n,m}` after its brace; `None` (and nothing read) where it is neither.
    fn braces(&mut self, start: usize) -> Result<Option<(u32, Option<u32>)>> {
        let Some((inner, _)) = self.rest().split_once('}') else { return Ok(None) };
        let (low, high) = inner.split_once(',').map_or((inner, None), |(low, high)| (low, Some(high)));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if low.is_empty() || !digits(low) || !high.is_none_or(digits) {
            return Ok(None);
        }
        let number =
            |text: &str| text.parse::<u32>().map_err(|_| self.refuse(start, "a count beyond 32 bits"));
        let min = number(low)?;
        let max = match high {
            None => Some(min),
            Some("") => None,
            Some(high) => Some(number(high)?),
        };
        if max.is_some_and(|max| max < min) {
            return Err(self.refuse(start, "a quantifier whose counts are out of order"));
        }
        self.at += inner.len() + 1;
        Ok(Some((min, max)))
    }

    /// A class after its `[`.
    fn class(&mut self, start: usize) -> Result<ClassUnicode> {
        let negated = self.eat("^");
        let mut set = ClassUnicode::empty();
        while !self.eat("]") {
            let from = self.at;
            let first = self.class_atom(start)?;
            let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            if !is_range {
                first.add_to(&mut set);
                continue;
            }
            self.next();
            match (first, self.class_atom(start)?) {
                (Escape::Char(low), Escape::Char(high)) if low <= high => {
                    set.push(ClassUnicodeRange::new(low, high));
                }
                (Escape::Char(_), Escape::Char(_)) => {
                    return Err(self.refuse(from, "a range whose ends are out of order"));
                }
                // With a class at either end, the hyphen stands for itself.
                (first, last) => {
                    first.add_to(&mut set);
                    Escape::Char('-').add_to(&mut set);
                    last.add_to(&mut set);
                }
            }
        }
        if negated {
            set.negate();
        }
        Ok(set)
    }

    fn class_atom(&mut self, start: usize) -> Result<Escape> {
        match self.next() {
            None => Err(self.refuse(start, "a class that is not closed")),
            Some('\\') => escape::read(self, true),
            Some(c) => Ok(Escape::Char(c)),
        }
    }
}

fn class(set: ClassUnicode) -> Hir {
    Hir::class(Class::Unicode(set))
}

fn literal(c: char) -> Hir {
    class(ClassUnicode::new([ClassUnicodeRange::new(c, c)]))
}
