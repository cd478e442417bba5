//! The JSON texts of strings.
//!
//! The *content* of a string is UTF-8 without quotes or escapes. Its texts spell every character in
//! one of the forms allowed by a [`Spelling`]. Lengths count characters, meaning code points. With
//! every spelling, each text denotes a string without lone surrogates, and each such string has a
//! text.

mod quote;
mod spell;
#[cfg(test)]
mod tests;
mod uncounted;
mod unquoted;

pub(super) use self::quote::{quote, uncounted};
pub(super) use self::spell::{spellings, write};
pub(super) use self::uncounted::{Uncounted, Units};
pub(super) use self::unquoted::unquoted;
use super::options::{Escapes, JsonOptions};

/// How the characters of a string are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Spelling {
    /// Characters beyond ASCII are escaped: `\u00e9`, and pairs such as `\ud83d\ude00` beyond 16
    /// bits.
    pub(super) ascii: bool,
    pub(super) escapes: Escapes,
}

impl JsonOptions {
    /// The spelling of strings with restrictions beyond their length.
    pub(super) fn spelling(&self) -> Spelling {
        let escapes = match self.escapes {
            Escapes::NumberedFree => Escapes::Canonical,
            escapes => escapes,
        };
        Spelling { ascii: self.ascii, escapes }
    }

    /// How other strings are written.
    pub(super) fn free_spelling(&self) -> Spelling {
        let escapes = match self.escapes {
            Escapes::NumberedFree => Escapes::Numbered,
            escapes => escapes,
        };
        Spelling { ascii: self.ascii, escapes }
    }
}
