//! The reference search: every token of the vocabulary, without a shortcut.

use crate::{CompiledConstraint, RowPosition, StateId, TokenId, Vocabulary};

/// The ids of the legal tokens at `position`, ascending: the tokens after which the constraint can
/// end within the budget. Text is read in the order of the trie, then all other tokens.
pub(super) fn tokens(
    constraint: &CompiledConstraint,
    vocabulary: &Vocabulary,
    position: &RowPosition,
) -> Vec<u32> {
    let [legal] = tokens_within(constraint, vocabulary, position, [position.remaining]);
    legal
}

/// The same for several budgets at `position`: the state and the stack after a token do not depend on
/// the budget.
pub(super) fn tokens_within<const N: usize>(
    constraint: &CompiledConstraint,
    vocabulary: &Vocabulary,
    position: &RowPosition,
    budgets: [u32; N],
) -> [Vec<u32>; N] {
    let others = (0..vocabulary.len() as u32).map(TokenId).filter(|&id| vocabulary.bytes(id).is_none());
    let all = vocabulary.trie().all_tokens().iter().copied().chain(others);
    let mut legal = [const { Vec::new() }; N];
    for token in all {
        let mut after = constraint.after(position, token);
        if after.state == StateId::DEAD {
            continue;
        }
        for (legal, budget) in legal.iter_mut().zip(budgets) {
            after.remaining = budget.saturating_sub(1);
            if constraint.can_end(&after) {
                legal.push(token.0);
            }
        }
    }
    legal.iter_mut().for_each(|legal| legal.sort_unstable());
    legal
}
