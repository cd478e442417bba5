//! [`Family`]: the family of models that a `config.json` describes.

use std::fmt;

use crate::config::{Activation, DecoderConfig};
use crate::error::DecoderError;

/// A family of models: the `model_type` of a `config.json`.
///
/// A family fixes some options of a [`DecoderConfig`], since its `config.json` has no field for
/// them. All other options are fields of the file.
///
/// ```
/// use burn_dfa_decoder::{DecoderConfig, Family};
///
/// let config = DecoderConfig::of(Family::Qwen3, 128, 32, 64, 2, 4);
/// assert!(config.qk_norm && !config.qkv_bias);
/// assert_eq!(Family::Qwen3.model_type(), "qwen3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Llama 2 and 3, SmolLM2, TinyLlama.
    Llama,
    /// Mistral 7B: as Llama, with a sliding window in every layer or in none.
    Mistral,
    /// Qwen2 and Qwen2.5: biases of queries, keys and values.
    Qwen2,
    /// Qwen3, the dense models: norms of queries and keys.
    Qwen3,
    /// SmolLM3: layers without rotary embeddings.
    SmolLm3,
    /// Gemma 3 without images.
    Gemma3,
}

/// The options that a family fixes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    qkv_bias: bool,
    qk_norm: bool,
    norm_plus_one: bool,
    feedforward_norms: bool,
    scaled_embeddings: bool,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 6] =
        [Self::Llama, Self::Mistral, Self::Qwen2, Self::Qwen3, Self::SmolLm3, Self::Gemma3];

    /// The `model_type` of its `config.json`.
    pub fn model_type(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Mistral => "mistral",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::SmolLm3 => "smollm3",
            Self::Gemma3 => "gemma3_text",
        }
    }

    /// The class in transformers, which `architectures` of its `config.json` names.
    pub fn architecture(self) -> &'static str {
        match self {
            Self::Llama => "LlamaForCausalLM",
            Self::Mistral => "MistralForCausalLM",
            Self::Qwen2 => "Qwen2ForCausalLM",
            Self::Qwen3 => "Qwen3ForCausalLM",
            Self::SmolLm3 => "SmolLM3ForCausalLM",
            Self::Gemma3 => "Gemma3ForCausalLM",
        }
    }

    /// The family of a `model_type`.
    ///
    /// # Errors
    /// [`DecoderError::Architecture`], which names the known families.
    pub fn from_model_type(model_type: &str) -> Result<Self, DecoderError> {
        let known = Self::ALL.into_iter().find(|family| family.model_type() == model_type);
        known.ok_or_else(|| DecoderError::Architecture { found: model_type.to_owned() })
    }

    fn fixed(self) -> Fixed {
        let gemma = self == Self::Gemma3;
        Fixed {
            qkv_bias: self == Self::Qwen2,
            qk_norm: gemma || self == Self::Qwen3,
            norm_plus_one: gemma,
            feedforward_norms: gemma,
            scaled_embeddings: gemma,
        }
    }

    /// Sets the options that the family fixes, and its activation.
    pub(crate) fn apply(self, config: &mut DecoderConfig) {
        let Fixed { qkv_bias, qk_norm, norm_plus_one, feedforward_norms, scaled_embeddings } = self.fixed();
        config.family = self;
        config.qkv_bias = qkv_bias;
        config.qk_norm = qk_norm;
        config.norm_plus_one = norm_plus_one;
        config.feedforward_norms = feedforward_norms;
        config.scaled_embeddings = scaled_embeddings;
        config.activation = if self == Self::Gemma3 { Activation::GeluTanh } else { Activation::Silu };
    }

    /// Refuses options that no `config.json` of the family has.
    pub(crate) fn check(self, config: &DecoderConfig) -> Result<(), DecoderError> {
        let refuse = |field, message: &str| {
            Err(DecoderError::config(field, format!("{message}, which no model of the family {self} has")))
        };
        let fixed = self.fixed();
        for (field, found, expected) in [
            ("qkv_bias", config.qkv_bias, fixed.qkv_bias),
            ("qk_norm", config.qk_norm, fixed.qk_norm),
            ("norm_plus_one", config.norm_plus_one, fixed.norm_plus_one),
            ("feedforward_norms", config.feedforward_norms, fixed.feedforward_norms),
            ("scaled_embeddings", config.scaled_embeddings, fixed.scaled_embeddings),
        ] {
            if found != expected {
                return refuse(field, &format!("is {found}"));
            }
        }
        let sliding = config.sliding_layers.len();
        let windows = match self {
            Self::Llama => sliding == 0,
            Self::Mistral => sliding == 0 || sliding == config.num_hidden_layers,
            _ => true,
        };
        if !windows {
            return refuse("sliding_layers", &format!("names {sliding} layers"));
        }
        if self != Self::SmolLm3 && !config.layers_without_rope.is_empty() {
            return refuse("layers_without_rope", "names layers");
        }
        if self != Self::Gemma3 && config.query_pre_attn_scalar.is_some() {
            return refuse("query_pre_attn_scalar", "is given");
        }
        if self != Self::Gemma3 && config.sliding_rope.is_some() {
            return refuse("sliding_rope", "is given");
        }
        Ok(())
    }
}

/// Its `model_type`.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.model_type())
    }
}
