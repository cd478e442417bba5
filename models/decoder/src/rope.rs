//! Rotary position embeddings from tables on the device.
//!
//! The cosines and sines of every position are computed once on the host, in `f64`, and kept as two
//! `f32` tensors `[positions, head_dim / 2]`. They are constants, not parameters: they have no gradient and are not in
//! checkpoints. Positions are looked up by `slice` (a whole sequence) or `select` (positions on the device).
//!
//! Rotation is of the rotate-half kind, which pairs element `i` with element `i + head_dim / 2`; Hugging
//! Face checkpoints have their query and key rows in that order already.

use burn::module::Module;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use crate::config::{DecoderConfig, Llama3Scaling};

/// Cosines and sines of every position, both `[positions, head_dim / 2]`.
#[derive(Module, Debug)]
pub(crate) struct RotaryTables {
    cos: Tensor<2>,
    sin: Tensor<2>,
}

/// Cosines and sines for one batch, both `[batch or 1, 1, length, head_dim / 2]`.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    cos: Tensor<4>,
    sin: Tensor<4>,
}

impl RotaryTables {
    /// Computes the tables of a checked configuration.
    pub(crate) fn new(config: &DecoderConfig, device: &Device) -> Self {
        let frequencies = inverse_frequencies(config);
        let shape = [config.max_position_embeddings, frequencies.len()];
        let mut cos = Vec::with_capacity(shape[0] * shape[1]);
        let mut sin = Vec::with_capacity(shape[0] * shape[1]);
        for position in 0..config.max_position_embeddings {
            for frequency in &frequencies {
                let (s, c) = (position as f64 * frequency).sin_cos();
                cos.push(c as f32);
                sin.push(s as f32);
            }
        }
        let options = (device, DType::F32);
        Self {
            cos: Tensor::from_data(TensorData::new(cos, shape), options),
            sin: Tensor::from_data(TensorData::new(sin, shape), options),
        }
    }

    /// The rotation of positions `0..length`, the same for every row.
    pub(crate) fn prefix(&self, length: usize, dtype: DType) -> Rotation {
        let pick = |table: &Tensor<2>| {
            let [_, half] = table.dims();
            table.clone().slice([0..length, 0..half]).cast(dtype).reshape([1, 1, length, half])
        };
        Rotation { cos: pick(&self.cos), sin: pick(&self.sin) }
    }

    /// The rotation of `positions` `[batch, length]`.
    pub(crate) fn at(&self, positions: Tensor<2, Int>, dtype: DType) -> Rotation {
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
        let half = x.dims()[3] / 2;
        let first = x.clone().narrow(3, 0, half);
        let second = x.narrow(3, half, half);
        let left = first.clone() * self.cos.clone() - second.clone() * self.sin.clone();
        let right = second * self.cos.clone() + first * self.sin.clone();
        Tensor::cat(vec![left, right], 3)
    }
}

/// Radians per position of each pair of elements.
fn inverse_frequencies(config: &DecoderConfig) -> Vec<f64> {
    (0..config.head_dim / 2)
        .map(|pair| {
            let exponent = (2 * pair) as f64 / config.head_dim as f64;
            let frequency = config.rope_theta.powf(exponent).recip();
            match &config.rope_scaling {
                None => frequency,
                Some(scaling) => scaled(frequency, scaling),
            }
        })
        .collect()
}

/// The `llama3` scaling: the frequencies of long wavelengths are divided by the factor, those of short wavelengths are
/// kept, and those between are interpolated.
fn scaled(frequency: f64, scaling: &Llama3Scaling) -> f64 {
    let original = scaling.original_max_position_embeddings as f64;
    let wavelength = 2.0 * std::f64::consts::PI / frequency;
    if wavelength < original / scaling.high_freq_factor {
        frequency
    } else if wavelength > original / scaling.low_freq_factor {
        frequency / scaling.factor
    } else {
        let smooth = (original / wavelength - scaling.low_freq_factor)
            / (scaling.high_freq_factor - scaling.low_freq_factor);
        (1.0 - smooth) * frequency / scaling.factor + smooth * frequency
    }
}
