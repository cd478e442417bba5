//! Top-p.

use burn::tensor::Tensor;

use super::{InitContext, Kept, LogitsProcessor, StepContext, of_rows};
use crate::error::{Error, Result};
use crate::kernel::filter;

/// Keeps the fewest of the likeliest tokens whose probability, together, reaches `p` (and those as likely as
/// the least of them), masks the rest. Also known as nucleus sampling.
///
/// At least one token of a row is kept. A `p` of 1 keeps everything. NaN counts as +∞, and where the greatest
/// logit is +∞, only those like it are kept. Put it after [`Temperature`](super::Temperature) where the
/// temperature is to count.
///
/// No row is sorted: the least of the kept logits is searched. Probabilities are sums of integers, hence
/// exact sums of slightly rounded terms: a token is kept or masked wrongly only where the probability of it,
/// or of the tokens before it, is within [`TopP::TOLERANCE`] of `p`. Equal logits are kept alike at every
/// batch position, on Flex and on GPUs. (Burn's other backends bisect, with the same tolerance.)
///
/// Source: Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020.
///
/// ```
/// use burn_dfa::processor::TopP;
///
/// assert!(TopP::new(0.9).is_ok());
/// assert!(TopP::new(0.0).unwrap_err().is_input());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TopP {
    /// Of each row, or of all of them.
    p: Vec<f32>,
}

impl TopP {
    /// How close to `p` a probability must be for rounding to decide: 2⁻¹⁸.
    pub const TOLERANCE: f64 = 1.0 / (1 << 18) as f64;

    /// A probability above 0, at most 1.
    ///
    /// # Errors
    /// [`Error::is_input`] outside of that.
    pub fn new(p: f32) -> Result<Self> {
        Self::of_rows([Some(p)])
    }

    /// A probability for each row; `None` keeps everything.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = Option<f32>>) -> Result<Self> {
        let p: Vec<_> = rows.into_iter().map(|p| p.unwrap_or(1.0)).collect();
        if let Some(p) = p.iter().find(|&&p| p.is_nan() || p <= 0.0 || p > 1.0) {
            return Err(Error::input(format!("top-p of {p}: it must be above 0 and at most 1")));
        }
        Ok(Self { p })
    }
}

impl LogitsProcessor for TopP {
    /// `[1]` or `[batch]`, `f32`
    type State = Kept<Tensor<1>>;

    fn init(&self, context: &InitContext) -> Self::State {
        of_rows(&self.p, context)
    }

    fn process(&self, p: Self::State, logits: Tensor<2>, _context: &StepContext) -> (Tensor<2>, Self::State) {
        (filter::top_p(logits, p.get().clone()), p)
    }
}
