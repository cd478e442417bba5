//! The parser of patterns: from text to a [`Term`].

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::Refusal;
use super::cursor::{Cursor, Result};
use super::escape::{self, Escape};
use super::term::{Side, Term};
use crate::pattern_limits;

/// Deepest nesting of groups.
const MAX_DEPTH: usize = 100;

/// Parses `pattern`; `ignore_case` ignores the case of ASCII letters in it.
pub(super) fn parse(pattern: &str, ignore_case: bool) -> Result<Term> {
    if pattern.len() > pattern_limits::MAX_BYTES {
        let reason = pattern_limits::too_many("bytes", pattern_limits::MAX_BYTES);
        return Err(Refusal { offset: pattern_limits::MAX_BYTES, reason });
    }
    let groups = group_count(pattern);
    let mut parser = Parser { cursor: Cursor::new(pattern), depth: 0, groups, classes: 0, ignore_case };
    let term = parser.disjunction()?;
    match parser.cursor.peek() {
        None => Ok(term),
        Some(_) => Err(parser.cursor.refuse(parser.cursor.at, "a `)` without its `(`")),
    }
}

/// The parser's state.
struct Parser<'a> {
    cursor: Cursor<'a>,
    depth: usize,
    /// How many groups the pattern captures.
    groups: u32,
    /// Number of class escapes so far.
    classes: usize,
    /// Whether the case of ASCII letters makes no difference.
    ignore_case: bool,
}

