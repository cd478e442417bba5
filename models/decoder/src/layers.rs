//! The modules of a decoder layer, with parameters named and laid out as in Hugging Face
//! checkpoints.
//!
//! A linear layer keeps its matrix as `[outputs, inputs]` and multiplies by the transpose, which is
//! a view. So checkpoints are read and written without permuting, and the output layer can be the
//! embedding matrix itself.

use std::sync::Arc;

use burn::module::{Initializer, Module, Param};
use burn::tensor::activation::{gelu_approximate, silu, softmax};
use burn::tensor::module::embedding;
use burn::tensor::{Bool, DType, Device, Int, Tensor};

use crate::blocks::Blocks;
use crate::config::{Activation, DecoderConfig};
use crate::mask::PerKind;
use crate::rotary::{Rotation, Rotations};

/// Score of a hidden position: finite, so that a row without visible positions stays finite.
const HIDDEN: f32 = -1e30;

/// Draws initial weights as transformers does.
fn matrix(rows: usize, columns: usize, device: &Device) -> Param<Tensor<2>> {
    Initializer::Normal { mean: 0.0, std: 0.02 }.init([rows, columns], device)
}

/// A matrix `[outputs, inputs]` that multiplies: a tensor, or blocks of a GGUF file.
///
/// A matrix in blocks has a tensor without rows, which holds the device and the float type of the
/// activations.
struct Matrix<'a> {
    weight: &'a Param<Tensor<2>>,
    blocks: Option<&'a Blocks>,
}

impl Matrix<'_> {
    /// `x` `[batch, length, inputs]` times the transpose of each matrix. If all are in blocks, the
    /// threads multiply them together.
    ///
    /// Batch and length are merged into the rows of one matrix. A product of rank three would
    /// reshape the transposed view and so copy the weights at every call.
    fn products<const N: usize>(matrices: [Self; N], x: Tensor<3>) -> [Tensor<3>; N] {
        let [batch, length, inputs] = x.dims();
        let x = x.reshape([batch * length, inputs]);
        let products = if matrices.iter().all(|matrix| matrix.blocks.is_some()) {
            Blocks::products(matrices.map(|matrix| matrix.blocks.expect("a matrix in blocks")), x)
        } else {
            matrices.map(|matrix| matrix.product(x.clone()))
        };
        products.map(|y| {
            let [_, outputs] = y.dims();
            y.reshape([batch, length, outputs])
        })
    }

    /// `x` `[rows, inputs]` times the transpose.
    fn product(&self, x: Tensor<2>) -> Tensor<2> {
        let Some(blocks) = self.blocks else { return product(x, self.weight.val()) };
        let [y] = Blocks::products([blocks], x);
        y
    }
}

/// `x` `[rows, inputs]` times the transpose of `weight` `[outputs, inputs]`.
fn product(x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "flex")]
    if let Some(y) = crate::flex::product(&x, &weight) {
        return y;
    }
    x.matmul(weight.transpose())
}

/// The rows of `a` `[batch, heads, outputs, inputs]` times the transpose of `b` `[batch, heads, rows,
/// inputs]`, for each head.
fn product_of_heads(a: Tensor<4>, b: Tensor<4>) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if let Some(y) = crate::flex::product_of_heads(&a, &b) {
        return y;
    }
    a.matmul(b.swap_dims(2, 3))
}

/// A table of token vectors, `[vocabulary, hidden]`.
#[derive(Module, Debug)]
pub(crate) struct Embedding {
    pub(crate) weight: Param<Tensor<2>>,
    /// The rows of the table, if it is in blocks.
    #[module(skip)]
    pub(crate) blocks: Option<Arc<Blocks>>,
}

impl Embedding {
    pub(crate) fn new(rows: usize, width: usize, device: &Device) -> Self {
        Self { weight: matrix(rows, width, device), blocks: None }
    }

