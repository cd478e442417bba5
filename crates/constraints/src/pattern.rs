//! Character patterns: classes of characters and literals, each with a quantifier.

use std::sync::Arc;

use burn_dfa_automata::{ByteDfa, Expr};
use burn_dfa_common::{Error, Result, limits::Meter};

/// A set of characters.
///
/// ```
/// use burn_dfa_tokens::constraint::CharClass;
///
/// assert!(CharClass::UPPER.contains('Q') && !CharClass::UPPER.contains('q'));
/// assert!(CharClass::any_of("aeiou").contains('e'));
/// assert!(CharClass::range('α', 'ω').contains('λ'));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharClass {
    ranges: Ranges,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Ranges {
    Static(&'static [(char, char)]),
    Owned(Vec<(char, char)>),
}

impl CharClass {
    /// `A` to `Z`.
    pub const UPPER: Self = Self::fixed(&[('A', 'Z')]);
    /// `a` to `z`.
    pub const LOWER: Self = Self::fixed(&[('a', 'z')]);
    /// `0` to `9`.
    pub const DIGIT: Self = Self::fixed(&[('0', '9')]);
    /// `A` to `Z` and `a` to `z`.
    pub const ALPHA: Self = Self::fixed(&[('A', 'Z'), ('a', 'z')]);
    /// `0` to `9`, `A` to `Z` and `a` to `z`.
    pub const ALNUM: Self = Self::fixed(&[('0', '9'), ('A', 'Z'), ('a', 'z')]);
    /// The space and the tabulator.
    pub const BLANK: Self = Self::fixed(&[('\t', '\t'), (' ', ' ')]);
    /// The printable characters of ASCII, the space included.
    pub const PRINT: Self = Self::fixed(&[(' ', '~')]);
    /// Any character but the line feed.
    pub const ANY: Self = Self::fixed(&[('\0', '\u{9}'), ('\u{B}', char::MAX)]);

    const fn fixed(ranges: &'static [(char, char)]) -> Self {
        Self { ranges: Ranges::Static(ranges) }
    }

    /// The characters from `first` to `last`, both included; none if `last` is before `first`.
    pub fn range(first: char, last: char) -> Self {
        let ranges = if first <= last { vec![(first, last)] } else { Vec::new() };
        Self { ranges: Ranges::Owned(ranges) }
    }

    /// The characters of a string.
    pub fn any_of(characters: &str) -> Self {
        let mut characters: Vec<char> = characters.chars().collect();
        characters.sort_unstable();
        characters.dedup();
        Self { ranges: Ranges::Owned(characters.into_iter().map(|c| (c, c)).collect()) }
    }

    /// The union of two classes.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self { ranges: Ranges::Owned([self.ranges(), other.ranges()].concat()) }
    }

    /// Whether the class contains `character`.
    pub fn contains(&self, character: char) -> bool {
        self.ranges().iter().any(|&(first, last)| (first..=last).contains(&character))
    }

    pub(super) fn ranges(&self) -> &[(char, char)] {
        match &self.ranges {
            Ranges::Static(ranges) => ranges,
            Ranges::Owned(ranges) => ranges,
        }
    }
}

/// The repeated part of a [`CharPattern`] item: a class or a literal string.
///
/// ```
/// use burn_dfa_tokens::constraint::{CharClass, CharPattern, PatternItem};
///
/// let item = PatternItem::Class(CharClass::DIGIT);
/// assert_eq!(CharPattern::new().one_or_more(item), CharPattern::parse("DIGIT+")?);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternItem {
    /// Any one character of a class.
    Class(CharClass),
    /// A string as it is.
    Literal(String),
}

impl From<CharClass> for PatternItem {
    fn from(class: CharClass) -> Self {
        Self::Class(class)
    }
}

