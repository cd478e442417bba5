//! Temperature.

use burn::tensor::Tensor;

use super::{InitContext, LogitsProcessor, StepContext};
use crate::error::{Error, Result};

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
    /// A temperature above 0.
    ///
    /// # Errors
    /// [`Error::is_input`] where it is not a positive normal number.
    pub fn new(temperature: f32) -> Result<Self> {
        let factor = temperature.recip();
        if temperature <= 0.0 || !factor.is_normal() {
            return Err(Error::input(format!(
                "temperature {temperature}: it must be a number above 0; for 0 sample greedily"
            )));
        }
        Ok(Self { factor })
    }
}

impl LogitsProcessor for Temperature {
    type State = ();

    fn init(&self, _context: &InitContext) {}

    fn process(&self, (): (), logits: Tensor<2>, _context: &StepContext) -> (Tensor<2>, ()) {
        (logits * self.factor, ())
    }
}
