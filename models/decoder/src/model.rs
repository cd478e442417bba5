//! [`Decoder`]: the parameters of a model, and the forward pass for training.
//!
//! The path of each parameter is its name in a Hugging Face checkpoint
//! (`model.layers.0.mlp.up_proj.weight`), for loading and saving.
//! [`CausalLm`](burn_dfa::generation::CausalLm) implements decoding with a cache.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{DType, Device, Int, Tensor};

use crate::blocks::Blocks;
use crate::config::DecoderConfig;
use crate::layers::{Attention, Embedding, Layer, Linear, RmsNorm};
use crate::mask::masks;
use crate::rotary::Rotary;

/// A decoder-only model for causal language modelling.
///
/// Made by [`DecoderConfig::init`] (random weights) or read from files.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa_decoder::DecoderConfig;
///
/// let device = Device::flex();
/// let model = DecoderConfig::new(128, 32, 64, 2, 4).init(&device);
/// let tokens = Tensor::<2, Int>::from_ints([[3, 1, 4], [1, 5, 9]], &device);
/// assert_eq!(model.forward(tokens).dims(), [2, 3, 128]);
/// ```
#[derive(Module, Debug)]
pub struct Decoder {
    pub(crate) model: Backbone,
    pub(crate) lm_head: Option<Linear>,
    pub(crate) rotary: Rotary,
    #[module(skip)]
    pub(crate) config: DecoderConfig,
}

/// Everything but the output layer; `model` in a checkpoint.
#[derive(Module, Debug)]
pub(crate) struct Backbone {
    pub(crate) embed_tokens: Embedding,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: RmsNorm,
}

impl DecoderConfig {
    /// Makes a model with random weights: normal of deviation 0.02, no biases, and norms that
    /// change nothing.
    ///
    /// The weights have the device's default float type. On a device with autodiff the model is
    /// ready for training.
    ///
    /// # Panics
    /// If [`validate`](Self::validate) refuses the configuration.
    pub fn init(&self, device: &Device) -> Decoder {
        if let Err(error) = self.validate() {
            panic!("{error}");
        }
        Decoder {
            model: Backbone {
                embed_tokens: Embedding::new(self.vocab_size, self.hidden_size, device),
                layers: (0..self.num_hidden_layers).map(|index| Layer::new(self, index, device)).collect(),
                norm: RmsNorm::new(self.hidden_size, self, device),
            },
            lm_head: (!self.tie_word_embeddings)
                .then(|| Linear::new(self.hidden_size, self.vocab_size, device)),
            rotary: Rotary::new(self, device),
            config: self.clone(),
        }
    }
}

impl Decoder {
    /// The configuration of the model.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// The float type of the weights and of the logits.
    pub fn dtype(&self) -> DType {
        self.model.embed_tokens.weight.val().dtype()
    }

    /// Logits after every token. Each position attends to itself and all earlier positions.
    ///
    /// There is neither padding nor a cache: to train on sequences of different lengths, pad on the
    /// right and leave the padded targets out of the loss.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, length]`
    /// - returns `[batch, length, vocab_size]`
    ///
    /// # Panics
    /// If `length` exceeds `max_position_embeddings`.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        self.logits(self.hidden(tokens))
    }

    /// Logits at some positions only, equal to the logits of [`forward`](Self::forward): the output
    /// layer of a large vocabulary costs much, and in training most positions have no target.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, length]`
    /// - `positions`: `[count]`, each `row * length + column`
    /// - returns `[count, vocab_size]`
    ///
    /// # Panics
    /// If `length` exceeds `max_position_embeddings`.
    pub fn forward_at(&self, tokens: Tensor<2, Int>, positions: Tensor<1, Int>) -> Tensor<2> {
        let hidden = self.hidden(tokens).flatten::<2>(0, 1).select(0, positions);
        self.logits(hidden.unsqueeze_dim(0)).squeeze_dim(0)
    }

    /// The output of the last layer, before the final norm.
    fn hidden(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let [_, length] = tokens.dims();
        assert!(
            length <= self.config.max_position_embeddings,
            "{length} tokens exceed the model's {} positions",
            self.config.max_position_embeddings
        );
        let device = tokens.device();
        let x = self.embed(tokens);
        let rotations = self.rotary.prefix(length, x.dtype());
        let hidden = {
            let index = Tensor::<1, Int>::arange(0..length as i64, &device);
            let all = [1, 1, length, length];
            let key = index.clone().reshape([1, 1, 1, length]).expand(all);
            let query = index.reshape([1, 1, length, 1]).expand(all);
            let later = key.clone().greater(query.clone());
            masks(later, self.config.window_among(length), || [query, key])
        };
        let attend = |attention: &Attention, qkv| attention.mix(attention.split(qkv, &rotations), &hidden);
        in_pool(x, |x| self.model.layers.iter().fold(x, |x, layer| layer.forward(x, attend)))
    }

    /// The place for the blocks of each matrix, with the name of the matrix in a checkpoint.
    pub(crate) fn blocks(&mut self) -> impl Iterator<Item = (String, &mut Option<Arc<Blocks>>)> {
        let Backbone { embed_tokens, layers, .. } = &mut self.model;
        let layers = layers.iter_mut().enumerate().flat_map(|(index, layer)| {
            let (attention, mlp) = (&mut layer.self_attn, &mut layer.mlp);
            let named = [
                ("self_attn.q_proj", &mut attention.q_proj),
                ("self_attn.k_proj", &mut attention.k_proj),
                ("self_attn.v_proj", &mut attention.v_proj),
                ("self_attn.o_proj", &mut attention.o_proj),
                ("mlp.gate_proj", &mut mlp.gate_proj),
                ("mlp.up_proj", &mut mlp.up_proj),
                ("mlp.down_proj", &mut mlp.down_proj),
            ];
            named.map(|(name, linear)| (format!("model.layers.{index}.{name}.weight"), &mut linear.blocks))
        });
        let head = self.lm_head.iter_mut().map(|head| ("lm_head.weight".to_owned(), &mut head.blocks));
        let table = ("model.embed_tokens.weight".to_owned(), &mut embed_tokens.blocks);
        std::iter::once(table).chain(layers).chain(head)
    }

    /// Whether matrices of the model are in the blocks of a GGUF file.
    pub(crate) fn keeps_blocks(&self) -> bool {
        let mut model = self.clone();
        model.blocks().any(|(_, blocks)| blocks.is_some())
    }

    /// The vectors of tokens `[batch, length]`, `[batch, length, hidden]`.
    pub(crate) fn embed(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let x = self.model.embed_tokens.forward(tokens);
        if self.config.scaled_embeddings { x * (self.config.hidden_size as f64).sqrt() } else { x }
    }

    /// The final norm and the output layer.
    pub(crate) fn logits(&self, x: Tensor<3>) -> Tensor<3> {
        let x = self.model.norm.forward(x);
        match &self.lm_head {
            Some(head) => head.forward(x),
            None => self.model.embed_tokens.project(x),
        }
    }
}

/// Calls `pass` with `x`. On Flex it runs on a thread of the pool.
///
/// Outside of the pool, each operation that divides its work among threads wakes a thread of the
/// pool, sleeps until the work is done, and is woken. So the layers of a pass enter the pool once.
pub(crate) fn in_pool<R: Send>(x: Tensor<3>, pass: impl FnOnce(Tensor<3>) -> R + Send) -> R {
    #[cfg(feature = "flex")]
    if crate::flex::is_flex(&x) {
        return crate::flex::in_pool(|| pass(x));
    }
    pass(x)
}
