//! GGUF files that are made from folders as llama.cpp's converter makes them: the same
//! configuration and weights are read from both. With `BURN_DFA_GGUF`, the real model as well.

mod real_model;

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use burn::tensor::{DType, Device, FloatDType, Int, Tensor};
use burn_dfa::generation::{CausalLm, GenerationConfig, Request, generate};
use burn_dfa_decoder::{
    Decoder, DecoderConfig, DecoderError, Family, FolderProblem, Llama3Scaling, LoadProgress, Message,
    Pretrained, Rope, RopeScaling, YarnScaling,
};
use burn_dfa_gguf::block::BlockType;
use burn_dfa_testing::gguf::{Value, Writer};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

/// Shapes and numbers by the names of a folder.
type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// The number of greedy steps that are compared.
const STEPS: usize = 40;

/// An empty folder of this test.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gguf").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn tensors(bytes: &[u8]) -> Tensors {
    let floats = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
    let all = SafeTensors::deserialize(bytes).unwrap();
    all.iter().map(|(name, view)| (name.to_owned(), (view.shape().to_vec(), floats(view.data())))).collect()
}

/// The tensors of a model of this configuration. Norms and biases have different numbers too; these
/// stay the same if one is added and subtracted.
fn random(config: &DecoderConfig) -> Tensors {
    let mut tensors = tensors(&config.init(&Device::flex()).to_safetensors(FloatDType::F32).unwrap());
    for (name, (shape, numbers)) in &mut tensors {
        if shape.len() == 1 {
            let number = |index: usize| ((index * 7 + name.len()) % 64) as f32 / 64.0;
            numbers.iter_mut().enumerate().for_each(|(index, value)| *value = number(index));
        }
    }
    tensors
}

