//! Truncated or changed files of a folder: a typed error or a model, no panic, and no allocation of
//! a size that a file claims.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use burn::tensor::{Device, FloatDType};
use burn_dfa_decoder::{DecoderConfig, Message, Pretrained};

/// Kilobytes of address space that the tests may use beyond the initial peak.
const SPACE: u64 = 192 << 10;

const CONFIG: &str = r#"{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 12, "hidden_size": 8,
    "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32}, "bos_token_id": 1, "eos_token_id": [2, 3]}"#;
const TOKENIZER: &str = r#"{"version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 9, "content": "<s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false,
    "normalized": false}], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null,
    "decoder": {"type": "Fuse"}, "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "hello": 5, "world": 6, "user": 7},
    "unk_token": "<unk>"}}"#;
const TOKENIZER_CONFIG: &str = r#"{"bos_token": "<s>", "eos_token": {"content": "hello"}, "model_max_length": 64,
    "chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"}"#;
const GENERATION_CONFIG: &str = r#"{"eos_token_id": [2, 3], "max_length": 64}"#;
const TEMPLATE: &str = "{% for m in messages %}{{ m.role }}: {{ m['content'] | trim }}{% if not loop.last %}\n{% endif %}{% endfor %}";

/// A folder with every supported file, in two shards.
fn whole() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutated");
    let _ = std::fs::remove_dir_all(&folder);
    let model = DecoderConfig::from_json(CONFIG).unwrap().init(&Device::flex());
    model.save(&folder, FloatDType::BF16).unwrap();
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut map = serde_json::Map::new();
    let mut shards = [Vec::new(), Vec::new()];
    for (index, (name, view)) in tensors.iter().enumerate() {
        map.insert(name.to_owned(), format!("{}.safetensors", index % 2).into());
        shards[index % 2].push((name, view));
    }
    for (index, shard) in shards.into_iter().enumerate() {
        std::fs::write(
            folder.join(format!("{index}.safetensors")),
            safetensors::serialize(shard, None).unwrap(),
        )
        .unwrap();
    }
    std::fs::remove_file(folder.join("model.safetensors")).unwrap();
    let index = serde_json::json!({"metadata": {"total_size": bytes.len()}, "weight_map": map});
    for (file, text) in [
        ("config.json", CONFIG),
        ("model.safetensors.index.json", &index.to_string()),
        ("tokenizer.json", TOKENIZER),
        ("tokenizer_config.json", TOKENIZER_CONFIG),
        ("generation_config.json", GENERATION_CONFIG),
        ("chat_template.jinja", TEMPLATE),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    folder
}

/// Every tested change of a file's bytes.
fn changes(bytes: &[u8]) -> Vec<Vec<u8>> {
    let step = bytes.len().div_ceil(24).max(1);
    let mut all: Vec<Vec<u8>> =
        (0..bytes.len()).step_by(step).map(|length| bytes[..length].to_vec()).collect();
    all.extend([7, 8, 9].map(|length| bytes[..bytes.len().min(length)].to_vec()));
    all.extend((1..=bytes.len().min(9)).map(|less| bytes[..bytes.len() - less].to_vec()));
    all.push([bytes, &[0]].concat());
    for at in (0..bytes.len()).step_by(step) {
        for flip in [0x01, 0xff] {
            let mut changed = bytes.to_vec();
            changed[at] ^= flip;
            all.push(changed);
        }
    }
    // The length of a header of safetensors.
    for size in [0, 1, 1 << 20, 1 << 32, 1 << 48, u64::MAX - 7, u64::MAX] {
        let mut changed = bytes.to_vec();
        changed[..8].copy_from_slice(&u64::to_le_bytes(size));
        all.push(changed);
    }
    all.extend(numbers(bytes));
    all
}

/// Replaces each number of a text by other numbers.
fn numbers(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length > 0 {
            for other in [
                "0",
                "-1",
                "1.5",
                "1e300",
                "65536",
                "16777216",
                "4294967296",
                "18446744073709551615",
                "null",
                "\"x\"",
                "[]",
                "{}",
            ] {
                all.push([&bytes[..at], other.as_bytes(), &bytes[at + length..]].concat());
            }
        }
        at += length.max(1);
    }
    all
}

/// Peak address space of this process, in kilobytes.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

#[test]
fn changed_files_are_refused_or_read() {
    let folder = whole();
    let device = Device::flex();
    let open = || -> bool {
        let Ok(pretrained) = Pretrained::load(&folder, None, &device) else { return false };
        // The template of a changed file may fail, but not panic.
        let _ = pretrained.prompt("hello world");
        let _ = pretrained.encode_chat(&[Message::user("hello")]);
        true
    };
    assert!(open());
    let before = peak();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 8);
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let (mut refused, mut read) = (0, 0);
        for changed in changes(&bytes) {
            std::fs::write(&path, &changed).unwrap();
            match catch_unwind(AssertUnwindSafe(&open)) {
                Ok(true) => read += 1,
                Ok(false) => refused += 1,
                Err(_) => panic!("{}: {:?}", path.display(), String::from_utf8_lossy(&changed)),
            }
        }
        println!("{}: {refused} refused, {read} read", path.display());
        // Every change of a template may be valid; of each other file, some changes are refused.
        assert!(refused > 0 || path.ends_with("chat_template.jinja"));
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(open());
    if let (Some(before), Some(after)) = (before, peak()) {
        assert!(after < before + SPACE, "{before} kB of address space before, {after} kB after");
    }
}
