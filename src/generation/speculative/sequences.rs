//! The tokens of a batch so far, on the device.

use burn::tensor::{DType, Device, IndexingUpdateOp, Int, Tensor};

use crate::in_place::in_place;
use crate::processor::InPlaceState;
use crate::tensor::runs;

/// The token ids of every row so far, prompt and output; each row has its own length.
///
/// Prompts are left padded, so all rows begin with the same length. Slots past the length of a row
/// hold arbitrary tokens.
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use burn_dfa::generation::speculative::Sequences;
///
/// let device = Device::flex();
/// let ints = |values: &[i32]| Tensor::<1, Int>::from_data(values, (&device, DType::I32));
/// let mut sequences = Sequences::new(ints(&[7, 8]).reshape([1, 2]), 6);
/// sequences.append(ints(&[9, 5]).reshape([1, 2]), ints(&[1])); // the 5 does not count
/// assert_eq!(sequences.last().into_data().try_to_vec::<i32>().unwrap(), [9]);
/// assert_eq!(sequences.lengths().into_data().try_to_vec::<i32>().unwrap(), [3]);
/// ```
#[derive(Clone, Debug)]
pub struct Sequences {
    /// `[batch, slots]`, `i32`
    pub(in crate::generation) tokens: Tensor<2, Int>,
    /// `[batch]`, `i32`
    pub(in crate::generation) lengths: Tensor<1, Int>,
    /// `0..slots`, made once, because Burn uploads ranges from the host and a step must upload
    /// nothing.
    steps: Tensor<1, Int>,
    /// The start of each row in a flat buffer, `[batch]`.
    rows: Tensor<1, Int>,
}

impl Sequences {
    /// The prompts, in rows of at most `slots` tokens.
    ///
    /// # Panics
    /// If the prompts do not fit.
    pub fn new(prompt: Tensor<2, Int>, slots: usize) -> Self {
        let ([batch, length], device) = (prompt.dims(), prompt.device());
        assert!(length <= slots, "prompts of {length} tokens in {slots} slots");
        let empty = Self::empty(batch, slots, &device);
        Self {
            tokens: empty.tokens.slice_assign([0..batch, 0..length], prompt.cast(DType::I32)),
            lengths: Tensor::full([batch], length as i32, (&device, DType::I32)),
            ..empty
        }
    }

    /// Empty rows of at most `slots` tokens.
    pub(in crate::generation) fn empty(batch: usize, slots: usize, device: &Device) -> Self {
        let options = (device, DType::I32);
        Self {
            tokens: Tensor::zeros([batch, slots], options),
            lengths: Tensor::zeros([batch], options),
            steps: Tensor::arange(0..slots as i64, options),
            rows: Tensor::arange(0..batch as i64, options) * slots as i32,
        }
    }

    /// All slots, `[batch, slots]`.
    pub fn tokens(&self) -> Tensor<2, Int> {
        self.tokens.clone()
    }

    /// The length of each row, `[batch]`.
    pub fn lengths(&self) -> Tensor<1, Int> {
        self.lengths.clone()
    }

    /// The last token of each row, `[batch]`.
    pub fn last(&self) -> Tensor<1, Int> {
        self.window(self.lengths.clone() - 1, 1).reshape([-1])
    }

    /// `count` tokens of each row from slot `from` on, `[batch, count]`.
    ///
    /// # Shapes
    /// - `from`: `[batch]`
    ///
    /// # Panics
    /// If `count` is more than the slots.
    pub fn window(&self, from: Tensor<1, Int>, count: usize) -> Tensor<2, Int> {
        let [_, slots] = self.tokens.dims();
        self.tokens.clone().gather(1, self.run(from, count).clamp(0, slots as i32 - 1))
    }

