//! Decoding with a cache: [`Decoder`] as a [`CausalLm`].
//!
//! The state of decoding is a [`KvCache`] on the device: the length and the padding of each row, the
//! keys and the values. A step has constant shapes, reads nothing back and uploads nothing, so it
//! can be recorded once and replayed. For replay it also writes the new state into the buffers of
//! the old one.
//!
//! The next position of row `b` sees the key at slot `k` if `padding[b] <= k <= lengths[b]`, and in
//! a layer with a sliding window of `n` positions if also `lengths[b] - n < k`. A padded position of
//! the prompt sees no key. All its scores are the same finite number, so its values are meaningless
//! but finite, and no other position sees them.

use burn::tensor::{DType, Device, Int, Tensor};
use burn_dfa::generation::{CausalLm, KvCache, Recordable};

use crate::cache::{Places, Targets, attend, one_pass};
use crate::mask::masks;
use crate::model::Decoder;
use crate::rope::Rotations;

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
/// let prompts = Tensor::<2, Int>::from_ints([[3, 1, 4], [0, 1, 5]], &device); // the second is padded
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

    /// The rows must have one length, as after [`prefill`](CausalLm::prefill).
    ///
    /// # Panics
    /// If there is not exactly one token for each row.
    fn step(&self, tokens: Tensor<1, Int>, cache: &mut KvCache) -> Tensor<2> {
        // A copy, because a view of the lengths would prevent their change in place.
        self.step_at(tokens, cache, |cache| Places::Slot(cache.lengths().narrow(0, 0, 1).add_scalar(0)))
    }
}

// SAFETY: The tensors of a new cache share no buffers. Every method of this crate and of `KvCache`
// that changes a cache writes by `inplace` or `assign`, and drops its clones of the tensors before it
// returns. The decoder keeps no tensors of calls, and its parameters do not change while it is
// borrowed.
#[allow(unsafe_code)]
unsafe impl Recordable for Decoder {}

impl Decoder {
    /// Feeds one token to every row at its own length, and returns the next logits. `places` are the
    /// places of the new keys and values.
    pub(crate) fn step_at(
        &self,
        tokens: Tensor<1, Int>,
        cache: &mut KvCache,
        places: impl FnOnce(&KvCache) -> Places,
    ) -> Tensor<2> {
        let rows = cache.rows();
        assert_eq!(tokens.dims(), [rows], "one token for each row");
        let mut x = self.embed(tokens.reshape([rows, 1]));
        let rotations = self.rotations(cache, x.dtype());
        let targets = (!one_pass(&x)).then(|| self.targets(cache, places(cache)));
        for (index, layer) in self.model.layers.iter().enumerate() {
            x = layer.forward(x, |attention, qkv| {
                attend(cache, index, attention, qkv, &rotations, targets.as_ref())
            });
        }
        cache.advance();
        self.logits(x).reshape([rows, self.config.vocab_size])
    }

    /// The rotations of the next position of each row.
    pub(crate) fn rotations(&self, cache: &KvCache, dtype: DType) -> Rotations {
        let positions = (cache.lengths() - cache.padding()).clamp_min(0);
        self.rotary.at(positions.reshape([cache.rows(), 1]), dtype)
    }

    /// The targets of a step at some places.
    fn targets(&self, cache: &KvCache, places: Places) -> Targets {
        let (rows, capacity) = (cache.rows(), cache.capacity());
        let shape = [rows, 1, 1, capacity];
        let key = cache.slots().reshape([1, 1, 1, capacity]).expand(shape);
        let [query, padding] =
            [cache.lengths(), cache.padding()].map(|slots| slots.reshape([rows, 1, 1, 1]).expand(shape));
        let hidden = key.clone().greater(query.clone()).bool_or(key.clone().lower(padding));
        Targets { places, hidden: masks(hidden, self.config.window_among(capacity), || [query, key]) }
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
        assert!(length > 0, "a prompt has at least one token");
        assert!(
            length <= capacity && capacity <= self.config.max_position_embeddings,
            "the capacity {capacity} must lie between the prompt's {length} tokens and the model's {} \
             positions",
            self.config.max_position_embeddings
        );
        let device = tokens.device();
        let mut x = self.embed(tokens);
        let dtype = x.dtype();

        let index = Tensor::<1, Int>::arange(0..length as i64, &device);
        let positions = index
            .clone()
            .reshape([1, length])
            .expand([batch, length])
            .sub(padding.clone().reshape([batch, 1]).expand([batch, length]))
            .clamp_min(0);
        let rotations = self.rotary.at(positions, dtype);
        let hidden = {
            let shape = [batch, 1, length, length];
            let key = index.clone().reshape([1, 1, 1, length]).expand(shape);
            let query = index.reshape([1, 1, length, 1]).expand(shape);
            let padding = padding.clone().reshape([batch, 1, 1, 1]).expand(shape);
            let hidden = key.clone().greater(query.clone()).bool_or(key.clone().lower(padding));
            masks(hidden, self.config.window_among(length), || [query, key])
        };

        let (kv_heads, head_dim) = (self.config.num_key_value_heads, self.config.head_dim);
        let store = |rows: Tensor<4>| {
            Tensor::zeros([batch, kv_heads, capacity, head_dim], (&device, dtype))
                .slice_assign([0..batch, 0..kv_heads, 0..length, 0..head_dim], rows)
        };
        let mut keys = Vec::with_capacity(self.model.layers.len());
        let mut values = Vec::with_capacity(self.model.layers.len());
        for layer in &self.model.layers {
            x = layer.forward(x, |attention, qkv| {
                let [q, k, v] = attention.split(qkv, &rotations);
                keys.push(store(k.clone()));
                values.push(store(v.clone()));
                attention.mix([q, k, v], &hidden)
            });
        }

        let logits = self.logits(x.narrow(1, length - last, last));
        let lengths = Tensor::full([batch], length as i32, (&device, DType::I32));
        // A separate buffer, so that the caller's tensor is not shared.
        let padding = padding.add_scalar(0);
        (logits, KvCache::of(keys, values, lengths, padding))
    }
}
