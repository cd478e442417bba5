//! Reads and writes a [`DecoderConfig`] as a Hugging Face `config.json`.
//!
//! Some names changed between versions of transformers. The kind of `rope_scaling` is in `rope_type` or, before
//! transformers 4.43, in `type`; transformers 5 has an object `rope_parameters`, which also holds the base. Settings that
//! the model does not implement are refused here.

use std::path::Path;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::{DecoderConfig, Llama3Scaling};
use crate::error::DecoderError;

impl DecoderConfig {
    /// Reads the `config.json` of a folder.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json), and when the file cannot be read.
    pub fn load(folder: impl AsRef<Path>) -> Result<Self, DecoderError> {
        let path = folder.as_ref().join("config.json");
        let text = std::fs::read_to_string(&path).map_err(|source| DecoderError::Io { path, source })?;
        Self::from_json(&text)
    }

    /// Reads the text of a `config.json`.
    ///
    /// # Errors
    /// When the text is not JSON, lacks a size, is of another architecture or rope type, or fails
    /// [`validate`](Self::validate).
    pub fn from_json(text: &str) -> Result<Self, DecoderError> {
        let json = |source| DecoderError::Json { file: "config.json".into(), source };
        // Another architecture may lack what this one needs, and is refused by its name.
        let value: serde_json::Value = serde_json::from_str(text).map_err(json)?;
        if let Some(found) = value["model_type"].as_str().filter(|found| *found != "llama") {
            return Err(DecoderError::Architecture { found: found.to_owned() });
        }
        let raw: RawConfig = serde_json::from_str(text).map_err(json)?;
        Self::try_from(raw)
    }

    /// Writes a `config.json` that this crate and Hugging Face transformers read.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers, strings and lists only")
    }
}

/// As `config.json`.
impl Serialize for DecoderConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawConfig::from(self.clone()).serialize(serializer)
    }
}

/// From `config.json`; what makes no model is refused.
impl<'de> Deserialize<'de> for DecoderConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawConfig::deserialize(deserializer)?.try_into().map_err(D::Error::custom)
    }
}

/// The file as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RawConfig {
    #[serde(default)]
    architectures: Option<Vec<String>>,
    model_type: String,
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    #[serde(default)]
    num_key_value_heads: Option<usize>,
    #[serde(default)]
    head_dim: Option<usize>,
    #[serde(default)]
    hidden_act: Option<String>,
    #[serde(default)]
    max_position_embeddings: Option<usize>,
    #[serde(default)]
    rms_norm_eps: Option<f64>,
    #[serde(default)]
    rope_theta: Option<f64>,
    #[serde(default)]
    rope_scaling: Option<RawRope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rope_parameters: Option<RawRope>,
    #[serde(default, skip_serializing)]
    rope_interleaved: Option<bool>,
    #[serde(default)]
    tie_word_embeddings: Option<bool>,
    #[serde(default)]
    attention_bias: Option<bool>,
    #[serde(default)]
    mlp_bias: Option<bool>,
    #[serde(default, skip_serializing)]
    quantization_config: Option<serde_json::Value>,
    #[serde(default)]
    bos_token_id: Option<u32>,
    #[serde(default)]
    eos_token_id: Option<OneOrMany>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RawRope {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rope_type: Option<String>,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    old_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rope_theta: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    factor: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    low_freq_factor: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    high_freq_factor: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original_max_position_embeddings: Option<usize>,
}

/// A token id or a list of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
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

impl RawRope {
    fn scaling(&self) -> Result<Option<Llama3Scaling>, DecoderError> {
        let kind = self.rope_type.as_deref().or(self.old_type.as_deref());
        match kind {
            None | Some("default") => Ok(None),
            Some("llama3") => {
                let need = |field, value: Option<f64>| {
                    value.ok_or_else(|| DecoderError::config(field, "is missing"))
                };
                Ok(Some(Llama3Scaling {
                    factor: need("rope_scaling.factor", self.factor)?,
                    low_freq_factor: need("rope_scaling.low_freq_factor", self.low_freq_factor)?,
                    high_freq_factor: need("rope_scaling.high_freq_factor", self.high_freq_factor)?,
                    original_max_position_embeddings: self.original_max_position_embeddings.ok_or_else(
                        || {
                            DecoderError::config(
                                "rope_scaling.original_max_position_embeddings",
                                "is missing",
                            )
                        },
                    )?,
                }))
            }
            Some(other) => Err(DecoderError::RopeType { found: other.to_string() }),
        }
    }
}

