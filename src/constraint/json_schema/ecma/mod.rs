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
use crate::constraint::regex;
use crate::error::Result;
use crate::limits::Meter;

/// Why a pattern is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::constraint) struct Refusal {
    /// In bytes.
    pub(in crate::constraint) offset: usize,
    pub(in crate::constraint) reason: String,
}

/// A pattern that was read. Two are equal where their texts are.
#[derive(Clone, Debug)]
pub(in crate::constraint) struct Pattern {
    source: String,
    term: Term,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Where it is not a valid pattern, or uses what is not supported.
    pub(super) fn parse(pattern: &str) -> std::result::Result<Self, Refusal> {
        Self::parse_with(pattern, false)
    }

    /// Reads a pattern; where `ignore_case`, the case of ASCII letters in it makes no difference.
    ///
    /// # Errors
    /// Where it is not a valid pattern, or uses what is not supported.
    pub(in crate::constraint) fn parse_with(
        pattern: &str,
        ignore_case: bool,
    ) -> std::result::Result<Self, Refusal> {
        let source = if ignore_case { format!("(?i){pattern}") } else { pattern.to_owned() };
        Ok(Self { source, term: read::parse(pattern, ignore_case)? })
    }

    /// The automaton of the strings, in UTF-8, that the pattern matches somewhere.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn lower(&self, meter: &Meter) -> Result<ByteDfa> {
        match self.term.hir() {
            Some(hir) => regex::lower_search(&hir, meter),
            None => machine::lower(&self.term, meter),
        }
    }

    /// The automaton of the strings, in UTF-8, that the pattern matches as a whole.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(in crate::constraint) fn lower_whole(&self, meter: &Meter) -> Result<ByteDfa> {
        match self.term.hir() {
            Some(hir) => regex::lower(&hir, meter),
            None => machine::lower(&Term::Concat(vec![Term::Start, self.term.clone(), Term::End]), meter),
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
