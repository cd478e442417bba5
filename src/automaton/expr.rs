//! Languages as expressions: what constraints are lowered to before determinisation.

use std::sync::Arc;

use super::ByteDfa;

/// A language over bytes, as a tree of shared pieces.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    /// Any one of these byte strings; none: the empty language; `[""]`: the empty string alone.
    Literals(Vec<Vec<u8>>),
    /// One character out of inclusive ranges, in UTF-8.
    Chars(Vec<(char, char)>),
    /// A finished automaton.
    Dfa(Arc<ByteDfa>),
    /// One after the other.
    Concat(Vec<Expr>),
    /// One of these.
    Alternate(Vec<Expr>),
    /// Between `min` and `max` times (`None`: without end).
    Repeat { expr: Arc<Expr>, min: usize, max: Option<usize> },
    /// The items in their order with `separator` between any two that are present; optional ones may be
    /// left out. Each item is laid down once, so the size is linear.
    Separated { separator: Vec<u8>, items: Vec<Item> },
}

/// An item of [`Expr::Separated`].
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) expr: Expr,
    pub(crate) required: bool,
}