impl From<&str> for PatternItem {
    fn from(literal: &str) -> Self {
        Self::Literal(literal.to_owned())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantifier {
    One,
    OneOrMore,
    ZeroOrMore,
    Optional,
}

/// A sequence of classes and literals, each once, once or more, any number of times, or optional.
///
/// ```
/// use burn_dfa_tokens::constraint::{CharClass, CharPattern};
/// use burn_dfa_tokens::{Constraint, Limits};
///
/// let pattern = CharPattern::new()
///     .one_or_more(CharClass::UPPER)
///     .one(": ")
///     .one_or_more(CharClass::LOWER)
///     .one("\n");
/// assert_eq!(pattern, CharPattern::parse("UPPER+: LOWER+\n")?);
///
/// let dfa = Constraint::pattern(pattern).to_byte_dfa(&Limits::default())?.unwrap();
/// assert!(dfa.matches(b"ROMEO: o\n"));
/// assert!(!dfa.matches(b"Romeo: o\n"));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CharPattern {
    elements: Vec<(PatternItem, Quantifier)>,
}

impl CharPattern {
    /// The empty pattern: it matches the empty string.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an item with exactly one occurrence.
    #[must_use]
    pub fn one(self, item: impl Into<PatternItem>) -> Self {
        self.push(item.into(), Quantifier::One)
    }

    /// Appends an item with one or more occurrences.
    #[must_use]
    pub fn one_or_more(self, item: impl Into<PatternItem>) -> Self {
        self.push(item.into(), Quantifier::OneOrMore)
    }

    /// Appends an item with any number of occurrences.
    #[must_use]
    pub fn zero_or_more(self, item: impl Into<PatternItem>) -> Self {
        self.push(item.into(), Quantifier::ZeroOrMore)
    }

    /// Appends an optional item.
    #[must_use]
    pub fn optional(self, item: impl Into<PatternItem>) -> Self {
        self.push(item.into(), Quantifier::Optional)
    }

    /// The pattern as a regex of the same language.
    pub(super) fn to_regex(&self) -> String {
        let mut regex = String::new();
        for (item, quantifier) in &self.elements {
            match item {
                PatternItem::Class(class) if class.ranges().is_empty() => regex.push_str(r"[^\s\S]"),
                PatternItem::Class(class) => {
                    regex.push('[');
                    for &(first, last) in class.ranges() {
                        let range = format!(r"\x{{{:X}}}-\x{{{:X}}}", u32::from(first), u32::from(last));
                        regex.push_str(&range);
                    }
                    regex.push(']');
                }
                PatternItem::Literal(literal) => {
                    regex.extend(["(?:", &regex_syntax::escape(literal), ")"]);
                }
            }
            regex.push_str(match quantifier {
                Quantifier::One => "",
                Quantifier::OneOrMore => "+",
                Quantifier::ZeroOrMore => "*",
                Quantifier::Optional => "?",
            });
        }
        regex
    }

