//! Assertions such as `^`, `$` and `\b`, decided by an automaton that runs in parallel with the
//! regex automaton.
//!
//! An assertion relates the character before a position to the character after it. It depends only
//! on the *category* of each: none (start or end of the text), `\r`, `\n`, an ASCII word character,
//! any other Unicode word character, or anything else. The category before a position is known on
//! reaching the position; a *context* is a state that records it. The category after a position is
//! not known yet. The set of its possible categories ([`Categories`]) is carried along until the
//! next bytes decide.
//!
//! `\b` with Unicode's definition of words is exact. Between the first and the last byte of a
//! character, the context records how much of the character has been read, and each byte reduces
//! the possible categories. These contexts are states of the automata of word characters and of
//! other characters, built by the subset construction. The two modules therefore import each other;
//! the recursion ends because a class of characters has no look-around.

use std::collections::HashMap;

use regex_automata::util::look::Look;

use super::{ByteDfa, ByteStateId, Expr};
use burn_dfa_common::{Result, limits::Meter};

/// A set of categories of characters. As the set after a position, it may include the end of the
/// text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Categories(u8);

impl Categories {
    pub(super) const ALL: Self = Self(63);
    const NONE: Self = Self(0);
    /// The start of the text before a position, its end after it.
    pub(super) const EDGE: Self = Self(1);
    const CR: Self = Self(2);
    const LF: Self = Self(4);
    /// ASCII word characters.
    const WORD: Self = Self(8);
    /// The other word characters of Unicode.
    const WIDE_WORD: Self = Self(16);
    const OTHER: Self = Self(32);

    const EACH: [Self; 6] = [Self::EDGE, Self::CR, Self::LF, Self::WORD, Self::WIDE_WORD, Self::OTHER];

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(super) fn contains(self, other: Self) -> bool {
        self.and(other) == other
    }

    fn when(holds: bool, categories: Self) -> Self {
        if holds { categories } else { Self::NONE }
    }

    /// The category of a single byte; bytes past ASCII are not word characters.
    fn of_byte(byte: u8) -> Self {
        match byte {
            b'\r' => Self::CR,
            b'\n' => Self::LF,
            b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => Self::WORD,
            _ => Self::OTHER,
        }
    }
}

/// The categories allowed after a position by `look`, given the category before it.
fn allowed(look: Look, before: Categories) -> Categories {
    const ALL: Categories = Categories::ALL;
    const EDGE: Categories = Categories::EDGE;
    const CR: Categories = Categories::CR;
    const LF: Categories = Categories::LF;
    let unicode = Categories::WORD.or(Categories::WIDE_WORD);
    let ascii = Categories::WORD;
    let words = |words: Categories, boundary: bool| {
        let inside = words.contains(before) == boundary;
        if inside { ALL.without(words) } else { words }
    };
    let start = |words: Categories| Categories::when(!words.contains(before), words);
    let end = |words: Categories| Categories::when(words.contains(before), ALL.without(words));
    let start_half = |words: Categories| Categories::when(!words.contains(before), ALL);
    match look {
        Look::Start => Categories::when(before == EDGE, ALL),
        Look::End => EDGE,
        Look::StartLF => Categories::when(before == EDGE || before == LF, ALL),
        Look::EndLF => EDGE.or(LF),
        Look::StartCRLF if before == CR => ALL.without(LF),
        Look::StartCRLF => Categories::when(before == EDGE || before == LF, ALL),
        Look::EndCRLF if before == CR => EDGE.or(CR),
        Look::EndCRLF => EDGE.or(CR).or(LF),
        Look::WordAscii => words(ascii, true),
        Look::WordAsciiNegate => words(ascii, false),
        Look::WordUnicode => words(unicode, true),
        Look::WordUnicodeNegate => words(unicode, false),
        Look::WordStartAscii => start(ascii),
        Look::WordEndAscii => end(ascii),
        Look::WordStartUnicode => start(unicode),
        Look::WordEndUnicode => end(unicode),
        Look::WordStartHalfAscii => start_half(ascii),
        Look::WordEndHalfAscii => ALL.without(ascii),
        Look::WordStartHalfUnicode => start_half(unicode),
        Look::WordEndHalfUnicode => ALL.without(unicode),
    }
}

/// The bytes `first..=last` lead to the context `next`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContextRun {
    pub(super) first: u8,
    pub(super) last: u8,
    pub(super) next: u32,
    /// The possible categories of the character with these bytes.
    pub(super) categories: Categories,
    /// Whether the bytes end the character.
    pub(super) complete: bool,
}

/// The contexts of an automaton with look-around; the first is the start of the text.
pub(super) struct LookAroundStates {
    /// The runs of each context; bytes outside of all runs cannot follow.
    runs: Vec<Vec<ContextRun>>,
    /// The assertions of each context with the categories allowed next. Empty inside a character.
    allowed: Vec<Vec<(Look, Categories)>>,
}

