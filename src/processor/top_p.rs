//! Top-p.

use burn::tensor::Tensor;

use super::{InitContext, LogitsProcessor, RowParam, StepContext, of_rows};
use crate::kernel::filter;
use burn_dfa_tokens::{Error, Result};

/// Keeps the smallest set of likeliest tokens whose total probability reaches `p` (and all tokens
/// as likely as the least of them), masks the rest. Also known as nucleus sampling.
///
/// It keeps at least one token of a row. A `p` of 1 keeps everything. NaN counts as +∞, and if the
/// greatest logit is +∞, only the infinite logits are kept. Place it after
/// [`Temperature`](super::Temperature) if the temperature should count.
///
/// It searches the least of the kept logits, without sorting a row. Probabilities are sums of
/// integers, hence exact sums of slightly rounded terms: a token is kept or masked wrongly only if
/// the cumulative probability with or without it is within [`TopP::TOLERANCE`] of `p`. The results
/// are equal at every batch position, on Flex and on GPUs. (Burn's other backends bisect, with the
/// same tolerance.)
///
/// Source: Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020.
///
/// ```
/// use burn_dfa::ErrorKind;
/// use burn_dfa::processor::TopP;
///
/// assert!(TopP::new(0.9).is_ok());
/// assert_eq!(TopP::new(0.0).unwrap_err().kind(), ErrorKind::Input);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TopP {
    /// One entry per row, or one for all rows.
    p: Vec<f32>,
}

impl TopP {
    /// The greatest distance from `p` at which rounding may decide: 2⁻¹⁸.
    pub const TOLERANCE: f64 = 1.0 / (1 << 18) as f64;

    /// A probability above 0, at most 1.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) outside of this range.
    pub fn new(p: f32) -> Result<Self> {
        Self::of_rows([Some(p)])
    }

    /// A probability for each row; `None` keeps all tokens.
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = Option<f32>>) -> Result<Self> {
        let p: Vec<_> = rows.into_iter().map(|p| p.unwrap_or(1.0)).collect();
        if let Some(p) = p.iter().find(|&&p| p.is_nan() || p <= 0.0 || p > 1.0) {
            return Err(Error::input(format!("top-p of {p}: it must be above 0 and at most 1")));
        }
        Ok(Self { p })
    }
}

impl LogitsProcessor for TopP {
    /// `[batch]`, `f32`
    type State = RowParam<Tensor<1>>;

    fn init(&self, context: &InitContext) -> Self::State {
        of_rows(&self.p, context)
    }

    fn process(&self, p: Self::State, logits: Tensor<2>, _context: &StepContext) -> (Tensor<2>, Self::State) {
        (filter::top_p(logits, p.get().clone()), p)
    }
}
