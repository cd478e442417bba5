//! A least length of the output.

use burn::tensor::{Bool, Tensor};

use super::suppress::token_mask;
use super::{Constant, InitContext, LogitsProcessor, StepContext, mask_unless_last};
use crate::vocabulary::{TokenId, Vocabulary};

/// Masks the end of sequence during the first `count` tokens, in every row where another token is left.
///
/// A constraint that is finished, and allows nothing but the end, ends nevertheless.
///
/// ```
/// use burn_dfa::processor::MinNewTokens;
/// use burn_dfa::{TokenId, Vocabulary};
///
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), None])?.with_eos([TokenId(1)])?;
/// let processor = MinNewTokens::new(8, &vocabulary);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinNewTokens {
    count: usize,
    eos: Vec<TokenId>,
}

impl MinNewTokens {
    /// At least `count` tokens before any end-of-sequence id of `vocabulary`.
    pub fn new(count: usize, vocabulary: &Vocabulary) -> Self {
        Self { count, eos: vocabulary.eos().iter().copied().collect() }
    }
}

impl LogitsProcessor for MinNewTokens {
    type State = Constant<Tensor<2, Bool>>;

    fn init(&self, context: &InitContext) -> Self::State {
        Constant(token_mask(&self.eos, context))
    }

    fn process(
        &self,
        state: Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let count = i32::try_from(self.count).unwrap_or(i32::MAX);
        let early = context.step.clone().lower_elem(count).reshape([-1, 1]).expand(logits.dims());
        let mask = state.0.clone().expand(logits.dims()).bool_and(early);
        (mask_unless_last(logits, mask), state)
    }
}
