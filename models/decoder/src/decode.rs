//! Decoding with a cache: [`Decoder`] as a [`CausalLm`].
//!
//! The state of decoding is on the device: the slot that the next step writes, the padding of each
//! row, the keys and the values. A step has constant shapes, reads nothing back and uploads
//! nothing, so it can be recorded once and replayed. For replay it also writes the new state into
//! the buffers of the old one.
//!
//! A key at slot `k` is visible to row `b` if `padding[b] <= k <= slot`, and in a layer with a
//! sliding window of `n` positions if also `slot - n < k`. A padded position of the prompt sees no
//! key. All its scores are the same finite number, so its values are meaningless but finite, and no
//! other position sees them.
//!
//! A prompt is read in chunks of [`CHUNK`] positions, so that the memory of a pass grows in
//! proportion to the length of the prompt, and not to its square.

use burn::tensor::{Bool, DType, Device, IndexingUpdateOp, Int, Tensor, s};
use burn_dfa::generation::{CausalLm, KvCache, Recordable};
use burn_dfa::processor::InPlaceState;

use crate::config::DecoderConfig;
use crate::layers::Attention;
use crate::mask::{PerKind, masks};
use crate::model::Decoder;
use crate::rope::{Rotary, Rotations};

/// Positions of a prompt that are read at a time.
const CHUNK: usize = 256;

/// Keys, values and positions of a batch.
///
/// Made by [`CausalLm::prefill`] and advanced by [`CausalLm::step`]. A *slot* holds the key and the
/// value of one position. A step beyond the capacity is a mistake of the caller; it overwrites only
/// the last slot.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::generation::CausalLm;
/// use burn_dfa_decoder::DecoderConfig;
///
/// let device = Device::flex();
/// let model = DecoderConfig::new(128, 32, 64, 2, 4).init(&device);
/// let prompts = Tensor::<2, Int>::from_ints([[3, 1, 4], [0, 1, 5]], &device); // the second is padded
/// let (logits, mut cache) = model.prefill(prompts, Tensor::from_ints([0, 1], &device), 16);
/// let tokens = logits.argmax(1).reshape([2]);
/// assert_eq!(model.step(tokens, &mut cache).dims(), [2, 128]);
/// assert_eq!((cache.batch(), cache.capacity()), (2, 16));
/// ```
#[derive(Clone, Debug)]
pub struct DecoderCache {
    /// Per layer, `[batch, kv_heads, capacity, head_dim]`.
    keys: Vec<Tensor<4>>,
    /// Per layer, `[batch, kv_heads, capacity, head_dim]`.
    values: Vec<Tensor<4>>,
    /// The slot that the next step writes, `[1]`.
    slot: Tensor<1, Int>,
    /// Padded positions of each row, `[batch]`.
    padding: Tensor<1, Int>,
    /// `0..capacity`.
    slots: Tensor<1, Int>,
}

impl DecoderCache {
    /// Number of slots.
    pub fn capacity(&self) -> usize {
        self.slots.dims()[0]
    }

    /// Number of rows.
    pub fn batch(&self) -> usize {
        self.padding.dims()[0]
    }

    /// Discards every slot from `length` on, so that the next step writes slot `length`.
    ///
    /// The position is written into the existing buffer, as a recorded step requires.
    ///
    /// # Panics
    /// If `length` is not below the capacity.
    pub fn truncate(&mut self, length: usize) {
        assert!(
            length < self.capacity(),
            "a cache of {} slots cannot hold {length} and a step",
            self.capacity()
        );
        self.slot.inplace(|slot| {
            let length = slot.full_like(length as i64);
            slot.slice_assign(s![0..1], length)
        });
    }

    /// The same keys and values as a cache of rows with separate lengths.
    pub(crate) fn into_rows(self) -> KvCache {
        let lengths = self.slot.expand(self.padding.dims()).add_scalar(0);
        KvCache::of(self.keys, self.values, lengths, self.padding)
    }

    /// The keys and the values of every layer.
    pub(crate) fn into_layers(self) -> [Vec<Tensor<4>>; 2] {
        [self.keys, self.values]
    }

    /// Writes the keys and values of one position into layer `index` and attends over the cache.
    pub(crate) fn attend(
        &mut self,
        index: usize,
        attention: &Attention,
        qkv: [Tensor<3>; 3],
        rotations: &Rotations,
        hidden: &PerKind<Tensor<4, Bool>>,
    ) -> Tensor<3> {
        let (keys, values) = (&mut self.keys[index], &mut self.values[index]);
        #[cfg(feature = "flex")]
        {
            let (rotation, hidden) = (attention.rotation(rotations), attention.hidden(hidden));
            let (qkv, cache) = (qkv.each_ref(), [&mut *keys, &mut *values]);
            if let Some(mixed) =
                crate::flex::attend(qkv, attention.scale, rotation, &self.slot, hidden, cache)
            {
                return mixed;
            }
        }
        let [q, k, v] = attention.split(qkv, rotations);
        write_row(keys, &self.slot, k);
        write_row(values, &self.slot, v);
        attention.mix([q, keys.clone(), values.clone()], hidden)
    }

