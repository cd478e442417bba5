//! Decoding with a cache: [`Decoder`] as a [`CausalLm`].
//!
//! The state of decoding is a [`KvCache`] on the device: the length and the padding of each row,
//! the keys and the values. A step has constant shapes, reads nothing back and uploads nothing, so
//! it can be recorded once and replayed. For replay it also writes the new state into the buffers
//! of the old one.
//!
//! The next position of row `b` sees the key at slot `k` if `padding[b] <= k <= lengths[b]`, and in
//! a layer with a sliding window of `n` positions if also `lengths[b] - n < k`. A padded position
//! of the prompt sees no key. All its scores are the same finite number, so its values are
//! meaningless but finite, and no other position sees them.
//!
//! A prompt is read in chunks of [`CHUNK`] positions, so that the memory of a pass grows in
//! proportion to the length of the prompt, and not to its square.

use burn::tensor::{DType, Device, Int, Tensor};
use burn_dfa::generation::{CausalLm, KvCache, Recordable};
use burn_dfa::processor::in_place;

use crate::cache::{Targets, WritePositions, attend, one_pass};
use crate::mask::masks;
use crate::model::{Decoder, in_pool};
use crate::rotary::Rotations;

/// Positions of a prompt that are read at a time.
const CHUNK: usize = 256;

/// Decode without autodiff: take [`valid`](burn::module::Module::valid) of a model in training.
///
/// A step beyond the capacity of the cache is a mistake of the caller; it overwrites only the last
/// slot.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::generation::CausalLm;
/// use burn_dfa_decoder::DecoderConfig;
///
/// let device = Device::flex();
/// let model = DecoderConfig::new(128, 32, 64, 2, 4).init(&device);
/// // The second is padded.
/// let prompts = Tensor::<2, Int>::from_ints([[3, 1, 4], [0, 1, 5]], &device);
/// let (logits, mut cache) = model.prefill(prompts, Tensor::from_ints([0, 1], &device), 16);
/// let tokens = logits.argmax(1).reshape([2]);
/// assert_eq!(model.step(tokens, &mut cache).dims(), [2, 128]);
/// assert_eq!((cache.rows(), cache.capacity()), (2, 16));
/// ```
impl CausalLm for Decoder {
    type Cache = KvCache;

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
    ) -> (Tensor<2>, KvCache) {
        let [batch, _] = tokens.dims();
        let (logits, cache) = self.read_prompt(tokens, padding, capacity, 1);
        (logits.reshape([batch, self.config.vocab_size]), cache)
    }

    /// # Panics
    /// If there is not exactly one token for each row.
    fn step(&self, tokens: Tensor<1, Int>, cache: &mut KvCache) -> Tensor<2> {
        let rows = cache.rows();
        assert_eq!(tokens.dims(), [rows], "one token for each row");
        let x = self.embed(tokens.reshape([rows, 1]));
        let rotations = self.rotations(cache, x.dtype());
        let targets = (!one_pass(&x)).then(|| self.targets(cache));
        let logits = self.read_tokens(x, cache, &rotations, targets.as_ref());
        cache.advance();
        logits.reshape([rows, self.config.vocab_size])
    }
}

// SAFETY: The tensors of a new cache share no buffers. Every method of this crate and of `KvCache`
// that takes a cache by reference and changes it writes by `in_place` or `assign`, and drops its
// clones of the tensors before it returns. The decoder keeps no tensors of calls, and its
// parameters do not change while it is borrowed.
#[allow(unsafe_code)]
unsafe impl Recordable for Decoder {}

impl Decoder {
    /// The rotations of the next position of each row.
    pub(crate) fn rotations(&self, cache: &KvCache, dtype: DType) -> Rotations {
        let positions = (cache.lengths() - cache.padding()).clamp_min(0);
        self.rotary.at(positions.reshape([cache.rows(), 1]), dtype)
    }

    /// The logits after new tokens, whose embeddings are `x` `[batch, tokens, hidden]`. Writes their
    /// keys and values into the cache, whose lengths stay.
    pub(crate) fn read_tokens(
        &self,
        x: Tensor<3>,
        cache: &mut KvCache,
        rotations: &Rotations,
        targets: Option<&Targets>,
    ) -> Tensor<3> {
        in_pool(x, |mut x| {
            for (index, layer) in self.model.layers.iter().enumerate() {
                x = layer
                    .forward(x, |attention, qkv| attend(cache, index, attention, qkv, rotations, targets));
            }
            self.logits(x)
        })
    }

    /// The targets of a step.
    fn targets(&self, cache: &KvCache) -> Targets {
        let (rows, capacity) = (cache.rows(), cache.capacity());
        let lengths = cache.lengths();
        let positions = if cache.is_aligned() {
            WritePositions::Slot(lengths.narrow(0, 0, 1).clamp_max(capacity as i32 - 1))
        } else {
            WritePositions::Flat(cache.indices(lengths.unsqueeze_dim(1)))
        };
        let shape = [rows, 1, 1, capacity];
        let key = cache.slots().reshape([1, 1, 1, capacity]).expand(shape);
        let [query, padding] =
            [cache.lengths(), cache.padding()].map(|slots| slots.reshape([rows, 1, 1, 1]).expand(shape));
        let hidden = key.clone().greater(query.clone()).bool_or(key.clone().lower(padding));
        Targets { positions, hidden: masks(hidden, self.config.window_among(capacity), || [query, key]) }
    }

    /// [`CausalLm::prefill`] with the logits after each of the `last` tokens,
    /// `[batch, last, vocab_size]`.
    pub(crate) fn read_prompt(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        capacity: usize,
        last: usize,
    ) -> (Tensor<3>, KvCache) {
        let [batch, length] = tokens.dims();
        assert_eq!(padding.dims(), [batch], "one padding for each row");
        assert!(length >= last, "a prompt has at least one token");
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
        let lengths = Tensor::full([batch], length as i32, (&device, DType::I32));
        // A separate buffer, so that the caller's tensor is not shared.
        let padding = padding.add_scalar(0);
        (logits, KvCache::of(keys, values, lengths, padding).aligned())
    }

    /// Reads tokens at the slots from `at` on; returns the output of the last layer after each of
    /// the `last` tokens, `[batch, last, hidden]`.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, length]`
    /// - `padding`: `[batch]`: the first visible slot of each row
    /// - `write`: writes the keys and values of a layer at the slots from a slot on,
    ///   `[batch, kv_heads, count, head_dim]` each; returns the keys and values of all slots so far
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
        let x = self.embed(tokens);

        let key = Tensor::<1, Int>::arange(0..seen as i64, (&device, padding.dtype()));
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
        in_pool(x, |mut x| {
            for (index, layer) in self.model.layers.iter().enumerate() {
                x = layer.forward(x, |attention, qkv| {
                    let [q, k, v] = attention.split(qkv, &rotations);
                    let [keys, values] = write(index, [k, v]);
                    attention.mix([q, keys, values], &hidden)
                });
            }
            x
        })
    }
}

/// Writes `new` `[batch, kv_heads, count, head_dim]` at the slots from `at` on, in place. Returns
/// all slots up to the last one written.
fn extend(buffer: &mut Tensor<4>, at: usize, new: Tensor<4>) -> Tensor<4> {
    let [batch, kv_heads, count, head_dim] = new.dims();
    let end = at + count;
    in_place(buffer, |buffer| buffer.slice_assign([0..batch, 0..kv_heads, at..end, 0..head_dim], new));
    buffer.clone().slice([0..batch, 0..kv_heads, 0..end, 0..head_dim])
}
