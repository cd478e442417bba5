//! The pieces of a decoder layer, with parameters named and laid out as in Hugging Face checkpoints.
//!
//! A linear layer keeps its matrix as `[outputs, inputs]` and multiplies by its transpose, which is a view;
//! so a checkpoint is read and written without permuting, and the output layer can be the embedding
//! matrix itself.

use burn::module::{Initializer, Module, Param};
use burn::tensor::activation::{silu, softmax};
use burn::tensor::module::embedding;
use burn::tensor::{Bool, DType, Device, Int, Tensor};

use crate::config::LlamaConfig;
use crate::rope::Rotation;

/// Score of a position that may not be seen: finite, so that a row which sees nothing stays finite.
const HIDDEN: f32 = -1e30;

/// Initial weights are drawn as transformers draws them.
fn matrix(rows: usize, columns: usize, device: &Device) -> Param<Tensor<2>> {
    Initializer::Normal { mean: 0.0, std: 0.02 }.init([rows, columns], device)
}

/// `x` `[batch, length, inputs]` times the transpose of `weight` `[outputs, inputs]`.
///
/// The rows are folded into one matrix: a product of rank three would reshape the transposed view, and so
/// copy the weights at every call.
fn product(x: Tensor<3>, weight: &Param<Tensor<2>>) -> Tensor<3> {
    let [batch, length, inputs] = x.dims();
    let weight = weight.val();
    let [outputs, _] = weight.dims();
    x.reshape([batch * length, inputs]).matmul(weight.transpose()).reshape([batch, length, outputs])
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
        let dtype = x.dtype();
        let x = x.cast(DType::F32);
        let rms = (x.clone().square().mean_dim(D - 1) + self.epsilon).sqrt();
        (x / rms).cast(dtype) * self.weight.val().unsqueeze()
    }
}

/// The gated MLP.
#[derive(Module, Debug)]
pub(crate) struct Mlp {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
}

impl Mlp {
    fn new(config: &LlamaConfig, device: &Device) -> Self {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        Self {
            gate_proj: Linear::new(hidden, inner, device),
            up_proj: Linear::new(hidden, inner, device),
            down_proj: Linear::new(inner, hidden, device),
        }
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let gate = silu(self.gate_proj.forward(x.clone()));
        self.down_proj.forward(gate * self.up_proj.forward(x))
    }
}

/// Attention of grouped query heads.
#[derive(Module, Debug)]
pub(crate) struct Attention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
}

impl Attention {
    fn new(config: &LlamaConfig, device: &Device) -> Self {
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

    /// Attends over what `remember` makes of this call's keys and values.
    ///
    /// # Shapes
    /// - `x`: `[batch, length, hidden]`
    /// - `hidden`: `[batch or 1, 1, length, seen]`, true where a key may not be seen
    /// - `remember`: from `[batch, kv_heads, length, head_dim]` to `[batch, kv_heads, seen, head_dim]`
    fn forward(
        &self,
        x: Tensor<3>,
        rotation: &Rotation,
        hidden: Tensor<4, Bool>,
        remember: impl FnOnce(Tensor<4>, Tensor<4>) -> (Tensor<4>, Tensor<4>),
    ) -> Tensor<3> {
        let [batch, length, _] = x.dims();
        let split = |x: Tensor<3>, heads| x.reshape([batch, length, heads, self.head_dim]).swap_dims(1, 2);
        let q = rotation.apply(split(self.q_proj.forward(x.clone()), self.heads));
        let k = rotation.apply(split(self.k_proj.forward(x.clone()), self.kv_heads));
        let v = split(self.v_proj.forward(x), self.kv_heads);
        let (k, v) = remember(k, v);

        // The query heads of a group are stacked along the rows, so that keys and values are not repeated.
        let dtype = q.dtype();
        let seen = k.dims()[2];
        let rows = self.heads / self.kv_heads * length;
        let q = q * (self.head_dim as f64).sqrt().recip();
        let scores = q
            .reshape([batch, self.kv_heads, rows, self.head_dim])
            .matmul(k.swap_dims(2, 3))
            .reshape([batch, self.heads, length, seen])
            .cast(DType::F32);
        // Expanded, for a broadcast mask is not read correctly everywhere in f16.
        let hidden = hidden.expand([batch, self.heads, length, seen]);
        let weights = softmax(scores.mask_fill(hidden, HIDDEN), 3).cast(dtype);
        let mixed = weights
            .reshape([batch, self.kv_heads, rows, seen])
            .matmul(v)
            .reshape([batch, self.heads, length, self.head_dim])
            .swap_dims(1, 2)
            .reshape([batch, length, self.heads * self.head_dim]);
        self.o_proj.forward(mixed)
    }
}

/// One decoder layer.
#[derive(Module, Debug)]
pub(crate) struct Layer {
    input_layernorm: RmsNorm,
    self_attn: Attention,
    post_attention_layernorm: RmsNorm,
    mlp: Mlp,
}

impl Layer {
    pub(crate) fn new(config: &LlamaConfig, device: &Device) -> Self {
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
        rotation: &Rotation,
        hidden: Tensor<4, Bool>,
        remember: impl FnOnce(Tensor<4>, Tensor<4>) -> (Tensor<4>, Tensor<4>),
    ) -> Tensor<3> {
        let attended =
            self.self_attn.forward(self.input_layernorm.forward(x.clone()), rotation, hidden, remember);
        let x = x + attended;
        x.clone() + self.mlp.forward(self.post_attention_layernorm.forward(x))
    }
}