    /// Looks up `[batch, length]` tokens.
    pub(crate) fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        match &self.blocks {
            Some(blocks) => blocks.select(tokens),
            None => embedding(self.weight.val(), tokens),
        }
    }

    /// Multiplies by the table, for a tied output layer.
    pub(crate) fn project(&self, x: Tensor<3>) -> Tensor<3> {
        let [y] = Matrix::products([Matrix { weight: &self.weight, blocks: self.blocks.as_deref() }], x);
        y
    }
}

/// A matrix `[outputs, inputs]`, and a bias if the model has one.
#[derive(Module, Debug)]
pub(crate) struct Linear {
    weight: Param<Tensor<2>>,
    bias: Option<Param<Tensor<1>>>,
    /// The matrix, if it is in blocks.
    #[module(skip)]
    pub(crate) blocks: Option<Arc<Blocks>>,
}

impl Linear {
    pub(crate) fn new(inputs: usize, outputs: usize, device: &Device) -> Self {
        Self { weight: matrix(outputs, inputs, device), bias: None, blocks: None }
    }

    fn with_bias(mut self, device: &Device) -> Self {
        let [outputs, _] = self.weight.lazy_shape().dims();
        self.bias = Some(Initializer::Zeros.init([outputs], device));
        self
    }

    pub(crate) fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [y] = Self::forward_each([self], x);
        y
    }

    /// The results of several layers for the same `x`.
    fn forward_each<const N: usize>(layers: [&Self; N], x: Tensor<3>) -> [Tensor<3>; N] {
        let matrices = layers.map(|Self { weight, blocks, .. }| Matrix { weight, blocks: blocks.as_deref() });
        let mut products = Matrix::products(matrices, x).into_iter();
        layers.map(|layer| {
            let y = products.next().expect("a product for each layer");
            match &layer.bias {
                Some(bias) => y + bias.val().unsqueeze(),
                None => y,
            }
        })
    }
}

/// Root mean square normalization, computed in `f32`.
#[derive(Module, Debug)]
pub(crate) struct RmsNorm {
    weight: Param<Tensor<1>>,
    epsilon: f64,
    /// Whether to multiply by one more than the weight.
    plus_one: bool,
}

impl RmsNorm {
    pub(crate) fn new(width: usize, config: &DecoderConfig, device: &Device) -> Self {
        let plus_one = config.norm_plus_one;
        let initial = if plus_one { Initializer::Zeros } else { Initializer::Ones };
        Self { weight: initial.init([width], device), epsilon: config.rms_norm_eps, plus_one }
    }

    pub(crate) fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let weight = self.weight.val();
        #[cfg(feature = "flex")]
        if let Some(y) = crate::flex::rms_norm(&x, &weight, self.epsilon, self.plus_one) {
            return y;
        }
        let dtype = x.dtype();
        let x = x.cast(DType::F32);
        let rms = (x.clone().square().mean_dim(D - 1) + self.epsilon).sqrt();
        // Both cases round like transformers.
        if self.plus_one {
            (x / rms * (weight.cast(DType::F32) + 1.0).unsqueeze()).cast(dtype)
        } else {
            (x / rms).cast(dtype) * weight.unsqueeze()
        }
    }
}

/// `activation(gate) * up`.
pub(crate) fn gated(activation: Activation, gate: Tensor<3>, up: Tensor<3>) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if let Some(y) = crate::flex::gated(activation, &gate, &up) {
        return y;
    }
    match activation {
        Activation::Silu => silu(gate) * up,
        // A cube may exceed the range of f16.
        Activation::GeluTanh => gelu_approximate(gate.cast(DType::F32)).cast(up.dtype()) * up,
    }
}

