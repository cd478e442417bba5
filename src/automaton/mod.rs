//! Byte-level automata.

mod dfa;
mod expr;

pub use dfa::{ByteDfa, StateId};
pub(crate) use expr::{Expr, Item};
