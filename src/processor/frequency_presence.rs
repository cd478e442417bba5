//! Presence and frequency penalties.

use burn::tensor::{DType, Tensor, TensorData};

use super::{InitContext, LogitsProcessor, RowParam, StepContext, TokenCounts, in_range, of_batch};
use burn_dfa_tokens::{Error, Result};

/// Makes tokens of the output less likely (penalties above 0) or likelier (below 0). The presence
/// penalty is subtracted once from the logit of every token in the output, the frequency penalty
/// once per occurrence. The prompt does not count.
///
/// Both penalties follow OpenAI's API.
///
/// ```
/// use burn_dfa::ErrorKind;
/// use burn_dfa::processor::FrequencyPresencePenalty;
///
/// assert!(FrequencyPresencePenalty::new(0.5, 0.1).is_ok());
/// assert_eq!(FrequencyPresencePenalty::new(f32::NAN, 0.0).unwrap_err().kind(), ErrorKind::Input);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FrequencyPresencePenalty {
    /// Presence and frequency penalty of each row, or of all rows.
    rows: Vec<[f32; 2]>,
}

impl FrequencyPresencePenalty {
    /// The greatest penalty, of either sign.
    pub const MAX: f32 = 100.0;

    /// The same penalties in all rows; 0 does nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for a penalty outside of −100 to 100.
    pub fn new(presence: f32, frequency: f32) -> Result<Self> {
        Self::of_rows([[presence, frequency]])
    }

    /// The presence and the frequency penalty of each row.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = [f32; 2]>) -> Result<Self> {
        let rows: Vec<_> = rows.into_iter().collect();
        for (name, at) in [("presence", 0), ("frequency", 1)] {
            let wrong = rows.iter().map(|row| row[at]).find(|x| !(-Self::MAX..=Self::MAX).contains(x));
            if let Some(wrong) = wrong {
                return Err(Error::input(format!("{name} penalty {wrong}: it must be from -100 to 100")));
            }
        }
        Ok(Self { rows })
    }
}

impl LogitsProcessor for FrequencyPresencePenalty {
    /// The tokens of the output so far, and the penalties, `[batch, 2]`.
    type State = (TokenCounts, RowParam<Tensor<2>>);

    fn init(&self, context: &InitContext) -> Self::State {
        let penalties = TensorData::new(self.rows.concat(), [self.rows.len(), 2]);
        let penalties = Tensor::from_data(penalties, (&context.device(), DType::F32));
        (TokenCounts::nothing(context), of_batch(penalties, context))
    }

    fn process(
        &self,
        (seen, penalties): Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let (seen, dtype) = (seen.then(&context.tokens), logits.dtype());
        let rows = penalties.get().dims()[0];
        let penalty = |at: usize| penalties.get().clone().slice([0..rows, at..at + 1]);
        let counts = seen.counts().float().cast(DType::F32);
        let sum = counts.clone().clamp_max(1.0) * penalty(0) + counts * penalty(1);
        (in_range(logits, |logits| logits - sum.cast(dtype)), (seen, penalties))
    }
}
