//! Temperature.

use burn::tensor::Tensor;

use super::{InitContext, LogitsProcessor, RowParam, StepContext, column, in_range, of_rows};
use crate::sampling::temperature_factor;
use burn_dfa_tokens::Result;

/// Divides the logits by a temperature, as a product with its reciprocal in their dtype: below 1
/// sharpens the distribution, above 1 flattens it.
///
/// ```
/// use burn_dfa::ErrorKind;
/// use burn_dfa::processor::Temperature;
///
/// assert!(Temperature::new(0.7).is_ok());
/// assert_eq!(Temperature::new(0.0).unwrap_err().kind(), ErrorKind::Input); // use greedy sampling
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Temperature {
    /// One factor per row, or one for all rows. A product rounds the same on every device, a
    /// quotient does not.
    factors: Vec<f32>,
}

impl Temperature {
    /// A temperature from 0.01 to 100.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) outside of this range: near 0, finite logits
    /// would become infinite. Within it, logits below 10³⁶ stay finite.
    pub fn new(temperature: f32) -> Result<Self> {
        Self::of_rows([Some(temperature)])
    }

    /// A temperature for each row; `None` does not change its logits.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = Option<f32>>) -> Result<Self> {
        let factor = |temperature: Option<f32>| temperature.map_or(Ok(1.0), temperature_factor);
        Ok(Self { factors: rows.into_iter().map(factor).collect::<Result<_>>()? })
    }
}

impl LogitsProcessor for Temperature {
    /// `[batch]`, `f32`
    type State = RowParam<Tensor<1>>;

    fn init(&self, context: &InitContext) -> Self::State {
        of_rows(&self.factors, context)
    }

    fn process(
        &self,
        factors: Self::State,
        logits: Tensor<2>,
        _context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let column = column(&factors, &logits);
        (in_range(logits, |logits| logits * column), factors)
    }
}
