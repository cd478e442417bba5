//! JSON text of strings.
//!
//! A string is its *content*, UTF-8 without quotes or escapes; its texts spell every character in one of the
//! ways that a [`Spelling`] leaves. Lengths count characters, that is, code points. Whatever the spelling, every
//! text means a string without lone surrogates, and every such string has a text.

mod quote;
mod spell;
#[cfg(test)]
mod tests;

pub(super) use self::quote::quote;
#[allow(unused_imports)]
pub(super) use self::spell::spellings;
use super::ecma;
use super::node::Text;
use crate::automaton::{ByteDfa, Expr};
use crate::error::Result;
use crate::limits::Meter;

/// How the characters of a string are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Spelling {
    /// Characters beyond ASCII are escaped: `\u00e9`, and pairs such as `\ud83d\ude00` beyond 16 bits.
    pub(super) ascii: bool,
    pub(super) escapes: Escapes,
}

/// Which characters may be escaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Escapes {
    /// Those that must be: `"`, `\` and control characters have the short escape where there is one (`\"` `\\`
    /// `\b` `\f` `\n` `\r` `\t`), control characters the long one as well (`\u000a`, hex digits in either case).
    #[default]
    Canonical,
    /// All, in any way that JSON allows: `\/`, `\u0061`, or as they are.
    #[allow(dead_code)]
    Any,
}

/// The automaton of the JSON texts, quotes included, of the strings that `text` admits.
pub(super) fn lower(text: &Text, meter: &Meter) -> Result<ByteDfa> {
    let content = match &text.pattern {
        Some(pattern) => match ecma::Pattern::parse(pattern) {
            Ok(pattern) => pattern.lower(meter)?,
            Err(_) => unreachable!("the pattern was checked when the schema was read"),
        },
        None => {
            let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
            Expr::Repeat { expr: any.into(), min: 0, max: None }.determinize(meter)?
        }
    };
    quote(&content, text.min, text.max, Spelling::default(), meter)
}
