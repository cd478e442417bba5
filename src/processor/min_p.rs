//! Min-p.

use burn::tensor::Tensor;

use super::{InitContext, LogitsProcessor, StepContext};
use crate::error::{Error, Result};

/// Masks the tokens whose probability is below `p` times that of the likeliest token.
///
/// No softmax is needed: `probability ≥ p · greatest` is `logit ≥ greatest logit + ln p`.
/// Put it after [`Temperature`](super::Temperature) where the temperature is to count.
///
/// Source: Nguyen et al., "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs", 2024.
///
/// ```
/// use burn_dfa::processor::MinP;
///
/// assert!(MinP::new(0.05).is_ok());
/// assert!(MinP::new(1.5).unwrap_err().is_input());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinP {
    log_p: f32,
}

impl MinP {
    /// A fraction above 0, at most 1.
    ///
    /// # Errors
    /// [`Error::is_input`] outside of that.
    pub fn new(p: f32) -> Result<Self> {
        if p.is_nan() || p <= 0.0 || p > 1.0 {
            return Err(Error::input(format!("min-p of {p}: it must be above 0 and at most 1")));
        }
        Ok(Self { log_p: p.ln() })
    }
}

impl LogitsProcessor for MinP {
    type State = ();

    fn init(&self, _context: &InitContext) {}

    fn process(&self, (): (), logits: Tensor<2>, _context: &StepContext) -> (Tensor<2>, ()) {
        let [batch, width] = logits.dims();
        let least = (logits.clone().max_dim(1) + self.log_p).expand([batch, width]);
        let below = logits.clone().lower(least);
        (logits.mask_fill(below, f32::NEG_INFINITY), ())
    }
}
