//! `DeviceConstraint::illegal` and `DeviceConstraint::next`: the step of states with empty stacks.

use burn::tensor::{Bool, DType, Int, Tensor};

use super::built_in;
use crate::tensor::{DeviceConstraint, Position, UNLIMITED};

impl DeviceConstraint {
    /// A mask of the illegal tokens.
    ///
    /// `spare` is the number of tokens that a row may emit after the next one. A token is also
    /// illegal if the shortest path from its next state to the end is longer than `spare`.
    ///
    /// If constraints have calls, the stacks of the rows are empty, as at the start.
    ///
    /// # Shapes
    /// - `states`: `[batch]`, made by [`states`](Self::states) or [`next`](Self::next)
    /// - `spare`: `[batch]`, `i32`, not negative
    /// - returns `[batch, vocab_size]`
    pub fn illegal(&self, states: Tensor<1, Int>, spare: Option<Tensor<1, Int>>) -> Tensor<2, Bool> {
        let remaining = match spare {
            Some(spare) => spare.cast(DType::I32).clamp_max(UNLIMITED - 1) + 1,
            None => states.full_like(UNLIMITED),
        };
        let position = Position::of(states, remaining, self.sizes().numbers());
        match self.store().image() {
            Some(image) => built_in::illegal(image, position),
            None => {
                let logits =
                    Tensor::zeros([position.batch(), self.vocab_size()], (self.device(), DType::F32));
                let tokens = position.states().full_like(self.no_token() as i32);
                super::mask(self, logits, position, tokens).0.equal_elem(f32::NEG_INFINITY)
            }
        }
    }

    /// The states after `tokens`: `DEAD` for an illegal or invalid token, the same state for
    /// [`no_token`](Self::no_token).
    ///
    /// # Shapes
    /// - `states`, `tokens`: `[batch]`
    /// - returns `[batch]`, `i32`
    ///
    /// # Panics
    /// If the lengths differ, or if a constraint has calls, because a state does not include the
    /// stack. Use
    /// [`ConstraintProcessor::advance`](crate::processor::ConstraintProcessor::advance) instead.
    pub fn next(&self, states: Tensor<1, Int>, tokens: Tensor<1, Int>) -> Tensor<1, Int> {
        assert_eq!(
            self.sizes().exits,
            0,
            "the rows of constraints with calls have a stack: `ConstraintProcessor::advance`"
        );
        let remaining = states.full_like(UNLIMITED);
        let position = Position::of(states, remaining, self.sizes().numbers());
        super::after(self, position, super::ids(tokens)).states()
    }
}
