//! Tokens that a grammar names.
//!
//! A token is read whole, whatever its bytes. While an automaton is built a [class](classes) of tokens is one byte that no text
//! of the grammar needs, its [code](codes), so that ways, calls and the subset construction need not know of tokens; afterwards
//! the codes become [token edges](crate::constraint::TokenEdges). What is named by its text gets its id from a vocabulary,
//! see [`names`].

mod classes;
mod codes;
mod names;

pub(super) use classes::Sets;
pub(super) use codes::Codes;
