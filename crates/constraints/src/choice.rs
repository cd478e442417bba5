//! One out of a list of strings.

use std::sync::Arc;

use burn_dfa_automata::{ByteDfa, Expr};
use burn_dfa_common::{Error, Result, limits::Meter};

/// Rejects an empty list.
pub(super) fn checked(choices: Vec<String>) -> Result<Arc<[String]>> {
    if choices.is_empty() {
        return Err(Error::input("a choice needs at least one string to choose from"));
    }
    Ok(choices.into())
}

/// The automaton of the strings.
pub(super) fn lower(choices: &[String], meter: &Meter) -> Result<ByteDfa> {
    Expr::Literals(choices.iter().map(|choice| choice.as_bytes().to_vec()).collect()).determinize(meter)
}
