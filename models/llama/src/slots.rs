//! Rows that come and go: [`Llama`] as a [`SlotLm`].
//!
//! Every row has a length of its own, and a row that begins is read by itself into its part of the cache. As in
//! [`decode`](crate::decode), a step writes its state into the buffers it found it in and makes no tensor from host
//! data.

use burn::tensor::{DType, Device, Int, Tensor};
use burn_dfa::generation::{CausalLm, SlotLm};
use burn_dfa::processor::{Persistent, RowState};

use crate::layers::Attention;
use crate::model::Llama;
use crate::rope::Rotation;
use crate::tree::{heads_of, write};

/// Keys and values of rows that come and go. All integers are `i32`.
///
/// Made by [`SlotLm::slots`] of a [`Llama`].
#[derive(Clone, Debug)]
pub struct LlamaSlots {
    /// Of each layer, `[rows, kv_heads, capacity, head_dim]`.
    keys: Vec<Tensor<4>>,
    /// Of each layer, `[rows, kv_heads, capacity, head_dim]`.
    values: Vec<Tensor<4>>,
    /// Slots in use, `[rows]`; the next step writes there, and never past the last slot.
    lengths: Tensor<1, Int>,
    /// Zeros, `[rows]`: no row is padded.
    padding: Tensor<1, Int>,
    /// `0..capacity`.
    slots: Tensor<1, Int>,
    /// Where every head of every row begins in a buffer of rows `[rows * kv_heads * capacity, head_dim]`.
    heads: Tensor<1, Int>,
    /// The shape of the keys of a layer.
    shape: [usize; 4],
}

impl LlamaSlots {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.shape[0]
    }

    /// Number of slots of a row.
    pub fn capacity(&self) -> usize {
        self.shape[2]
    }

    /// Slots in use of each row, `[rows]`.
    pub fn lengths(&self) -> Tensor<1, Int> {
        self.lengths.clone()
    }

    /// What a step looks up once for all layers.
    fn look_up(&self) -> Places {
        let [rows, kv_heads, capacity, _] = self.shape;
        let lengths = self.lengths.clone().reshape([rows, 1, 1, 1]);
        let seen = [rows, 1, 1, capacity];
        let slots = self.slots.clone().reshape([1, 1, 1, capacity]).expand(seen);
        Places {
            hidden: slots.greater(lengths.expand(seen)),
            heads: self.heads.clone()
                + self.lengths.clone().reshape([rows, 1]).expand([rows, kv_heads]).reshape([-1]),
        }
    }

    /// Writes the keys and values of one position of every row into layer `index` and attends over what is there.
    fn attend(
        &mut self,
        index: usize,
        attention: &Attention,
        qkv: [Tensor<3>; 3],
        rotation: &Rotation,
        places: Option<&Places>,
    ) -> Tensor<3> {
        let (keys, values) = (&mut self.keys[index], &mut self.values[index]);
        let Some(Places { hidden, heads }) = places else {
            return short(qkv, rotation, [&self.lengths, &self.padding], [keys, values]);
        };
        let [q, k, v] = attention.split(qkv, rotation);
        let [rows, kv_heads, _, head_dim] = self.shape;
        for (buffer, row) in [(&mut *keys, k), (&mut *values, v)] {
            write(buffer, heads, row.reshape([rows * kv_heads, head_dim]));
        }
        attention.mix([q, keys.clone(), values.clone()], hidden.clone())
    }
}

/// Where a step writes and what it must not see.
struct Places {
    /// `[rows, 1, 1, capacity]`, true at the slots that a row must not see.
    hidden: Tensor<4, burn::tensor::Bool>,
    /// `[rows * kv_heads]`: the slot of every head.
    heads: Tensor<1, Int>,
}

impl SlotLm for Llama {
    type SlotCache = LlamaSlots;

