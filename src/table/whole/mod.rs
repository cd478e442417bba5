//! Tokens that are read whole: markers that are tokens, and those that a grammar names.
//!
//! - `groups` gathers the tokens of a vocabulary that follow the same edges;
//! - `states` makes the states that a token leads to which is read whole and by its bytes at once;
//! - `columns` and `free` write the edges into a walked table.

mod columns;
mod free;
mod groups;
mod states;
#[cfg(test)]
mod tests;

pub(super) use groups::Groups;
pub(super) use states::TokenStates;
