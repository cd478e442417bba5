//! `pattern`: regular expressions of ECMA-262, read with the flag `u` and searched for.
//!
//! Everything that affects whether a string matches is translated exactly: `\d` and `\w` are ASCII,
//! `\s` is ECMA's white space, `.` matches all but line terminators, `^` and `$` are the ends of
//! the string, and a character is a code point. A capture is like any other group, and lazy
//! quantifiers are like greedy ones, because it makes no difference which match is found.
//! Look-ahead and look-behind are exact in all positions (see [`machine`]); look-ahead at the start
//! of the string has separate automata (see [`conditions`]).
//!
//! Annex B of the standard allows some syntax that the flag `u` forbids. It is accepted if it is
//! unambiguous: `\-` and `\_`, a literal `{` or `]`, a class such as `[\w-.]`, an octal escape that
//! cannot be the number of a group, a look-ahead with a quantifier. Rejected with the byte offset
//! are back-references, escapes of other dialects such as `\Z`, halves of surrogate pairs, and
//! modifiers such as `(?i)`.

mod conditions;
mod cursor;
mod escape;
mod formula;
mod layout;
mod machine;
mod read;
mod term;

use std::hash::{Hash, Hasher};

pub(super) use self::conditions::Length;
use self::term::Term;
use crate::hir;
use burn_dfa_automata::ByteDfa;
use burn_dfa_common::{Result, limits::Meter};

/// The reason why a pattern is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// In bytes.
    pub(crate) offset: usize,
    pub(crate) reason: String,
}

/// A parsed pattern. Two patterns are equal if their texts are equal, and both or neither count
/// characters.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    source: String,
    term: Term,
    /// Whether the counts that bound the length of the string were removed.
    is_uncounted: bool,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The pattern is invalid or unsupported.
    pub(super) fn parse(pattern: &str) -> std::result::Result<Self, Refusal> {
        Self::parse_with(pattern, false)
    }

    /// Parses a pattern; `ignore_case` ignores the case of ASCII letters in it.
    ///
    /// # Errors
    /// The pattern is invalid or unsupported.
    pub(crate) fn parse_with(pattern: &str, ignore_case: bool) -> std::result::Result<Self, Refusal> {
        let source = if ignore_case { format!("(?i){pattern}") } else { pattern.to_owned() };
        Ok(Self { source, term: read::parse(pattern, ignore_case)?, is_uncounted: false })
    }

    /// The length of the string as bounded by a repetition in the pattern, and the pattern without
    /// this bound. Both together are equivalent to this pattern.
    pub(super) fn without_length(self) -> (Option<Length>, Self) {
        match conditions::without_length(&self.term) {
            Some((length, term)) => (Some(length), Self { term, is_uncounted: true, ..self }),
            None => (None, self),
        }
    }

    /// The automaton of the UTF-8 strings with a match of the pattern.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(super) fn lower(&self, meter: &Meter) -> Result<ByteDfa> {
        conditions::lower(&self.term, meter)
    }

    /// The automaton of the UTF-8 strings matched as a whole.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(crate) fn lower_whole(&self, meter: &Meter) -> Result<ByteDfa> {
        match self.term.hir() {
            Some(hir) => hir::lower(&hir, meter),
            None => conditions::lower(&Term::Concat(vec![Term::Start, self.term.clone(), Term::End]), meter),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        (&self.source, self.is_uncounted) == (&other.source, other.is_uncounted)
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.source, self.is_uncounted).hash(state);
    }
}
