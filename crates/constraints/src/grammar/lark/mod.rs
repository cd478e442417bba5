//! Lark, as llguidance reads it.
//!
//! ```text
//! text ──document──▶ definitions, each a Tree ──rules, terminals──▶ Grammar
//! ```
//!
//! - `cursor` is a position in the text; `literal` reads strings and regexes, `token` reads tokens,
//!   `structured` reads items written in JSON, and `guidance` the JSON options of schemas; `common`
//!   has the terminals for imports;
//! - `tree` has the definitions; `expression` reads their right-hand sides, `attributes` the
//!   brackets after the name of a rule, and `document` the lines of a grammar;
//! - `lowering` is the state of the conversion; `terminals` converts trees to regular expressions,
//!   `rules` converts them to rules;
//! - `templates` reads rules with parameters, `parametric` reads rules with a parameter of bits,
//!   and `instances` numbers the rules made from both; `priorities` checks the priorities of
//!   terminals.
//!
//! A definition with a name in capitals is a terminal, every other one a rule. Beyond llguidance,
//! these features of Lark are supported: templates, priorities without effect, `%extend`,
//! `%override` and joined lines. `%declare` and imports from other modules than `common` are
//! rejected.

mod attributes;
mod common;
mod cursor;
mod document;
mod expression;
mod guidance;
mod instances;
mod literal;
mod lowering;
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
use burn_dfa_common::Result;
use cursor::Cursor;

/// The default start rule.
const START: &str = "start";

/// Reads a grammar with the start rule `start`, or the given one.
///
/// # Errors
/// The text is not Lark as llguidance reads it, or cannot be honored exactly; the error has the
/// location.
pub(super) fn read(text: &str, start: Option<&str>) -> Result<Grammar> {
    let source = Source::new(text)?;
    let document = document::read(&mut Cursor::new(source))?;
    rules::grammar(source, &document, start.unwrap_or(START), 0)
}
