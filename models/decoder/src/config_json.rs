//! Reads a [`DecoderConfig`] from a Hugging Face `config.json`;
//! [`config_write`](crate::config_write) writes one.
//!
//! A missing field has its default from transformers 5, which differs between families. Settings
//! that the model does not compute are refused here.

use std::path::Path;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::config::{Activation, DecoderConfig};
use crate::error::DecoderError;
use crate::family::Family;
use crate::folder;
use crate::raw_config::{Defaults, FULL, RawConfig, SLIDING};
use crate::rope_json;

impl DecoderConfig {
    /// Reads the `config.json` of a folder.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json), and if the file cannot be read.
    pub fn load(folder: impl AsRef<Path>) -> Result<Self, DecoderError> {
        let path = folder.as_ref().join("config.json");
        folder::check(folder.as_ref())?;
        folder::check_file(&path)?;
        let text = std::fs::read_to_string(&path).map_err(|source| DecoderError::Io { path, source })?;
        Self::from_json(&text)
    }

    /// Reads the text of a `config.json`, with or without a byte order mark.
    ///
    /// # Errors
    /// The text is not JSON, lacks a size, has another architecture or rope type, has a setting
    /// that the model does not compute, or fails [`validate`](Self::validate).
    pub fn from_json(text: &str) -> Result<Self, DecoderError> {
        read(
            serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
                .map_err(DecoderError::config_json)?,
        )
    }
}

/// Reads `config.json`, and refuses invalid models.
impl<'de> Deserialize<'de> for DecoderConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

fn read(value: Value) -> Result<DecoderConfig, DecoderError> {
    // Another architecture may lack the fields below, and is refused by its name.
    if let Some(found) = value["model_type"].as_str() {
        family(found)?;
    }
    let raw: RawConfig = serde_json::from_value(value).map_err(DecoderError::config_json)?;
    raw.config()
}

fn family(model_type: &str) -> Result<Family, DecoderError> {
    let known = Family::from_model_type(model_type);
    known.ok_or_else(|| DecoderError::Architecture { found: model_type.to_owned() })
}

impl RawConfig {
    fn config(self) -> Result<DecoderConfig, DecoderError> {
        let family = family(&self.model_type)?;
        self.refuse_unknown(family)?;
        let defaults = Defaults::of(family);
        let mut config = DecoderConfig::of(
            family,
            self.vocab_size,
            self.hidden_size,
            self.intermediate_size,
            self.num_hidden_layers,
            self.num_attention_heads,
        );
        config.num_key_value_heads = match self.num_key_value_heads {
            Some(heads) => heads,
            None if family == Family::Llama => self.num_attention_heads,
            None => return Err(DecoderError::config("num_key_value_heads", "is missing")),
        };
        config.head_dim = self.head_width(&defaults)?;
        config.activation = self.activation(family)?;
        config.max_position_embeddings = self.max_position_embeddings.unwrap_or(defaults.positions);
        config.rms_norm_eps = self.rms_norm_eps.unwrap_or(1e-6);
        config.tie_word_embeddings = self.tie_word_embeddings.unwrap_or(defaults.tied);
        config.bos_token_id = self.bos_token_id;
        config.eos_token_id = self.eos_token_id.clone().map(Vec::from).unwrap_or_default();
        // Check before lists of this length are built.
        config.validate()?;

        config.layers_without_rope = self.layers_without_rope(family)?;
        let window = self.sliding_window.unwrap_or(defaults.window);
        config.sliding_layers = self.sliding_layers(&config, window)?;
        config.sliding_window = window.filter(|_| !config.sliding_layers.is_empty());
        (config.rope, config.sliding_rope) = rope_json::read(&self, family, config.max_position_embeddings)?;
        config.sliding_rope =
            config.sliding_rope.filter(|rope| *rope != config.rope && !config.sliding_layers.is_empty());
        if family == Family::Gemma3 {
            let scalar = self.query_pre_attn_scalar.unwrap_or(256.0);
            config.query_pre_attn_scalar = Some(scalar).filter(|scalar| *scalar != config.head_dim as f64);
        }
        config.validate()?;
        Ok(config)
    }

    /// Refuses settings that no model computes, or no model of the family.
    fn refuse_unknown(&self, family: Family) -> Result<(), DecoderError> {
        if let Some(classes) = &self.architectures
            && !classes.is_empty()
            && !classes.iter().any(|class| class == family.architecture())
        {
            let known = family.architecture();
            let message = format!("is {classes:?}; of {family}, {known} is supported");
            return Err(DecoderError::config("architectures", message));
        }
        for (field, flag) in [
            ("attention_bias", self.attention_bias),
            ("mlp_bias", self.mlp_bias),
            ("rope_interleaved", self.rope_interleaved),
            ("use_bidirectional_attention", self.use_bidirectional_attention),
            ("use_sliding_window", self.use_sliding_window.filter(|_| family == Family::Llama)),
        ] {
            if flag == Some(true) {
                return Err(DecoderError::config(
                    field,
                    format!("is true, which is not supported in {family}"),
                ));
            }
        }
        let foreign = |field, is_there: bool| {
            if is_there {
                return Err(DecoderError::config(
                    field,
                    format!("is given, which is not supported in {family}"),
                ));
            }
            Ok(())
        };
        let (llama, gemma) = (family == Family::Llama, family == Family::Gemma3);
        foreign("attn_logit_softcapping", self.attn_logit_softcapping.is_some())?;
        foreign("final_logit_softcapping", self.final_logit_softcapping.is_some())?;
        foreign("sliding_window", llama && self.sliding_window.flatten().is_some())?;
        foreign("query_pre_attn_scalar", !gemma && self.query_pre_attn_scalar.is_some())?;
        foreign("no_rope_layers", family != Family::SmolLm3 && self.no_rope_layers.is_some())?;
        foreign("partial_rotary_factor", self.partial_rotary_factor.is_some_and(|factor| factor != 1.0))?;
        if self.quantization.is_some() {
            return Err(DecoderError::config(
                "quantization",
                "is present: MLX has quantized the weights; download the repository that they were made from, in f32, f16 \
                 or bf16",
            ));
        }
        if self.quantization_config.is_some() {
            return Err(DecoderError::config(
                "quantization_config",
                "is present; use the checkpoint in f32, f16 or bf16",
            ));
        }
        Ok(())
    }

