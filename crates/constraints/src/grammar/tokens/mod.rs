//! Tokens named by a grammar.
//!
//! A token is read whole, regardless of its bytes. While an automaton is built, a [class](classes)
//! of tokens is one byte absent from the grammar's texts, its [code](codes), so paths, calls and
//! the subset construction need no special case for tokens; afterward the codes become [token
//! edges](crate::TokenEdges). Tokens named by their text get their ids from a vocabulary, see
//! [`names`].

mod classes;
mod codes;
mod names;

pub(super) use classes::Sets;
pub(super) use codes::Codes;
