//! [`RawConfig`]: the fields of a `config.json` as they are written, and the defaults of missing
//! ones.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::family::Family;

/// The kinds of layers in `layer_types` and `rope_parameters`.
pub(crate) const FULL: &str = "full_attention";
pub(crate) const SLIDING: &str = "sliding_attention";

/// The fields of the file.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawConfig {
    pub(crate) model_type: String,
    pub(crate) architectures: Option<Vec<String>>,
    pub(crate) vocab_size: usize,
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) num_key_value_heads: Option<usize>,
    pub(crate) head_dim: Option<usize>,
    pub(crate) hidden_act: Option<String>,
    pub(crate) hidden_activation: Option<String>,
    pub(crate) max_position_embeddings: Option<usize>,
    pub(crate) rms_norm_eps: Option<f64>,
    pub(crate) rope_theta: Option<f64>,
    pub(crate) rope_local_base_freq: Option<f64>,
    pub(crate) rope_scaling: Option<Value>,
    pub(crate) rope_parameters: Option<Value>,
    pub(crate) original_max_position_embeddings: Option<usize>,
    pub(crate) no_rope_layers: Option<Vec<u8>>,
    pub(crate) no_rope_layer_interval: Option<usize>,
    /// `None` if the field is missing, which differs from `null`.
    #[serde(default, deserialize_with = "given")]
    pub(crate) sliding_window: Option<Option<usize>>,
    pub(crate) use_sliding_window: Option<bool>,
    pub(crate) max_window_layers: Option<usize>,
    pub(crate) sliding_window_pattern: Option<usize>,
    pub(crate) layer_types: Option<Vec<String>>,
    pub(crate) query_pre_attn_scalar: Option<f64>,
    pub(crate) tie_word_embeddings: Option<bool>,
    pub(crate) bos_token_id: Option<u32>,
    pub(crate) eos_token_id: Option<OneOrMany>,
    // Refused fields.
    pub(crate) attention_bias: Option<bool>,
    pub(crate) mlp_bias: Option<bool>,
    pub(crate) rope_interleaved: Option<bool>,
    pub(crate) use_bidirectional_attention: Option<bool>,
    pub(crate) attn_logit_softcapping: Option<f64>,
    pub(crate) final_logit_softcapping: Option<f64>,
    pub(crate) partial_rotary_factor: Option<f64>,
    pub(crate) quantization_config: Option<Value>,
    /// Written by MLX.
    pub(crate) quantization: Option<Value>,
}

fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<usize>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A token id or a list of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(u32),
    Many(Vec<u32>),
}

impl From<OneOrMany> for Vec<u32> {
    fn from(value: OneOrMany) -> Self {
        match value {
            OneOrMany::One(id) => vec![id],
            OneOrMany::Many(ids) => ids,
        }
    }
}

/// Defaults of the missing fields of a family's file.
pub(crate) struct Defaults {
    pub(crate) positions: usize,
    pub(crate) head_dim: Option<usize>,
    pub(crate) tied: bool,
    pub(crate) theta: f64,
    pub(crate) window: Option<usize>,
}

impl Defaults {
    pub(crate) fn of(family: Family) -> Self {
        let llama = Self { positions: 2048, head_dim: None, tied: false, theta: 1e4, window: None };
        match family {
            Family::Llama => llama,
            Family::Mistral => Self { positions: 131_072, window: Some(4096), ..llama },
            Family::Qwen2 => Self { positions: 32_768, window: Some(4096), ..llama },
            Family::Qwen3 => Self { positions: 32_768, head_dim: Some(128), window: Some(4096), ..llama },
            Family::SmolLm3 => Self { positions: 32_768, tied: true, theta: 2e6, ..llama },
            Family::Gemma3 => {
                Self { positions: 131_072, head_dim: Some(256), tied: true, theta: 1e6, window: Some(4096) }
            }
        }
    }
}