    /// Appends the first `counts[b]` tokens to row `b`; a full row keeps its length.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, max]`
    /// - `counts`: `[batch]`, `i32`
    ///
    /// # Panics
    /// If `max` is more than the slots.
    pub fn append(&mut self, tokens: Tensor<2, Int>, counts: Tensor<1, Int>) {
        let longest = self.longest_before(&tokens);
        self.write(self.lengths(), tokens);
        in_place(&mut self.lengths, |lengths| (lengths + counts).clamp_max(longest));
    }

    /// Writes tokens from slot `from[b]` of each row on, or into its last slots if they do not fit
    /// there; in place.
    ///
    /// # Shapes
    /// - `from`: `[batch]`
    /// - `tokens`: `[batch, count]`
    pub(in crate::generation) fn write(&mut self, from: Tensor<1, Int>, tokens: Tensor<2, Int>) {
        let ([_, count], shape) = (tokens.dims(), self.tokens.dims());
        let first = from.clamp_max(self.longest_before(&tokens)) + self.rows.clone();
        let indices = self.run(first, count).reshape([-1]);
        let tokens = tokens.cast(DType::I32).reshape([-1]);
        in_place(&mut self.tokens, |buffer| {
            let flat = buffer.reshape([-1]).select_assign(0, indices, tokens, IndexingUpdateOp::Assign);
            flat.reshape(shape)
        });
    }

    /// The greatest length of a row after which `tokens`, `[batch, count]`, fit.
    fn longest_before(&self, tokens: &Tensor<2, Int>) -> i32 {
        let ([_, count], [_, slots]) = (tokens.dims(), self.tokens.dims());
        slots.saturating_sub(count) as i32
    }

    /// 0, 1, …, `[count]`; `count` is at most the number of slots.
    pub(super) fn steps(&self, count: usize) -> Tensor<1, Int> {
        self.steps.clone().narrow(0, 0, count)
    }

    /// `from[b]`, `from[b] + 1`, …, `[batch, count]`.
    pub(in crate::generation) fn run(&self, from: Tensor<1, Int>, count: usize) -> Tensor<2, Int> {
        runs(from, self.steps(count))
    }

    /// Length of the common prefix of each row with the row of `other`, `[batch]`: at most the
    /// length of this row, and less than the length of the other.
    pub(super) fn common(&self, other: &Self) -> Tensor<1, Int> {
        let [batch, slots] = self.tokens.dims();
        let slot = self.steps.clone().reshape([1, slots]).expand([batch, slots]);
        let same = self.tokens.clone().equal(other.tokens.clone());
        let differs = slot.mask_fill(same, slots as i32).min_dim(1).reshape([batch]);
        differs.min_pair(self.lengths.clone()).min_pair(other.lengths.clone() - 1)
    }
}

impl InPlaceState for Sequences {
    fn assign(&mut self, new: Self) {
        self.tokens.assign(new.tokens);
        self.lengths.assign(new.lengths);
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn rows_grow_by_their_own_counts() {
        let device = Device::default();
        let ints = |values: &[i32]| Tensor::<1, Int>::from_data(values, (&device, DType::I32));
        let read = |tensor: Tensor<2, Int>| tensor.into_data().try_to_vec::<i32>().unwrap();
        let mut text = Sequences::new(ints(&[1, 2, 3, 4]).reshape([2, 2]), 6);
        let before = text.clone();
        text.append(ints(&[5, 6, 7, 8]).reshape([2, 2]), ints(&[1, 2]));
        assert_eq!(read(text.window(text.lengths() - 2, 2)), [2, 5, 7, 8]);
        assert_eq!(read(text.last().reshape([2, 1])), [5, 8]);
        text.append(ints(&[9, 9, 9, 9]).reshape([2, 2]), ints(&[2, 2]));
        assert_eq!(read(text.lengths().reshape([1, 2])), [4, 4]);
        assert_eq!(read(text.tokens()), [1, 2, 5, 9, 9, 0, 3, 4, 7, 8, 9, 9]);
        assert_eq!(read(before.common(&text).reshape([1, 2])), [2, 2]);
        assert_eq!(read(text.common(&before).reshape([1, 2])), [1, 1]);
    }
}