impl TryFrom<RawConfig> for DecoderConfig {
    type Error = DecoderError;

    fn try_from(raw: RawConfig) -> Result<Self, DecoderError> {
        if raw.model_type != "llama" {
            return Err(DecoderError::Architecture { found: raw.model_type });
        }
        if let Some(act) = &raw.hidden_act
            && act != "silu"
            && act != "swish"
        {
            return Err(DecoderError::config(
                "hidden_act",
                format!("is {act:?}; only \"silu\" is supported"),
            ));
        }
        for (field, flag) in [
            ("attention_bias", raw.attention_bias),
            ("mlp_bias", raw.mlp_bias),
            ("rope_interleaved", raw.rope_interleaved),
        ] {
            if flag == Some(true) {
                return Err(DecoderError::config(field, "is true, which is not supported"));
            }
        }
        if raw.quantization_config.is_some() {
            return Err(DecoderError::config(
                "quantization_config",
                "is present; use the checkpoint in f32, f16 or bf16",
            ));
        }
        let head_dim = match raw.head_dim {
            Some(head_dim) => head_dim,
            None if raw.num_attention_heads == 0 => {
                return Err(DecoderError::config("num_attention_heads", "is 0"));
            }
            None if !raw.hidden_size.is_multiple_of(raw.num_attention_heads) => {
                return Err(DecoderError::config(
                    "hidden_size",
                    format!(
                        "is {}, which the {} attention heads do not divide; give head_dim",
                        raw.hidden_size, raw.num_attention_heads
                    ),
                ));
            }
            None => raw.hidden_size / raw.num_attention_heads,
        };
        // The newer object takes precedence; it also carries the base.
        let rope = raw.rope_parameters.or(raw.rope_scaling).unwrap_or_default();
        let config = Self {
            vocab_size: raw.vocab_size,
            hidden_size: raw.hidden_size,
            intermediate_size: raw.intermediate_size,
            num_hidden_layers: raw.num_hidden_layers,
            num_attention_heads: raw.num_attention_heads,
            num_key_value_heads: raw.num_key_value_heads.unwrap_or(raw.num_attention_heads),
            head_dim,
            max_position_embeddings: raw.max_position_embeddings.unwrap_or(2048),
            rms_norm_eps: raw.rms_norm_eps.unwrap_or(1e-6),
            rope_theta: rope.rope_theta.or(raw.rope_theta).unwrap_or(10_000.0),
            rope_scaling: rope.scaling()?,
            tie_word_embeddings: raw.tie_word_embeddings.unwrap_or(false),
            bos_token_id: raw.bos_token_id,
            eos_token_id: raw.eos_token_id.map(Vec::from).unwrap_or_default(),
        };
        config.validate()?;
        Ok(config)
    }
}

impl From<DecoderConfig> for RawConfig {
    fn from(config: DecoderConfig) -> Self {
        Self {
            architectures: Some(vec!["LlamaForCausalLM".into()]),
            model_type: "llama".into(),
            vocab_size: config.vocab_size,
            hidden_size: config.hidden_size,
            intermediate_size: config.intermediate_size,
            num_hidden_layers: config.num_hidden_layers,
            num_attention_heads: config.num_attention_heads,
            num_key_value_heads: Some(config.num_key_value_heads),
            head_dim: Some(config.head_dim),
            hidden_act: Some("silu".into()),
            max_position_embeddings: Some(config.max_position_embeddings),
            rms_norm_eps: Some(config.rms_norm_eps),
            rope_theta: Some(config.rope_theta),
            rope_scaling: config.rope_scaling.map(|scaling| RawRope {
                rope_type: Some("llama3".into()),
                factor: Some(scaling.factor),
                low_freq_factor: Some(scaling.low_freq_factor),
                high_freq_factor: Some(scaling.high_freq_factor),
                original_max_position_embeddings: Some(scaling.original_max_position_embeddings),
                ..RawRope::default()
            }),
            rope_parameters: None,
            rope_interleaved: None,
            tie_word_embeddings: Some(config.tie_word_embeddings),
            attention_bias: Some(false),
            mlp_bias: Some(false),
            quantization_config: None,
            bos_token_id: config.bos_token_id,
            eos_token_id: match config.eos_token_id.as_slice() {
                [] => None,
                [id] => Some(OneOrMany::One(*id)),
                ids => Some(OneOrMany::Many(ids.to_vec())),
            },
        }
    }
}