    /// The rotations of the next position of each row.
    pub(crate) fn rotations(&self, tables: &Rotary, dtype: DType) -> Rotations {
        let batch = self.batch();
        let positions = self.slot.clone().expand([batch]) - self.padding.clone();
        tables.at(positions.reshape([batch, 1]).clamp_min(0), dtype)
    }

    /// `[batch, 1, 1, capacity]`, true at the slots hidden from a step.
    pub(crate) fn hidden(&self, config: &DecoderConfig) -> PerKind<Tensor<4, Bool>> {
        let (batch, capacity) = (self.batch(), self.capacity());
        let shape = [batch, 1, 1, capacity];
        let slots = self.slots.clone().reshape([1, 1, 1, capacity]).expand(shape);
        let slot = self.slot.clone().reshape([1, 1, 1, 1]).expand(shape);
        let padding = self.padding.clone().reshape([batch, 1, 1, 1]).expand(shape);
        let hidden = slots.clone().greater(slot.clone()).bool_or(slots.clone().lower(padding));
        masks(hidden, config.window_among(capacity), || [slot, slots])
    }
}

/// Replaces the slots of the prompt and of the steps so far. The capacities must be equal.
impl InPlaceState for DecoderCache {
    /// # Panics
    /// If the shapes differ.
    fn assign(&mut self, new: Self) {
        assert_eq!(self.capacity(), new.capacity(), "caches of one capacity");
        self.keys.iter_mut().zip(new.keys).for_each(|(keys, new)| keys.assign(new));
        self.values.iter_mut().zip(new.values).for_each(|(values, new)| values.assign(new));
        self.slot.assign(new.slot);
        self.padding.assign(new.padding);
    }
}

/// Decode without autodiff: take [`valid`](burn::module::Module::valid) of a model in training.
impl CausalLm for Decoder {
    type Cache = DecoderCache;

    fn device(&self) -> Device {
        self.model.embed_tokens.weight.val().device()
    }

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn max_positions(&self) -> Option<usize> {
        Some(self.config.max_position_embeddings)
    }

    /// # Panics
    /// If the shapes disagree, or `capacity` is below `length` or above `max_position_embeddings`.
    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        capacity: usize,
    ) -> (Tensor<2>, DecoderCache) {
        let [batch, _] = tokens.dims();
        let (logits, cache) = self.read_prompt(tokens, padding, capacity, 1);
        (logits.reshape([batch, self.config.vocab_size]), cache)
    }

    /// # Panics
    /// If `tokens` does not have the cache's number of rows.
    fn step(&self, tokens: Tensor<1, Int>, cache: &mut DecoderCache) -> Tensor<2> {
        let batch = cache.batch();
        assert_eq!(tokens.dims(), [batch], "one token for each row");
        let mut x = self.embed(tokens.reshape([batch, 1]));

        let hidden = cache.hidden(&self.config);
        let rotations = cache.rotations(&self.rotary, x.dtype());
        for (index, layer) in self.model.layers.iter().enumerate() {
            x = layer.forward(x, |attention, qkv| cache.attend(index, attention, qkv, &rotations, &hidden));
        }
        let last = cache.capacity() as i64 - 1;
        cache.slot.inplace(|slot| {
            let next = slot.clone().add_scalar(1).clamp_max(last);
            slot.slice_assign(s![0..1], next)
        });
        self.logits(x).reshape([batch, self.config.vocab_size])
    }
}

// SAFETY: The tensors of a new cache share no buffers. The fields of the caches are private. Every
// method of this crate and of `KvCache` that takes a cache writes by `inplace` or `assign`, and
// drops its clones of the fields before it returns. The decoder keeps no tensors of calls, and its parameters do not
// change while it is borrowed.
#[allow(unsafe_code)]
unsafe impl Recordable for Decoder {}

