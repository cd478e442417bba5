//! Temperature.

use burn::tensor::Tensor;

use super::{InitContext, LogitsProcessor, StepContext};
use crate::error::Result;
use crate::sampling::temperature_factor;

/// Divides the logits by a temperature: below 1 sharpens the distribution, above 1 flattens it.
///
/// ```
/// use burn_dfa::processor::Temperature;
///
/// assert!(Temperature::new(0.7).is_ok());
/// assert!(Temperature::new(0.0).unwrap_err().is_input()); // use greedy sampling
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature {
    /// A product rounds the same on every device, a quotient does not.
    factor: f32,
}

impl Temperature {
    /// A temperature from 0.01 to 100.
    ///
    /// # Errors
    /// [`Error::is_input`](crate::Error::is_input) outside of that: near 0, finite logits would become infinite.
    pub fn new(temperature: f32) -> Result<Self> {
        Ok(Self { factor: temperature_factor(temperature)? })
    }
}

impl LogitsProcessor for Temperature {
    type State = ();

    fn init(&self, _context: &InitContext) {}

    fn process(&self, (): (), logits: Tensor<2>, _context: &StepContext) -> (Tensor<2>, ()) {
        (logits * self.factor, ())
    }
}