    /// Reads the compact form with the class names `UPPER`, `LOWER`, `DIGIT`, `ALPHA`, `ALNUM`,
    /// `BLANK`, `PRINT` and `ANY`; see [`parse_with`](Self::parse_with).
    ///
    /// # Errors
    /// As [`parse_with`](Self::parse_with).
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, &[])
    }

    /// Reads the compact form, with `classes` in addition to (and before) the names of
    /// [`parse`](Self::parse).
    ///
    /// - Two or more ASCII upper-case letters in a row name a class: `UPPER`.
    /// - `+`, `*` and `?` after a class or a character repeat it.
    /// - A backslash makes the next character a literal, except `\n`, `\r` and `\t`, which are the
    ///   control characters. Write `\ROMEO` as `\R\O\M\E\O`.
    /// - Any other character is itself.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::{CharClass, CharPattern};
    ///
    /// let vowel = [("VOWEL", CharClass::any_of("aeiou"))];
    /// CharPattern::parse_with("h VOWEL+\\?", &vowel)?;
    /// assert_eq!(CharPattern::parse("a VOWEL").unwrap_err().offset(), Some(2));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// A pattern error with its [`offset`](Error::offset): an unknown class, a quantifier with
    /// nothing to repeat, or a backslash at the end.
    pub fn parse_with(text: &str, classes: &[(&str, CharClass)]) -> Result<Self> {
        let mut pattern = Self::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let offset = text.len() - rest.len();
            let name = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_uppercase()).len();
            let (item, length) = match character {
                '+' | '*' | '?' => {
                    return Err(Error::pattern(
                        offset,
                        format!(
                            "`{character}` has nothing to repeat: write `\\{character}` for the character"
                        ),
                    ));
                }
                '\\' => {
                    let Some(escaped) = rest[1..].chars().next() else {
                        return Err(Error::pattern(
                            offset,
                            "a backslash at the end: write `\\\\` for the character",
                        ));
                    };
                    let literal = match escaped {
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        other => other,
                    };
                    (PatternItem::Literal(literal.to_string()), 1 + escaped.len_utf8())
                }
                _ if name > 1 => (class(&rest[..name], offset, classes)?.into(), name),
                other => (PatternItem::Literal(other.to_string()), other.len_utf8()),
            };
            rest = &rest[length..];
            let quantifier = match rest.chars().next() {
                Some('+') => Quantifier::OneOrMore,
                Some('*') => Quantifier::ZeroOrMore,
                Some('?') => Quantifier::Optional,
                _ => Quantifier::One,
            };
            if quantifier != Quantifier::One {
                rest = &rest[1..];
            }
            pattern = pattern.push(item, quantifier);
        }
        Ok(pattern)
    }

    /// Appends an element; adjacent single literals become one.
    fn push(mut self, item: PatternItem, quantifier: Quantifier) -> Self {
        match (self.elements.last_mut(), item, quantifier) {
            (
                Some((PatternItem::Literal(before), Quantifier::One)),
                PatternItem::Literal(literal),
                Quantifier::One,
            ) => before.push_str(&literal),
            (_, item, quantifier) => self.elements.push((item, quantifier)),
        }
        self
    }

    pub(super) fn lower(&self, meter: &Meter) -> Result<ByteDfa> {
        let elements = self.elements.iter().map(|(item, quantifier)| {
            let expr = match item {
                PatternItem::Class(class) => Expr::Chars(class.ranges().to_vec()),
                PatternItem::Literal(literal) => Expr::Literals(vec![literal.as_bytes().to_vec()]),
            };
            let (min, max) = match quantifier {
                Quantifier::One => return expr,
                Quantifier::OneOrMore => (1, None),
                Quantifier::ZeroOrMore => (0, None),
                Quantifier::Optional => (0, Some(1)),
            };
            Expr::Repeat { expr: Arc::new(expr), min, max }
        });
        Expr::Concat(elements.collect()).determinize(meter)
    }
}

/// The class of a name.
fn class(name: &str, offset: usize, classes: &[(&str, CharClass)]) -> Result<CharClass> {
    static NAMES: [(&str, CharClass); 8] = [
        ("UPPER", CharClass::UPPER),
        ("LOWER", CharClass::LOWER),
        ("DIGIT", CharClass::DIGIT),
        ("ALPHA", CharClass::ALPHA),
        ("ALNUM", CharClass::ALNUM),
        ("BLANK", CharClass::BLANK),
        ("PRINT", CharClass::PRINT),
        ("ANY", CharClass::ANY),
    ];
    let known = || classes.iter().chain(&NAMES);
    known().find(|(known, _)| *known == name).map(|(_, class)| class.clone()).ok_or_else(|| {
        let names: Vec<&str> = known().map(|(name, _)| *name).collect();
        Error::pattern(
            offset,
            format!(
                "no class is named `{name}` (there are {}): put a backslash before each letter to have them as they are",
                names.join(", ")
            ),
        )
    })
}
