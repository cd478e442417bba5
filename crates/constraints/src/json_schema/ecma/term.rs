//! The syntax tree of a pattern.

use regex_syntax::hir::{Class, ClassUnicode, Hir, Look, Repetition};

/// A pattern, or a part of one.
#[derive(Clone, Debug)]
pub(super) enum Term {
    /// One character of a set.
    Class(ClassUnicode),
    /// All terms, in order.
    Concat(Vec<Term>),
    /// One of the terms.
    Alternate(Vec<Term>),
    /// From `min` to `max` repetitions; no upper bound if `max` is `None`.
    Repeat { term: Box<Term>, min: u32, max: Option<u32> },
    /// `^`.
    Start,
    /// `$`.
    End,
    /// `\b`, or `\B`.
    Boundary(bool),
    /// Look-ahead and look-behind.
    Look { side: Side, negated: bool, term: Box<Term> },
}

/// The direction of an assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Ahead,
    Behind,
}

impl Term {
    /// The same as a tree of `regex-syntax`; `None` if it contains look-ahead or look-behind.
    pub(super) fn hir(&self) -> Option<Hir> {
        let all = |terms: &[Self]| terms.iter().map(Self::hir).collect::<Option<Vec<_>>>();
        Some(match self {
            Self::Class(set) => Hir::class(Class::Unicode(set.clone())),
            Self::Concat(terms) => Hir::concat(all(terms)?),
            Self::Alternate(terms) => Hir::alternation(all(terms)?),
            Self::Repeat { term, min, max } => {
                Hir::repetition(Repetition { min: *min, max: *max, greedy: true, sub: Box::new(term.hir()?) })
            }
            Self::Start => Hir::look(Look::Start),
            Self::End => Hir::look(Look::End),
            Self::Boundary(true) => Hir::look(Look::WordAscii),
            Self::Boundary(false) => Hir::look(Look::WordAsciiNegate),
            Self::Look { .. } => return None,
        })
    }

    /// Whether the term matches the empty string in every context.
    pub(super) fn is_nullable(&self) -> bool {
        match self {
            Self::Concat(terms) => terms.iter().all(Self::is_nullable),
            Self::Alternate(terms) => terms.iter().any(Self::is_nullable),
            Self::Repeat { term, min, .. } => *min == 0 || term.is_nullable(),
            Self::Class(_) | Self::Start | Self::End | Self::Boundary(_) | Self::Look { .. } => false,
        }
    }
}