    fn head_width(&self, defaults: &Defaults) -> Result<usize, DecoderError> {
        match self.head_dim.or(defaults.head_dim) {
            Some(head_dim) => Ok(head_dim),
            None if self.num_attention_heads == 0 => Err(DecoderError::config("num_attention_heads", "is 0")),
            None if !self.hidden_size.is_multiple_of(self.num_attention_heads) => Err(DecoderError::config(
                "hidden_size",
                format!(
                    "is {}, which the {} attention heads do not divide; give head_dim",
                    self.hidden_size, self.num_attention_heads
                ),
            )),
            None => Ok(self.hidden_size / self.num_attention_heads),
        }
    }

    fn activation(&self, family: Family) -> Result<Activation, DecoderError> {
        let (field, default, found) = match family {
            Family::Gemma3 => ("hidden_activation", Activation::GeluTanh, &self.hidden_activation),
            _ => ("hidden_act", Activation::Silu, &self.hidden_act),
        };
        match found.as_deref() {
            None => Ok(default),
            Some("silu" | "swish") => Ok(Activation::Silu),
            Some("gelu_pytorch_tanh") => Ok(Activation::GeluTanh),
            Some(other) => Err(DecoderError::config(
                field,
                format!("is {other:?}; \"silu\" and \"gelu_pytorch_tanh\" are supported"),
            )),
        }
    }

    fn layers_without_rope(&self, family: Family) -> Result<Vec<usize>, DecoderError> {
        let layers = 0..self.num_hidden_layers;
        match (&self.no_rope_layers, self.no_rope_layer_interval) {
            _ if family != Family::SmolLm3 => Ok(Vec::new()),
            (Some(rotates), _) if rotates.len() >= layers.len() => {
                Ok(layers.filter(|&layer| rotates[layer] == 0).collect())
            }
            (Some(rotates), _) => Err(DecoderError::config(
                "no_rope_layers",
                format!("has {} entries for {} layers", rotates.len(), layers.len()),
            )),
            (None, Some(0)) => Err(DecoderError::config("no_rope_layer_interval", "is 0")),
            (None, interval) => {
                let interval = interval.unwrap_or(4);
                Ok(layers.filter(|layer| (layer + 1).is_multiple_of(interval)).collect())
            }
        }
    }

    fn sliding_layers(
        &self,
        config: &DecoderConfig,
        window: Option<usize>,
    ) -> Result<Vec<usize>, DecoderError> {
        let count = config.num_hidden_layers;
        let is_used = self.use_sliding_window == Some(true) && window.is_some();
        let (implied, named) = match config.family {
            Family::Llama => (Vec::new(), false),
            Family::Mistral => (if window.is_some() { (0..count).collect() } else { Vec::new() }, false),
            Family::Qwen2 | Family::Qwen3 => {
                let first = if is_used { self.max_window_layers.unwrap_or(28).min(count) } else { count };
                ((first..count).collect(), true)
            }
            Family::SmolLm3 => (if is_used { config.layers_without_rope.clone() } else { Vec::new() }, true),
            Family::Gemma3 => {
                let pattern = self.sliding_window_pattern.unwrap_or(6);
                if pattern == 0 {
                    return Err(DecoderError::config("sliding_window_pattern", "is 0"));
                }
                ((0..count).filter(|layer| !(layer + 1).is_multiple_of(pattern)).collect(), true)
            }
        };
        let refuse = |message: String| Err(DecoderError::config("layer_types", message));
        let layers = match &self.layer_types {
            None => implied,
            Some(types) if types.len() != count => {
                return refuse(format!("has {} entries for {count} layers", types.len()));
            }
            Some(types) => {
                if let Some(other) = types.iter().find(|kind| ![FULL, SLIDING].contains(&kind.as_str())) {
                    return refuse(format!("has {other:?}; {FULL:?} and {SLIDING:?} are supported"));
                }
                let layers: Vec<_> = (0..count).filter(|&layer| types[layer] == SLIDING).collect();
                if !named && layers != implied {
                    return refuse(format!(
                        "is not what sliding_window says, and {} has no other",
                        config.family
                    ));
                }
                layers
            }
        };
        let is_off = self.use_sliding_window != Some(true)
            && matches!(config.family, Family::Qwen2 | Family::Qwen3 | Family::SmolLm3);
        if !layers.is_empty() && (is_off || window.is_none()) {
            return refuse(format!(
                "has {} layers of {SLIDING}, and there is no sliding_window, or use_sliding_window is false",
                layers.len()
            ));
        }
        Ok(layers)
    }
}
