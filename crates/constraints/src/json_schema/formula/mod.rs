//! Schemas as Boolean formulas over keywords.
//!
//! The leaves of a formula are *claims*: each is one keyword about values of one type, and is true
//! of values of other types. `allOf` is a conjunction, `not` a negation, `oneOf` "exactly one".
//! Equal formulas have the same [`Formula`] number, and constants are folded. After some leaves
//! have been decided, the remaining formula is its *residue*. Residues serve as the states of
//! plans. They are Brzozowski's derivatives with properties and items instead of letters.
//!
//! Reference: J. A. Brzozowski, *Derivatives of Regular Expressions*, Journal of the ACM 11(4),
//! 1964.

mod formulas;

use std::sync::Arc;

pub(super) use self::formulas::Formulas;

use super::ecma::Pattern;
use super::format::Format;
use super::json::Json;
use super::number::Decimal;
use super::types::Types;

/// A formula of a [`Formulas`] list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Formula(u32);

impl Formula {
    /// Nothing satisfies it.
    pub(super) const FALSE: Self = Self(0);
    /// Everything does.
    pub(super) const TRUE: Self = Self(1);

    pub(super) fn constant(value: bool) -> Self {
        if value { Self::TRUE } else { Self::FALSE }
    }

    /// The truth of a constant.
    pub(super) fn decided(self) -> Option<bool> {
        match self {
            Self::FALSE => Some(false),
            Self::TRUE => Some(true),
            _ => None,
        }
    }
}

/// The operator of a formula.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Term {
    Constant(bool),
    Not(Formula),
    And(Arc<[Formula]>),
    Or(Arc<[Formula]>),
    /// Exactly one of the formulas.
    One(Arc<[Formula]>),
    Leaf(Leaf),
}

/// A keyword. It holds of every value of another type than its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Leaf {
    /// The value's type is in the set.
    Types(Types),
    /// The value is in the list.
    Values(Arc<[Json]>),

    /// The pattern matches somewhere in the string.
    Pattern(Arc<Pattern>),
    /// The number of characters of the string is within the bounds.
    Length {
        min: u64,
        max: Option<u64>,
    },
    /// The string has the format.
    Format(Format),

    /// The number is an integer.
    Integer,
    /// The number is at least, or greater than, the bound.
    AtLeast {
        bound: Decimal,
        exclusive: bool,
    },
    /// The number is at most, or less than, the bound.
    AtMost {
        bound: Decimal,
        exclusive: bool,
    },
    MultipleOf(Decimal),

    /// The object has the property.
    Present(Arc<str>),
    /// The object lacks the property, or its value satisfies the formula. A leaf with a true
    /// formula is kept, because it determines the position of the property in the order.
    Property(Arc<str>, Formula),
    /// All properties whose name matches the pattern satisfy the formula.
    Matching(Arc<Pattern>, Formula),
    /// All other properties satisfy the formula.
    Others(Arc<Except>, Formula),
    /// All names satisfy the formula.
    Names(Formula),
    /// The object has at least `count` properties. Names outside `properties` may be equal to
    /// earlier ones, which an automaton cannot detect: `certain` more properties are needed if such
    /// names are not counted, `possible` more if each is counted.
    Properties {
        count: u64,
        certain: u64,
        possible: u64,
    },

    /// The item at the index, if it exists, satisfies the formula.
    Item(u64, Formula),
    /// All items from the index on satisfy the formula.
    Rest(u64, Formula),
    /// At least this number of items satisfy the formula.
    Contains(Formula, u64),
    /// The array has at least this number of items.
    Items(u64),
    /// No two items are equal. If all items come from a known `domain`, `met` holds the sorted
    /// indices of earlier items in it.
    Unique {
        domain: Arc<[Json]>,
        met: Arc<[u16]>,
    },

    /// A recursive reference: the schema with this number was not fully read at the reference.
    Later(u32),
}

impl Leaf {
    /// The formula of the leaf for a part of the value, if it has one.
    pub(super) fn below(&self) -> Option<Formula> {
        match self {
            Self::Property(_, below)
            | Self::Matching(_, below)
            | Self::Others(_, below)
            | Self::Names(below)
            | Self::Item(_, below)
            | Self::Rest(_, below)
            | Self::Contains(below, _) => Some(*below),
            _ => None,
        }
    }
}

/// The names excluded by `additionalProperties`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Except {
    pub(super) names: Vec<Arc<str>>,
    pub(super) patterns: Vec<Arc<Pattern>>,
}
