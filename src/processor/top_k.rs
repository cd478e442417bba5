//! Top-k.

use burn::tensor::Tensor;

use super::{InitContext, LogitsProcessor, StepContext};
use crate::error::{Error, Result};
use crate::kernel::filter;

/// Keeps the `k` greatest logits of a row (and those equal to the least of them), masks the rest.
///
/// NaN counts as +∞. A row of fewer than `k` logits above −∞ keeps these. No row is sorted.
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
        match self.k >= logits.dims()[1] {
            true => (logits, ()),
            false => (filter::top_k(logits, self.k), ()),
        }
    }
}