impl LookAroundStates {
    /// The contexts that `looks` distinguish.
    ///
    /// If one of the assertions uses Unicode's definition of words, the contexts allow only valid
    /// UTF-8.
    pub(super) fn new(looks: &[Look], meter: &Meter) -> Result<Self> {
        // Categories before a position that no assertion distinguishes share a context.
        let mut contexts = Self { runs: Vec::new(), allowed: Vec::new() };
        let mut after = HashMap::new();
        for category in Categories::EACH {
            let row: Vec<(Look, Categories)> =
                looks.iter().map(|&look| (look, allowed(look, category))).collect();
            let known = contexts.allowed.iter().position(|known| *known == row);
            let context = known.unwrap_or_else(|| {
                contexts.allowed.push(row);
                contexts.allowed.len() - 1
            });
            after.insert(category.0, context as u32);
        }
        let unicode = looks.iter().any(|&look| is_unicode(look));
        if unicode {
            contexts.add_characters(&after, meter)?;
        } else {
            let bytes = |byte| {
                let category = Categories::of_byte(byte);
                Some((after[&category.0], category, true))
            };
            contexts.runs = vec![runs(bytes); contexts.allowed.len()];
        }
        Ok(contexts)
    }

    /// Adds contexts for the positions between the bytes of a character.
    fn add_characters(&mut self, after: &HashMap<u8, u32>, meter: &Meter) -> Result<()> {
        let word = wide(r"[\w&&[^\x00-\x7F]]", meter)?;
        let other = wide(r"[^\w\x00-\x7F]", meter)?;
        let boundaries = self.allowed.len();
        let mut pairs: Vec<(ByteStateId, ByteStateId)> = vec![(word.start(), other.start())];
        let mut rows = Vec::new();
        let mut at = 0;
        while at < pairs.len() {
            let (in_word, in_other) = pairs[at];
            let row = runs(|byte| {
                if byte < 0x80 {
                    let category = Categories::of_byte(byte);
                    return (at == 0).then(|| (after[&category.0], category, true));
                }
                let pair = (word.next(in_word, byte), other.next(in_other, byte));
                if pair == (ByteStateId::DEAD, ByteStateId::DEAD) {
                    return None;
                }
                for (ended, category) in [
                    (word.is_accepting(pair.0), Categories::WIDE_WORD),
                    (other.is_accepting(pair.1), Categories::OTHER),
                ] {
                    if ended {
                        return Some((after[&category.0], category, true));
                    }
                }
                let categories = Categories::when(pair.0 != ByteStateId::DEAD, Categories::WIDE_WORD)
                    .or(Categories::when(pair.1 != ByteStateId::DEAD, Categories::OTHER));
                let known = pairs.iter().position(|known| *known == pair);
                let number = known.unwrap_or_else(|| {
                    pairs.push(pair);
                    pairs.len() - 1
                });
                Some(((boundaries + number - 1) as u32, categories, false))
            });
            rows.push(row);
            at += 1;
        }
        // All positions between two characters have the runs of row 0.
        self.runs = vec![rows[0].clone(); boundaries];
        self.runs.extend_from_slice(&rows[1..]);
        self.allowed.resize_with(self.runs.len(), Vec::new);
        Ok(())
    }

    /// The runs of `context`.
    pub(super) fn runs(&self, context: u32) -> &[ContextRun] {
        &self.runs[context as usize]
    }

    /// The categories allowed next if `look` holds in `context`.
    pub(super) fn allowed(&self, context: u32, look: Look) -> Categories {
        let row = &self.allowed[context as usize];
        row.iter().find(|(known, _)| *known == look).map_or(Categories::NONE, |&(_, after)| after)
    }
}

/// Whether the assertion uses Unicode's definition of words.
pub(super) fn is_unicode(look: Look) -> bool {
    matches!(
        look,
        Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode
    )
}

/// The bytes in runs with equal `(next, categories, complete)`.
fn runs(mut outcome: impl FnMut(u8) -> Option<(u32, Categories, bool)>) -> Vec<ContextRun> {
    let mut runs: Vec<ContextRun> = Vec::new();
    for byte in 0..=u8::MAX {
        let Some((next, categories, complete)) = outcome(byte) else { continue };
        match runs.last_mut() {
            Some(run)
                if (run.next, run.categories, run.complete) == (next, categories, complete)
                    && run.last + 1 == byte =>
            {
                run.last = byte;
            }
            _ => runs.push(ContextRun { first: byte, last: byte, next, categories, complete }),
        }
    }
    runs
}

/// The automaton of one non-ASCII character of a class.
fn wide(class: &str, meter: &Meter) -> Result<ByteDfa> {
    let ranges = match regex_syntax::parse(class).map(regex_syntax::hir::Hir::into_kind) {
        Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => {
            class.iter().map(|range| (range.start(), range.end())).collect()
        }
        // Both classes above are of this kind.
        _ => Vec::new(),
    };
    Expr::Chars(ranges).determinize(meter)
}
