//! Shapes of published models from their `config.json`, and casts of their weights.

use burn::module::{ModuleMapper, Param};
use burn::tensor::{DType, Tensor};

/// SmolLM2-135M.
pub const SMOLLM2_135M: &str = r#"{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 49152, "hidden_size": 576,
    "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 100000, "tie_word_embeddings": true,
    "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2}"#;

/// Qwen3-0.6B.
pub const QWEN3_0_6B: &str = r#"{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024,
    "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
    "head_dim": 128, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1000000,
    "tie_word_embeddings": true, "hidden_act": "silu", "bos_token_id": 151643, "eos_token_id": 151645}"#;

/// Casts every parameter to a type.
pub struct Cast(pub DType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        Param::from_tensor(param.val().cast(self.0))
    }
}
