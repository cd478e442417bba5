//! Decoding of rows that begin and end at different times: [`Decoder`] as a [`ContinuousLm`].
//!
//! Every row has its own length. The prompt of a new row is read alone, and its keys and values are
//! written into the row's part of the cache. As in [`decode`](crate::decode), a step writes its
//! state in place and uploads nothing.

use burn::tensor::{DType, Int, Tensor};
use burn_dfa::generation::{CausalLm, ContinuousLm, KvCache, KvShape};

use crate::model::Decoder;

/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::generation::ContinuousLm;
/// use burn_dfa_decoder::DecoderConfig;
///
/// let device = Device::flex();
/// let model = DecoderConfig::new(128, 32, 64, 2, 4).init(&device);
/// let mut cache = model.rows_cache(2, 16);
/// let logits = model.begin(1, Tensor::<2, Int>::from_ints([[3, 1, 4]], &device), &mut cache);
/// assert_eq!(logits.dims(), [1, 128]);
/// assert_eq!(cache.lengths().into_data().try_to_vec::<i32>().unwrap(), [0, 3]);
/// ```
impl ContinuousLm for Decoder {
    type RowsCache = KvCache;

    /// # Panics
    /// If `capacity` is 0 or exceeds `max_position_embeddings`.
    fn rows_cache(&self, rows: usize, capacity: usize) -> KvCache {
        let config = self.config();
        assert!(
            (1..=config.max_position_embeddings).contains(&capacity),
            "rows of {capacity} slots of a model of {} positions",
            config.max_position_embeddings
        );
        let shape = KvShape {
            layers: config.num_hidden_layers,
            kv_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
            dtype: self.dtype(),
        };
        KvCache::new(&shape, rows, capacity, &self.device())
    }

    /// # Panics
    /// If the prompt is not one row of at most `capacity` tokens, or the row does not exist.
    fn begin(&self, row: usize, prompt: Tensor<2, Int>, cache: &mut KvCache) -> Tensor<2> {
        let (rows, capacity, [one, length]) = (cache.rows(), cache.capacity(), prompt.dims());
        assert!(one == 1 && length <= capacity, "a prompt of [{one}, {length}] tokens for {capacity} slots");
        assert!(row < rows, "row {row} of {rows}");
        let padding = Tensor::zeros([1], &prompt.device());
        let (logits, read) = self.prefill(prompt, padding, length);
        cache.fill(row, read.into_layers());
        logits
    }

    /// Reads the prompts in one pass, left padded to the longest prompt.
    ///
    /// # Panics
    /// As [`begin`](ContinuousLm::begin).
    fn begin_all(&self, prompts: Vec<(usize, Tensor<2, Int>)>, cache: &mut KvCache) -> Vec<Tensor<2>> {
        if let [(row, prompt)] = &prompts[..] {
            return vec![self.begin(*row, prompt.clone(), cache)];
        }
        let (rows, capacity, device) = (cache.rows(), cache.capacity(), self.device());
        let longest = prompts.iter().map(|(_, prompt)| prompt.dims()[1]).max().unwrap_or(0);
        assert!(longest <= capacity, "a prompt of {longest} tokens for {capacity} slots");
        let (mut padded, mut padding) =
            (Vec::with_capacity(prompts.len()), Vec::with_capacity(prompts.len()));
        for (row, prompt) in &prompts {
            let [one, length] = prompt.dims();
            assert!(one == 1 && *row < rows, "row {row} of {rows}, [{one}, {length}] tokens");
            let before = Tensor::zeros([1, longest - length], (&device, DType::I32));
            padded.push(Tensor::cat(vec![before, prompt.clone().cast(DType::I32)], 1));
            padding.push((longest - length) as i32);
        }
        let on_device = Tensor::from_data(&padding[..], (&device, DType::I32));
        let (logits, read) = self.prefill(Tensor::cat(padded, 0), on_device, longest);
        let layers = read.into_layers();
        for (index, (&(row, _), &from)) in prompts.iter().zip(&padding).enumerate() {
            let of_row = |layer: &Tensor<4>| {
                let [_, kv_heads, _, head_dim] = layer.dims();
                layer.clone().slice([index..index + 1, 0..kv_heads, from as usize..longest, 0..head_dim])
            };
            cache.fill(row, layers.each_ref().map(|layers| layers.iter().map(of_row).collect()));
        }
        let vocab_size = self.config.vocab_size;
        (0..prompts.len()).map(|index| logits.clone().slice([index..index + 1, 0..vocab_size])).collect()
    }

    fn reads_in_chunks(&self) -> bool {
        true
    }

    /// # Panics
    /// If the tokens are not one row that fits after position `at`, or the row does not exist.
    fn extend(&self, row: usize, at: usize, tokens: Tensor<2, Int>, cache: &mut KvCache) -> Tensor<2> {
        let (rows, capacity, [one, length]) = (cache.rows(), cache.capacity(), tokens.dims());
        assert!(one == 1 && at + length <= capacity, "[{one}, {length}] tokens at {at} of {capacity} slots");
        assert!(row < rows, "row {row} of {rows}");
        let padding = Tensor::zeros([1], &tokens.device());
        let write = |layer, at, new| cache.extend_row(layer, row, at, new);
        let state = self.read_slots(tokens, at, &padding, 1, write);
        cache.set_length(row, at + length);
        self.logits(state).reshape([1, self.config.vocab_size])
    }

    fn copies_prefixes(&self) -> bool {
        true
    }

    /// # Panics
    /// If a row does not exist, or `length` is not below the capacity.
    fn copy_prefix(&self, from: usize, to: usize, length: usize, cache: &mut KvCache) {
        let (rows, capacity) = (cache.rows(), cache.capacity());
        assert!(from.max(to) < rows && length < capacity, "{length} tokens of row {from} for row {to}");
        cache.copy_row(from, to, length);
    }

    /// # Panics
    /// If there is not exactly one token for each row.
    fn step_rows(&self, tokens: Tensor<1, Int>, cache: &mut KvCache) -> Tensor<2> {
        self.step(tokens, cache)
    }
}
