//! The parts of a decoder layer, with parameters that are named and laid out as in Hugging Face checkpoints.
//!
//! A linear layer keeps its matrix as `[outputs, inputs]` and multiplies by the transpose, which is a view. So
//! checkpoints are read and written without permuting, and the output layer can be the embedding matrix itself.

use burn::module::{Initializer, Module, Param};
use burn::tensor::activation::{silu, softmax};
use burn::tensor::module::embedding;
use burn::tensor::{Bool, DType, Device, Int, Tensor};

use crate::config::DecoderConfig;
use crate::rope::Rotation;

/// Score of a position that may not be seen: finite, so that a row which sees nothing stays finite.
const HIDDEN: f32 = -1e30;

/// Initial weights are drawn as transformers draws them.
fn matrix(rows: usize, columns: usize, device: &Device) -> Param<Tensor<2>> {
    Initializer::Normal { mean: 0.0, std: 0.02 }.init([rows, columns], device)
}

/// `x` `[batch, length, inputs]` times the transpose of `weight` `[outputs, inputs]`.
///
/// Batch and length are merged into the rows of one matrix. A product of rank three would reshape the transposed view
/// and so copy the weights at every call.
fn product(x: Tensor<3>, weight: &Param<Tensor<2>>) -> Tensor<3> {
    let [batch, length, inputs] = x.dims();
    let weight = weight.val();
    let [outputs, _] = weight.dims();
    let x = x.reshape([batch * length, inputs]);
    #[cfg(feature = "flex")]
    if let Some(y) = crate::flex::product(&x, &weight) {
        return y.reshape([batch, length, outputs]);
    }
    x.matmul(weight.transpose()).reshape([batch, length, outputs])
}

/// A table of token vectors, `[vocabulary, hidden]`.
#[derive(Module, Debug)]
pub(crate) struct Embedding {
    pub(crate) weight: Param<Tensor<2>>,
}

impl Embedding {
    pub(crate) fn new(rows: usize, width: usize, device: &Device) -> Self {
        Self { weight: matrix(rows, width, device) }
    }

    /// Looks up `[batch, length]` tokens.
    pub(crate) fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        embedding(self.weight.val(), tokens)
    }

    /// Multiplies by the table, for a tied output layer.
    pub(crate) fn project(&self, x: Tensor<3>) -> Tensor<3> {
        product(x, &self.weight)
    }
}

/// A matrix `[outputs, inputs]` without bias.
#[derive(Module, Debug)]
pub(crate) struct Linear {
    weight: Param<Tensor<2>>,
}

impl Linear {
    pub(crate) fn new(inputs: usize, outputs: usize, device: &Device) -> Self {
        Self { weight: matrix(outputs, inputs, device) }
    }

    pub(crate) fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        product(x, &self.weight)
    }
}

/// Root mean square normalisation, computed in `f32`.
#[derive(Module, Debug)]
pub(crate) struct RmsNorm {
    weight: Param<Tensor<1>>,
    epsilon: f64,
}

impl RmsNorm {
    pub(crate) fn new(width: usize, epsilon: f64, device: &Device) -> Self {
        Self { weight: Initializer::Ones.init([width], device), epsilon }
    }

    pub(crate) fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        #[cfg(feature = "flex")]
        if let Some(y) = crate::flex::rms_norm(&x, &self.weight.val(), self.epsilon) {
            return y;
        }
        let dtype = x.dtype();
        let x = x.cast(DType::F32);
        let rms = (x.clone().square().mean_dim(D - 1) + self.epsilon).sqrt();
        (x / rms).cast(dtype) * self.weight.val().unsqueeze()
    }
}

/// `silu(gate) * up`.
pub(crate) fn gated(gate: Tensor<3>, up: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if let Some(y) = crate::flex::gated(&gate, &up) {
        return y;
    }
    silu(gate) * up
}

/// The gated MLP.
#[derive(Module, Debug)]
pub(crate) struct Mlp {
    pub(crate) gate_proj: Linear,
    pub(crate) up_proj: Linear,
    pub(crate) down_proj: Linear,
}

impl Mlp {
    fn new(config: &DecoderConfig, device: &Device) -> Self {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        Self {
            gate_proj: Linear::new(hidden, inner, device),
            up_proj: Linear::new(hidden, inner, device),
            down_proj: Linear::new(inner, hidden, device),
        }
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let (gate, up) = (self.gate_proj.forward(x.clone()), self.up_proj.forward(x));
        self.down_proj.forward(gated(gate, up))
    }
}

/// Attention of grouped query heads.
#[derive(Module, Debug)]
pub(crate) struct Attention {
    pub(crate) q_proj: Linear,
    pub(crate) k_proj: Linear,
    pub(crate) v_proj: Linear,
    pub(crate) o_proj: Linear,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
}

