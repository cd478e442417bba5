//! Tokens read whole: marker tokens, and tokens named by a grammar.
//!
//! - `groups` gathers the tokens of a vocabulary with equal edges;
//! - `states` builds joined states for tokens read both whole and by their bytes;
//! - `columns` and `free` write the edges into a byte-level constraint.

mod columns;
mod free;
mod groups;
mod states;
#[cfg(test)]
mod tests;

pub(super) use groups::{Groups, check_token};
pub(super) use states::TokenStates;
