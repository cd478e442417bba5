//! [`DecoderConfig`]: the shape of a model.
//!
//! A configuration is checked when it is parsed: its sizes are positive and bounded, and divide one
//! another as required. So neither building tables nor comparing shapes can overflow or panic.
//! [`DecoderConfig::validate`] checks a configuration made in code.

use crate::error::DecoderError;
use crate::family::{Family, FixedOptions};
use crate::frequencies::Rope;

/// Greatest size of a single dimension (hidden, vocabulary, positions).
const MAX_DIM: usize = 1 << 24;
/// Greatest number of layers.
const MAX_LAYERS: usize = 1 << 12;
/// Greatest number of elements of a rotary table.
const MAX_TABLE: usize = 1 << 28;

/// The shape and constants of a decoder-only model.
///
/// The options in which families differ are separate fields. [`validate`](Self::validate) refuses
/// options that no model of the family has.
///
/// # Example
///
/// ```
/// use burn_dfa_decoder::{DecoderConfig, Family};
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
///
/// let windowed = DecoderConfig {
///     sliding_window: Some(16),
///     sliding_layers: vec![0],
///     ..DecoderConfig::of(Family::Gemma3, 128, 32, 64, 2, 4)
/// };
/// assert!(windowed.norm_plus_one && windowed.validate().is_ok());
/// # Ok::<(), burn_dfa_decoder::DecoderError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderConfig {
    /// The `config.json` that describes the model.
    pub family: Family,
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
    /// The rotary frequencies.
    pub rope: Rope,
    /// The rotary frequencies of layers with a sliding window, if they differ (Gemma 3).
    pub sliding_rope: Option<Rope>,
    /// Layers whose queries and keys are not rotated, in order (SmolLM3).
    pub layers_without_rope: Vec<usize>,
    /// Positions that a position sees in a layer with a sliding window: itself and the ones before
    /// it.
    pub sliding_window: Option<usize>,
    /// Layers with a sliding window, in order; other layers see the whole text.
    pub sliding_layers: Vec<usize>,
    /// Scores are divided by the square root of this number. Default: `head_dim` (Gemma 3 may
    /// differ).
    pub query_pre_attn_scalar: Option<f64>,
    /// Whether a bias is added to queries, keys and values (Qwen2).
    pub qkv_bias: bool,
    /// Whether every head of queries and keys is normalized before it is rotated (Qwen3, Gemma 3).
    pub qk_norm: bool,
    /// The activation function of the MLP's gate.
    pub activation: Activation,
    /// Whether norms multiply by one more than their weight (Gemma 3).
    pub norm_plus_one: bool,
    /// Whether norms stand before and after the MLP, and the norm that other models have before the
    /// MLP follows attention (Gemma 3).
    pub feedforward_norms: bool,
    /// Whether token vectors are multiplied by the square root of `hidden_size` (Gemma 3).
    pub scaled_embeddings: bool,
    /// Whether the output matrix is the embedding matrix itself.
    pub tie_word_embeddings: bool,
    /// The token that begins a sequence.
    pub bos_token_id: Option<u32>,
    /// The tokens that end a sequence.
    pub eos_token_id: Vec<u32>,
}

/// The activation function of the MLP's gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activation {
    /// `x / (1 + exp(-x))`.
    Silu,
    /// The approximation of GELU by a hyperbolic tangent, `gelu_pytorch_tanh` in a `config.json`.
    GeluTanh,
}

impl DecoderConfig {
    /// A configuration of the Llama family, see [`of`](Self::of).
    pub fn new(
        vocab_size: usize,
        hidden_size: usize,
        intermediate_size: usize,
        num_hidden_layers: usize,
        num_attention_heads: usize,
    ) -> Self {
        Self::of(
            Family::Llama,
            vocab_size,
            hidden_size,
            intermediate_size,
            num_hidden_layers,
            num_attention_heads,
        )
    }

    /// A configuration with the options that a family fixes, as many key heads as query heads,
    /// untied embeddings, 2,048 positions, a rotary base of 10,000 in all layers, an epsilon of
    /// 1e-6, no sliding window and no special tokens.
    pub fn of(
        family: Family,
        vocab_size: usize,
        hidden_size: usize,
        intermediate_size: usize,
        num_hidden_layers: usize,
        num_attention_heads: usize,
    ) -> Self {
        let mut config = Self {
            family,
            vocab_size,
            hidden_size,
            intermediate_size,
            num_hidden_layers,
            num_attention_heads,
            num_key_value_heads: num_attention_heads,
            head_dim: hidden_size.checked_div(num_attention_heads).unwrap_or(0),
            max_position_embeddings: 2048,
            rms_norm_eps: 1e-6,
            rope: Rope::new(10_000.0),
            sliding_rope: None,
            layers_without_rope: Vec::new(),
            sliding_window: None,
            sliding_layers: Vec::new(),
            query_pre_attn_scalar: None,
            qkv_bias: false,
            qk_norm: false,
            activation: Activation::Silu,
            norm_plus_one: false,
            feedforward_norms: false,
            scaled_embeddings: false,
            tie_word_embeddings: false,
            bos_token_id: None,
            eos_token_id: Vec::new(),
        };
        config.fix(family);
        config
    }

