//! Writes a [`DecoderConfig`] as a `config.json`, with the names that versions 4 and 5 of
//! transformers read.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::config::{Activation, DecoderConfig};
use crate::family::Family;
use crate::raw_config::{FULL, SLIDING};
use crate::rope_json;

impl DecoderConfig {
    /// Writes a `config.json` for this crate and Hugging Face transformers.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers, strings and lists only")
    }

    fn fields(&self) -> Value {
        let family = self.family;
        let mut file = json!({
            "architectures": [family.architecture()],
            "model_type": family.model_type(),
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "max_position_embeddings": self.max_position_embeddings,
            "rms_norm_eps": self.rms_norm_eps,
            "rope_theta": self.rope.theta,
            "rope_scaling": rope_json::write(&self.rope),
            "tie_word_embeddings": self.tie_word_embeddings,
            "bos_token_id": self.bos_token_id,
            "eos_token_id": match self.eos_token_id.as_slice() {
                [] => Value::Null,
                [id] => json!(id),
                ids => json!(ids),
            },
            // For a missing field, transformers would use the value of the published tokenizer.
            "pad_token_id": null,
        });
        let activation = match self.activation {
            Activation::Silu => "silu",
            Activation::GeluTanh => "gelu_pytorch_tanh",
        };
        file[if family == Family::Gemma3 { "hidden_activation" } else { "hidden_act" }] = json!(activation);
        let kinds = || {
            let kind = |layer| if self.sliding_layers.contains(&layer) { SLIDING } else { FULL };
            json!((0..self.num_hidden_layers).map(kind).collect::<Vec<_>>())
        };
        match family {
            Family::Llama => {
                file["attention_bias"] = json!(false);
                file["mlp_bias"] = json!(false);
            }
            Family::Mistral => file["sliding_window"] = json!(self.sliding_window),
            Family::Qwen2 | Family::Qwen3 | Family::SmolLm3 => {
                file["use_sliding_window"] = json!(self.sliding_window.is_some());
                file["sliding_window"] = json!(self.sliding_window);
                file["layer_types"] = kinds();
            }
            Family::Gemma3 => {
                file["sliding_window"] = json!(self.sliding_window);
                file["layer_types"] = kinds();
                file["query_pre_attn_scalar"] = match self.query_pre_attn_scalar {
                    None => json!(self.head_dim),
                    Some(scalar) if scalar.fract() == 0.0 && scalar < 1e9 => json!(scalar as u64),
                    Some(scalar) => json!(scalar),
                };
                let sliding = self.sliding_rope.as_ref().unwrap_or(&self.rope);
                file["rope_local_base_freq"] = json!(sliding.theta);
                // The older fields cannot express a scaling of sliding layers.
                if sliding.scaling.is_some() {
                    file["rope_parameters"] = json!({
                        (FULL): rope_json::write_parameters(&self.rope),
                        (SLIDING): rope_json::write_parameters(sliding),
                    });
                }
            }
        }
        if family == Family::SmolLm3 {
            let rotates = |layer| u8::from(!self.layers_without_rope.contains(&layer));
            file["no_rope_layers"] = json!((0..self.num_hidden_layers).map(rotates).collect::<Vec<_>>());
        }
        file
    }
}

/// Serializes as `config.json`.
impl Serialize for DecoderConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields().serialize(serializer)
    }
}
