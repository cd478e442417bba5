//! The rule of a step by itself, as methods of the table.

use burn::tensor::{Bool, DType, Int, Tensor};

use super::built_in;
use crate::tensor::{Position, TensorTable, UNLIMITED};

impl TensorTable {
    /// Which tokens may not follow: true where illegal.
    ///
    /// With `spare`, the number of tokens that a row may still emit after this one, a token is illegal as well where
    /// the shortest way from its next state to the end is longer than that.
    ///
    /// Where tables have calls, the rows have nothing on their stacks, as at the start.
    ///
    /// # Shapes
    /// - `states`: `[batch]`, made by [`states`](Self::states) or [`next`](Self::next)
    /// - `spare`: `[batch]`, `i32`, not negative
    /// - returns `[batch, width]`
    pub fn illegal(&self, states: Tensor<1, Int>, spare: Option<Tensor<1, Int>>) -> Tensor<2, Bool> {
        let remaining = match spare {
            Some(spare) => spare.cast(DType::I32).clamp_max(UNLIMITED - 1) + 1,
            None => states.full_like(UNLIMITED),
        };
        let position = Position::of(states, remaining, self.sizes().numbers());
        match self.store().image() {
            Some(image) => built_in::illegal(image, position),
            None => {
                let logits = Tensor::zeros([position.batch(), self.width()], (self.device(), DType::F32));
                let tokens = position.states().full_like(self.no_token() as i32);
                super::mask(self, logits, position, tokens).0.equal_elem(f32::NEG_INFINITY)
            }
        }
    }

    /// The states after `tokens`: `DEAD` where a token is illegal or no token at all, the same state where
    /// it is [`no_token`](Self::no_token).
    ///
    /// # Shapes
    /// - `states`, `tokens`: `[batch]`
    /// - returns `[batch]`, `i32`
    ///
    /// # Panics
    /// Where a table has calls, since a state does not hold the stack: follow rows by
    /// [`DfaProcessor::advance`](crate::processor::DfaProcessor::advance).
    pub fn next(&self, states: Tensor<1, Int>, tokens: Tensor<1, Int>) -> Tensor<1, Int> {
        assert_eq!(
            self.sizes().ends,
            0,
            "the rows of tables with calls have a stack: `DfaProcessor::advance`"
        );
        let remaining = states.full_like(UNLIMITED);
        let position = Position::of(states, remaining, self.sizes().numbers());
        super::after(self, position, tokens.cast(DType::I32)).states()
    }
}
