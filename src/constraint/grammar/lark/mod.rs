//! Lark as llguidance has it.
//!
//! ```text
//! text ──document──▶ definitions, each a Tree ──rules, terminals──▶ Grammar
//! ```
//!
//! - `cursor` is a place in the text; `literal` reads strings and regexes, `token` reads tokens, `structured` what is
//!   written in JSON, of which `guidance` says how schemas are spelled; `common` has the terminals that may be imported;
//! - `tree` is what stands right of a colon, `expression` reads it; `attributes` reads what stands in brackets behind
//!   the name of a rule, and `document` the lines of a grammar;
//! - `terminals` makes regular expressions of trees, `rules` makes rules of them;
//! - `templates` reads rules with parameters, `parametric` those with a parameter of bits, and `instances` makes the
//!   rules that they stand for; `priorities` says which priorities are honoured.
//!
//! A definition whose name is in capitals is a terminal, every other one a rule. Of Lark that llguidance does not have there
//! are templates, priorities that decide nothing, `%extend`, `%override` and lines that are joined. Not read are
//! `%declare` and imports other than from `common`.

mod attributes;
mod common;
mod cursor;
mod document;
mod expression;
mod guidance;
mod instances;
mod literal;
mod parametric;
mod priorities;
mod rules;
mod structured;
mod templates;
mod terminals;
#[cfg(test)]
mod tests;
mod token;
mod tree;

use super::form::Grammar;
use super::source::Source;
use crate::error::Result;
use cursor::Cursor;

/// The rule where texts begin, unless the caller names another.
const START: &str = "start";

/// Reads a grammar whose texts begin with the rule `start`, or with the one that is given.
///
/// # Errors
/// Where the text is not Lark as llguidance has it, or asks for what cannot be honoured exactly; the error has the place.
pub(super) fn read(text: &str, start: Option<&str>) -> Result<Grammar> {
    let source = Source::new(text)?;
    let document = document::read(&mut Cursor::new(source))?;
    rules::grammar(source, &document, start.unwrap_or(START), 0)
}
