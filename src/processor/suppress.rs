//! Suppressed tokens.

use burn::tensor::{Bool, Tensor, TensorData};

use super::{InitContext, Kept, LogitsProcessor, StepContext, mask_unless_last};
use crate::vocabulary::TokenId;

/// Masks a fixed set of tokens in every row where another token is left.
///
/// Where a constraint leaves nothing but suppressed tokens, they stay: the constraint comes first. A
/// constraint that must do without some tokens altogether is compiled for a vocabulary without them.
///
/// ```
/// use burn_dfa::TokenId;
/// use burn_dfa::processor::Suppress;
///
/// let processor = Suppress::new([TokenId(3), TokenId(5)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppress {
    /// Of each row, or of all of them.
    rows: Vec<Vec<TokenId>>,
}

impl Suppress {
    /// Suppresses `tokens`; ids at or past the width of the logits have no effect.
    pub fn new(tokens: impl IntoIterator<Item = TokenId>) -> Self {
        Self::of_rows([tokens.into_iter().collect()])
    }

    /// The tokens that each row suppresses.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = Vec<TokenId>>) -> Self {
        Self { rows: rows.into_iter().collect() }
    }
}

/// `[rows, width]`, true where one of the tokens of the row is.
pub(super) fn token_mask(rows: &[Vec<TokenId>], context: &InitContext) -> Tensor<2, Bool> {
    let mut mask = vec![false; rows.len() * context.width];
    for (mask, tokens) in mask.chunks_exact_mut(context.width).zip(rows) {
        for token in tokens {
            if let Some(entry) = mask.get_mut(token.index()) {
                *entry = true;
            }
        }
    }
    Tensor::from_data(TensorData::new(mask, [rows.len(), context.width]), &context.device())
}

impl LogitsProcessor for Suppress {
    /// `[1, width]` or `[batch, width]`
    type State = Kept<Tensor<2, Bool>>;

    fn init(&self, context: &InitContext) -> Self::State {
        Kept::new(token_mask(&self.rows, context))
    }

    fn process(
        &self,
        mask: Self::State,
        logits: Tensor<2>,
        _context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let wide = mask.get().clone().expand(logits.dims());
        (mask_unless_last(logits, wide), mask)
    }
}
