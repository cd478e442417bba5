//! The symbols of tokens in byte-level constraints.
//!
//! A symbol is a byte, or stands for a non-text token: one symbol per reserved column, then one per
//! special token that the constraint reads as itself.

use super::special::number_of;
use super::{CompiledConstraint, ConstraintParts, TokenReading, reserved_column};
use burn_dfa_vocabulary::{TokenId, Vocabulary};

/// The first symbol after the bytes: one symbol per reserved column.
pub const RESERVED_SYMBOL: u32 = 256;
/// The first symbol of a token read as itself.
pub const FIRST_SPECIAL: u32 = RESERVED_SYMBOL + CompiledConstraint::RESERVED_COLUMNS as u32;

/// The tokens of a byte-level constraint as strings of symbols.
#[derive(Clone, Copy)]
pub struct TokenSymbols<'a> {
    vocabulary: &'a Vocabulary,
    special: &'a [(TokenId, u32)],
}

impl<'a> TokenSymbols<'a> {
    /// The tokens of a vocabulary; `special` lists the tokens read as themselves, sorted, with the
    /// number of each.
    pub fn new(vocabulary: &'a Vocabulary, special: &'a [(TokenId, u32)]) -> Self {
        Self { vocabulary, special }
    }

    /// The symbols of a token.
    pub fn of(self, token: TokenId) -> impl Iterator<Item = u32> {
        let special = number_of(self.special, token).map(|number| FIRST_SPECIAL + number);
        let bytes = if special.is_some() { None } else { self.vocabulary.bytes(token) };
        let reserved = || RESERVED_SYMBOL + reserved_column(self.vocabulary, token);
        let alone = special.or_else(|| bytes.is_none().then(reserved));
        bytes.unwrap_or_default().iter().map(|&byte| byte.into()).chain(alone)
    }

    /// The symbols of the first `count` tokens, one token after the other.
    pub fn all(self, count: usize) -> impl Iterator<Item = u32> {
        (0..count as u32).flat_map(move |token| self.of(TokenId(token)))
    }

    /// The number of symbols of each of the first `count` tokens.
    pub fn lengths(self, count: usize) -> impl Iterator<Item = usize> {
        (0..count as u32).map(move |token| self.of(TokenId(token)).count())
    }

    /// The offset of each of the first `count` tokens in [`all`](Self::all), then the end of the
    /// last token; the first offset is `start`.
    pub fn offsets(self, count: usize, start: u32) -> impl Iterator<Item = u32> {
        let ends = self.lengths(count).scan(start, |end, length| {
            *end += length as u32;
            Some(*end)
        });
        std::iter::once(start).chain(ends)
    }
}

impl ConstraintParts {
    /// The symbols of tokens in a byte-level constraint; `None` if tokens are read by class.
    pub fn token_symbols(&self) -> Option<TokenSymbols<'_>> {
        match &self.reading {
            TokenReading::Classes(_) => None,
            TokenReading::Bytes { vocabulary, special, .. } => {
                Some(TokenSymbols::new(vocabulary, special.tokens()))
            }
        }
    }

    /// The column of every symbol in a byte-level constraint; empty if tokens are read by class.
    pub fn symbol_columns(&self) -> Vec<u32> {
        let TokenReading::Bytes { column_of, special, .. } = &self.reading else { return Vec::new() };
        let count = self.columns() as u32;
        let own = count - special.columns() as u32..count;
        column_of.iter().copied().chain(0..CompiledConstraint::RESERVED_COLUMNS as u32).chain(own).collect()
    }
}
