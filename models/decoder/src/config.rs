//! [`DecoderConfig`]: the shape of a model.
//!
//! A configuration is checked when it is parsed: its sizes are positive and bounded, and those that must divide one
//! another do. So neither building tables nor comparing shapes can overflow or panic. [`DecoderConfig::validate`] checks a
//! configuration that was made in code.

use crate::error::DecoderError;

/// Greatest size of a single dimension (hidden, vocabulary, positions).
const MAX_DIM: usize = 1 << 24;
/// Greatest number of layers.
const MAX_LAYERS: usize = 1 << 12;
/// Greatest number of elements of a rotary table.
const MAX_TABLE: usize = 1 << 28;

/// The shape and constants of a decoder-only model.
///
/// # Example
///
/// ```
/// use burn_dfa_decoder::DecoderConfig;
///
/// let config = DecoderConfig::from_json(r#"{
///     "model_type": "llama", "vocab_size": 128, "hidden_size": 32, "intermediate_size": 64,
///     "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
///     "tie_word_embeddings": true, "eos_token_id": [1, 2]
/// }"#)?;
/// assert_eq!(config.head_dim, 8);
/// assert_eq!(config.eos_token_id, [1, 2]);
///
/// let same = DecoderConfig {
///     num_key_value_heads: 2,
///     tie_word_embeddings: true,
///     eos_token_id: vec![1, 2],
///     ..DecoderConfig::new(128, 32, 64, 2, 4)
/// };
/// assert_eq!(config, same);
/// # Ok::<(), burn_dfa_decoder::DecoderError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderConfig {
    /// Rows of the embedding matrix.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width inside the MLP.
    pub intermediate_size: usize,
    /// Number of decoder layers.
    pub num_hidden_layers: usize,
    /// Number of query heads.
    pub num_attention_heads: usize,
    /// Number of key and value heads; divides the number of query heads.
    pub num_key_value_heads: usize,
    /// Width of a head; even.
    pub head_dim: usize,
    /// Greatest number of positions, which is also the length of the rotary tables.
    pub max_position_embeddings: usize,
    /// Added to the mean square in RMSNorm.
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Stretching of the rotary frequencies, as of Llama 3.1.
    pub rope_scaling: Option<Llama3Scaling>,
    /// Whether the output matrix is the embedding matrix itself.
    pub tie_word_embeddings: bool,
    /// The token that begins a sequence.
    pub bos_token_id: Option<u32>,
    /// The tokens that end a sequence.
    pub eos_token_id: Vec<u32>,
}

/// Parameters of the `llama3` scaling of rotary frequencies.
///
/// ```
/// use burn_dfa_decoder::{Llama3Scaling, DecoderConfig};
///
/// let scaling = Llama3Scaling {
///     factor: 8.0,
///     low_freq_factor: 1.0,
///     high_freq_factor: 4.0,
///     original_max_position_embeddings: 8192,
/// };
/// let config = DecoderConfig { rope_scaling: Some(scaling), ..DecoderConfig::new(128, 32, 64, 2, 4) };
/// config.validate()?;
/// # Ok::<(), burn_dfa_decoder::DecoderError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Llama3Scaling {
    /// Long wavelengths are stretched by this factor.
    pub factor: f64,
    /// Wavelengths above `original_max_position_embeddings / low_freq_factor` are stretched in full.
    pub low_freq_factor: f64,
    /// Wavelengths below `original_max_position_embeddings / high_freq_factor` are left alone.
    pub high_freq_factor: f64,
    /// Positions that the model saw before it was stretched.
    pub original_max_position_embeddings: usize,
}