/// Softmax over the visible positions of the last dimension, computed in `f32`.
///
/// # Shapes
/// - `scores`: `[batch, heads, length, seen]`
/// - `hidden`: `[batch or 1, 1, length, seen]`
fn masked_softmax(scores: Tensor<4>, hidden: &Tensor<4, Bool>) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if crate::flex::supports(&scores) {
        return crate::flex::masked_softmax(scores, hidden);
    }
    let dtype = scores.dtype();
    // Expanded, since not every backend reads a broadcast mask correctly in f16.
    let hidden = hidden.clone().expand(scores.dims());
    softmax(scores.cast(DType::F32).mask_fill(hidden, HIDDEN), 3).cast(dtype)
}

/// The gated MLP.
#[derive(Module, Debug)]
pub(crate) struct Mlp {
    pub(crate) gate_proj: Linear,
    pub(crate) up_proj: Linear,
    pub(crate) down_proj: Linear,
    #[module(skip)]
    activation: Activation,
}

impl Mlp {
    fn new(config: &DecoderConfig, device: &Device) -> Self {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        Self {
            gate_proj: Linear::new(hidden, inner, device),
            up_proj: Linear::new(hidden, inner, device),
            down_proj: Linear::new(inner, hidden, device),
            activation: config.activation,
        }
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [gate, up] = Linear::forward_each([&self.gate_proj, &self.up_proj], x);
        self.down_proj.forward(gated(self.activation, gate, up))
    }
}

/// Attention of grouped query heads.
#[derive(Module, Debug)]
pub(crate) struct Attention {
    pub(crate) q_proj: Linear,
    pub(crate) k_proj: Linear,
    pub(crate) v_proj: Linear,
    pub(crate) o_proj: Linear,
    /// Norms of each head of queries and keys, if the model has them.
    q_norm: Option<RmsNorm>,
    k_norm: Option<RmsNorm>,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    /// The factor of the scores.
    pub(crate) scale: f64,
    /// Whether queries and keys are rotated.
    rotates: bool,
    /// Positions that a position sees, if it does not see all earlier ones.
    pub(crate) window: Option<usize>,
}

impl Attention {
    /// Attention of layer number `index`.
    fn new(config: &DecoderConfig, index: usize, device: &Device) -> Self {
        let (heads, kv_heads, head_dim) =
            (config.num_attention_heads, config.num_key_value_heads, config.head_dim);
        let hidden = config.hidden_size;
        let project = |heads: usize| {
            let linear = Linear::new(hidden, heads * head_dim, device);
            if config.qkv_bias { linear.with_bias(device) } else { linear }
        };
        let norm = || config.qk_norm.then(|| RmsNorm::new(head_dim, config, device));
        Self {
            q_proj: project(heads),
            k_proj: project(kv_heads),
            v_proj: project(kv_heads),
            o_proj: Linear::new(heads * head_dim, hidden, device),
            q_norm: norm(),
            k_norm: norm(),
            heads,
            kv_heads,
            head_dim,
            scale: config.query_pre_attn_scalar.unwrap_or(head_dim as f64).sqrt().recip(),
            rotates: !config.layers_without_rope.contains(&index),
            window: config.sliding_window.filter(|_| config.sliding_layers.contains(&index)),
        }
    }

    /// Projects to queries, keys and values, and applies the output projection to the result of
    /// `attend`.
    ///
    /// # Shapes
    /// - `x`: `[batch, length, hidden]`
    /// - `attend`: maps queries, keys and values, each `[batch, length, heads * head_dim]` with its
    ///   own number of heads, to a mixture of the queries' shape
    fn forward(&self, x: Tensor<3>, attend: impl FnOnce(&Self, [Tensor<3>; 3]) -> Tensor<3>) -> Tensor<3> {
        let [q, k, v] = Linear::forward_each([&self.q_proj, &self.k_proj, &self.v_proj], x);
        let (q, k) = (self.norm_heads(&self.q_norm, q), self.norm_heads(&self.k_norm, k));
        self.o_proj.forward(attend(self, [q, k, v]))
    }