impl Decoder {
    /// [`CausalLm::prefill`] with the logits after each of the `last` tokens,
    /// `[batch, last, vocab_size]`.
    pub(crate) fn read_prompt(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        capacity: usize,
        last: usize,
    ) -> (Tensor<3>, DecoderCache) {
        let [batch, length] = tokens.dims();
        assert_eq!(padding.dims(), [batch], "one padding for each row");
        assert!(length > 0, "a prompt has at least one token");
        assert!(
            length <= capacity && capacity <= self.config.max_position_embeddings,
            "the capacity {capacity} must lie between the prompt's {length} tokens and the model's {} \
             positions",
            self.config.max_position_embeddings
        );
        let device = tokens.device();
        let shape = [batch, self.config.num_key_value_heads, capacity, self.config.head_dim];
        let zeros = || -> Vec<Tensor<4>> {
            self.model.layers.iter().map(|_| Tensor::zeros(shape, (&device, self.dtype()))).collect()
        };
        let (mut keys, mut values) = (zeros(), zeros());
        let states = self.read_slots(tokens, 0, &padding, last, |layer, at, [k, v]| {
            [extend(&mut keys[layer], at, k), extend(&mut values[layer], at, v)]
        });

        let logits = self.logits(states);
        let cache = DecoderCache {
            keys,
            values,
            slot: Tensor::full([1], length as i64, &device),
            // A separate buffer, so that the caller's tensor is not shared.
            padding: padding.add_scalar(0),
            slots: Tensor::arange(0..capacity as i64, &device),
        };
        (logits, cache)
    }

    /// Reads tokens at the slots from `at` on; returns the output of the last layer after each of the
    /// `last` tokens, `[batch, last, hidden]`.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, length]`
    /// - `padding`: `[batch]`: the first visible slot of each row
    /// - `write`: writes the keys and values of a layer at the slots from a slot on,
    ///   `[batch, kv_heads, count, head_dim]` each; returns those of all slots so far
    pub(crate) fn read_slots(
        &self,
        tokens: Tensor<2, Int>,
        at: usize,
        padding: &Tensor<1, Int>,
        last: usize,
        mut write: impl FnMut(usize, usize, [Tensor<4>; 2]) -> [Tensor<4>; 2] + Send,
    ) -> Tensor<3> {
        let [_, length] = tokens.dims();
        let mut states = Vec::new();
        for from in (0..length).step_by(CHUNK) {
            let to = length.min(from + CHUNK);
            let chunk = tokens.clone().narrow(1, from, to - from);
            let write = |layer, new| write(layer, at + from, new);
            let x = self.read_chunk(chunk, at + from, padding, write);
            let first = from.max(length - last);
            if first < to {
                states.push(x.narrow(1, first - from, to - first));
            }
        }
        Tensor::cat(states, 1)
    }

    /// Reads tokens `[batch, count]` in one pass; see [`read_slots`](Self::read_slots).
    fn read_chunk(
        &self,
        tokens: Tensor<2, Int>,
        at: usize,
        padding: &Tensor<1, Int>,
        mut write: impl FnMut(usize, [Tensor<4>; 2]) -> [Tensor<4>; 2] + Send,
    ) -> Tensor<3> {
        let ([batch, count], device) = (tokens.dims(), tokens.device());
        let seen = at + count;
        let mut x = self.embed(tokens);

        let key = Tensor::<1, Int>::arange(0..seen as i64, &device);
        let query = key.clone().narrow(0, at, count);
        let all = [batch, count];
        let before = padding.clone().reshape([batch, 1]).expand(all);
        let positions = query.clone().reshape([1, count]).expand(all).sub(before).clamp_min(0);
        let rotations = self.rotary.at(positions, x.dtype());
        let hidden = {
            let shape = [batch, 1, count, seen];
            let key = key.reshape([1, 1, 1, seen]).expand(shape);
            let query = query.reshape([1, 1, count, 1]).expand(shape);
            let padding = padding.clone().reshape([batch, 1, 1, 1]).expand(shape);
            let hidden = key.clone().greater(query.clone()).bool_or(key.clone().lower(padding));
            masks(hidden, self.config.window_among(seen), || [query, key])
        };
        for (index, layer) in self.model.layers.iter().enumerate() {
            x = layer.forward(x, |attention, qkv| {
                let [q, k, v] = attention.split(qkv, &rotations);
                let [keys, values] = write(index, [k, v]);
                attention.mix([q, keys, values], &hidden)
            });
        }
        x
    }
}

/// Writes `new` `[batch, kv_heads, count, head_dim]` at the slots from `at` on, in place. Returns all
/// slots up to the last one written.
fn extend(buffer: &mut Tensor<4>, at: usize, new: Tensor<4>) -> Tensor<4> {
    let [batch, kv_heads, count, head_dim] = new.dims();
    let end = at + count;
    buffer.inplace(|buffer| buffer.slice_assign([0..batch, 0..kv_heads, at..end, 0..head_dim], new));
    buffer.clone().slice([0..batch, 0..kv_heads, 0..end, 0..head_dim])
}

/// Writes `row` `[batch, kv_heads, 1, head_dim]` at the slot, in place.
fn write_row(buffer: &mut Tensor<4>, slot: &Tensor<1, Int>, row: Tensor<4>) {
    buffer.inplace(|buffer| buffer.select_assign(2, slot.clone(), row, IndexingUpdateOp::Assign));
}