impl DecoderConfig {
    /// A configuration with as many key heads as query heads, untied embeddings, 2,048 positions,
    /// a rotary base of 10,000, an epsilon of 1e-6 and no special tokens.
    pub fn new(
        vocab_size: usize,
        hidden_size: usize,
        intermediate_size: usize,
        num_hidden_layers: usize,
        num_attention_heads: usize,
    ) -> Self {
        Self {
            vocab_size,
            hidden_size,
            intermediate_size,
            num_hidden_layers,
            num_attention_heads,
            num_key_value_heads: num_attention_heads,
            head_dim: hidden_size.checked_div(num_attention_heads).unwrap_or(0),
            max_position_embeddings: 2048,
            rms_norm_eps: 1e-6,
            rope_theta: 10_000.0,
            rope_scaling: None,
            tie_word_embeddings: false,
            bos_token_id: None,
            eos_token_id: Vec::new(),
        }
    }

    /// Checks that the sizes make a model.
    ///
    /// # Errors
    /// When a size is zero or too large, the head width is odd, the number of key heads does not divide that of query
    /// heads, or a rotary or norm constant is not a positive number.
    pub fn validate(&self) -> Result<(), DecoderError> {
        let sizes = [
            ("vocab_size", self.vocab_size, MAX_DIM),
            ("hidden_size", self.hidden_size, MAX_DIM),
            ("intermediate_size", self.intermediate_size, MAX_DIM),
            ("num_hidden_layers", self.num_hidden_layers, MAX_LAYERS),
            ("num_attention_heads", self.num_attention_heads, MAX_DIM),
            ("num_key_value_heads", self.num_key_value_heads, MAX_DIM),
            ("head_dim", self.head_dim, MAX_DIM),
            ("max_position_embeddings", self.max_position_embeddings, MAX_DIM),
        ];
        for (field, size, limit) in sizes {
            if size == 0 || size > limit {
                return Err(DecoderError::config(
                    field,
                    format!("is {size}; it must lie between 1 and {limit}"),
                ));
            }
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(DecoderError::config(
                "head_dim",
                format!("is {}; rotary embeddings need an even one", self.head_dim),
            ));
        }
        // The sizes are at most 2^24 each, so that products of two fit in 64 bits.
        if self.num_attention_heads as u64 * self.head_dim as u64 > MAX_DIM as u64 {
            return Err(DecoderError::config(
                "num_attention_heads",
                format!("times head_dim exceeds {MAX_DIM}"),
            ));
        }
        if self.max_position_embeddings as u64 * self.head_dim as u64 > MAX_TABLE as u64 {
            return Err(DecoderError::config(
                "max_position_embeddings",
                format!("times head_dim exceeds {MAX_TABLE}; lower it to the positions you need"),
            ));
        }
        if !self.num_attention_heads.is_multiple_of(self.num_key_value_heads) {
            return Err(DecoderError::config(
                "num_key_value_heads",
                format!(
                    "is {}, which does not divide the {} attention heads",
                    self.num_key_value_heads, self.num_attention_heads
                ),
            ));
        }
        positive("rms_norm_eps", self.rms_norm_eps)?;
        positive("rope_theta", self.rope_theta)?;
        if let Some(scaling) = &self.rope_scaling {
            positive("rope_scaling.factor", scaling.factor)?;
            positive("rope_scaling.low_freq_factor", scaling.low_freq_factor)?;
            positive("rope_scaling.high_freq_factor", scaling.high_freq_factor)?;
            if scaling.high_freq_factor <= scaling.low_freq_factor {
                return Err(DecoderError::config(
                    "rope_scaling.high_freq_factor",
                    "must exceed low_freq_factor",
                ));
            }
            let original = scaling.original_max_position_embeddings;
            if original == 0 || original > MAX_DIM {
                return Err(DecoderError::config(
                    "rope_scaling.original_max_position_embeddings",
                    format!("is {original}; it must lie between 1 and {MAX_DIM}"),
                ));
            }
        }
        Ok(())
    }
}

fn positive(field: &'static str, value: f64) -> Result<(), DecoderError> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(DecoderError::config(field, format!("is {value}; it must be a positive number")))
    }
}
