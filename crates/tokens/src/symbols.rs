//! The symbols of tokens in byte-level constraints.
//!
//! A symbol is a byte, or stands for a non-text token: one symbol per reserved column, then one per
//! special token that the constraint reads as itself.

use super::special::number_of;
use super::{CompiledConstraint, TableParts, TokenReading, reserved_column};
use burn_dfa_vocabulary::{TokenId, Vocabulary};

/// The first symbol after the bytes: one symbol per reserved column.
pub const RESERVED_SYMBOL: u32 = 256;
/// The first symbol of a token read as itself.
pub const FIRST_SPECIAL: u32 = RESERVED_SYMBOL + CompiledConstraint::RESERVED_COLUMNS as u32;

/// The symbols of a token; `special` lists the tokens read as themselves, sorted, with the number
/// of each.
pub fn symbols_of(
    vocabulary: &Vocabulary,
    special: &[(TokenId, u32)],
    token: TokenId,
) -> impl Iterator<Item = u32> {
    let special = number_of(special, token).map(|number| FIRST_SPECIAL + number);
    let bytes = if special.is_some() { None } else { vocabulary.bytes(token) };
    let reserved = || RESERVED_SYMBOL + reserved_column(vocabulary, token);
    let alone = special.or_else(|| bytes.is_none().then(reserved));
    bytes.unwrap_or_default().iter().map(|&byte| byte.into()).chain(alone)
}

impl TableParts {
    /// The column of every symbol in a byte-level constraint; empty if tokens are read by class.
    pub fn symbol_columns(&self) -> Vec<u32> {
        let TokenReading::Bytes { column_of, special, .. } = &self.reading else { return Vec::new() };
        let count = self.columns() as u32;
        let own = count - special.columns() as u32..count;
        column_of.iter().copied().chain(0..CompiledConstraint::RESERVED_COLUMNS as u32).chain(own).collect()
    }
}