    /// Checks that the sizes describe a valid model.
    ///
    /// # Errors
    /// A size is zero or too large, the head width is odd, the number of key heads does not divide
    /// the number of query heads, or a rotary or norm constant is not a positive number.
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
        // The sizes are at most 2^24 each, so products of two fit in 64 bits.
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
        self.rope.check("rope_parameters", MAX_DIM)?;
        if let Some(rope) = &self.sliding_rope {
            rope.check("rope_parameters.sliding_attention", MAX_DIM)?;
        }
        if let Some(scalar) = self.query_pre_attn_scalar {
            positive("query_pre_attn_scalar", scalar)?;
        }
        for (field, layers) in
            [("sliding_layers", &self.sliding_layers), ("layers_without_rope", &self.layers_without_rope)]
        {
            let ascending = layers.is_sorted_by(|a, b| a < b);
            if !ascending || layers.last().is_some_and(|&last| last >= self.num_hidden_layers) {
                return Err(DecoderError::config(
                    field,
                    format!("must name some of the {} layers, in ascending order", self.num_hidden_layers),
                ));
            }
        }
        match self.sliding_window {
            Some(0) => {
                return Err(DecoderError::config("sliding_window", "is 0; a position sees at least itself"));
            }
            Some(_) if self.sliding_layers.is_empty() => {
                return Err(DecoderError::config("sliding_window", "is given, and no layer has it"));
            }
            None if !self.sliding_layers.is_empty() => {
                return Err(DecoderError::config(
                    "sliding_window",
                    "is missing; there are layers that have one",
                ));
            }
            _ => {}
        }
        if self.sliding_rope.is_some() && self.sliding_layers.is_empty() {
            return Err(DecoderError::config("sliding_rope", "is given, and no layer has a sliding window"));
        }
        self.check_family()
    }

    /// Sets the options that a family fixes, and its activation.
    fn fix(&mut self, family: Family) {
        let FixedOptions { qkv_bias, qk_norm, norm_plus_one, feedforward_norms, scaled_embeddings } =
            family.fixed();
        self.family = family;
        self.qkv_bias = qkv_bias;
        self.qk_norm = qk_norm;
        self.norm_plus_one = norm_plus_one;
        self.feedforward_norms = feedforward_norms;
        self.scaled_embeddings = scaled_embeddings;
        self.activation = if family == Family::Gemma3 { Activation::GeluTanh } else { Activation::Silu };
    }

    /// Refuses options that no `config.json` of the family has.
    fn check_family(&self) -> Result<(), DecoderError> {
        let family = self.family;
        let refuse = |field, message: &str| {
            Err(DecoderError::config(field, format!("{message}, which no model of the family {family} has")))
        };
        let fixed = family.fixed();
        for (field, found, expected) in [
            ("qkv_bias", self.qkv_bias, fixed.qkv_bias),
            ("qk_norm", self.qk_norm, fixed.qk_norm),
            ("norm_plus_one", self.norm_plus_one, fixed.norm_plus_one),
            ("feedforward_norms", self.feedforward_norms, fixed.feedforward_norms),
            ("scaled_embeddings", self.scaled_embeddings, fixed.scaled_embeddings),
        ] {
            if found != expected {
                return refuse(field, &format!("is {found}"));
            }
        }
        let sliding = self.sliding_layers.len();
        let windows = match family {
            Family::Llama => sliding == 0,
            Family::Mistral => sliding == 0 || sliding == self.num_hidden_layers,
            _ => true,
        };
        if !windows {
            return refuse("sliding_layers", &format!("names {sliding} layers"));
        }
        if family != Family::SmolLm3 && !self.layers_without_rope.is_empty() {
            return refuse("layers_without_rope", "names layers");
        }
        if family != Family::Gemma3 && self.query_pre_attn_scalar.is_some() {
            return refuse("query_pre_attn_scalar", "is given");
        }
        if family != Family::Gemma3 && self.sliding_rope.is_some() {
            return refuse("sliding_rope", "is given");
        }
        Ok(())
    }

    /// The window that layers with a sliding window need among `keys` positions: `None` if the
    /// window holds all of them.
    pub(crate) fn window_among(&self, keys: usize) -> Option<usize> {
        self.sliding_window.filter(|&window| window < keys)
    }
}

fn positive(field: &'static str, value: f64) -> Result<(), DecoderError> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(DecoderError::config(field, format!("is {value}; it must be a positive number")))
    }
}