    /// # Panics
    /// If `capacity` is 0 or exceeds `max_position_embeddings`.
    fn slots(&self, rows: usize, capacity: usize) -> LlamaSlots {
        let config = self.config();
        assert!(
            (1..=config.max_position_embeddings).contains(&capacity),
            "rows of {capacity} slots of a model of {} positions",
            config.max_position_embeddings
        );
        let device = self.device();
        let shape = [rows, config.num_key_value_heads, capacity, config.head_dim];
        let buffers = || (0..config.num_hidden_layers).map(|_| Tensor::zeros(shape, (&device, self.dtype())));
        let zeros = || Tensor::zeros([rows], (&device, DType::I32));
        LlamaSlots {
            keys: buffers().collect(),
            values: buffers().collect(),
            lengths: zeros(),
            padding: zeros(),
            slots: Tensor::arange(0..capacity as i64, (&device, DType::I32)),
            heads: heads_of(rows * config.num_key_value_heads, capacity, &device),
            shape,
        }
    }

    /// # Panics
    /// If the prompt is not one row of at most `capacity` tokens, or there is no such row.
    fn begin(&self, row: usize, prompt: Tensor<2, Int>, cache: &mut LlamaSlots) -> Tensor<2> {
        let [rows, kv_heads, capacity, head_dim] = cache.shape;
        let [one, length] = prompt.dims();
        assert!(one == 1 && length <= capacity, "a prompt of [{one}, {length}] tokens for {capacity} slots");
        assert!(row < rows, "row {row} of {rows}");
        let device: Device = prompt.device();
        let (logits, read) = self.prefill(prompt, Tensor::zeros([1], &device), length);
        let (keys, values) = read.into_layers();
        let buffers = cache.keys.iter_mut().chain(&mut cache.values);
        for (buffer, read) in buffers.zip(keys.into_iter().chain(values)) {
            let place = [row..row + 1, 0..kv_heads, 0..length, 0..head_dim];
            buffer.inplace(|buffer| buffer.slice_assign(place, read));
        }
        let length = length.min(capacity - 1) as i32;
        cache.lengths.assign_row(row, Tensor::full([1], length, (&device, DType::I32)));
        logits
    }

    /// # Panics
    /// If the tokens are not one for each row.
    fn step_rows(&self, tokens: Tensor<1, Int>, cache: &mut LlamaSlots) -> Tensor<2> {
        let [rows, _, capacity, _] = cache.shape;
        assert_eq!(tokens.dims(), [rows], "one token for each row");
        let mut x = self.model.embed_tokens.forward(tokens.reshape([rows, 1]));
        let rotation = self.rotary.at(cache.lengths.clone().reshape([rows, 1]), x.dtype());
        #[cfg(feature = "flex")]
        let is_short = crate::flex::attends_chains(&x);
        #[cfg(not(feature = "flex"))]
        let is_short = false;
        let places = (!is_short).then(|| cache.look_up());
        for (index, layer) in self.model.layers.iter().enumerate() {
            x = layer
                .forward(x, |attention, qkv| cache.attend(index, attention, qkv, &rotation, places.as_ref()));
        }
        let next = (cache.lengths.clone() + 1).clamp_max(capacity as i32 - 1);
        cache.lengths.assign(next);
        self.logits(x).reshape([rows, self.config.vocab_size])
    }
}

/// Attention of one position in one pass, on Flex.
#[cfg(feature = "flex")]
fn short(
    qkv: [Tensor<3>; 3],
    rotation: &Rotation,
    [lengths, padding]: [&Tensor<1, Int>; 2],
    cache: [&mut Tensor<4>; 2],
) -> Tensor<3> {
    crate::flex::attend_chain(qkv.each_ref(), rotation, lengths, padding, cache)
}

#[cfg(not(feature = "flex"))]
fn short(_: [Tensor<3>; 3], _: &Rotation, _: [&Tensor<1, Int>; 2], _: [&mut Tensor<4>; 2]) -> Tensor<3> {
    unreachable!("Flex alone has the short way")
}
