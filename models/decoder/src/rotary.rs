//! Rotary position embeddings from tables on the device.
//!
//! The cosines and sines of every position are computed once on the host, in `f64`, and kept as two
//! `f32` tensors `[positions, head_dim / 2]`. They are constants, not parameters: they have no
//! gradient and are not in checkpoints. Positions are looked up by `slice` (a whole sequence) or
//! `select` (positions on the device).
//!
//! The rotation is of the rotate-half kind, which pairs element `i` with element
//! `i + head_dim / 2`. Hugging Face checkpoints already have their query and key rows in this
//! order.

use burn::module::Module;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use crate::config::DecoderConfig;
use crate::frequencies::Rope;
use crate::mask::PerKind;

/// Cosines and sines of every position, both `[positions, head_dim / 2]`, times the attention
/// factor of the scaling.
#[derive(Module, Debug)]
struct RotaryTables {
    cos: Tensor<2>,
    sin: Tensor<2>,
}

/// Cosines and sines for one batch, both `[batch or 1, 1, length, head_dim / 2]`.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    cos: Tensor<4>,
    sin: Tensor<4>,
}

/// The tables of all layers.
#[derive(Module, Debug)]
pub(crate) struct Rotary {
    full: RotaryTables,
    /// The tables of layers with a sliding window, if they differ.
    sliding: Option<RotaryTables>,
}

/// The rotations of one batch, for the layers that rotate.
pub(crate) type Rotations = PerKind<Rotation>;

impl Rotary {
    /// Computes the tables of a checked configuration.
    pub(crate) fn new(config: &DecoderConfig, device: &Device) -> Self {
        let tables =
            |rope: &Rope| RotaryTables::new(rope, config.head_dim, config.max_position_embeddings, device);
        Self { full: tables(&config.rope), sliding: config.sliding_rope.as_ref().map(tables) }
    }

    fn each(&self, pick: impl Fn(&RotaryTables) -> Rotation) -> Rotations {
        Rotations { full: pick(&self.full), sliding: self.sliding.as_ref().map(&pick) }
    }

    /// The rotations of positions `0..length`, the same for every row.
    pub(crate) fn prefix(&self, length: usize, dtype: DType) -> Rotations {
        self.each(|tables| tables.prefix(length, dtype))
    }

    /// The rotations of `positions` `[batch, length]`.
    pub(crate) fn at(&self, positions: Tensor<2, Int>, dtype: DType) -> Rotations {
        self.each(|tables| tables.at(positions.clone(), dtype))
    }
}

impl RotaryTables {
    fn new(rope: &Rope, head_dim: usize, positions: usize, device: &Device) -> Self {
        let (frequencies, factor) = (rope.frequencies(head_dim), rope.attention_factor());
        let shape = [positions, frequencies.len()];
        let mut cos = Vec::with_capacity(shape[0] * shape[1]);
        let mut sin = Vec::with_capacity(shape[0] * shape[1]);
        for position in 0..positions {
            for frequency in &frequencies {
                let (s, c) = (position as f64 * frequency).sin_cos();
                cos.push((factor * c) as f32);
                sin.push((factor * s) as f32);
            }
        }
        let options = (device, DType::F32);
        Self {
            cos: Tensor::from_data(TensorData::new(cos, shape), options),
            sin: Tensor::from_data(TensorData::new(sin, shape), options),
        }
    }

    fn prefix(&self, length: usize, dtype: DType) -> Rotation {
        let pick = |table: &Tensor<2>| {
            let [_, half] = table.dims();
            table.clone().slice([0..length, 0..half]).cast(dtype).reshape([1, 1, length, half])
        };
        Rotation { cos: pick(&self.cos), sin: pick(&self.sin) }
    }

    fn at(&self, positions: Tensor<2, Int>, dtype: DType) -> Rotation {
        let [batch, length] = positions.dims();
        let flat = positions.reshape([batch * length]);
        let pick = |table: &Tensor<2>| {
            let [_, half] = table.dims();
            table.clone().select(0, flat.clone()).cast(dtype).reshape([batch, 1, length, half])
        };
        Rotation { cos: pick(&self.cos), sin: pick(&self.sin) }
    }
}

impl Rotation {
    /// Cosines and sines.
    #[cfg(feature = "flex")]
    pub(crate) fn tables(&self) -> [Tensor<4>; 2] {
        [self.cos.clone(), self.sin.clone()]
    }

    /// Rotates `x` `[batch, heads, length, head_dim]`.
    pub(crate) fn apply(&self, x: Tensor<4>) -> Tensor<4> {
        #[cfg(feature = "flex")]
        if let Some(y) = crate::flex::rotate_heads(&x, self) {
            return y;
        }
        self.apply_by_operations(x)
    }

    /// As [`apply`](Self::apply), by operations of Burn.
    pub(crate) fn apply_by_operations(&self, x: Tensor<4>) -> Tensor<4> {
        let half = x.dims()[3] / 2;
        let first = x.clone().narrow(3, 0, half);
        let second = x.narrow(3, half, half);
        let left = first.clone() * self.cos.clone() - second.clone() * self.sin.clone();
        let right = second * self.cos.clone() + first * self.sin.clone();
        Tensor::cat(vec![left, right], 3)
    }
}
