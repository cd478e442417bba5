//! A minimum length of the output.

use burn::tensor::{Bool, DType, Int, Tensor};

use super::suppress::token_mask;
use super::{Constant, InitContext, LogitsProcessor, RowParam, StepContext, mask_unless_last, of_batch};
use crate::tensor::ints;
use crate::vocabulary::{TokenId, Vocabulary};

/// Masks the end of sequence during the first `count` tokens, in every row with another legal
/// token.
///
/// A finished constraint, which allows only the end, still ends.
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
    /// One entry per row, or one for all rows.
    counts: Vec<usize>,
    eos: Vec<TokenId>,
}

impl MinNewTokens {
    /// At least `count` tokens before any end-of-sequence id of `vocabulary`.
    pub fn new(count: usize, vocabulary: &Vocabulary) -> Self {
        Self::of_rows([count], vocabulary)
    }

    /// The minimum number of tokens of each row.
    pub(crate) fn of_rows(counts: impl IntoIterator<Item = usize>, vocabulary: &Vocabulary) -> Self {
        Self { counts: counts.into_iter().collect(), eos: vocabulary.eos().iter().copied().collect() }
    }
}

impl LogitsProcessor for MinNewTokens {
    /// The counts, `[batch]`, and the end-of-sequence ids, `[1, vocab_size]`.
    type State = (RowParam<Tensor<1, Int>>, Constant<Tensor<2, Bool>>);

    fn init(&self, context: &InitContext) -> Self::State {
        let counts = self.counts.iter().map(|&count| i32::try_from(count).unwrap_or(i32::MAX)).collect();
        let eos = token_mask(std::slice::from_ref(&self.eos), context);
        (of_batch(ints(counts, &context.device()), context), Constant(eos))
    }

    fn process(
        &self,
        (counts, eos): Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let ([batch, _], step) = (logits.dims(), context.step.clone().cast(DType::I32));
        let early = step.expand([batch]).lower(counts.get().clone());
        let early = early.reshape([batch, 1]).expand(logits.dims());
        let mask = eos.0.clone().expand(logits.dims()).bool_and(early);
        (mask_unless_last(logits, mask), (counts, eos))
    }
}