    /// Normalizes each head of `[batch, length, heads * head_dim]`.
    fn norm_heads(&self, norm: &Option<RmsNorm>, x: Tensor<3>) -> Tensor<3> {
        let Some(norm) = norm else { return x };
        let shape @ [batch, length, width] = x.dims();
        norm.forward(x.reshape([batch, length, width / self.head_dim, self.head_dim])).reshape(shape)
    }

    /// The rotation of this layer's queries and keys.
    pub(crate) fn rotation<'a>(&self, rotations: &'a Rotations) -> Option<&'a Rotation> {
        self.rotates.then(|| rotations.of(self.window.is_some()))
    }

    /// The mask of this layer.
    fn hidden<'a>(&self, hidden: &'a PerKind<Tensor<4, Bool>>) -> &'a Tensor<4, Bool> {
        hidden.of(self.window.is_some())
    }

    /// Splits queries, keys and values into heads, `[batch, heads, length, head_dim]`, and rotates
    /// queries and keys.
    pub(crate) fn split(&self, [q, k, v]: [Tensor<3>; 3], rotations: &Rotations) -> [Tensor<4>; 3] {
        let split = |x: Tensor<3>, heads| {
            let [batch, length, _] = x.dims();
            x.reshape([batch, length, heads, self.head_dim]).swap_dims(1, 2)
        };
        let (q, k, v) = (split(q, self.heads), split(k, self.kv_heads), split(v, self.kv_heads));
        match self.rotation(rotations) {
            Some(rotation) => [rotation.apply(q), rotation.apply(k), v],
            None => [q, k, v],
        }
    }

    /// Softmax of the scaled scores, times the values: `[batch, length, heads * head_dim]`.
    ///
    /// # Shapes
    /// - `q`: `[batch, heads, length, head_dim]`
    /// - `k`, `v`: `[batch, kv_heads, seen, head_dim]`
    /// - `hidden`: `[batch or 1, 1, length, seen]`, true at hidden keys
    pub(crate) fn mix(&self, [q, k, v]: [Tensor<4>; 3], hidden: &PerKind<Tensor<4, Bool>>) -> Tensor<3> {
        // Stacks the query heads of a group along the rows, so that keys and values are not
        // repeated.
        let [batch, _, length, _] = q.dims();
        let seen = k.dims()[2];
        let rows = self.heads / self.kv_heads * length;
        let q = q * self.scale;
        let scores = product_of_heads(q.reshape([batch, self.kv_heads, rows, self.head_dim]), k)
            .reshape([batch, self.heads, length, seen]);
        let shares = masked_softmax(scores, self.hidden(hidden)).reshape([batch, self.kv_heads, rows, seen]);
        product_of_heads(shares, v.swap_dims(2, 3))
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
    /// Before the MLP; or after attention, if the MLP has norms before and after it.
    pub(crate) post_attention_layernorm: RmsNorm,
    pre_feedforward_layernorm: Option<RmsNorm>,
    post_feedforward_layernorm: Option<RmsNorm>,
    pub(crate) mlp: Mlp,
}

impl Layer {
    /// Layer number `index`.
    pub(crate) fn new(config: &DecoderConfig, index: usize, device: &Device) -> Self {
        let norm = || RmsNorm::new(config.hidden_size, config, device);
        Self {
            input_layernorm: norm(),
            self_attn: Attention::new(config, index, device),
            post_attention_layernorm: norm(),
            pre_feedforward_layernorm: config.feedforward_norms.then(norm),
            post_feedforward_layernorm: config.feedforward_norms.then(norm),
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
        match (&self.pre_feedforward_layernorm, &self.post_feedforward_layernorm) {
            (Some(before), Some(after)) => {
                let x = x + self.post_attention_layernorm.forward(attended);
                x.clone() + after.forward(self.mlp.forward(before.forward(x)))
            }
            _ => {
                let x = x + attended;
                x.clone() + self.mlp.forward(self.post_attention_layernorm.forward(x))
            }
        }
    }
}
