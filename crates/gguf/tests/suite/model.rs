//! The metadata of a model as a `config.json`, and the names of its tensors.

use super::*;
use burn_dfa_gguf::RowOrder;
use serde_json::{Value as Json, json};

/// A model of two layers of an architecture, with four heads of eight.
fn model(architecture: &str) -> Writer {
    let key = |name: &str| format!("{architecture}.{name}");
    Writer::new(architecture)
        .with(&key("embedding_length"), Value::U32(32))
        .with(&key("feed_forward_length"), Value::U32(64))
        .with(&key("block_count"), Value::U32(2))
        .with(&key("attention.head_count"), Value::U32(4))
        .with(&key("attention.head_count_kv"), Value::U32(2))
        .with(&key("context_length"), Value::U32(128))
        .with(&key("attention.layer_norm_rms_epsilon"), Value::F32(1e-5))
        .with(&key("rope.freq_base"), Value::F32(1e5))
        .with_floats("token_embd.weight", &[10, 32], &[0.0; 320])
}

fn config(writer: &Writer) -> Result<Json, GgufError> {
    let bytes = writer.to_bytes();
    let floats = |tensor: &burn_dfa_gguf::Tensor| {
        let (chunks, _) = bytes[tensor.range.clone()].as_chunks();
        Ok(chunks.iter().map(|&chunk| f32::from_le_bytes(chunk)).collect())
    };
    read(&bytes).unwrap().config(floats)
}

#[test]
fn configurations_are_those_of_a_folder() {
    let llama = config(&model("llama")).unwrap();
    let expected = json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 10, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 8, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
        "bos_token_id": null, "eos_token_id": null, "rope_theta": 1e5, "rope_scaling": null,
    });
    assert_eq!(llama, expected);
    let of = |writer: Writer, field: &str| config(&writer).unwrap()[field].clone();
    for (architecture, model_type) in
        [("qwen2", "qwen2"), ("qwen3", "qwen3"), ("smollm3", "smollm3"), ("gemma3", "gemma3_text")]
    {
        assert_eq!(of(model(architecture), "model_type"), model_type);
    }
    let windowed = model("llama").with("llama.attention.sliding_window", Value::U32(16));
    assert_eq!(of(windowed.clone(), "model_type"), "mistral");
    assert_eq!(of(windowed, "sliding_window"), 16);
    let untied = model("llama").with_floats("output.weight", &[10, 32], &[0.0; 320]);
    assert_eq!(of(untied, "tie_word_embeddings"), false);
    let wide = model("qwen3").with("qwen3.attention.key_length", Value::U32(16));
    assert_eq!(of(wide, "head_dim"), 16);
    let gemma = model("gemma3").with("gemma3.attention.sliding_window", Value::U32(16));
    assert_eq!(of(gemma.clone(), "sliding_window_pattern"), 6);
    assert_eq!(of(gemma.clone(), "query_pre_attn_scalar"), 8);
    assert_eq!(of(gemma, "rope_local_base_freq"), 1e4);
}

