//! [`Rope`]: the frequencies of rotary position embeddings, and their scaling to longer texts.
//!
//! As in
//! [`modeling_rope_utils.py`](https://github.com/huggingface/transformers/blob/main/src/transformers/modeling_rope_utils.py)
//! of transformers, in `f64`.

use crate::error::DecoderError;

/// The base of the rotary frequencies, and their scaling.
///
/// ```
/// use burn_dfa_decoder::{DecoderConfig, Rope, RopeScaling, YarnScaling};
///
/// let rope = Rope { theta: 1e6, scaling: Some(RopeScaling::Yarn(YarnScaling::new(4.0, 32_768))) };
/// let config = DecoderConfig { rope, ..DecoderConfig::new(128, 32, 64, 2, 4) };
/// config.validate()?;
/// # Ok::<(), burn_dfa_decoder::DecoderError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Base of the frequencies.
    pub theta: f64,
    /// The scaling of the frequencies.
    pub scaling: Option<RopeScaling>,
}

/// A scaling of the rotary frequencies: the `rope_type` of a `config.json`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// `linear`: every frequency is divided by the factor.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// `llama3`.
    Llama3(Llama3Scaling),
    /// `yarn`.
    Yarn(YarnScaling),
}

/// Parameters of the `llama3` scaling of rotary frequencies.
///
/// ```
/// use burn_dfa_decoder::{DecoderConfig, Llama3Scaling, Rope, RopeScaling};
///
/// let scaling = Llama3Scaling {
///     factor: 8.0,
///     low_freq_factor: 1.0,
///     high_freq_factor: 4.0,
///     original_max_position_embeddings: 8192,
/// };
/// let rope = Rope { theta: 500_000.0, scaling: Some(RopeScaling::Llama3(scaling)) };
/// let config = DecoderConfig { rope, ..DecoderConfig::new(128, 32, 64, 2, 4) };
/// config.validate()?;
/// # Ok::<(), burn_dfa_decoder::DecoderError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Llama3Scaling {
    /// The factor that stretches long wavelengths.
    pub factor: f64,
    /// Wavelengths above `original_max_position_embeddings / low_freq_factor` are stretched in
    /// full.
    pub low_freq_factor: f64,
    /// Wavelengths below `original_max_position_embeddings / high_freq_factor` are left alone.
    pub high_freq_factor: f64,
    /// Number of positions before the stretching.
    pub original_max_position_embeddings: usize,
}

/// Parameters of YaRN ([Peng et al., 2023](https://arxiv.org/abs/2309.00071)).
///
/// ```
/// use burn_dfa_decoder::YarnScaling;
///
/// let scaling = YarnScaling::new(4.0, 32_768);
/// assert_eq!((scaling.beta_fast, scaling.beta_slow), (32.0, 1.0));
/// assert!((scaling.attention_factor - 1.1386).abs() < 1e-4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct YarnScaling {
    /// Low frequencies are divided by this factor.
    pub factor: f64,
    /// Number of positions before the stretching.
    pub original_max_position_embeddings: usize,
    /// Queries and keys are multiplied by this factor during rotation.
    pub attention_factor: f64,
    /// Frequencies of at least this many turns within the original positions are left alone.
    pub beta_fast: f64,
    /// Frequencies of at most this many turns are divided in full.
    pub beta_slow: f64,
    /// Whether the bounds between the ranges are rounded outwards to whole pairs.
    pub truncate: bool,
}

impl YarnScaling {
    /// The scaling with the constants of the paper: an attention factor of `0.1 ln(factor) + 1`,
    /// and betas of 32 and 1.
    pub fn new(factor: f64, original_max_position_embeddings: usize) -> Self {
        Self {
            factor,
            original_max_position_embeddings,
            attention_factor: mscale(factor, 1.0),
            beta_fast: 32.0,
            beta_slow: 1.0,
            truncate: true,
        }
    }
}

/// The factor of the attention of a model that was stretched by `factor`.
pub(crate) fn mscale(factor: f64, scale: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 }
}

impl Rope {
    /// Frequencies without a scaling.
    pub fn new(theta: f64) -> Self {
        Self { theta, scaling: None }
    }

