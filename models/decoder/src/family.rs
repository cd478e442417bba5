//! [`Family`]: the family of models that a `config.json` describes.

use std::fmt;

/// A family of models: the `model_type` of a `config.json`.
///
/// A family fixes some options of a [`DecoderConfig`](crate::DecoderConfig), since its
/// `config.json` has no field for them. All other options are fields of the file.
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
pub(crate) struct FixedOptions {
    pub(crate) qkv_bias: bool,
    pub(crate) qk_norm: bool,
    pub(crate) norm_plus_one: bool,
    pub(crate) feedforward_norms: bool,
    pub(crate) scaled_embeddings: bool,
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

    /// The family of a `model_type`, if it is known.
    pub fn from_model_type(model_type: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.model_type() == model_type)
    }

    /// The options that the family fixes.
    pub(crate) fn fixed(self) -> FixedOptions {
        let gemma = self == Self::Gemma3;
        FixedOptions {
            qkv_bias: self == Self::Qwen2,
            qk_norm: gemma || self == Self::Qwen3,
            norm_plus_one: gemma,
            feedforward_norms: gemma,
            scaled_embeddings: gemma,
        }
    }
}

/// Its `model_type`.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.model_type())
    }
}
