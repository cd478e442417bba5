//! The key and value cache of rows of different lengths; the caches of draft trees and of
//! continuous batches use it.

use burn::tensor::{Bool, DType, IndexingUpdateOp, Int, Tensor};
use burn_dfa::processor::{InPlaceState, RowState};

use crate::layers::Attention;
use crate::mask::PerKind;
use crate::rope::Rotations;

/// Keys and values of rows of different lengths. A *slot* holds the key and the value of one
/// position. All integers are `i32`.
#[derive(Clone, Debug)]
pub(crate) struct RowCache {
    /// Per layer, `[rows, kv_heads, capacity, head_dim]`.
    keys: Vec<Tensor<4>>,
    /// Per layer, `[rows, kv_heads, capacity, head_dim]`.
    values: Vec<Tensor<4>>,
    /// Positions in use, padding included, `[rows]`.
    lengths: Tensor<1, Int>,
    /// Padded positions of each row, `[rows]`.
    padding: Tensor<1, Int>,
    /// `0..capacity`.
    slots: Tensor<1, Int>,
    /// Start of each head of each row in a buffer `[rows * kv_heads * capacity, head_dim]`:
    /// `[rows * kv_heads]`.
    heads: Tensor<1, Int>,
    /// The shape of the keys of a layer.
    shape: [usize; 4],
}

/// Write positions of new keys and values, and the attention mask. Both are the same for all
/// layers.
pub(crate) struct Targets {
    /// Indices into the flat buffer of all heads, `[rows * kv_heads * positions]`.
    pub(crate) places: Tensor<1, Int>,
    /// `[rows, 1, positions, capacity]`, true at the slots hidden from a position.
    pub(crate) hidden: PerKind<Tensor<4, Bool>>,
}

impl RowCache {
    /// # Shapes
    /// - `keys`, `values`: per layer, `[rows, kv_heads, capacity, head_dim]`
    /// - `lengths`, `padding`: `[rows]`, in buffers that no other tensor shares
    pub(crate) fn new(
        keys: Vec<Tensor<4>>,
        values: Vec<Tensor<4>>,
        lengths: Tensor<1, Int>,
        padding: Tensor<1, Int>,
    ) -> Self {
        let shape @ [rows, kv_heads, capacity, _] = keys[0].dims();
        let options = (&lengths.device(), DType::I32);
        Self {
            keys,
            values,
            slots: Tensor::arange(0..capacity as i64, options),
            heads: Tensor::arange(0..(rows * kv_heads) as i64, options) * capacity as i32,
            lengths: lengths.cast(DType::I32),
            padding: padding.cast(DType::I32),
            shape,
        }
    }

    /// `[rows, kv_heads, capacity, head_dim]`.
    pub(crate) fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Positions in use of each row, padding included, `[rows]`.
    pub(crate) fn lengths(&self) -> Tensor<1, Int> {
        self.lengths.clone()
    }

    /// Padded positions of each row, `[rows]`.
    pub(crate) fn padding(&self) -> Tensor<1, Int> {
        self.padding.clone()
    }

    /// `0..capacity`.
    pub(crate) fn slots(&self) -> Tensor<1, Int> {
        self.slots.clone()
    }

    /// Sets the lengths, in place.
    pub(crate) fn set_lengths(&mut self, lengths: Tensor<1, Int>) {
        self.lengths.assign(lengths);
    }

    /// Lengthens every row, in place.
    pub(crate) fn grow(&mut self, positions: usize) {
        self.lengths.inplace(|lengths| lengths + positions as i32);
    }

    /// `from[b]`, `from[b] + 1`, …, `[rows, count]`.
    pub(crate) fn run(&self, from: &Tensor<1, Int>, count: usize) -> Tensor<2, Int> {
        let [rows] = from.dims();
        let first = from.clone().reshape([rows, 1]).expand([rows, count]);
        let steps = self.slots.clone().narrow(0, 0, count);
        first + steps.reshape([1, count]).expand([rows, count])
    }

    /// Indices of slots `[rows, count]` of all heads in the flat buffer,
    /// `[rows * kv_heads * count]`. A slot past the last one is clamped to the last one.
    pub(crate) fn places(&self, slots: Tensor<2, Int>) -> Tensor<1, Int> {
        let ([rows, count], [_, kv_heads, capacity, _]) = (slots.dims(), self.shape);
        let last = capacity as i32 - 1;
        let all = [rows, kv_heads, count];
        let slots = slots.clamp(0, last).reshape([rows, 1, count]).expand(all);
        (self.heads.clone().reshape([rows, kv_heads, 1]).expand(all) + slots).reshape([-1])
    }

    /// Appends the keys and values of new positions to each row of a layer, and attends over the
    /// cache. If [`one_pass`] is true, `targets` may be `None`: each position then sees its row up
    /// to itself.
    pub(crate) fn attend(
        &mut self,
        layer: usize,
        attention: &Attention,
        qkv: [Tensor<3>; 3],
        rotations: &Rotations,
        targets: Option<&Targets>,
    ) -> Tensor<3> {
        let (keys, values) = (&mut self.keys[layer], &mut self.values[layer]);
        let Some(Targets { places, hidden }) = targets else {
            let rows = [&self.lengths, &self.padding];
            return attend_in_one_pass(attention, qkv, rotations, rows, [keys, values]);
        };
        let [q, k, v] = attention.split(qkv, rotations);
        let [.., head_dim] = self.shape;
        for (buffer, new) in [(&mut *keys, k), (&mut *values, v)] {
            write(buffer, places, new.reshape([-1, head_dim as i32]));
        }
        attention.mix([q, keys.clone(), values.clone()], hidden)
    }