/// Writes a folder.
fn write_folder(folder: &Path, config: &DecoderConfig, tensors: &Tensors) {
    let bytes: Vec<Vec<u8>> = tensors
        .values()
        .map(|(_, numbers)| numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
        .collect();
    let views = tensors.iter().zip(&bytes).map(|((name, (shape, _)), bytes)| {
        (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
    });
    std::fs::write(folder.join("model.safetensors"), safetensors::serialize(views, None).unwrap()).unwrap();
    std::fs::write(folder.join("config.json"), config.to_json()).unwrap();
}

/// The name of a tensor in a GGUF file.
fn stored_name(name: &str, gemma: bool) -> String {
    let post_attention = if gemma { "post_attention_norm" } else { "ffn_norm" };
    [
        ("model.embed_tokens.", "token_embd."),
        ("model.norm.", "output_norm."),
        ("lm_head.", "output."),
        ("model.layers.", "blk."),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", post_attention),
        ("pre_feedforward_layernorm", "ffn_norm"),
        ("post_feedforward_layernorm", "post_ffw_norm"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ]
    .into_iter()
    .fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// Rows in the order of a GGUF file of Llama: the halves of each head interleaved.
fn interleaved<T: Copy>(rows: &[T], width: usize, head: usize) -> Vec<T> {
    let mut stored = Vec::new();
    for start in (0..rows.len() / width).step_by(head) {
        for pair in 0..head / 2 {
            for half in 0..2 {
                let row = start + half * head / 2 + pair;
                stored.extend(&rows[row * width..][..width]);
            }
        }
    }
    stored
}

/// A GGUF file with the metadata of a configuration.
fn metadata(config: &DecoderConfig) -> Writer {
    let architecture = match config.family {
        Family::Mistral => "llama",
        Family::Gemma3 => "gemma3",
        other => other.model_type(),
    };
    let key = |name: &str| format!("{architecture}.{name}");
    let mut writer = Writer::new(architecture);
    for (name, number) in [
        ("embedding_length", config.hidden_size),
        ("feed_forward_length", config.intermediate_size),
        ("block_count", config.num_hidden_layers),
        ("attention.head_count", config.num_attention_heads),
        ("attention.head_count_kv", config.num_key_value_heads),
        ("attention.key_length", config.head_dim),
        ("attention.value_length", config.head_dim),
        ("context_length", config.max_position_embeddings),
    ] {
        writer = writer.with(&key(name), Value::U32(number as u32));
    }
    writer = writer
        .with(&key("attention.layer_norm_rms_epsilon"), Value::F32(config.rms_norm_eps as f32))
        .with(&key("rope.freq_base"), Value::F32(config.rope.theta as f32));
    if let Some(window) = config.sliding_window {
        writer = writer.with(&key("attention.sliding_window"), Value::U32(window as u32));
    }
    for (name, id) in [("bos", config.bos_token_id), ("eos", config.eos_token_id.first().copied())] {
        if let Some(id) = id {
            writer = writer.with(&format!("tokenizer.ggml.{name}_token_id"), Value::U32(id));
        }
    }
    let scaled = |writer: Writer, kind: &str, factor: f64| {
        writer
            .with(&key("rope.scaling.type"), kind.into())
            .with(&key("rope.scaling.factor"), Value::F32(factor as f32))
    };
    match config.rope.scaling {
        Some(RopeScaling::Linear { factor }) => scaled(writer, "linear", factor),
        Some(RopeScaling::Yarn(yarn)) => {
            let original = Value::U32(yarn.original_max_position_embeddings as u32);
            scaled(writer, "yarn", yarn.factor).with(&key("rope.scaling.original_context_length"), original)
        }
        Some(RopeScaling::Llama3(scaling)) => {
            let factor = |pair: usize| {
                let power = 2.0 * pair as f64 / config.head_dim as f64;
                let wavelength = 2.0 * std::f64::consts::PI * config.rope.theta.powf(power);
                let turns = scaling.original_max_position_embeddings as f64 / wavelength;
                let smooth =
                    (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
                let smooth = smooth.clamp(0.0, 1.0);
                (1.0 / ((1.0 - smooth) / scaling.factor + smooth)) as f32
            };
            let factors: Vec<f32> = (0..config.head_dim / 2).map(factor).collect();
            writer.with_floats("rope_freqs.weight", &[factors.len()], &factors)
        }
        _ => writer,
    }
}

/// A GGUF file of 32-bit floats, as llama.cpp's converter writes it.
fn write_gguf(config: &DecoderConfig, tensors: &Tensors) -> Writer {
    let gemma = config.family == Family::Gemma3;
    let interleaves = matches!(config.family, Family::Llama | Family::Mistral | Family::SmolLm3);
    tensors.iter().fold(metadata(config), |writer, (name, (shape, numbers))| {
        let is_rotated = name.contains("q_proj") || name.contains("k_proj");
        let numbers = if interleaves && is_rotated {
            interleaved(numbers, shape[1], config.head_dim)
        } else if gemma && name.ends_with("norm.weight") {
            numbers.iter().map(|number| number + 1.0).collect()
        } else {
            numbers.clone()
        };
        writer.with_floats(&stored_name(name, gemma), shape, &numbers)
    })
}

fn base() -> DecoderConfig {
    DecoderConfig {
        num_key_value_heads: 2,
        bos_token_id: Some(1),
        eos_token_id: vec![2],
        ..DecoderConfig::new(80, 32, 40, 2, 4)
    }
}

/// A configuration of each kind.
fn families() -> Vec<(&'static str, DecoderConfig)> {
    let of = |family| DecoderConfig { num_key_value_heads: 2, ..DecoderConfig::of(family, 80, 32, 40, 2, 4) };
    let rope = |theta, scaling| Rope { theta, scaling: Some(scaling) };
    let llama3 = Llama3Scaling {
        factor: 32.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 8192,
    };
    vec![
        ("llama", base()),
        ("tied", DecoderConfig { tie_word_embeddings: true, rms_norm_eps: 1e-5, ..base() }),
        ("linear", DecoderConfig { rope: rope(1e4, RopeScaling::Linear { factor: 4.0 }), ..base() }),
        ("llama3", DecoderConfig { rope: rope(500_000.0, RopeScaling::Llama3(llama3)), ..base() }),
        (
            "mistral",
            DecoderConfig { sliding_window: Some(16), sliding_layers: vec![0, 1], ..of(Family::Mistral) },
        ),
        ("qwen2", of(Family::Qwen2)),
        (
            "yarn",
            DecoderConfig {
                rope: rope(1e6, RopeScaling::Yarn(YarnScaling::new(4.0, 512))),
                ..of(Family::Qwen2)
            },
        ),
        ("qwen3", DecoderConfig { head_dim: 16, ..of(Family::Qwen3) }),
        (
            "smollm3",
            DecoderConfig { num_hidden_layers: 5, layers_without_rope: vec![3], ..of(Family::SmolLm3) },
        ),
        (
            "gemma3",
            DecoderConfig {
                num_hidden_layers: 7,
                head_dim: 16,
                rope: Rope::new(1e6),
                sliding_rope: Some(Rope::new(1e4)),
                sliding_window: Some(16),
                sliding_layers: vec![0, 1, 2, 3, 4, 6],
                tie_word_embeddings: true,
                ..of(Family::Gemma3)
            },
        ),
    ]
}

#[test]
fn the_families_of_folders() {
    let device = Device::flex();
    for (name, config) in families() {
        let (folder, tensors) = (scratch(name), random(&config));
        write_folder(&folder, &config, &tensors);
        let path = folder.join("model.gguf");
        std::fs::write(&path, write_gguf(&config, &tensors).to_bytes()).unwrap();
        for dtype in [None, Some(FloatDType::F32), Some(FloatDType::BF16), Some(FloatDType::F16)] {
            let [expected, found] = [&folder, &path].map(|path| Decoder::load(path, dtype, &device).unwrap());
            assert_eq!(found.config(), expected.config(), "{name}");
            assert_eq!(found.dtype(), expected.dtype(), "{name}");
            let [expected, found] =
                [&expected, &found].map(|model| model.to_safetensors(FloatDType::F32).unwrap());
            assert!(expected == found, "{name}, {dtype:?}: the weights differ");
        }
    }
}

/// Blocks of each type, read as 32-bit and as 16-bit floats; and the bytes of the weights that
/// progress reports.
#[test]
fn quantized_blocks_are_read_as_floats() {
    let device = Device::flex();
    let config = DecoderConfig { num_key_value_heads: 2, ..DecoderConfig::new(16, 256, 256, 1, 4) };
    for block in BlockType::ALL {
        let mut tensors = random(&config);
        let mut writer = metadata(&config);
        for (index, (name, (shape, numbers))) in tensors.iter_mut().enumerate() {
            let stored = stored_name(name, false);
            if shape.len() == 1 {
                writer = writer.with_floats(&stored, shape, numbers);
                continue;
            }
            // Small bytes, so that no scale is infinite.
            let bytes: Vec<u8> = (0..block.bytes_of(numbers.len()).unwrap())
                .map(|at| ((at * 31 + index * 17) % 61) as u8)
                .collect();
            block.dequantize(&bytes, numbers).unwrap();
            let row = block.bytes_of(shape[1]).unwrap();
            let is_rotated = name.contains("q_proj") || name.contains("k_proj");
            let bytes = if is_rotated { interleaved(&bytes, row, config.head_dim) } else { bytes };
            writer = writer.with_blocks(&stored, shape, block.id(), bytes);
        }
        let folder = scratch(&format!("{block:?}"));
        write_folder(&folder, &config, &tensors);
        let path = folder.join("model.gguf");
        std::fs::write(&path, writer.to_bytes()).unwrap();
        for dtype in [FloatDType::F32, FloatDType::BF16] {
            let mut progress = None;
            let found =
                Decoder::load_with_progress(&path, dtype, &device, |done| progress = Some(done)).unwrap();
            let expected = Decoder::load(&folder, dtype, &device).unwrap();
            assert_eq!(found.config(), expected.config());
            let [expected, found] = [&expected, &found].map(|model| model.to_safetensors(dtype).unwrap());
            assert!(expected == found, "{block:?}, {dtype:?}: the weights differ");
            let numbers: usize = tensors.values().map(|(_, numbers)| numbers.len()).sum();
            let total = (numbers * DType::from(dtype).size()) as u64;
            assert_eq!(progress, Some(LoadProgress { bytes: total, total }));
        }
        // Without a type, floats keep theirs, and quantized numbers become 32-bit floats.
        let stored = match block {
            BlockType::F16 => DType::F16,
            BlockType::BF16 => DType::BF16,
            _ => DType::F32,
        };
        let mut progress = None;
        let found = Decoder::load_with_progress(&path, None, &device, |done| progress = Some(done)).unwrap();
        assert_eq!(found.dtype(), stored);
        if block.elements() == 1 {
            continue;
        }
        // Matrices stay in their blocks and multiply as they are.
        let norms: usize =
            tensors.values().filter(|(shape, _)| shape.len() == 1).map(|(_, n)| 4 * n.len()).sum();
        let blocks = tensors.values().filter(|(shape, _)| shape.len() == 2);
        let blocks: usize = blocks.map(|(_, numbers)| block.bytes_of(numbers.len()).unwrap()).sum();
        let total = (norms + blocks) as u64;
        assert_eq!(progress, Some(LoadProgress { bytes: total, total }));
        let expected = Decoder::load(&folder, None, &device).unwrap();
        let tokens = Tensor::<2, Int>::from_ints([[5, 9, 3], [0, 15, 1]], &device);
        let [expected, logits] =
            [&expected, &found].map(|model| model.forward(tokens.clone()).try_into_vec_as::<f32>().unwrap());
        let greatest = expected.iter().fold(0.0f32, |greatest, logit| greatest.max(logit.abs()));
        for (expected, logit) in expected.iter().zip(&logits) {
            let error = (expected - logit).abs() / greatest;
            assert!(error < 0.03, "{block:?}: {logit} is not near {expected}");
        }
        let error = found.to_safetensors(FloatDType::F32).unwrap_err();
        assert!(error.to_string().contains("load the file with F32"), "{error}");
    }
}

/// The tokens of greedy steps after a prompt.
fn greedy(model: &Decoder, prompt: &[i64]) -> Vec<i64> {
    let device = model.device();
    let tokens = Tensor::<1, Int>::from_ints(prompt, &device).unsqueeze::<2>();
    let padding = Tensor::<1, Int>::from_ints([0], &device);
    let (mut logits, mut cache) = model.prefill(tokens, padding, prompt.len() + STEPS);
    let mut output = Vec::new();
    for _ in 0..STEPS {
        let next: Tensor<1, Int> = logits.argmax(1).reshape([1]);
        output.extend(next.clone().try_into_vec_as::<i64>().unwrap());
        logits = model.step(next, &mut cache);
    }
    output
}

/// The embedded model as a GGUF file, with its tokenizer, chat template and ends.
fn tiny() -> (PathBuf, Vec<u8>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tiny");
    let config = DecoderConfig::load(&folder).unwrap();
    let model = Decoder::load(&folder, FloatDType::F32, &Device::flex()).unwrap();
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let tokenizer = text("tokenizer.json");
    let tokenizer_config: serde_json::Value = serde_json::from_str(&text("tokenizer_config.json")).unwrap();
    let writer = write_gguf(&config, &tensors(&model.to_safetensors(FloatDType::F32).unwrap()))
        .with_tokenizer(&tokenizer, "smollm")
        .with("tokenizer.huggingface.json", Value::Text(tokenizer))
        .with("tokenizer.chat_template", tokenizer_config["chat_template"].as_str().unwrap().into())
        .with("tokenizer.ggml.eos_token_id", Value::U32(config.eos_token_id.first().copied().unwrap_or(0)));
    (folder, writer.to_bytes())
}

#[test]
fn a_file_answers_as_its_folder() {
    let (folder, bytes) = tiny();
    let path = scratch("tiny").join("tiny.gguf");
    std::fs::write(&path, bytes).unwrap();
    let device = Device::flex();
    let [expected, found] =
        [&folder, &path].map(|path| Pretrained::load(path, FloatDType::F32, &device).unwrap());
    assert_eq!(found.vocabulary(), expected.vocabulary());
    let messages =
        [Message::user("Meet Ada, 36."), Message::assistant("<|endoftext|>"), Message::user("Who?")];
    assert_eq!(found.encode_chat(&messages).unwrap(), expected.encode_chat(&messages).unwrap());
    let answer = |pretrained: &Pretrained| {
        let prompt = pretrained.prompt("Meet Ada, 36.").unwrap();
        let (model, vocabulary) = (pretrained.model(), pretrained.vocabulary());
        let config = GenerationConfig::default();
        generate(model, vocabulary, &[Request::new(prompt, 30)], &config).unwrap().remove(0).tokens
    };
    assert_eq!(answer(&found), answer(&expected));
    let prompt = found.prompt("Meet Ada, 36.").unwrap();
    let prompt: Vec<i64> = prompt.iter().map(|token| i64::from(token.0)).collect();
    assert_eq!(greedy(found.model(), &prompt), greedy(expected.model(), &prompt));
    let tokens = || Tensor::<2, Int>::from_ints([[5, 70, 3, 3, 79]], &device);
    let logits =
        |pretrained: &Pretrained| pretrained.model().forward(tokens()).try_into_vec_as::<f32>().unwrap();
    assert_eq!(logits(&found), logits(&expected));
}

#[test]
fn refusals_name_the_file() {
    let path = scratch("refused").join("model.gguf");
    let refused = |writer: &Writer| {
        std::fs::write(&path, writer.to_bytes()).unwrap();
        let error = Decoder::load(&path, None, &Device::flex()).unwrap_err();
        assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
        error
    };
    let config = base();
    let tensors = random(&config);
    let whole = write_gguf(&config, &tensors);
    let error = refused(&whole.clone().with("general.architecture", "mamba".into()));
    assert!(
        matches!(&error, DecoderError::Gguf { .. }) && error.to_string().contains("is \"mamba\""),
        "{error}"
    );
    let error = refused(&whole.clone().with_floats("blk.0.ssm_in.weight", &[1], &[0.0]));
    assert!(error.to_string().contains("tensor blk.0.ssm_in.weight has no place"), "{error}");
    let error = refused(&whole.clone().with("llama.attention.head_count_kv", Value::U32(3)));
    assert!(
        matches!(&error, DecoderError::GgufContent { source, .. } if matches!(**source, DecoderError::Config { .. }))
    );
    let error = refused(&whole.clone().with("llama.block_count", Value::U32(3)));
    assert!(
        matches!(&error, DecoderError::GgufContent { .. }) && error.to_string().contains("layers.2"),
        "{error}"
    );
    let error = refused(&whole.with("llama.feed_forward_length", Value::U32(41)));
    assert!(error.to_string().contains("has shape"), "{error}");
    std::fs::write(&path, "not a model").unwrap();
    let error = Decoder::load(&path, None, &Device::flex()).unwrap_err();
    assert!(matches!(&error, DecoderError::Folder { problem: FolderProblem::File, .. }), "{error}");
}

/// Truncated and changed files give a typed error or a model, and never a panic.
#[test]
fn changed_files_are_refused_or_read() {
    let (_, bytes) = tiny();
    let path = scratch("changed").join("tiny.gguf");
    let device = Device::flex();
    let header = bytes.windows(10).rposition(|window| window == b"token_embd").unwrap() + 64;
    let step = header / 150;
    let (mut refused, mut read) = (0, 0);
    let mut open = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let result = catch_unwind(|| match Pretrained::load(&path, None, &device) {
            Err(_) => false,
            Ok(pretrained) => {
                let _ = pretrained.prompt("Meet Ada, 36.");
                true
            }
        });
        match result {
            Ok(true) => read += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("a panic; see {}", path.display()),
        }
    };
    for length in (0..header).step_by(step).chain([bytes.len() - 1, bytes.len() / 2]) {
        open(&bytes[..length]);
    }
    for at in (0..header).step_by(step) {
        for flip in [0x01, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            open(&changed);
        }
    }
    println!("{refused} refused, {read} read");
    assert!(refused > 0 && read > 0);
}
