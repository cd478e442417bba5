//! Top-k.

use burn::tensor::Tensor;

use super::{InitContext, LogitsProcessor, StepContext};
use crate::error::{Error, Result};

/// Keeps the `k` greatest logits of a row (and those equal to the least of them), masks the rest.
///
/// Source: Fan, Lewis, Dauphin, "Hierarchical Neural Story Generation", 2018.
///
/// ```
/// use burn_dfa::processor::TopK;
///
/// assert!(TopK::new(40).is_ok());
/// assert!(TopK::new(0).unwrap_err().is_input());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopK {
    k: usize,
}

impl TopK {
    /// Keeps `k` logits, at least 1; as many as there are where `k` is greater than the width.
    ///
    /// # Errors
    /// [`Error::is_input`] for 0.
    pub fn new(k: usize) -> Result<Self> {
        if k == 0 {
            return Err(Error::input("top-k of 0 keeps nothing: leave top-k out, or keep at least 1"));
        }
        Ok(Self { k })
    }
}

impl LogitsProcessor for TopK {
    type State = ();

    fn init(&self, _context: &InitContext) {}

    fn process(&self, (): (), logits: Tensor<2>, _context: &StepContext) -> (Tensor<2>, ()) {
        let [batch, width] = logits.dims();
        if self.k >= width {
            return (logits, ());
        }
        let least = logits.clone().topk(self.k, 1).min_dim(1).expand([batch, width]);
        let below = logits.clone().lower(least);
        (logits.mask_fill(below, f32::NEG_INFINITY), ())
    }
}
