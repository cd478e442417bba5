//! Counts the draft tokens of an answer.

use burn_dfa::tokens::RowPosition;
use burn_dfa::{CompiledConstraint, StateId, TokenId};
use serde::{Deserialize, Serialize};

/// Numbers of draft tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftCounts {
    /// Draft tokens that the model verified.
    pub verified: usize,
    /// The draft tokens of each call before the first one that breaks the constraint or the budget.
    pub legal: usize,
    /// Draft tokens that became part of the answer.
    pub accepted: usize,
}

impl DraftCounts {
    /// Counts the draft tokens of `calls`. The draft tokens of a call are a chain that continues
    /// the answer so far. The call appends the accepted ones and one more token.
    pub fn of(
        calls: &[Vec<TokenId>],
        answer: &[TokenId],
        constraint: &CompiledConstraint,
        max_tokens: usize,
    ) -> Self {
        let mut counts = Self::default();
        let mut position = RowPosition::new(constraint.start(), max_tokens as u32);
        let mut rest = answer;
        for drafts in calls {
            let accepted = drafts.iter().zip(rest).take_while(|(draft, token)| draft == token).count();
            counts.verified += drafts.len();
            counts.legal += legal(drafts, constraint, position.clone());
            counts.accepted += accepted;
            let (new, later) = rest.split_at(rest.len().min(accepted + 1));
            position = new.iter().fold(position, |position, &token| constraint.after(&position, token));
            rest = later;
        }
        counts
    }

    /// Adds the counts of another answer.
    pub fn add(&mut self, other: Self) {
        self.verified += other.verified;
        self.legal += other.legal;
        self.accepted += other.accepted;
    }
}

/// The number of draft tokens before the first one that may not follow.
fn legal(drafts: &[TokenId], constraint: &CompiledConstraint, mut position: RowPosition) -> usize {
    let follows = |draft: &&TokenId| {
        let has_ended = position.state == StateId::DONE;
        position = constraint.after(&position, **draft);
        !has_ended && constraint.can_end(&position)
    };
    drafts.iter().take_while(follows).count()
}
