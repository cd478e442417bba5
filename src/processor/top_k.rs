//! Top-k.

use burn::tensor::Tensor;

use super::{InitContext, LogitsProcessor, RowParam, StepContext, of_rows};
use crate::kernel::filter;
use burn_dfa_tokens::{Error, Result};

/// Keeps the `k` greatest logits of a row (and all logits equal to the least of them), masks the
/// rest.
///
/// NaN counts as +∞. A row of fewer than `k` logits above −∞ keeps all of them. No row is sorted.
///
/// Source: Fan, Lewis, Dauphin, "Hierarchical Neural Story Generation", 2018.
///
/// ```
/// use burn_dfa::ErrorKind;
/// use burn_dfa::processor::TopK;
///
/// assert!(TopK::new(40).is_ok());
/// assert_eq!(TopK::new(0).unwrap_err().kind(), ErrorKind::Input);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopK {
    /// One entry per row, or one for all rows.
    k: Vec<usize>,
}

impl TopK {
    /// Keeps `k` logits, at least 1; all logits if `k` is greater than `vocab_size`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for 0.
    pub fn new(k: usize) -> Result<Self> {
        Self::of_rows([Some(k)])
    }

    /// The number of logits that each row keeps; `None` keeps all.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = Option<usize>>) -> Result<Self> {
        let k: Vec<_> = rows.into_iter().map(|k| k.unwrap_or(usize::MAX)).collect();
        if k.contains(&0) {
            return Err(Error::input("top-k of 0 keeps nothing: leave top-k out, or keep at least 1"));
        }
        Ok(Self { k })
    }
}

impl LogitsProcessor for TopK {
    /// `[batch]`, `f32`: whole numbers, at most `vocab_size`
    type State = RowParam<Tensor<1>>;

    fn init(&self, context: &InitContext) -> Self::State {
        let k: Vec<_> = self.k.iter().map(|&k| k.min(context.vocab_size) as f32).collect();
        of_rows(&k, context)
    }

    fn process(&self, k: Self::State, logits: Tensor<2>, _context: &StepContext) -> (Tensor<2>, Self::State) {
        (filter::top_k(logits, k.get().clone()), k)
    }
}
