//! The symbols that tokens of walked tables are read by.
//!
//! A symbol is a byte, or stands for a token that is not text: one for each reserved column, and then one for each
//! special token that a table reads as itself.

use super::special::number_of;
use super::{TableParts, TokenReading, TokenTable, reserved_column};
use crate::vocabulary::{TokenId, Vocabulary};

/// The first symbol that is no byte: one for each reserved column.
pub(crate) const RESERVED_SYMBOL: u32 = 256;
/// The first symbol of a token that is read as itself.
pub(crate) const FIRST_SPECIAL: u32 = RESERVED_SYMBOL + TokenTable::RESERVED_COLUMNS as u32;

/// The symbols of a token; `special` are the tokens that are read as themselves, in order, with the number of each.
pub(crate) fn symbols_of(
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
    /// The column of every symbol in a walked table; nothing where tokens are read by class.
    pub(crate) fn symbol_columns(&self) -> Vec<u32> {
        let TokenReading::Bytes { column_of, special, .. } = &self.reading else { return Vec::new() };
        let count = self.columns() as u32;
        let own = count - special.columns() as u32..count;
        column_of.iter().copied().chain(0..TokenTable::RESERVED_COLUMNS as u32).chain(own).collect()
    }
}
