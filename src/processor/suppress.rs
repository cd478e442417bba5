//! Suppressed tokens.

use burn::tensor::{Bool, Tensor, TensorData};

use super::{InitContext, LogitsProcessor, RowParam, StepContext, mask_unless_last, of_batch};
use crate::vocabulary::TokenId;

/// Masks a fixed set of tokens in every row with another legal token.
///
/// The constraint takes precedence: if only suppressed tokens are legal, they stay legal. To
/// exclude tokens completely, compile the constraint for a vocabulary without them.
///
/// ```
/// use burn_dfa::TokenId;
/// use burn_dfa::processor::SuppressTokens;
///
/// let processor = SuppressTokens::new([TokenId(3), TokenId(5)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppressTokens {
    /// One entry per row, or one for all rows.
    rows: Vec<Vec<TokenId>>,
}

impl SuppressTokens {
    /// Suppresses `tokens`; ids at or past the `vocab_size` of the logits have no effect.
    pub fn new(tokens: impl IntoIterator<Item = TokenId>) -> Self {
        Self::of_rows([tokens.into_iter().collect()])
    }

    /// The tokens that each row suppresses.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = Vec<TokenId>>) -> Self {
        Self { rows: rows.into_iter().collect() }
    }
}

/// `[rows, vocab_size]`, true for the tokens of each row.
pub(super) fn token_mask(rows: &[Vec<TokenId>], context: &InitContext) -> Tensor<2, Bool> {
    let mut mask = vec![false; rows.len() * context.vocab_size];
    for (mask, tokens) in mask.chunks_exact_mut(context.vocab_size).zip(rows) {
        for token in tokens {
            if let Some(entry) = mask.get_mut(token.index()) {
                *entry = true;
            }
        }
    }
    Tensor::from_data(TensorData::new(mask, [rows.len(), context.vocab_size]), &context.device())
}

impl LogitsProcessor for SuppressTokens {
    /// `[batch, vocab_size]`
    type State = RowParam<Tensor<2, Bool>>;

    fn init(&self, context: &InitContext) -> Self::State {
        of_batch(token_mask(&self.rows, context), context)
    }

    fn process(
        &self,
        mask: Self::State,
        logits: Tensor<2>,
        _context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        (mask_unless_last(logits, mask.get().clone()), mask)
    }
}
