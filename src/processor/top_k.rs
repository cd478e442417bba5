//! Top-k.

use burn::tensor::Tensor;

use super::{InitContext, Kept, LogitsProcessor, StepContext, of_rows};
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopK {
    /// Of each row, or of all of them.
    k: Vec<usize>,
}

impl TopK {
    /// Keeps `k` logits, at least 1; as many as there are where `k` is greater than the width.
    ///
    /// # Errors
    /// [`Error::is_input`] for 0.
    pub fn new(k: usize) -> Result<Self> {
        Self::of_rows([Some(k)])
    }

    /// How many logits each row keeps; `None` keeps everything.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = Option<usize>>) -> Result<Self> {
        let k: Vec<_> = rows.into_iter().map(|k| k.unwrap_or(usize::MAX)).collect();
        if k.contains(&0) {
            return Err(Error::input("top-k of 0 keeps nothing: leave top-k out, or keep at least 1"));
        }
        Ok(Self { k })
    }
}

impl LogitsProcessor for TopK {
    /// `[1]` or `[batch]`, `f32`: whole numbers, the width at most
    type State = Kept<Tensor<1>>;

    fn init(&self, context: &InitContext) -> Self::State {
        let k: Vec<_> = self.k.iter().map(|&k| k.min(context.width) as f32).collect();
        of_rows(&k, context)
    }

    fn process(&self, k: Self::State, logits: Tensor<2>, _context: &StepContext) -> (Tensor<2>, Self::State) {
        (filter::top_k(logits, k.get().clone()), k)
    }
}