    /// Copies slots from the indices `from` to the indices `to`, in all layers.
    pub(crate) fn copy(&mut self, from: &Tensor<1, Int>, to: &Tensor<1, Int>) {
        let [.., head_dim] = self.shape;
        for buffer in self.keys.iter_mut().chain(&mut self.values) {
            let slots = buffer.clone().reshape([-1, head_dim as i32]).select(0, from.clone());
            write(buffer, to, slots);
        }
    }

    /// Copies the first `length` slots of a row to another row, in all layers.
    pub(crate) fn copy_row(&mut self, from: usize, to: usize, length: usize) {
        let [_, kv_heads, ..] = self.shape;
        let places = |row: usize| {
            let heads = self.heads.clone().narrow(0, row * kv_heads, kv_heads);
            self.run(&heads, length).reshape([-1])
        };
        let (from, to) = (places(from), places(to));
        self.copy(&from, &to);
    }

    /// Replaces one row by the keys and values of a prompt, in place.
    ///
    /// # Shapes
    /// - `keys`, `values`: per layer, `[1, kv_heads, length, head_dim]`
    pub(crate) fn fill(&mut self, row: usize, [keys, values]: [Vec<Tensor<4>>; 2]) {
        let [_, kv_heads, _, head_dim] = self.shape;
        let [_, _, length, _] = keys[0].dims();
        let buffers = self.keys.iter_mut().chain(&mut self.values);
        for (buffer, new) in buffers.zip(keys.into_iter().chain(values)) {
            let place = [row..row + 1, 0..kv_heads, 0..length, 0..head_dim];
            buffer.inplace(|buffer| buffer.slice_assign(place, new));
        }
        self.set_length(row, length);
    }

    /// Sets the length of one row, in place; the last slot is for the next step.
    pub(crate) fn set_length(&mut self, row: usize, length: usize) {
        let length = length.min(self.shape[2] - 1) as i32;
        self.lengths.assign_row(row, Tensor::full([1], length, (&self.lengths.device(), DType::I32)));
    }

    /// Writes keys and values of one row of a layer from slot `at` on. Returns the result of `mix`
    /// on the queries and the row up to the new end.
    ///
    /// # Shapes
    /// - queries, keys and values: `[1, heads, positions, head_dim]`
    pub(crate) fn extend(
        &mut self,
        layer: usize,
        row: usize,
        at: usize,
        [q, k, v]: [Tensor<4>; 3],
        mix: impl FnOnce([Tensor<4>; 3]) -> Tensor<3>,
    ) -> Tensor<3> {
        let [_, kv_heads, _, head_dim] = self.shape;
        let end = at + k.dims()[2];
        let [keys, values] =
            [(&mut self.keys[layer], k), (&mut self.values[layer], v)].map(|(buffer, new)| {
                buffer.inplace(|buffer| {
                    buffer.slice_assign([row..row + 1, 0..kv_heads, at..end, 0..head_dim], new)
                });
                buffer.clone().slice([row..row + 1, 0..kv_heads, 0..end, 0..head_dim])
            });
        mix([q, keys, values])
    }
}

/// Writes `new` `[places, head_dim]` into a buffer, in place.
fn write(buffer: &mut Tensor<4>, places: &Tensor<1, Int>, new: Tensor<2>) {
    let shape = buffer.dims();
    buffer.inplace(|buffer| {
        let flat = buffer.reshape([shape[0] * shape[1] * shape[2], shape[3]]);
        flat.select_assign(0, places.clone(), new, IndexingUpdateOp::Assign).reshape(shape)
    });
}

/// Whether Flex attends to chains of these activations in one pass over the cache.
#[cfg(feature = "flex")]
pub(crate) fn one_pass(x: &Tensor<3>) -> bool {
    crate::flex::supports(x)
}

#[cfg(not(feature = "flex"))]
pub(crate) fn one_pass(_: &Tensor<3>) -> bool {
    false
}

#[cfg(feature = "flex")]
fn attend_in_one_pass(
    attention: &Attention,
    qkv: [Tensor<3>; 3],
    rotations: &Rotations,
    [lengths, padding]: [&Tensor<1, Int>; 2],
    cache: [&mut Tensor<4>; 2],
) -> Tensor<3> {
    let (scale, window) = (attention.scale, attention.window);
    let rotation = attention.rotation(rotations);
    crate::flex::attend_chain(qkv.each_ref(), scale, window, rotation, lengths, padding, cache)
}

#[cfg(not(feature = "flex"))]
fn attend_in_one_pass(
    _: &Attention,
    _: [Tensor<3>; 3],
    _: &Rotations,
    _: [&Tensor<1, Int>; 2],
    _: [&mut Tensor<4>; 2],
) -> Tensor<3> {
    unreachable!("`one_pass` is false without Flex")
}
