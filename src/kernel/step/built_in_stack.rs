//! The stack of rows in Burn's built-in operations: the reference of the kernels; `stack.rs` of
//! `burn-dfa-tokens` explains the stack.

use burn::tensor::{Bool, Int, Tensor};

use crate::tensor::{Array, Image, Position};
use burn_dfa_tokens::{FARTHEST, StateId};

/// An infinite distance or cost.
const NONE: i32 = i32::MAX;

/// Rows in the middle of a token.
pub(super) struct Rows<'a> {
    image: &'a Image,
    /// `[rows]`
    pub(super) states: Tensor<1, Int>,
    depth: Tensor<1, Int>,
    /// `[rows, numbers]`: positions; only their frames are current.
    values: Tensor<2, Int>,
}

impl<'a> Rows<'a> {
    /// Rows at positions, one for each.
    pub(super) fn at(image: &'a Image, position: &Position) -> Self {
        let states = image.in_range(position.states());
        let depth = position.column(2).clamp(0, image.sizes.depth as i32);
        Self { image, states, depth, values: position.values.clone() }
    }

    /// `count` rows at each position, one after the other.
    pub(super) fn repeated(image: &'a Image, position: &Position, count: usize) -> Self {
        let [batch, numbers] = position.values.dims();
        let values = position.values.clone().reshape([batch, 1, numbers]).expand([batch, count, numbers]);
        Self::at(image, &Position::new(values.reshape([batch * count, numbers])))
    }

    /// The positions of the rows, with `remaining` tokens left.
    pub(super) fn position(self, remaining: Tensor<1, Int>) -> Position {
        let rows = self.states.dims()[0];
        let head = Tensor::stack(vec![self.states, remaining, self.depth], 1);
        let numbers = self.image.sizes.numbers();
        Position::new(Tensor::cat(vec![head, self.values.slice([0..rows, 3..numbers])], 1))
    }

    /// Advances the rows of `mask` by the byte in `column`.
    pub(super) fn step(&mut self, column: Tensor<1, Int>, mask: Tensor<1, Bool>) {
        let next = self.image.cells(Array::Next, self.image.sizes.columns, self.states.clone(), column);
        self.land(next, mask);
    }

    /// Sets the states of the rows of `mask` to `next` and computes their epsilon closures.
    pub(super) fn land(&mut self, next: Tensor<1, Int>, mask: Tensor<1, Bool>) {
        self.states = self.states.clone().mask_where(mask, next);
        for _ in 0..self.image.chain {
            self.jump();
        }
    }

    /// Pushes a frame in call states, and pops a frame in RETURN states.
    fn jump(&mut self) {
        let (frame, depth) = (self.image.sizes.frame() as i32, self.image.sizes.depth as i32);
        let jump = |state: Tensor<1, Int>, index| self.image.entries(Array::Jumps, state * frame + index);
        let enter = jump(self.states.clone(), 0);
        let (calls, returns) = (enter.clone().greater_elem(0), enter.clone().lower_elem(0));
        let is_full = calls.clone().bool_and(self.depth.clone().greater_equal_elem(depth));
        let no_frame = returns.clone().bool_and(self.depth.clone().equal_elem(0));

        // The pushed frame.
        let pushes = calls.clone().bool_and(is_full.clone().bool_not());
        let mut numbers = vec![self.states.clone()];
        for outcome in 0..frame - 1 {
            let to = jump(self.states.clone(), outcome + 1);
            let cost = self.cost(to.clone()).mask_fill(to.equal_elem(0), NONE);
            numbers.push(cost);
        }
        // The popped call state, and its return state.
        let popped = self.top(0).clamp(0, self.image.sizes.states as i32 - 1);
        let outcome = (enter.clone().neg()).clamp(1, frame - 1);
        let back = self.image.entries(Array::Jumps, popped * frame + outcome);

        for (index, number) in numbers.into_iter().enumerate() {
            self.write(self.depth.clone() * frame + (3 + index as i32), number, pushes.clone());
        }
        let ones = self.depth.ones_like();
        let depth = self.depth.clone();
        self.depth = depth.clone().mask_where(pushes, depth.clone() + ones.clone());
        self.depth = self.depth.clone().mask_where(returns.clone(), (depth - ones).clamp_min(0));
        let next = self.states.clone().mask_where(calls, enter).mask_where(returns, back);
        self.states = next.mask_fill(is_full.bool_or(no_frame), StateId::DEAD.0 as i32);
    }

    /// Writes a number into a column of each row of `mask`; the column differs per row.
    fn write(&mut self, column: Tensor<1, Int>, number: Tensor<1, Int>, mask: Tensor<1, Bool>) {
        let shape = self.values.dims();
        let columns = self.image.numbers(shape[1]).reshape([1, -1]).expand(shape);
        let here = columns.equal(column.reshape([-1, 1]).expand(shape));
        let here = here.bool_and(mask.reshape([-1, 1]).expand(shape));
        self.values = self.values.clone().mask_where(here, number.reshape([-1, 1]).expand(shape));
    }

    /// A number of the top frame; arbitrary on an empty stack.
    fn top(&self, index: usize) -> Tensor<1, Int> {
        let frame = self.image.sizes.frame() as i32;
        let column = (self.depth.clone() - 1).clamp_min(0) * frame + (3 + index as i32);
        let rows = column.dims()[0];
        self.values.clone().gather(1, column.reshape([rows, 1])).reshape([rows])
    }

    /// The least number of tokens from `states` to the end, `i32::MAX` if it is unreachable.
    fn cost(&self, states: Tensor<1, Int>) -> Tensor<1, Int> {
        let exits = self.image.sizes.exits as i32;
        let outermost = self.depth.clone().equal_elem(0);
        let mut least = states.full_like(NONE);
        for exit in 0..exits {
            let at = states.clone() * exits + exit;
            let tokens = self.image.entries(Array::TokensToEnd, at.clone());
            let frames = self.image.entries(Array::Frames, at);
            let base = if exit == 0 { 0 } else { NONE };
            let cost = self.top(1 + exit as usize).mask_fill(outermost.clone(), base);
            let far = FARTHEST as i32 - 1;
            let out = tokens.clone().greater_elem(far).bool_or(cost.clone().greater_elem(far));
            let out = out.bool_or((self.depth.clone() + frames).greater_elem(self.image.sizes.depth as i32));
            let sum = tokens.clamp_max(far) + cost.clamp_max(far);
            let out = out.bool_or(sum.clone().greater_elem(far));
            least = least.min_pair(sum.mask_fill(out, NONE));
        }
        least
    }

    /// The least number of tokens from the rows' positions to the end, `i32::MAX` if it is
    /// unreachable.
    pub(super) fn to_end(&self) -> Tensor<1, Int> {
        self.cost(self.states.clone())
    }
}