    /// Refuses invalid constants; `field` is for messages, and `max` bounds positions.
    pub(crate) fn check(&self, field: &'static str, max: usize) -> Result<(), DecoderError> {
        let positive = |name: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                Ok(())
            } else {
                Err(DecoderError::config(
                    field,
                    format!("has a {name} of {value}; it must be a positive number"),
                ))
            }
        };
        let original = |positions: usize| {
            if (1..=max).contains(&positions) {
                Ok(())
            } else {
                Err(DecoderError::config(
                    field,
                    format!(
                        "has original_max_position_embeddings of {positions}; it must lie between 1 and {max}"
                    ),
                ))
            }
        };
        positive("rope_theta", self.theta)?;
        match &self.scaling {
            None => Ok(()),
            Some(RopeScaling::Linear { factor }) => positive("factor", *factor),
            Some(RopeScaling::Llama3(scaling)) => {
                positive("factor", scaling.factor)?;
                positive("low_freq_factor", scaling.low_freq_factor)?;
                positive("high_freq_factor", scaling.high_freq_factor)?;
                if scaling.high_freq_factor <= scaling.low_freq_factor {
                    return Err(DecoderError::config(
                        field,
                        "has a high_freq_factor that does not exceed low_freq_factor",
                    ));
                }
                original(scaling.original_max_position_embeddings)
            }
            Some(RopeScaling::Yarn(scaling)) => {
                positive("factor", scaling.factor)?;
                positive("attention_factor", scaling.attention_factor)?;
                positive("beta_fast", scaling.beta_fast)?;
                positive("beta_slow", scaling.beta_slow)?;
                if scaling.beta_fast < scaling.beta_slow {
                    return Err(DecoderError::config(field, "has a beta_fast below beta_slow"));
                }
                if self.theta <= 1.0 {
                    return Err(DecoderError::config(
                        field,
                        "has a rope_theta that yarn cannot scale; it must exceed 1",
                    ));
                }
                original(scaling.original_max_position_embeddings)
            }
        }
    }

    /// Radians per position of each pair of elements of a head.
    pub(crate) fn frequencies(&self, head_dim: usize) -> Vec<f64> {
        let plain =
            (0..head_dim / 2).map(|pair| self.theta.powf((2 * pair) as f64 / head_dim as f64).recip());
        match &self.scaling {
            None => plain.collect(),
            Some(RopeScaling::Linear { factor }) => plain.map(|frequency| frequency / factor).collect(),
            Some(RopeScaling::Llama3(scaling)) => plain.map(|frequency| scaling.scaled(frequency)).collect(),
            Some(RopeScaling::Yarn(scaling)) => {
                let bounds = scaling.bounds(self.theta, head_dim);
                plain.enumerate().map(|(pair, frequency)| scaling.scaled(frequency, pair, bounds)).collect()
            }
        }
    }

    /// The factor of cosines and sines.
    pub(crate) fn attention_factor(&self) -> f64 {
        match &self.scaling {
            Some(RopeScaling::Yarn(scaling)) => scaling.attention_factor,
            _ => 1.0,
        }
    }
}

impl Llama3Scaling {
    /// Divides the frequencies of long wavelengths by the factor, keeps the frequencies of short
    /// wavelengths, and interpolates between them.
    fn scaled(&self, frequency: f64) -> f64 {
        let original = self.original_max_position_embeddings as f64;
        let wavelength = 2.0 * std::f64::consts::PI / frequency;
        if wavelength < original / self.high_freq_factor {
            frequency
        } else if wavelength > original / self.low_freq_factor {
            frequency / self.factor
        } else {
            let smooth = (original / wavelength - self.low_freq_factor)
                / (self.high_freq_factor - self.low_freq_factor);
            (1.0 - smooth) * frequency / self.factor + smooth * frequency
        }
    }
}

impl YarnScaling {
    /// The pairs that bound the interpolated frequencies.
    fn bounds(&self, theta: f64, head_dim: usize) -> (f64, f64) {
        let width = head_dim as f64;
        // The pair whose frequency makes this many turns within the original positions.
        let pair = |turns: f64| {
            let original = self.original_max_position_embeddings as f64;
            width * (original / (turns * 2.0 * std::f64::consts::PI)).ln() / (2.0 * theta.ln())
        };
        let (low, high) = (pair(self.beta_fast), pair(self.beta_slow));
        let (low, high) = if self.truncate { (low.floor(), high.ceil()) } else { (low, high) };
        (low.max(0.0), high.min(width - 1.0))
    }

    fn scaled(&self, frequency: f64, pair: usize, (low, high): (f64, f64)) -> f64 {
        let high = if low == high { high + 0.001 } else { high };
        let ramp = ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
        frequency / self.factor * ramp + frequency * (1.0 - ramp)
    }
}

#[cfg(test)]
mod tests {
    #[derive(serde::Deserialize)]
    struct Case {
        parameters: serde_json::Value,
        head_dim: usize,
        frequencies: Vec<f64>,
        attention_factor: f64,
    }

    /// transformers computed the expected values in f32, from the same parameters
    /// (`tests/golden/export.py`).
    #[test]
    fn frequencies_are_those_of_transformers() {
        let cases: Vec<Case> = serde_json::from_str(include_str!("../tests/golden/rope.json")).unwrap();
        assert!(cases.len() >= 8);
        for Case { parameters, head_dim, frequencies, attention_factor } in cases {
            let rope = crate::rope_json::of_parameters(&parameters).unwrap();
            assert!((rope.attention_factor() - attention_factor).abs() < 1e-6, "{parameters}");
            let found = rope.frequencies(head_dim);
            assert_eq!(found.len(), frequencies.len());
            for (found, expected) in found.into_iter().zip(frequencies) {
                assert!((found / expected - 1.0).abs() < 1e-5, "{parameters}: {found}, not {expected}");
            }
            let written = crate::rope_json::write_parameters(&rope);
            assert_eq!(crate::rope_json::of_parameters(&written).unwrap(), rope);
        }
    }
}
