//! Grammars: GBNF as llama.cpp has it, EBNF as XGrammar has it, Lark as llguidance has it.
//!
//! ```text
//! text ──gbnf, ebnf, lark──▶ Grammar
//! ```
//!
//! - `form` is the intermediate form, `builder` makes it;
//! - `gbnf`, `ebnf` and `lark` read the three syntaxes; `source` shows where they went wrong.

mod builder;
mod form;
mod source;

pub use builder::GrammarBuilder;
pub use form::{Expression, Grammar};
