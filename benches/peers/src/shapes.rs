//! The shapes of published models, from their `config.json`, for random weights.

use burn::tensor::Device;
use burn_dfa_decoder::{Decoder, DecoderConfig};

use crate::published;

/// A shape.
pub struct Shape {
    pub name: &'static str,
    pub config: &'static str,
}

/// Whole models.
pub const WHOLE: [Shape; 2] = [
    Shape { name: "smollm2_135m", config: published::SMOLLM2_135M },
    Shape { name: "qwen3_0_6b", config: published::QWEN3_0_6B },
];

/// The first layers of models of other families. Their widths are the widths of the named model,
/// and their layers include every kind of the family. The cost of a constraint is a larger part of
/// the step if a model has few layers.
pub const FIRST_LAYERS: [Shape; 4] = [
    Shape {
        name: "mistral_7b_2_layers",
        config: r#"{"architectures": ["MistralForCausalLM"], "model_type": "mistral", "vocab_size": 49152, "hidden_size": 4096,
            "intermediate_size": 14336, "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8,
            "max_position_embeddings": 32768, "rms_norm_eps": 1e-5, "rope_theta": 10000, "tie_word_embeddings": false,
            "hidden_act": "silu", "sliding_window": 4096, "bos_token_id": 1, "eos_token_id": 2}"#,
    },
    Shape {
        name: "qwen2_5_0_5b_4_layers",
        config: r#"{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896,
            "intermediate_size": 4864, "num_hidden_layers": 4, "num_attention_heads": 14, "num_key_value_heads": 2,
            "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000, "tie_word_embeddings": true,
            "use_sliding_window": false, "hidden_act": "silu", "bos_token_id": 151643, "eos_token_id": 151645}"#,
    },
    Shape {
        name: "smollm3_3b_4_layers",
        config: r#"{"architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "vocab_size": 128256, "hidden_size": 2048,
            "intermediate_size": 11008, "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 4,
            "max_position_embeddings": 65536, "rms_norm_eps": 1e-6, "rope_theta": 5000000, "no_rope_layer_interval": 4,
            "tie_word_embeddings": true, "hidden_act": "silu", "bos_token_id": 128000, "eos_token_id": 128012}"#,
    },
    Shape {
        name: "gemma3_270m_6_layers",
        config: r#"{"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "vocab_size": 262144, "hidden_size": 640,
            "intermediate_size": 2048, "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 1,
            "head_dim": 256, "query_pre_attn_scalar": 256, "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
            "rope_theta": 1000000, "rope_local_base_freq": 10000, "sliding_window": 512, "sliding_window_pattern": 6,
            "tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh", "bos_token_id": 2, "eos_token_id": 1}"#,
    },
];

impl Shape {
    /// A model of this shape on the CPU.
    pub fn init(&self) -> Decoder {
        DecoderConfig::from_json(self.config).expect("a configuration").init(&Device::flex())
    }
}
