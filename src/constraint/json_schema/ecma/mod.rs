//! `pattern`: regular expressions of ECMA-262, read with the flag `u` on and searched for.
//!
//! Everything that decides whether a string matches is translated exactly: `\d` and `\w` are ASCII, `\s` is ECMA's white
//! space, `.` matches all but line terminators, `^` and `$` are the ends of the string, and a character is a code point.
//! A capture is a group like any other, and lazy quantifiers are like greedy ones, since it makes no difference which of
//! several matches is found. Look-ahead and look-behind are exact in all positions (see [`machine`]).
//!
//! Annex B of the standard allows some syntax that the flag `u` forbids. It is accepted where it is unambiguous: `\-` and
//! `\_`, a `{` or `]` that stands for itself, a class such as `[\w-.]`, an octal escape that cannot be the number of a
//! group, a look-ahead with a quantifier. Refused with the byte offset are back-references, escapes of other dialects
//! such as `\Z`, halves of surrogate pairs, and modifiers such as `(?i)`.

mod cursor;
mod escape;
mod formula;
mod layout;
mod machine;
mod read;
mod term;

use std::hash::{Hash, Hasher};

use self::term::Term;
use crate::automaton::ByteDfa;
use crate::constraint::Regex;
use crate::error::Result;
use crate::limits::Meter;

/// Why a pattern is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// In bytes.
    pub(super) offset: usize,
    pub(super) reason: String,
}

/// A pattern that was read. Two are equal where their texts are.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    source: String,
    term: Term,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Where it is not a valid pattern, or uses what is not supported.
    pub(super) fn parse(pattern: &str) -> std::result::Result<Self, Refusal> {
        Ok(Self { source: pattern.to_owned(), term: read::parse(pattern)? })
    }

    /// The automaton of the strings, in UTF-8, that the pattern matches somewhere.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn lower(&self, meter: &Meter) -> Result<ByteDfa> {
        match self.term.hir() {
            Some(hir) => Regex::from_hir(hir).lower_search(meter),
            None => machine::lower(&self.term, meter),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.source.hash(state);
    }
}