impl Attention {
    fn new(config: &DecoderConfig, device: &Device) -> Self {
        let (heads, kv_heads, head_dim) =
            (config.num_attention_heads, config.num_key_value_heads, config.head_dim);
        let hidden = config.hidden_size;
        Self {
            q_proj: Linear::new(hidden, heads * head_dim, device),
            k_proj: Linear::new(hidden, kv_heads * head_dim, device),
            v_proj: Linear::new(hidden, kv_heads * head_dim, device),
            o_proj: Linear::new(heads * head_dim, hidden, device),
            heads,
            kv_heads,
            head_dim,
        }
    }

    /// Projects to queries, keys and values, and applies the output projection to the result of `attend`.
    ///
    /// # Shapes
    /// - `x`: `[batch, length, hidden]`
    /// - `attend`: from queries, keys and values, each `[batch, length, its heads * head_dim]`, to a mixture of
    ///   the queries' shape
    fn forward(&self, x: Tensor<3>, attend: impl FnOnce(&Self, [Tensor<3>; 3]) -> Tensor<3>) -> Tensor<3> {
        let q = self.q_proj.forward(x.clone());
        let k = self.k_proj.forward(x.clone());
        let v = self.v_proj.forward(x);
        self.o_proj.forward(attend(self, [q, k, v]))
    }

    /// Splits queries, keys and values into heads, `[batch, its heads, length, head_dim]`, and rotates
    /// queries and keys.
    pub(crate) fn split(&self, [q, k, v]: [Tensor<3>; 3], rotation: &Rotation) -> [Tensor<4>; 3] {
        let split = |x: Tensor<3>, heads| {
            let [batch, length, _] = x.dims();
            x.reshape([batch, length, heads, self.head_dim]).swap_dims(1, 2)
        };
        let (q, k) = (split(q, self.heads), split(k, self.kv_heads));
        [rotation.apply(q), rotation.apply(k), split(v, self.kv_heads)]
    }

    /// Softmax of the scaled scores, times the values: `[batch, length, heads * head_dim]`.
    ///
    /// # Shapes
    /// - `q`: `[batch, heads, length, head_dim]`
    /// - `k`, `v`: `[batch, kv_heads, seen, head_dim]`
    /// - `hidden`: `[batch or 1, 1, length, seen]`, true where a key may not be seen
    pub(crate) fn mix(&self, [q, k, v]: [Tensor<4>; 3], hidden: Tensor<4, Bool>) -> Tensor<3> {
        // The query heads of a group are stacked along the rows, so that keys and values are not repeated.
        let dtype = q.dtype();
        let [batch, _, length, _] = q.dims();
        let seen = k.dims()[2];
        let rows = self.heads / self.kv_heads * length;
        let q = q * (self.head_dim as f64).sqrt().recip();
        let scores = q
            .reshape([batch, self.kv_heads, rows, self.head_dim])
            .matmul(k.swap_dims(2, 3))
            .reshape([batch, self.heads, length, seen])
            .cast(DType::F32);
        // Expanded, since not every backend reads a broadcast mask correctly in f16.
        let hidden = hidden.expand([batch, self.heads, length, seen]);
        let weights = softmax(scores.mask_fill(hidden, HIDDEN), 3).cast(dtype);
        weights
            .reshape([batch, self.kv_heads, rows, seen])
            .matmul(v)
            .reshape([batch, self.heads, length, self.head_dim])
            .swap_dims(1, 2)
            .reshape([batch, length, self.heads * self.head_dim])
    }
}

/// One decoder layer.
#[derive(Module, Debug)]
pub(crate) struct Layer {
    pub(crate) input_layernorm: RmsNorm,
    pub(crate) self_attn: Attention,
    pub(crate) post_attention_layernorm: RmsNorm,
    pub(crate) mlp: Mlp,
}

impl Layer {
    pub(crate) fn new(config: &DecoderConfig, device: &Device) -> Self {
        let norm = || RmsNorm::new(config.hidden_size, config.rms_norm_eps, device);
        Self {
            input_layernorm: norm(),
            self_attn: Attention::new(config, device),
            post_attention_layernorm: norm(),
            mlp: Mlp::new(config, device),
        }
    }

    /// See [`Attention::forward`] for the shapes.
    pub(crate) fn forward(
        &self,
        x: Tensor<3>,
        attend: impl FnOnce(&Attention, [Tensor<3>; 3]) -> Tensor<3>,
    ) -> Tensor<3> {
        let attended = self.self_attn.forward(self.input_layernorm.forward(x.clone()), attend);
        let x = x + attended;
        x.clone() + self.mlp.forward(self.post_attention_layernorm.forward(x))
    }
}
