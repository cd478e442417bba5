//! The reference search: every token of the vocabulary, without a shortcut.

use crate::{CompiledConstraint, RowPosition, TokenId, Vocabulary};

/// The ids of the legal tokens at `position`, ascending: the tokens after which the constraint can
/// end within the budget. Text is read in the order of the trie, then all other tokens.
pub(super) fn tokens(
    constraint: &CompiledConstraint,
    vocabulary: &Vocabulary,
    position: &RowPosition,
) -> Vec<u32> {
    let is_legal = |&token: &TokenId| constraint.can_end(&constraint.after(position, token));
    let others = (0..vocabulary.len() as u32).map(TokenId).filter(|&id| vocabulary.bytes(id).is_none());
    let all = vocabulary.trie().all_tokens().iter().copied().chain(others);
    let mut legal: Vec<u32> = all.filter(is_legal).map(|token| token.0).collect();
    legal.sort_unstable();
    legal
}
