//! How many tokens were legal where a token was chosen.

use burn_dfa::table::RowPosition;
use burn_dfa::{TokenId, TokenTable};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Widest vocabulary whose tokens are counted: each step looks at all of them.
pub const MAX_VOCABULARY: usize = 1 << 16;

/// Follows the answers to a request through their constraint.
#[derive(Debug)]
pub struct Legal {
    table: TokenTable,
    /// Of each answer.
    positions: Vec<RowPosition>,
}

impl Legal {
    /// So many answers of up to so many tokens, at their beginning.
    pub fn new(table: TokenTable, answers: usize, budget: usize) -> Self {
        let budget = u32::try_from(budget).unwrap_or(RowPosition::UNLIMITED);
        let positions = vec![RowPosition::new(table.start(), budget); answers];
        Self { table, positions }
    }

    /// The tokens that constraint and budget allowed, the end of the sequence among them, where each of these was chosen.
    pub fn follow(&mut self, answer: usize, tokens: &[TokenId]) -> Vec<usize> {
        let Self { table, positions } = self;
        let all = (0..table.vocabulary_len() as u32).map(TokenId);
        let count = |&token: &TokenId| {
            let at = &positions[answer];
            let legal = all.clone().filter(|&token| table.can_end(&table.after(at, token))).count();
            positions[answer] = table.after(at, token);
            legal
        };
        let counts = || tokens.iter().map(count).collect();
        // It takes its time; where there are other threads, others are served meanwhile.
        match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => block_in_place(counts),
            _ => counts(),
        }
    }
}
