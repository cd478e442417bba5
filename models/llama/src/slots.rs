//! Decoding of rows that begin and end at different times: [`Llama`] as a [`SlotLm`].
//!
//! Every row has a length of its own. The prompt of a new row is read alone, and its keys and values are written into the
//! row's part of the cache. As in [`decode`](crate::decode), a step writes its state in place and uploads nothing.

use burn::tensor::{DType, Int, Tensor};
use burn_dfa::generation::{CausalLm, SlotLm};

use crate::cache::{RowCache, Targets, one_pass};
use crate::model::Llama;

/// Keys and values of rows that begin and end at different times. All integers are `i32`.
///
/// Made by [`SlotLm::slots`] of a [`Llama`].
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::generation::SlotLm;
/// use burn_dfa_llama::LlamaConfig;
///
/// let device = Device::flex();
/// let model = LlamaConfig::new(128, 32, 64, 2, 4).init(&device);
/// let mut cache = model.slots(2, 16);
/// let logits = model.begin(1, Tensor::<2, Int>::from_ints([[3, 1, 4]], &device), &mut cache);
/// assert_eq!(logits.dims(), [1, 128]);
/// assert_eq!(cache.lengths().into_data().try_to_vec::<i32>().unwrap(), [0, 3]);
/// ```
#[derive(Clone, Debug)]
pub struct LlamaSlots {
    /// No row is padded.
    rows: RowCache,
}

impl LlamaSlots {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.shape()[0]
    }

    /// Number of slots of a row.
    pub fn capacity(&self) -> usize {
        self.rows.shape()[2]
    }

    /// Slots in use of each row, `[rows]`; the next step writes there, and never past the last slot.
    pub fn lengths(&self) -> Tensor<1, Int> {
        self.rows.lengths()
    }

    /// The targets of a step.
    fn targets(&self) -> Targets {
        let [rows, _, capacity, _] = self.rows.shape();
        let lengths = self.rows.lengths();
        let seen = [rows, 1, 1, capacity];
        let slots = self.rows.slots().reshape([1, 1, 1, capacity]).expand(seen);
        Targets {
            hidden: slots.greater(lengths.clone().reshape([rows, 1, 1, 1]).expand(seen)),
            places: self.rows.places(lengths.reshape([rows, 1])),
        }
    }
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
        let buffers = || {
            let layers = 0..config.num_hidden_layers;
            layers.map(|_| Tensor::zeros(shape, (&device, self.dtype()))).collect()
        };
        let zeros = || Tensor::zeros([rows], (&device, DType::I32));
        LlamaSlots { rows: RowCache::new(buffers(), buffers(), zeros(), zeros()) }
    }

    /// # Panics
    /// If the prompt is not one row of at most `capacity` tokens, or there is no such row.
    fn begin(&self, row: usize, prompt: Tensor<2, Int>, cache: &mut LlamaSlots) -> Tensor<2> {
        let (rows, capacity, [one, length]) = (cache.rows(), cache.capacity(), prompt.dims());
        assert!(one == 1 && length <= capacity, "a prompt of [{one}, {length}] tokens for {capacity} slots");
        assert!(row < rows, "row {row} of {rows}");
        let padding = Tensor::zeros([1], &prompt.device());
        let (logits, read) = self.prefill(prompt, padding, length);
        cache.rows.fill(row, read.into_layers());
        logits
    }

    /// # Panics
    /// If the tokens are not one for each row.
    fn step_rows(&self, tokens: Tensor<1, Int>, cache: &mut LlamaSlots) -> Tensor<2> {
        let (rows, capacity) = (cache.rows(), cache.capacity());
        assert_eq!(tokens.dims(), [rows], "one token for each row");
        let mut x = self.model.embed_tokens.forward(tokens.reshape([rows, 1]));
        let rotation = self.rotary.at(cache.lengths().reshape([rows, 1]), x.dtype());
        let targets = (!one_pass(&x)).then(|| cache.targets());
        for (index, layer) in self.model.layers.iter().enumerate() {
            x = layer.forward(x, |attention, qkv| {
                cache.rows.attend(index, attention, qkv, &rotation, targets.as_ref())
            });
        }
        let next = (cache.lengths() + 1).clamp_max(capacity as i32 - 1);
        cache.rows.set_lengths(next);
        self.logits(x).reshape([rows, self.config.vocab_size])
    }
}