#[test]
fn scalings_of_positions_are_read() {
    let scaled = |values: &[(&str, Value)]| {
        let with = |writer: Writer, (key, value): &(&str, Value)| {
            writer.with(&format!("llama.rope.{key}"), value.clone())
        };
        config(&values.iter().fold(model("llama"), with)).map(|config| config["rope_scaling"].clone())
    };
    let kind = |kind: &str| ("scaling.type", kind.into());
    let factor = ("scaling.factor", Value::F32(4.0));
    let original = ("scaling.original_context_length", Value::U32(64));
    assert_eq!(scaled(&[kind("none"), factor.clone()]).unwrap(), Json::Null);
    let linear = json!({"rope_type": "linear", "factor": 4.0});
    assert_eq!(scaled(&[kind("linear"), factor.clone()]).unwrap(), linear);
    assert_eq!(scaled(&[("scale_linear", Value::F32(4.0))]).unwrap(), linear);
    let yarn =
        scaled(&[kind("yarn"), factor.clone(), original, ("scaling.yarn_beta_fast", Value::F32(16.0))]);
    let expected = json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 16.0});
    assert_eq!(yarn.unwrap(), expected);
    for (values, part) in [
        (vec![kind("yarn"), factor.clone()], "llama.rope.scaling.original_context_length is missing"),
        (vec![kind("linear")], "llama.rope.scaling.factor is missing"),
        (vec![kind("longrope"), factor], "llama.rope.scaling.type is \"longrope\""),
    ] {
        let error = scaled(&values).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// The factors of Llama 3.2 1B (a base of 500,000, heads of 64, a factor of 32), computed as
/// llama.cpp's converter computes them.
#[test]
fn the_factors_of_llama_3_become_its_scaling() {
    let factors = |low: f64| -> Vec<f32> {
        let factor = |pair: i32| {
            let wavelength = 2.0 * std::f64::consts::PI * 500_000f64.powf(f64::from(2 * pair) / 64.0);
            if wavelength < 8192.0 / 4.0 {
                1.0
            } else if wavelength > 8192.0 / low {
                32.0
            } else {
                let smooth = (8192.0 / wavelength - low) / (4.0 - low);
                (1.0 / ((1.0 - smooth) / 32.0 + smooth)) as f32
            }
        };
        (0..32).map(factor).collect()
    };
    let of = |factors: &[f32]| {
        let writer = model("llama").with("llama.rope.freq_base", Value::F32(5e5));
        config(&writer.with_floats("rope_freqs.weight", &[factors.len()], factors))
    };
    let expected = json!({
        "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    });
    assert_eq!(of(&factors(1.0)).unwrap()["rope_scaling"], expected);
    assert_eq!(of(&[1.0; 4]).unwrap()["rope_scaling"], Json::Null);
    assert!(of(&factors(2.0)).unwrap_err().to_string().contains("rope_freqs.weight has factors other than"));
}

#[test]
fn refusals_name_the_key() {
    let with = |key: &str, value: Value| model("llama").with(key, value);
    let table = [
        (model("mamba"), "general.architecture is \"mamba\"; known are llama"),
        (model("llama").without("general.architecture"), "general.architecture is missing"),
        (model("llama").without("llama.block_count"), "llama.block_count is missing"),
        (with("llama.block_count", "x".into()), "llama.block_count is no number"),
        (with("llama.attention.head_count", Value::U32(0)), "llama.attention.head_count is 0"),
        (with("llama.attention.head_count", Value::U32(5)), "llama.attention.head_count is 5"),
        (
            with("llama.attention.head_count_kv", Value::I32s(vec![2, 4])),
            "head_count_kv differs between layers",
        ),
        (with("llama.rope.dimension_count", Value::U32(4)), "llama.rope.dimension_count is 4"),
        (with("llama.expert_count", Value::U32(8)), "llama.expert_count is 8"),
        (with("llama.attention.causal", Value::Bool(false)), "llama.attention.causal is false"),
    ];
    for (writer, part) in table {
        let error = config(&writer).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert!(config(&Writer::new("llama")).unwrap_err().to_string().contains("is missing"));
}

#[test]
fn tensors_have_the_names_of_a_folder() {
    let weights = |architecture: &str, names: &[&str]| {
        let with = |writer: Writer, name: &&str| writer.with_floats(name, &[16, 2], &[0.0; 32]);
        let writer = names.iter().fold(Writer::new(architecture), with);
        read(&writer.to_bytes()).unwrap().weights(8)
    };
    let names = ["token_embd.weight", "blk.1.attn_q.weight", "blk.1.attn_v.weight", "blk.0.ffn_norm.weight"];
    let llama = weights("llama", &names).unwrap();
    let orders: Vec<_> = llama.iter().map(|weight| (&weight.name[..], weight.order)).collect();
    let expected = [
        ("model.embed_tokens.weight", RowOrder::Same),
        ("model.layers.1.self_attn.q_proj.weight", RowOrder::Interleaved(8)),
        ("model.layers.1.self_attn.v_proj.weight", RowOrder::Same),
        ("model.layers.0.post_attention_layernorm.weight", RowOrder::Same),
    ];
    assert_eq!(orders, expected);
    let gemma =
        weights("gemma3", &["blk.0.ffn_norm.weight", "blk.0.attn_q.weight", "output_norm.weight"]).unwrap();
    let shifts: Vec<_> = gemma.iter().map(|weight| (&weight.name[..], weight.order, weight.shift)).collect();
    let expected = [
        ("model.layers.0.pre_feedforward_layernorm.weight", RowOrder::Same, -1.0),
        ("model.layers.0.self_attn.q_proj.weight", RowOrder::Same, 0.0),
        ("model.norm.weight", RowOrder::Same, -1.0),
    ];
    assert_eq!(shifts, expected);
    let error = weights("llama", &["blk.0.ssm_in.weight"]).unwrap_err().to_string();
    assert!(error.contains("tensor blk.0.ssm_in.weight has no place"), "{error}");
}
