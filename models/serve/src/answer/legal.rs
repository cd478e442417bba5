//! The number of legal tokens at each chosen token.

use burn_dfa::tokens::RowPosition;
use burn_dfa::{CompiledConstraint, TokenId};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Largest vocabulary whose tokens are counted: each step checks all of them.
pub const MAX_VOCABULARY: usize = 1 << 16;

/// Follows the answers to a request through their constraint.
#[derive(Debug)]
pub struct LegalTokenCounter {
    constraint: CompiledConstraint,
    /// The position of each answer.
    positions: Vec<RowPosition>,
}

impl LegalTokenCounter {
    /// Starts `answers` answers with a budget of tokens each.
    pub fn new(constraint: CompiledConstraint, answers: usize, budget: usize) -> Self {
        let budget = u32::try_from(budget).unwrap_or(RowPosition::UNLIMITED);
        let positions = vec![RowPosition::new(constraint.start(), budget); answers];
        Self { constraint, positions }
    }

    /// For each of these tokens, the number of tokens that constraint and budget allowed at its
    /// position, including the end of the sequence.
    pub fn follow(&mut self, answer: usize, tokens: &[TokenId]) -> Vec<usize> {
        let Self { constraint, positions } = self;
        let all = (0..constraint.vocabulary_len() as u32).map(TokenId);
        let count = |&token: &TokenId| {
            let at = &positions[answer];
            let legal = all.clone().filter(|&token| constraint.can_end(&constraint.after(at, token))).count();
            positions[answer] = constraint.after(at, token);
            legal
        };
        let counts = || tokens.iter().map(count).collect();
        // The count takes time. On a runtime with several threads, other requests proceed
        // meanwhile.
        match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => block_in_place(counts),
            _ => counts(),
        }
    }
}