impl Parser<'_> {
    fn disjunction(&mut self) -> Result<Term> {
        let first = self.alternative()?;
        if !self.cursor.rest().starts_with('|') {
            return Ok(first);
        }
        let mut branches = vec![first];
        while self.cursor.eat("|") {
            branches.push(self.alternative()?);
        }
        Ok(Term::Alternate(branches))
    }

    fn alternative(&mut self) -> Result<Term> {
        let mut terms = Vec::new();
        while !matches!(self.cursor.peek(), None | Some('|' | ')')) {
            terms.push(self.term()?);
        }
        Ok(Term::Concat(terms))
    }

    fn term(&mut self) -> Result<Term> {
        let start = self.cursor.at;
        let assertion = [
            ("^", Term::Start),
            ("$", Term::End),
            (r"\b", Term::Boundary(true)),
            (r"\B", Term::Boundary(false)),
        ]
        .into_iter()
        .find(|(text, _)| self.cursor.eat(text));
        if let Some((_, assertion)) = assertion {
            return Ok(assertion);
        }
        let atom = match self.cursor.next() {
            Some('(') => match self.group(start)? {
                // Of Annex B only a look-ahead can be repeated.
                behind @ Term::Look { side: Side::Behind, .. } => return Ok(behind),
                group => group,
            },
            Some('[') => Term::Class(self.class(start)?),
            Some('.') => Term::Class(escape::terminators(true)),
            Some('\\') => match self.escape(false)? {
                Escape::Char(c) => self.literal(c),
                Escape::Class(set) => Term::Class(set),
            },
            Some('*' | '+' | '?') => {
                return Err(self.cursor.refuse(start, "a quantifier with nothing to repeat"));
            }
            Some('{') if self.braces(start)?.is_some() => {
                return Err(self.cursor.refuse(start, "a quantifier with nothing to repeat"));
            }
            Some(c) => self.literal(c),
            None => return Ok(Term::Concat(Vec::new())),
        };
        self.quantified(atom)
    }

    /// An escape after its backslash.
    fn escape(&mut self, in_class: bool) -> Result<Escape> {
        let start = self.cursor.at - 1;
        let escape = escape::read(&mut self.cursor, self.groups, in_class)?;
        self.classes += usize::from(matches!(escape, Escape::Class(_)));
        if self.classes > pattern_limits::MAX_NAMED {
            return Err(self
                .cursor
                .refuse(start, pattern_limits::too_many("classes with a name", pattern_limits::MAX_NAMED)));
        }
        Ok(escape)
    }

    fn group(&mut self, start: usize) -> Result<Term> {
        let looks = [
            ("?=", Side::Ahead, false),
            ("?!", Side::Ahead, true),
            ("?<=", Side::Behind, false),
            ("?<!", Side::Behind, true),
        ];
        let look = looks.into_iter().find(|(text, ..)| self.cursor.eat(text));
        if look.is_none() && self.cursor.eat("?") && !self.cursor.eat(":") {
            if !self.cursor.eat("<") {
                return Err(self.cursor.refuse(
                    start,
                    "modifiers such as `(?i)` are not offered; write classes such as `[Aa]`, and groups as `(…)`, `(?:…)` or `(?<name>…)`",
                ));
            }
            let name = self.cursor.rest().split('>').next().unwrap_or_default().to_owned();
            let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            if name.is_empty() || !name.chars().all(plain) || !self.cursor.eat(&(name + ">")) {
                return Err(self
                    .cursor
                    .refuse(start, "a group's name is made of letters, digits, `_` and `$`"));
            }
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.cursor.refuse(start, format!("groups are nested more than {MAX_DEPTH} deep")));
        }
        let inner = self.disjunction()?;
        self.depth -= 1;
        if !self.cursor.eat(")") {
            return Err(self.cursor.refuse(start, "a group that is not closed"));
        }
        Ok(match look {
            Some((_, side, negated)) => Term::Look { side, negated, term: Box::new(inner) },
            None => inner,
        })
    }

    fn quantified(&mut self, atom: Term) -> Result<Term> {
        let start = self.cursor.at;
        let (min, max) = match self.cursor.next() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') if self.cursor.rest().starts_with(',') => {
                return Err(self.cursor.refuse(start, "`{,` is a quantifier in some dialects, and stands for itself in others; write `{0,` or `\\{,`"));
            }
            Some('{') => match self.braces(start)? {
                Some(counts) => counts,
                None => {
                    self.cursor.at = start;
                    return Ok(atom);
                }
            },
            _ => {
                self.cursor.at = start;
                return Ok(atom);
            }
        };
        self.cursor.eat("?"); // lazy
        Ok(Term::Repeat { term: Box::new(atom), min, max })
    }

    /// The counts of `{n}`, `{n,}` or `{n,m}` after its brace; `None` (and nothing read) for other
    /// text.
    fn braces(&mut self, start: usize) -> Result<Option<(u32, Option<u32>)>> {
        // Scans digits and commas only, not up to the closing brace, so the time is linear in the
        // pattern.
        let end = self.cursor.rest().find(|c: char| c != ',' && !c.is_ascii_digit());
        let Some((inner, "}")) =
            end.and_then(|end| Some((&self.cursor.rest()[..end], self.cursor.rest().get(end..end + 1)?)))
        else {
            return Ok(None);
        };
        let (low, high) = inner.split_once(',').map_or((inner, None), |(low, high)| (low, Some(high)));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if low.is_empty() || !digits(low) || !high.is_none_or(digits) {
            return Ok(None);
        }
        let number =
            |text: &str| text.parse::<u32>().map_err(|_| self.cursor.refuse(start, "a count beyond 32 bits"));
        let min = number(low)?;
        let max = match high {
            None => Some(min),
            Some("") => None,
            Some(high) => Some(number(high)?),
        };
        if max.is_some_and(|max| max < min) {
            return Err(self.cursor.refuse(start, "a quantifier whose counts are out of order"));
        }
        self.cursor.at += inner.len() + 1;
        Ok(Some((min, max)))
    }

    /// A class after its `[`.
    fn class(&mut self, start: usize) -> Result<ClassUnicode> {
        let negated = self.cursor.eat("^");
        let mut set = ClassUnicode::empty();
        let mut items = 0;
        while !self.cursor.eat("]") {
            let from = self.cursor.at;
            items += 1;
            if items > pattern_limits::MAX_ITEMS {
                return Err(self
                    .cursor
                    .refuse(from, pattern_limits::too_many("items in a class", pattern_limits::MAX_ITEMS)));
            }
            let first = self.class_atom(start)?;
            let is_range = self.cursor.rest().starts_with('-') && !self.cursor.rest().starts_with("-]");
            if !is_range {
                first.add_to(&mut set);
                continue;
            }
            self.cursor.next();
            match (first, self.class_atom(start)?) {
                (Escape::Char(low), Escape::Char(high)) if low <= high => {
                    set.push(ClassUnicodeRange::new(low, high));
                }
                (Escape::Char(_), Escape::Char(_)) => {
                    return Err(self.cursor.refuse(from, "a range whose ends are out of order"));
                }
                // If either end is a class, the hyphen is a literal.
                (first, last) => {
                    first.add_to(&mut set);
                    Escape::Char('-').add_to(&mut set);
                    last.add_to(&mut set);
                }
            }
        }
        self.fold(&mut set);
        if negated {
            set.negate();
        }
        Ok(set)
    }

    fn literal(&self, c: char) -> Term {
        let mut set = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
        self.fold(&mut set);
        Term::Class(set)
    }

    /// Adds the other case of ASCII letters if case is ignored.
    fn fold(&self, set: &mut ClassUnicode) {
        if !self.ignore_case {
            return;
        }
        let letters = ('a'..='z').chain('A'..='Z');
        let has = |c: char| set.ranges().iter().any(|range| (range.start()..=range.end()).contains(&c));
        let other =
            |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        let others: Vec<char> = letters.filter(|&c| has(c)).map(other).collect();
        set.union(&ClassUnicode::new(others.into_iter().map(|c| ClassUnicodeRange::new(c, c))));
    }

    fn class_atom(&mut self, start: usize) -> Result<Escape> {
        match self.cursor.next() {
            None => Err(self.cursor.refuse(start, "a class that is not closed")),
            Some('\\') => self.escape(true),
            Some(c) => Ok(Escape::Char(c)),
        }
    }
}

/// The number of capturing groups: every `(` outside of classes without a following `?`, and named
/// groups.
fn group_count(pattern: &str) -> u32 {
    let (mut count, mut in_class) = (0, false);
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => rest = rest.get(rest.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default(),
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let named = rest
                    .strip_prefix("?<")
                    .is_some_and(|rest| !rest.starts_with('=') && !rest.starts_with('!'));
                count += u32::from(named || !rest.starts_with('?'));
            }
            _ => {}
        }
    }
    count
}
