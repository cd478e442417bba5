//! Min-p.

use burn::tensor::Tensor;

use super::{InitContext, LogitsProcessor, RowParam, StepContext, column, of_rows};
use burn_dfa_tokens::{Error, Result};

/// Masks the tokens whose probability is below `p` times that of the likeliest token.
///
/// It needs no softmax: `probability ≥ p · greatest` is `logit ≥ greatest logit + ln p`, rounded to
/// the dtype of the logits. Place it
/// after [`Temperature`](super::Temperature) if the temperature should count.
///
/// Source: Nguyen et al., "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM
/// Outputs", 2024.
///
/// ```
/// use burn_dfa::ErrorKind;
/// use burn_dfa::processor::MinP;
///
/// assert!(MinP::new(0.05).is_ok());
/// assert_eq!(MinP::new(1.5).unwrap_err().kind(), ErrorKind::Input);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MinP {
    /// ln p of each row, or one for all rows.
    log_p: Vec<f32>,
}

impl MinP {
    /// A fraction above 0, at most 1.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) outside of this range.
    pub fn new(p: f32) -> Result<Self> {
        Self::of_rows([Some(p)])
    }

    /// A fraction for each row; `None` keeps everything.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = Option<f32>>) -> Result<Self> {
        let log = |p: Option<f32>| match p {
            None => Ok(f32::NEG_INFINITY),
            Some(p) if p > 0.0 && p <= 1.0 => Ok(p.ln()),
            Some(p) => Err(Error::input(format!("min-p of {p}: it must be above 0 and at most 1"))),
        };
        Ok(Self { log_p: rows.into_iter().map(log).collect::<Result<_>>()? })
    }
}

impl LogitsProcessor for MinP {
    /// `[batch]`, `f32`
    type State = RowParam<Tensor<1>>;

    fn init(&self, context: &InitContext) -> Self::State {
        of_rows(&self.log_p, context)
    }

    fn process(
        &self,
        log_p: Self::State,
        logits: Tensor<2>,
        _context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let least = (logits.clone().max_dim(1) + column(&log_p, &logits)).expand(logits.dims());
        let below = logits.clone().lower(least);
        (logits.mask_fill(below, f32::NEG_INFINITY), log_p)
    }
}
