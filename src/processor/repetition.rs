//! Repetition penalty.

use burn::tensor::{DType, IndexingUpdateOp, Int, Tensor};

use super::{InitContext, LogitsProcessor, Persistent, RowState, StepContext};
use crate::error::{Error, Result};

/// Makes tokens of the prompt and of the output less likely (penalty above 1) or likelier (below 1): positive
/// logits are divided by the penalty, negative ones multiplied.
///
/// Source: Keskar et al., "CTRL", 2019, in the form of Hugging Face's `RepetitionPenaltyLogitsProcessor`.
///
/// ```
/// use burn_dfa::processor::RepetitionPenalty;
///
/// assert!(RepetitionPenalty::new(1.1).is_ok());
/// assert!(RepetitionPenalty::new(-1.0).unwrap_err().is_input());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepetitionPenalty {
    penalty: f32,
}

/// The tokens that a row has seen: the state of a [`RepetitionPenalty`].
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::processor::{InitContext, LogitsProcessor, RepetitionPenalty, Seen, StepContext};
///
/// let device = Device::flex();
/// let penalty = RepetitionPenalty::new(2.0)?;
/// let prompt = Tensor::<2, Int>::from_ints([[1]], &device);
/// let seen: Seen = penalty.init(&InitContext { prompt, padding: Tensor::from_ints([0], &device), width: 2 });
///
/// let first = StepContext { tokens: Tensor::from_ints([2], &device), step: Tensor::from_ints([0], &device) };
/// let logits = Tensor::<2>::from_data([[1.0, 1.0]], &device);
/// let (logits, _) = penalty.process(seen, logits, &first);
/// assert_eq!(logits.into_data().try_to_vec::<f32>().unwrap(), [1.0, 0.5]); // token 1 is in the prompt
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Seen {
    /// `[batch, width]`, `i32`: how often.
    counts: Tensor<2, Int>,
}

impl RepetitionPenalty {
    /// A penalty from 0.01 to 100; 1 does nothing.
    ///
    /// # Errors
    /// [`Error::is_input`] outside of that.
    pub fn new(penalty: f32) -> Result<Self> {
        if !(0.01..=100.0).contains(&penalty) {
            return Err(Error::input(format!("repetition penalty {penalty}: it must be from 0.01 to 100")));
        }
        Ok(Self { penalty })
    }
}

impl Seen {
    /// Counts `tokens` where `counted` is 1, both `[batch, n]`; ids out of range are left out.
    fn count(self, tokens: Tensor<2, Int>, counted: Tensor<2, Int>) -> Self {
        let [_, width] = self.counts.dims();
        let last = width as i32 - 1;
        let outside = tokens.clone().lower_elem(0).bool_or(tokens.clone().greater_elem(last));
        let counted = counted.mask_fill(outside, 0);
        let counts = self.counts.scatter(1, tokens.clamp(0, last), counted, IndexingUpdateOp::Add);
        Self { counts }
    }
}

impl Persistent for Seen {
    fn assign(&mut self, new: Self) {
        self.counts.assign(new.counts);
    }
}

impl RowState for Seen {
    fn assign_row(&mut self, row: usize, new: Self) {
        self.counts.assign_row(row, new.counts);
    }
}

impl LogitsProcessor for RepetitionPenalty {
    type State = Seen;

    fn init(&self, context: &InitContext) -> Seen {
        let [batch, length] = context.prompt.dims();
        let device = context.device();
        let seen = Seen { counts: Tensor::zeros([batch, context.width], (&device, DType::I32)) };
        let positions = Tensor::<1, Int>::arange(0..length as i64, (&device, DType::I32));
        let positions = positions.reshape([1, length]).expand([batch, length]);
        let padding = context.padding.clone().cast(DType::I32).reshape([batch, 1]).expand([batch, length]);
        let real = positions.greater_equal(padding).int().cast(DType::I32);
        seen.count(context.prompt.clone().cast(DType::I32), real)
    }

    fn process(&self, seen: Seen, logits: Tensor<2>, context: &StepContext) -> (Tensor<2>, Seen) {
        let tokens = context.tokens.clone().cast(DType::I32);
        let [batch] = tokens.dims();
        let one = tokens.ones_like().reshape([batch, 1]);
        let seen = seen.count(tokens.reshape([batch, 1]), one);
        let negative = logits.clone().lower_elem(0.0);
        let reduced = logits.clone() * self.penalty.recip();
        let penalised = reduced.mask_where(negative, logits.clone() * self.penalty);
        (logits.mask_where(seen.counts.clone().greater_elem(0), penalised), seen)
    }
}
