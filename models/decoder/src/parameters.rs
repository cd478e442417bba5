//! Names and shapes of a model's parameters in a checkpoint.

use crate::config::DecoderConfig;

/// Names and shapes of a model's parameters, in the Hugging Face layout.
pub(crate) fn parameters(config: &DecoderConfig) -> Vec<(String, Vec<usize>)> {
    let hidden = config.hidden_size;
    let inner = config.intermediate_size;
    let queries = config.num_attention_heads * config.head_dim;
    let keys = config.num_key_value_heads * config.head_dim;
    let mut all = vec![("model.embed_tokens.weight".to_string(), vec![config.vocab_size, hidden])];
    for layer in 0..config.num_hidden_layers {
        let mut push =
            |name: &str, shape: &[usize]| all.push((format!("model.layers.{layer}.{name}"), shape.to_vec()));
        push("input_layernorm.weight", &[hidden]);
        for (name, outputs) in [("q_proj", queries), ("k_proj", keys), ("v_proj", keys)] {
            push(&format!("self_attn.{name}.weight"), &[outputs, hidden]);
            if config.qkv_bias {
                push(&format!("self_attn.{name}.bias"), &[outputs]);
            }
        }
        if config.qk_norm {
            push("self_attn.q_norm.weight", &[config.head_dim]);
            push("self_attn.k_norm.weight", &[config.head_dim]);
        }
        push("self_attn.o_proj.weight", &[hidden, queries]);
        push("post_attention_layernorm.weight", &[hidden]);
        if config.feedforward_norms {
            push("pre_feedforward_layernorm.weight", &[hidden]);
            push("post_feedforward_layernorm.weight", &[hidden]);
        }
        push("mlp.gate_proj.weight", &[inner, hidden]);
        push("mlp.up_proj.weight", &[inner, hidden]);
        push("mlp.down_proj.weight", &[hidden, inner]);
    }
    all.push(("model.norm.weight".to_string(), vec![hidden]));
    if !config.tie_word_embeddings {
        all.push(("lm_head.weight".to_string(), vec![config.vocab_size, hidden]));
    }
    all
}
