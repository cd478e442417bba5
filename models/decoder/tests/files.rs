//! Reading and writing folders: accepted files, and the messages of refused ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::tensor::{Device, FloatDType, Int, Tensor};
use burn_dfa::TokenId;
use burn_dfa_decoder::{
    Decoder, DecoderConfig, DecoderError, Family, Message, Pretrained, Rope, RopeScaling, YarnScaling,
};
use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// An empty folder with this name.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn load(folder: &Path) -> Result<Decoder, DecoderError> {
    Decoder::load(folder, FloatDType::F32, &Device::flex())
}

fn logits(model: &Decoder) -> Vec<f32> {
    let tokens = Tensor::<2, Int>::from_ints([[5, 70, 3, 3, 79]], &Device::flex());
    model.forward(tokens).try_into_vec_as().unwrap()
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Tensors by name, as in a file.
type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn tensors(bytes: &[u8]) -> Tensors {
    SafeTensors::deserialize(bytes)
        .unwrap()
        .iter()
        .map(|(name, view)| {
            let tensor = (view.dtype(), view.shape().to_vec(), view.data().to_vec());
            (name.to_string(), tensor)
        })
        .collect()
}

fn serialize(tensors: &Tensors) -> Vec<u8> {
    let views = tensors
        .iter()
        .map(|(name, (dtype, shape, data))| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

fn weights(name: &str) -> Vec<u8> {
    std::fs::read(golden(name).join("model.safetensors")).unwrap()
}

fn config(name: &str) -> String {
    std::fs::read_to_string(golden(name).join("config.json")).unwrap()
}

fn from_bytes(config: &str, weights: &[u8]) -> Result<Decoder, DecoderError> {
    Decoder::from_bytes(config, weights, FloatDType::F32, &Device::flex())
}

#[track_caller]
fn refused<T>(result: Result<T, DecoderError>, parts: &[&str]) {
    let Err(error) = result else {
        panic!("accepted; expected an error about {parts:?}");
    };
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
}

/// Models of the Llama family, in f32.
const LLAMAS: [&str; 3] = ["tied_mha", "untied_gqa", "llama3_rope"];
/// Models with every other option, in f16.
const OTHERS: [&str; 8] =
    ["linear_rope", "mistral", "qwen2", "qwen3", "qwen3_yarn", "smollm3", "smollm3_window", "gemma3"];

#[test]
fn writes_what_transformers_wrote() {
    for name in OTHERS {
        let model = load(&golden(name)).unwrap();
        let ours = model.to_safetensors(FloatDType::F16).unwrap();
        assert!(tensors(&ours) == tensors(&weights(name)), "{name}");
        let again = from_bytes(&model.config().to_json(), &ours).unwrap();
        assert_eq!(again.config(), model.config());
        assert_eq!(logits(&again), logits(&model), "{name}");
    }
    for name in LLAMAS {
        let model = load(&golden(name)).unwrap();
        let bytes = model.to_safetensors(FloatDType::F32).unwrap();
        let (ours, theirs) = (tensors(&bytes), tensors(&weights(name)));
        assert_eq!(ours, theirs, "{name}");
        let elements: usize = theirs.values().map(|(_, _, data)| data.len() / 4).sum();
        assert_eq!(model.num_params(), elements);

        let folder = scratch(&format!("saved_{name}"));
        model.save(&folder, FloatDType::F32).unwrap();
        let again = load(&folder).unwrap();
        assert_eq!(again.config(), model.config());
        assert_eq!(logits(&again), logits(&model));

        let half = model.to_safetensors(FloatDType::F16).unwrap();
        assert!(half.len() < bytes.len() * 6 / 10);
        let again = from_bytes(&config(name), &half).unwrap();
        assert!(worst(&logits(&again), &logits(&model)) < 0.05);
        refused(model.to_safetensors(FloatDType::F64), &["F64"]);
    }
}

#[test]
fn reads_shards_of_mixed_dtypes() {
    let folder = scratch("sharded");
    std::fs::write(folder.join("config.json"), config("untied_gqa")).unwrap();
    let mut shards: [Tensors; 3] = Default::default();
    let mut map = serde_json::Map::new();
    for (index, (name, (_, shape, data))) in tensors(&weights("untied_gqa")).into_iter().enumerate() {
        let values = data.as_chunks::<4>().0.iter().map(|c| f32::from_le_bytes(*c));
        let tensor = match index % 3 {
            0 => (Dtype::F32, data.clone()),
            1 => (Dtype::F16, values.flat_map(|v| f16::from_f32(v).to_le_bytes()).collect()),
            _ => (Dtype::BF16, values.flat_map(|v| bf16::from_f32(v).to_le_bytes()).collect()),
        };
        map.insert(name.clone(), format!("part-{}.safetensors", index % 3).into());
        shards[index % 3].insert(name, (tensor.0, shape, tensor.1));
    }
    for (index, shard) in shards.iter().enumerate() {
        std::fs::write(folder.join(format!("part-{index}.safetensors")), serialize(shard)).unwrap();
    }
    let write_index = |map: &serde_json::Map<String, serde_json::Value>| {
        let index = serde_json::json!({"metadata": {"total_size": 1}, "weight_map": map});
        std::fs::write(folder.join("model.safetensors.index.json"), index.to_string()).unwrap();
    };
    write_index(&map);
    let model = load(&folder).unwrap();
    let whole = load(&golden("untied_gqa")).unwrap();
    assert!(worst(&logits(&model), &logits(&whole)) < 0.3);
    let half = Decoder::load(&folder, FloatDType::F16, &Device::flex()).unwrap();
    assert_eq!(half.dtype(), burn::tensor::DType::F16);

    for (file, part) in [
        ("part-9.safetensors", "part-9.safetensors"),
        ("../part-0.safetensors", "not a file of this folder"),
        ("/etc/passwd", "not a file of this folder"),
        ("sub/part-0.safetensors", "not a file of this folder"),
        ("..", "not a file of this folder"),
        ("", "not a file of this folder"),
        ("part-2.safetensors", "does not hold it"),
    ] {
        let mut map = map.clone();
        map.insert("model.embed_tokens.weight".into(), file.into());
        write_index(&map);
        refused(load(&folder), &[part]);
    }
    // A tensor in two shards.
    shards[1].insert("lm_head.weight".into(), shards[0]["lm_head.weight"].clone());
    std::fs::write(folder.join("part-1.safetensors"), serialize(&shards[1])).unwrap();
    write_index(&map);
    refused(load(&folder), &["lm_head.weight", "both"]);
    std::fs::write(folder.join("model.safetensors.index.json"), "{}").unwrap();
    refused(load(&folder), &["model.safetensors.index.json", "weight_map"]);
}

#[test]
fn refuses_checkpoints_that_do_not_fit() {
    let text = config("tied_mha");
    let whole = tensors(&weights("tied_mha"));
    let name = "model.layers.1.mlp.up_proj.weight";
    let change = |edit: &dyn Fn(&mut Tensors)| {
        let mut tensors = whole.clone();
        edit(&mut tensors);
        from_bytes(&text, &serialize(&tensors))
    };
    refused(change(&|tensors| drop(tensors.remove(name))), &[name, "missing"]);
    refused(change(&|tensors| tensors.get_mut(name).unwrap().1.reverse()), &[name, "[32, 64]", "[64, 32]"]);
    refused(change(&|tensors| tensors.get_mut(name).unwrap().0 = Dtype::I32), &[name, "I32"]);
    refused(
        change(&|tensors| {
            let bias = (Dtype::F32, vec![2], vec![0; 8]);
            tensors.insert("model.layers.0.self_attn.q_proj.bias".into(), bias);
        }),
        &["q_proj.bias", "no place"],
    );
    // Superfluous tensors of exporters.
    change(&|tensors| {
        let unused = (Dtype::F32, vec![4], vec![0; 16]);
        tensors.insert("model.layers.0.self_attn.rotary_emb.inv_freq".into(), unused);
        tensors.insert("lm_head.weight".into(), tensors["model.embed_tokens.weight"].clone());
    })
    .unwrap();
}

#[test]
fn refuses_damaged_files() {
    let (text, bytes) = (config("tied_mha"), weights("tied_mha"));
    for length in [0, 7, 8, 100, bytes.len() - 1] {
        refused(from_bytes(&text, &bytes[..length]), &["model.safetensors"]);
    }
    refused(from_bytes(&text, &[bytes.as_slice(), &[0]].concat()), &["damaged"]);
    refused(from_bytes(&text, &[0xff; 64]), &["truncated, or no safetensors"]);
    refused(from_bytes(&text, b"\x02\0\0\0\0\0\0\0[]"), &["not valid"]);
    refused(from_bytes(&text, b"\x02\0\0\0\0\0\0\0{}"), &["embed_tokens", "missing"]);

    let folder = scratch("damaged");
    refused(load(&folder), &["empty"]);
    std::fs::write(folder.join("config.json"), &text).unwrap();
    refused(load(&folder), &["holds no model.safetensors"]);
    std::fs::write(folder.join("model.safetensors"), &bytes[..bytes.len() / 2]).unwrap();
    refused(load(&folder), &["model.safetensors", "truncated"]);
    std::fs::write(folder.join("config.json"), &text[..40]).unwrap();
    refused(load(&folder), &["config.json is not valid"]);
}

/// The configuration of `tied_mha` with some fields replaced.
fn with(fields: &str) -> Result<DecoderConfig, DecoderError> {
    replaced("tied_mha", fields)
}

fn replaced(name: &str, fields: &str) -> Result<DecoderConfig, DecoderError> {
    let mut all: serde_json::Value = serde_json::from_str(&config(name)).unwrap();
    let fields: serde_json::Value = serde_json::from_str(fields).unwrap();
    for (field, value) in fields.as_object().unwrap() {
        all[field] = value.clone();
    }
    DecoderConfig::from_json(&all.to_string())
}

#[test]
fn refuses_what_the_model_does_not_compute() {
    let error = with(r#"{"model_type": "gpt2"}"#).unwrap_err();
    assert!(matches!(&error, DecoderError::Architecture { found } if found == "gpt2"));
    for family in Family::ALL {
        assert!(error.to_string().contains(family.model_type()), "{error}");
    }
    for rope in [
        r#"{"rope_parameters": {"rope_type": "dynamic", "factor": 4.0}}"#,
        r#"{"rope_parameters": null, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}}"#,
        r#"{"rope_parameters": null, "rope_scaling": {"type": "dynamic"}}"#,
    ] {
        let error = with(rope).unwrap_err();
        assert!(matches!(&error, DecoderError::RopeType { found } if found == "dynamic"), "{error}");
    }
    for (fields, part) in [
        (r#"{"architectures": ["LlamaForSequenceClassification"]}"#, "architectures"),
        (r#"{"hidden_act": "gelu"}"#, "hidden_act"),
        (r#"{"attention_bias": true}"#, "attention_bias"),
        (r#"{"mlp_bias": true}"#, "mlp_bias"),
        (r#"{"attn_logit_softcapping": 50.0}"#, "attn_logit_softcapping"),
        (r#"{"final_logit_softcapping": 30.0}"#, "final_logit_softcapping"),
        (r#"{"use_bidirectional_attention": true}"#, "use_bidirectional_attention"),
        (r#"{"partial_rotary_factor": 0.5}"#, "partial_rotary_factor"),
        (r#"{"sliding_window": 16}"#, "sliding_window"),
        (r#"{"use_sliding_window": true}"#, "use_sliding_window"),
        (r#"{"no_rope_layers": [1, 1]}"#, "no_rope_layers"),
        (r#"{"query_pre_attn_scalar": 8}"#, "query_pre_attn_scalar"),
        (r#"{"layer_types": ["full_attention", "sliding_attention"]}"#, "layer_types"),
        (r#"{"layer_types": ["full_attention", "linear_attention"]}"#, "linear_attention"),
        (r#"{"layer_types": ["full_attention"]}"#, "layer_types has 1 entries"),
        (r#"{"quantization_config": {"bits": 4}}"#, "quantization_config"),
        (r#"{"hidden_size": 33, "head_dim": null}"#, "hidden_size is 33"),
        (r#"{"num_attention_heads": 0, "head_dim": null}"#, "num_attention_heads"),
        (r#"{"num_attention_heads": 0}"#, "num_attention_heads"),
        (r#"{"num_key_value_heads": 3}"#, "num_key_value_heads is 3"),
        (r#"{"num_key_value_heads": 0}"#, "num_key_value_heads is 0"),
        (r#"{"head_dim": 7}"#, "head_dim is 7"),
        (r#"{"hidden_size": 0}"#, "hidden_size is 0"),
        (r#"{"vocab_size": 0}"#, "vocab_size is 0"),
        (r#"{"num_hidden_layers": 4000000000}"#, "num_hidden_layers"),
        (r#"{"intermediate_size": 18446744073709551615}"#, "intermediate_size"),
        (r#"{"num_attention_heads": 4194304, "head_dim": 1024}"#, "num_attention_heads"),
        (r#"{"max_position_embeddings": 16777216, "head_dim": 1024}"#, "max_position_embeddings"),
        (r#"{"rms_norm_eps": 0}"#, "rms_norm_eps"),
        (r#"{"rope_parameters": {"rope_theta": -1.0}}"#, "rope_theta"),
        (r#"{"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}"#, "low_freq_factor"),
        (r#"{"rope_parameters": {"rope_type": "linear"}}"#, "factor"),
        (r#"{"rope_parameters": {"rope_type": "linear", "factor": 0.0}}"#, "factor of 0"),
        (r#"{"rope_parameters": {"rope_type": "yarn"}}"#, "factor"),
        (r#"{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "beta_slow": 64.0}}"#, "beta_fast"),
        (r#"{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1.0}}"#, "exceed 1"),
        (r#"{"rope_parameters": {"rope_type": "default", "mrope_section": [2, 2]}}"#, "mrope_section"),
        (r#"{"rope_parameters": {"partial_rotary_factor": 0.5}}"#, "partial_rotary_factor"),
        (r#"{"rope_parameters": {"full_attention": {"rope_theta": 1e4}}}"#, "differs between layers"),
        (r#"{"rope_scaling": {"type": "linear", "factor": 2.0}}"#, "rope_scaling is not what"),
        (r#"{"rope_parameters": [1]}"#, "config.json is not valid"),
        (r#"{"vocab_size": -1}"#, "config.json is not valid"),
        (r#"{"vocab_size": "many"}"#, "config.json is not valid"),
    ] {
        refused(with(fields), &[part]);
    }
}

#[test]
fn refuses_what_a_family_does_not_say() {
    for (name, fields, part) in [
        (
            "mistral",
            r#"{"layer_types": ["full_attention", "full_attention", "sliding_attention"]}"#,
            "layer_types",
        ),
        ("mistral", r#"{"sliding_window": 0}"#, "sliding_window is 0"),
        ("mistral", r#"{"num_key_value_heads": null}"#, "num_key_value_heads is missing"),
        ("qwen2", r#"{"use_sliding_window": false}"#, "use_sliding_window is false"),
        ("qwen2", r#"{"sliding_window": null}"#, "there is no sliding_window"),
        ("smollm3", r#"{"no_rope_layers": [1, 0]}"#, "no_rope_layers has 2 entries"),
        ("smollm3", r#"{"no_rope_layers": null, "no_rope_layer_interval": 0}"#, "no_rope_layer_interval"),
        ("gemma3", r#"{"sliding_window": null}"#, "there is no sliding_window"),
        ("gemma3", r#"{"layer_types": null, "sliding_window_pattern": 0}"#, "sliding_window_pattern"),
        ("gemma3", r#"{"hidden_activation": "relu"}"#, "hidden_activation"),
        ("gemma3", r#"{"query_pre_attn_scalar": -1}"#, "query_pre_attn_scalar"),
        ("gemma3", r#"{"rope_parameters": {"rope_theta": 1e4}}"#, "full_attention and sliding_attention"),
        (
            "gemma3",
            r#"{"rope_parameters": {"full_attention": {}, "sliding_attention": {"rope_theta": 0}}}"#,
            "rope_parameters.sliding_attention",
        ),
        ("gemma3", r#"{"final_logit_softcapping": 30.0}"#, "final_logit_softcapping"),
    ] {
        refused(replaced(name, fields), &[part]);
    }
    // In code: an option that no file of the family sets.
    let llama = || DecoderConfig::new(8, 8, 8, 2, 2);
    let gemma = || DecoderConfig::of(Family::Gemma3, 8, 8, 8, 2, 2);
    for (config, part) in [
        (DecoderConfig { qkv_bias: true, ..llama() }, "qkv_bias"),
        (DecoderConfig { qk_norm: true, ..llama() }, "qk_norm"),
        (DecoderConfig { norm_plus_one: false, ..gemma() }, "norm_plus_one"),
        (DecoderConfig { feedforward_norms: false, ..gemma() }, "feedforward_norms"),
        (DecoderConfig { scaled_embeddings: false, ..gemma() }, "scaled_embeddings"),
        (DecoderConfig { query_pre_attn_scalar: Some(2.0), ..llama() }, "query_pre_attn_scalar"),
        (DecoderConfig { layers_without_rope: vec![1], ..llama() }, "layers_without_rope"),
        (DecoderConfig { sliding_rope: Some(Rope::new(10.0)), ..gemma() }, "sliding_rope"),
        (DecoderConfig { sliding_window: Some(2), ..gemma() }, "no layer has it"),
        (DecoderConfig { sliding_layers: vec![0], ..gemma() }, "sliding_window is missing"),
        (DecoderConfig { sliding_window: Some(2), sliding_layers: vec![0], ..llama() }, "sliding_layers"),
        (DecoderConfig { sliding_window: Some(2), sliding_layers: vec![1, 0], ..gemma() }, "ascending"),
        (DecoderConfig { sliding_window: Some(2), sliding_layers: vec![2], ..gemma() }, "ascending"),
    ] {
        refused(config.validate(), &[part]);
    }
    for family in Family::ALL {
        DecoderConfig::of(family, 8, 8, 8, 2, 2).validate().unwrap();
    }
}

#[test]
fn a_size_that_the_file_does_not_back_is_refused_before_it_is_allocated() {
    let text = config("tied_mha").replace("\"vocab_size\": 128", "\"vocab_size\": 16777216");
    refused(from_bytes(&text, &weights("tied_mha")), &["embed_tokens", "16777216"]);
}

#[test]
fn reads_every_generation_of_names() {
    let scaled = DecoderConfig::load(golden("llama3_rope")).unwrap().rope;
    assert!(matches!(scaled.scaling, Some(RopeScaling::Llama3(scaling)) if scaling.factor == 8.0));
    assert_eq!(scaled.theta, 500.0);
    for kind in ["type", "rope_type"] {
        let old = with(&format!(
            r#"{{"rope_parameters": null, "rope_theta": 500, "rope_scaling": {{"{kind}": "llama3",
            "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32}}}}"#
        ))
        .unwrap();
        assert_eq!(old.rope, scaled);
    }
    let yarn = with(r#"{"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}"#).unwrap();
    let expected = RopeScaling::Yarn(YarnScaling::new(4.0, yarn.max_position_embeddings));
    assert_eq!(yarn.rope.scaling, Some(expected));

    // The names of Gemma 3 before transformers 5.
    let new = DecoderConfig::load(golden("gemma3")).unwrap();
    let old = r#"{"rope_parameters": null, "rope_theta": 10000.0, "rope_local_base_freq": 100.0,
        "rope_scaling": {"factor": 2.0, "rope_type": "linear"}, "layer_types": null, "sliding_window_pattern": 3}"#;
    let old = replaced("gemma3", old).unwrap();
    assert_eq!((old.rope, old.sliding_rope), (new.rope, new.sliding_rope));
    assert_eq!((old.sliding_layers, new.sliding_layers), (vec![0, 1, 3], vec![0, 1, 3]));
    // The older names of Qwen, and of SmolLM3.
    let old = replaced("qwen2", r#"{"layer_types": null, "max_window_layers": 2}"#).unwrap();
    assert_eq!((old.sliding_layers, old.sliding_window), (vec![2], Some(5)));
    let off = r#"{"layer_types": null, "use_sliding_window": false}"#;
    assert_eq!(replaced("qwen2", off).unwrap().sliding_window, None);
    let old = r#"{"layer_types": null, "no_rope_layers": null, "no_rope_layer_interval": 3}"#;
    assert_eq!(replaced("smollm3", old).unwrap().layers_without_rope, [2]);
}

#[test]
fn absent_fields_have_the_defaults_of_the_family() {
    let read = |family: Family, more: &str| {
        DecoderConfig::from_json(&format!(
            r#"{{"model_type": "{family}", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8,
            "num_hidden_layers": 6, "num_attention_heads": 2{more}}}"#
        ))
    };
    let short = read(Family::Llama, "").unwrap();
    assert_eq!((short.num_key_value_heads, short.head_dim), (2, 4));
    assert_eq!((short.rms_norm_eps, short.rope.theta), (1e-6, 10_000.0));
    assert!(!short.tie_word_embeddings && short.eos_token_id.is_empty());

    let heads = r#", "num_key_value_heads": 1"#;
    let mistral = read(Family::Mistral, heads).unwrap();
    assert_eq!((mistral.sliding_window, mistral.sliding_layers.len()), (Some(4096), 6));
    let whole = read(Family::Mistral, r#", "num_key_value_heads": 1, "sliding_window": null"#).unwrap();
    assert_eq!((whole.sliding_window, whole.sliding_layers.len()), (None, 0));
    assert_eq!(read(Family::Qwen2, heads).unwrap().head_dim, 4);
    assert_eq!(read(Family::Qwen3, heads).unwrap().head_dim, 128);
    let smollm3 = read(Family::SmolLm3, heads).unwrap();
    assert_eq!((smollm3.layers_without_rope, smollm3.rope.theta), (vec![3], 2e6));
    assert!(smollm3.tie_word_embeddings);
    let gemma = read(Family::Gemma3, heads).unwrap();
    assert_eq!((gemma.sliding_layers, gemma.head_dim), (vec![0, 1, 2, 3, 4], 256));
    assert_eq!((gemma.rope, gemma.sliding_rope), (Rope::new(1e6), Some(Rope::new(1e4))));
    assert!(gemma.tie_word_embeddings && gemma.query_pre_attn_scalar.is_none());
}

#[test]
fn configurations_are_written_as_they_are_read() {
    for name in LLAMAS.into_iter().chain(OTHERS) {
        let config = DecoderConfig::load(golden(name)).unwrap();
        assert_eq!(DecoderConfig::from_json(&config.to_json()).unwrap(), config);
    }
    // A scaling of layers with a window, which the older fields cannot express.
    let gemma = DecoderConfig::load(golden("gemma3")).unwrap();
    let scaling = Some(RopeScaling::Yarn(YarnScaling::new(2.0, 16)));
    let config = DecoderConfig { sliding_rope: Some(Rope { theta: 50.0, scaling }), ..gemma };
    assert_eq!(DecoderConfig::from_json(&config.to_json()).unwrap(), config);
}

const TOKENIZER: &str = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
    "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": {"type": "Fuse"},
    "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "hello": 5, "world": 6, "user": 7}, "unk_token": "<unk>"}}"#;

#[test]
fn opens_a_whole_folder() {
    let folder = scratch("pretrained");
    load(&golden("untied_gqa")).unwrap().save(&folder, FloatDType::F16).unwrap();
    let open = || Pretrained::load(&folder, FloatDType::F32, &Device::flex());
    refused(open(), &["tokenizer.json"]);
    std::fs::write(folder.join("tokenizer.json"), TOKENIZER).unwrap();
    let bare = open().unwrap();
    let ends =
        |pretrained: &Pretrained| pretrained.vocabulary().eos().iter().map(|id| id.0).collect::<Vec<_>>();
    assert_eq!(ends(&bare), [2, 3]);
    assert_eq!(bare.vocabulary().len(), bare.model().config().vocab_size);
    assert_eq!(bare.encode("hello world").unwrap(), [TokenId(5), TokenId(6)]);
    assert_eq!(bare.prompt("hello world").unwrap(), [TokenId(5), TokenId(6)]);
    assert_eq!(bare.decode(&[TokenId(6), TokenId(5)]).unwrap(), "worldhello");
    assert!(bare.chat_template().is_none());
    refused(bare.encode_chat(&[Message::user("hello")]), &["has none"]);

    std::fs::write(folder.join("generation_config.json"), r#"{"eos_token_id": [9, 2]}"#).unwrap();
    let template = "{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %}";
    std::fs::write(folder.join("chat_template.jinja"), template).unwrap();
    let chat = open().unwrap();
    // The separate file takes precedence, as for every reader of folders.
    assert_eq!(ends(&chat), [2, 9]);
    assert_eq!(chat.encode_chat(&[Message::user("world")]).unwrap(), [TokenId(7), TokenId(6)]);
    assert_eq!(chat.prompt("world").unwrap(), [TokenId(7), TokenId(6)]);

    let wide = TOKENIZER.replace("\"world\": 6", "\"world\": 128");
    std::fs::write(folder.join("tokenizer.json"), wide).unwrap();
    refused(open(), &["tokenizer.json", "128"]);
    std::fs::write(folder.join("tokenizer.json"), "{}").unwrap();
    refused(open(), &["tokenizer.json"]);
}
