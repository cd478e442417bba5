//! Suppressed tokens.

use burn::tensor::{Bool, Tensor, TensorData};

use super::{Constant, InitContext, LogitsProcessor, StepContext, mask_unless_last};
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
    tokens: Vec<TokenId>,
}

impl Suppress {
    /// Suppresses `tokens`; ids at or past the width of the logits have no effect.
    pub fn new(tokens: impl IntoIterator<Item = TokenId>) -> Self {
        Self { tokens: tokens.into_iter().collect() }
    }
}

/// `[1, width]`, true where one of `tokens` is.
pub(super) fn token_mask(tokens: &[TokenId], context: &InitContext) -> Tensor<2, Bool> {
    let mut mask = vec![false; context.width];
    for token in tokens {
        if let Some(entry) = mask.get_mut(token.index()) {
            *entry = true;
        }
    }
    Tensor::from_data(TensorData::new(mask, [1, context.width]), &context.device())
}

impl LogitsProcessor for Suppress {
    type State = Constant<Tensor<2, Bool>>;

    fn init(&self, context: &InitContext) -> Self::State {
        Constant(token_mask(&self.tokens, context))
    }

    fn process(
        &self,
        state: Self::State,
        logits: Tensor<2>,
        _context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let mask = state.0.clone().expand(logits.dims());
        (mask_unless_last(logits, mask), state)
    }
}
