//! Repetition penalty.

use burn::tensor::{Bool, DType, IndexingUpdateOp, Int, Tensor};

use super::{
    InPlaceState, InitContext, LogitsProcessor, RowParam, RowState, StepContext, column, in_range, of_rows,
};
use burn_dfa_tokens::{Error, Result};

/// Makes tokens of the prompt and of the output less likely (penalty above 1) or likelier (below
/// 1): divides positive logits by the penalty and multiplies negative logits.
///
/// Source: Keskar et al., "CTRL", 2019, in the form of Hugging Face's
/// `RepetitionPenaltyLogitsProcessor`.
///
/// ```
/// use burn_dfa::ErrorKind;
/// use burn_dfa::processor::RepetitionPenalty;
///
/// assert!(RepetitionPenalty::new(1.1).is_ok());
/// assert_eq!(RepetitionPenalty::new(-1.0).unwrap_err().kind(), ErrorKind::Input);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RepetitionPenalty {
    /// One entry per row, or one for all rows.
    penalties: Vec<f32>,
}

/// The number of occurrences of each token in a row, in the states of [`RepetitionPenalty`] and
/// [`FrequencyPresencePenalty`](super::FrequencyPresencePenalty).
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::processor::{
///     InitContext, LogitsProcessor, RepetitionPenalty, StepContext, TokenCounts,
/// };
///
/// let device = Device::flex();
/// let penalty = RepetitionPenalty::new(2.0)?;
/// let prompt = Tensor::<2, Int>::from_ints([[1]], &device);
/// let (seen, penalties): (TokenCounts, _) = penalty.init(&InitContext {
///     prompt,
///     padding: Tensor::from_ints([0], &device),
///     vocab_size: 2,
/// });
///
/// let first = StepContext {
///     tokens: Tensor::from_ints([2], &device),
///     step: Tensor::from_ints([0], &device),
/// };
/// let logits = Tensor::<2>::from_data([[1.0, 1.0]], &device);
/// let (logits, _) = penalty.process((seen, penalties), logits, &first);
/// // Token 1 is in the prompt.
/// assert_eq!(logits.into_data().try_to_vec::<f32>().unwrap(), [1.0, 0.5]);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TokenCounts {
    /// `[batch, vocab_size]`, `i32`
    counts: Tensor<2, Int>,
}

impl RepetitionPenalty {
    /// A penalty from 0.01 to 100; 1 does nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) outside of this range.
    pub fn new(penalty: f32) -> Result<Self> {
        Self::of_rows([penalty])
    }

    /// A penalty for each row.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = f32>) -> Result<Self> {
        let penalties: Vec<_> = rows.into_iter().collect();
        if let Some(penalty) = penalties.iter().find(|penalty| !(0.01..=100.0).contains(*penalty)) {
            return Err(Error::input(format!("repetition penalty {penalty}: it must be from 0.01 to 100")));
        }
        Ok(Self { penalties })
    }
}

impl TokenCounts {
    /// Zero counts for the rows of the batch.
    pub(super) fn nothing(context: &InitContext) -> Self {
        let shape = [context.batch(), context.vocab_size];
        Self { counts: Tensor::zeros(shape, (&context.device(), DType::I32)) }
    }

    /// The count of each token, `[batch, vocab_size]`.
    pub(super) fn counts(&self) -> Tensor<2, Int> {
        self.counts.clone()
    }

    /// Counts one more token of every row, `[batch]`.
    pub(super) fn then(self, tokens: &Tensor<1, Int>) -> Self {
        let tokens = tokens.clone().cast(DType::I32).reshape([-1, 1]);
        let one = tokens.ones_like();
        self.count(tokens, one)
    }

    /// Counts `tokens` where `counted` is 1, both `[batch, n]`; ignores ids out of range.
    fn count(self, tokens: Tensor<2, Int>, counted: Tensor<2, Int>) -> Self {
        let [_, vocab_size] = self.counts.dims();
        let last = vocab_size as i32 - 1;
        let outside = tokens.clone().lower_elem(0).bool_or(tokens.clone().greater_elem(last));
        let counted = counted.mask_fill(outside, 0);
        let counts = self.counts.scatter(1, tokens.clamp(0, last), counted, IndexingUpdateOp::Add);
        Self { counts }
    }
}

impl InPlaceState for TokenCounts {
    fn assign(&mut self, new: Self) {
        self.counts.assign(new.counts);
    }
}

impl RowState for TokenCounts {
    fn assign_row(&mut self, row: usize, new: Self) {
        self.counts.assign_row(row, new.counts);
    }

    fn mask_rows(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
        Self { counts: self.counts.mask_rows(mask, other.counts) }
    }
}

impl LogitsProcessor for RepetitionPenalty {
    /// The tokens of the prompt and the output so far, and the factors of positive and negative
    /// logits, each `[batch]`.
    type State = (TokenCounts, (RowParam<Tensor<1>>, RowParam<Tensor<1>>));

    fn init(&self, context: &InitContext) -> Self::State {
        let [batch, length] = context.prompt.dims();
        let device = context.device();
        let positions = Tensor::<1, Int>::arange(0..length as i64, (&device, DType::I32));
        let positions = positions.reshape([1, length]).expand([batch, length]);
        let padding = context.padding.clone().cast(DType::I32).reshape([batch, 1]).expand([batch, length]);
        let real = positions.greater_equal(padding).int().cast(DType::I32);
        let seen = TokenCounts::nothing(context).count(context.prompt.clone().cast(DType::I32), real);
        let reciprocals: Vec<_> = self.penalties.iter().map(|penalty| penalty.recip()).collect();
        (seen, (of_rows(&reciprocals, context), of_rows(&self.penalties, context)))
    }

    fn process(
        &self,
        (seen, (positive, negative)): Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let seen = seen.then(&context.tokens);
        let penalised = in_range(logits, |logits| {
            let is_negative = logits.clone().lower_elem(0.0);
            let reduced = logits.clone() * column(&positive, &logits);
            let penalised = reduced.mask_where(is_negative, logits.clone() * column(&negative, &logits));
            logits.mask_where(seen.counts().greater_elem(0), penalised)
        });
        (penalised, (seen, (positive, negative)))
    }
}
