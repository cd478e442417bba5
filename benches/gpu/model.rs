//! Models with random weights, created on the device.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::module::Module;
use burn::tensor::{DType, Device, Tensor};
use burn_dfa_decoder::{Decoder, DecoderConfig};

use crate::published::{self, Cast};

/// The shape of a published model, from its `config.json`.
pub struct Shape {
    pub name: &'static str,
    config: &'static str,
}

pub const SHAPES: [Shape; 3] = [
    Shape { name: "SmolLM2-135M", config: published::SMOLLM2_135M },
    Shape {
        name: "SmolLM2-1.7B",
        config: r#"{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 49152, "hidden_size": 2048,
            "intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32,
            "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 130000, "tie_word_embeddings": true,
            "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2}"#,
    },
    Shape { name: "Qwen3-0.6B", config: published::QWEN3_0_6B },
];

/// One layer in the shape of the smallest model, for a quick check.
pub const SMALL: Shape = Shape {
    name: "one small layer",
    config: r#"{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 4096, "hidden_size": 64,
        "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000, "tie_word_embeddings": true,
        "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2}"#,
};

impl Shape {
    pub fn init(&self, dtype: DType, device: &Device) -> Decoder {
        let model = DecoderConfig::from_json(self.config).expect("a configuration").init(device);
        model.map(&mut Cast(dtype))
    }
}

/// The narrowest float type in which the device multiplies matrices: bf16 if it can, f16, or f32.
pub fn dtype(device: &Device) -> DType {
    let can = |dtype: &DType| {
        let product = || {
            let ones = Tensor::<2>::ones([64, 64], device).cast(*dtype);
            let sums = ones.clone().matmul(ones).cast(DType::F32).into_data();
            assert_eq!(sums.try_to_vec::<f32>().expect("floats"), [64.0; 64 * 64]);
        };
        device.supports_dtype(*dtype) && catch_unwind(AssertUnwindSafe(product)).is_ok()
    };
    [DType::BF16, DType::F16].into_iter().find(can).unwrap_or(DType::F32)
}
