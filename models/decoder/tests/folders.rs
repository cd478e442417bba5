//! Folders that hold no loadable model: each is recognized, and the message names the remedy.

use std::path::{Path, PathBuf};

use burn::tensor::{Device, FloatDType};
use burn_dfa::TokenId;
use burn_dfa::generation::{GenerationConfig, SamplingOptions};
use burn_dfa_decoder::{
    ChatTemplate, DecoderConfig, DecoderError, FolderProblem, Generator, Message, Pretrained,
};
use serde_json::{Value, json};

/// A folder with this name and these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("folders").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (file, text) in files {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// The problem of a folder, its path, and its message.
#[track_caller]
fn problem(folder: &Path) -> (PathBuf, FolderProblem, String) {
    let error = Pretrained::load(folder, None, &Device::flex()).expect_err("no model");
    let text = error.to_string();
    match error {
        DecoderError::Folder { path, problem } => (path, problem, text),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(folder: &Path, parts: &[&str]) -> FolderProblem {
    let (path, problem, text) = problem(folder);
    assert!(path.starts_with(folder), "{text}");
    for part in parts {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
    problem
}

const CONFIG: &str = r#"{"model_type": "llama", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8,
    "num_hidden_layers": 1, "num_attention_heads": 2}"#;
const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1\n\
    size 988097824\n";

/// A folder of a model of random weights, without a tokenizer.
fn model(name: &str) -> PathBuf {
    let folder = folder(name, &[]);
    DecoderConfig::from_json(CONFIG).unwrap().init(&Device::flex()).save(&folder, FloatDType::F32).unwrap();
    folder
}

#[test]
fn paths_that_are_no_folder_of_a_model() {
    let missing = folder("none", &[]).join("Qwen/Qwen3-0.6B");
    assert_eq!(refused(&missing, &["no such folder or file", "hf download"]), FolderProblem::Missing);
    let file = folder("file", &[("model.bin", "PK")]).join("model.bin");
    assert_eq!(refused(&file, &["is a file, and no GGUF file", "folder"]), FolderProblem::File);
    assert_eq!(refused(&folder("empty", &[]), &["empty", "download"]), FolderProblem::Empty);
    let hidden = folder("hidden", &[(".gitattributes", ""), ("model.safetensors.incomplete", "")]);
    assert_eq!(refused(&hidden, &["empty"]), FolderProblem::Empty);
    let cache = folder("models--a--b", &[("refs/main", "1f"), ("snapshots/1f/config.json", CONFIG)]);
    let snapshot = cache.join("snapshots/1f");
    assert_eq!(refused(&cache, &[snapshot.to_str().unwrap()]), FolderProblem::Cache { snapshot });
}

#[test]
fn folders_of_something_else() {
    let adapter = r#"{"base_model_name_or_path": "Qwen/Qwen3-0.6B", "peft_type": "LORA"}"#;
    let files =
        [("adapter_config.json", adapter), ("adapter_model.safetensors", ""), ("tokenizer.json", "{}")];
    let found = refused(&folder("adapter", &files), &["adapter", "Qwen/Qwen3-0.6B", "merge_and_unload"]);
    assert_eq!(found, FolderProblem::Adapter { base: Some("Qwen/Qwen3-0.6B".into()) });
    let damaged = refused(&folder("adapter_damaged", &[("adapter_config.json", "{")]), &["merge_and_unload"]);
    assert_eq!(damaged, FolderProblem::Adapter { base: None });
    let files = [("model_index.json", "{}"), ("unet/config.json", "{}")];
    assert_eq!(refused(&folder("pipeline", &files), &["pipeline"]), FolderProblem::Pipeline);
    for (name, files, instead) in [
        ("gguf", &["README.md", "model-Q4_K_M.gguf"][..], Some("model-Q4_K_M.gguf")),
        ("original", &["params.json", "consolidated.00.pth", "tokenizer.model"], Some("params.json")),
        ("partial", &["model.safetensors", "tokenizer.json"], Some("model.safetensors")),
        ("words", &["README.md"], None),
    ] {
        let files: Vec<_> = files.iter().map(|file| (*file, "")).collect();
        let remedy = if name == "gguf" { "name that file itself" } else { "download" };
        let found = refused(&folder(name, &files), &["config.json", remedy]);
        assert_eq!(found, FolderProblem::Lacks { file: "config.json", instead: instead.map(str::to_owned) });
    }
    let vision =
        folder("vision", &[("config.json", r#"{"model_type": "vit"}"#), ("preprocessor_config.json", "{}")]);
    let error = Pretrained::load(&vision, None, &Device::flex()).unwrap_err();
    assert!(matches!(&error, DecoderError::Architecture { found } if found == "vit"), "{error}");
    let quantized =
        CONFIG.replacen('{', r#"{"quantization_config": {"quant_method": "awq", "bits": 4}, "#, 1);
    let quantized = folder("quantized", &[("config.json", &quantized)]);
    let error = Pretrained::load(&quantized, None, &Device::flex()).unwrap_err();
    assert!(matches!(&error, DecoderError::Config { field: "quantization_config", .. }), "{error}");
    assert!(error.to_string().contains("use the checkpoint in"), "{error}");
}

#[test]
fn folders_without_weights_are_refused_with_a_remedy() {
    for (name, files, instead, parts) in [
        ("described", &[][..], None, &["no model.safetensors", "download"][..]),
        ("pickled", &["pytorch_model.bin"], Some("pytorch_model.bin"), &["save_pretrained"]),
        ("beside_gguf", &["a.gguf"], Some("a.gguf"), &["name that file itself"]),
        (
            "no_index",
            &["model-00001-of-00002.safetensors"],
            Some("model-00001-of-00002.safetensors"),
            &["all files"],
        ),
        ("onnx", &["decoder.onnx"], Some("decoder.onnx"), &["transformers"]),
    ] {
        let files: Vec<_> = files.iter().map(|file| (*file, "")).chain([("config.json", CONFIG)]).collect();
        let found = refused(&folder(name, &files), parts);
        assert_eq!(
            found,
            FolderProblem::Lacks { file: "model.safetensors", instead: instead.map(str::to_owned) }
        );
    }
    let index = r#"{"weight_map": {"a": "1.safetensors", "b": "2.safetensors", "c": "3.safetensors"}}"#;
    let files = [("config.json", CONFIG), ("model.safetensors.index.json", index), ("2.safetensors", "")];
    let found = refused(&folder("shards", &files), &["1.safetensors", "2 of the 3"]);
    assert_eq!(found, FolderProblem::Shards { first: "1.safetensors".into(), missing: 2, of: 3 });
}

#[test]
fn folders_without_a_tokenizer_that_is_read() {
    for (file, advice) in [
        ("tokenizer.model", "AutoTokenizer"),
        ("tekken.json", "convert_tekken_tokenizer"),
        ("vocab.json", "AutoTokenizer"),
    ] {
        let folder = model(&format!("with_{file}"));
        std::fs::write(folder.join(file), "").unwrap();
        let found = refused(&folder, &["tokenizer.json", advice, file]);
        assert_eq!(found, FolderProblem::Lacks { file: "tokenizer.json", instead: Some(file.into()) });
    }
    let found = refused(&model("no_tokenizer"), &["tokenizer.json", "download"]);
    assert_eq!(found, FolderProblem::Lacks { file: "tokenizer.json", instead: None });
}

#[test]
fn files_that_stand_for_others() {
    let answers = [
        "Access to model meta-llama/Llama-3.2-1B is restricted. You must have access to it and be authenticated.",
        "<!doctype html>\n<html class=\"\">\n<head>",
        "{\"error\":\"Repository not found\"}",
        "Invalid username or password.",
        "Entry not found",
    ];
    for (index, text) in answers.into_iter().chain([POINTER]).enumerate() {
        for file in ["config.json", "model.safetensors", "tokenizer.json"] {
            let folder = model(&format!("stands_{index}_{file}"));
            std::fs::write(folder.join("tokenizer.json"), "{}").unwrap();
            std::fs::write(folder.join(file), text).unwrap();
            let remedy = if text == POINTER { "git lfs pull" } else { "hf auth login" };
            let (path, problem, message) = problem(&folder);
            assert_eq!(path, folder.join(file), "{message}");
            assert!(message.contains(remedy), "{message}");
            let expected = if text == POINTER {
                FolderProblem::Pointer
            } else {
                FolderProblem::Answer { text: text.lines().next().unwrap().chars().take(100).collect() }
            };
            assert_eq!(problem, expected);
        }
    }
}

/// A tokenizer of eight words, with these changes.
fn tokenizer(change: impl FnOnce(&mut Value)) -> String {
    let special = |id: u32, content: &str| {
        json!({"id": id, "content": content, "special": true, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false})
    };
    let words = ["<end>", "<user>", "a", "b", "c", "d", "e", "f"];
    let vocab: serde_json::Map<_, _> =
        words.iter().zip(0..).map(|(word, id)| (word.to_string(), json!(id))).collect();
    let mut json = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": {"type": "Fuse"}, "added_tokens": [special(0, "<end>"), special(1, "<user>")],
        "model": {"type": "BPE", "vocab": vocab, "merges": []}
    });
    change(&mut json);
    json.to_string()
}

/// A folder of a model of random weights with this tokenizer.
fn with_tokenizer(name: &str, tokenizer: &str) -> PathBuf {
    let folder = model(name);
    std::fs::write(folder.join("tokenizer.json"), tokenizer).unwrap();
    std::fs::write(folder.join("generation_config.json"), "\u{feff}{\"eos_token_id\": 0}").unwrap();
    folder
}

#[test]
fn truncation_and_padding_of_a_tokenizer_are_left_out() {
    let plain = with_tokenizer("tokenizer_plain", &tokenizer(|_| ()));
    let cut = tokenizer(|json| {
        json["truncation"] =
            json!({"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0});
        json["padding"] = json!({"strategy": {"Fixed": 12}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
            "pad_type_id": 0, "pad_token": "<end>"});
    });
    let cut = with_tokenizer("tokenizer_cut", &cut);
    let [plain, cut] = [plain, cut].map(|folder| Pretrained::load(folder, None, &Device::flex()).unwrap());
    let expected = [2, 3, 4, 5, 6].map(TokenId);
    assert_eq!(plain.encode("abcde").unwrap(), expected);
    assert_eq!(cut.encode("abcde").unwrap(), expected);
}

#[test]
fn each_file_is_read_once() {
    let folder = with_tokenizer("read_once", &tokenizer(|_| ()));
    std::fs::write(folder.join("generation_config.json"), r#"{"do_sample": true, "eos_token_id": 0}"#)
        .unwrap();
    let opened = Pretrained::open(&folder).unwrap();
    assert_eq!(opened.generation_config(), Some(r#"{"do_sample": true, "eos_token_id": 0}"#));
    let words = opened.vocabulary().fingerprint();
    for name in ["tokenizer.json", "config.json", "generation_config.json"] {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    let pretrained = opened.load(None, &Device::flex(), |_| ()).unwrap();
    assert_eq!(pretrained.vocabulary().fingerprint(), words);
    assert_eq!(pretrained.encode("ab").unwrap(), [2, 3].map(TokenId));
    assert!(Pretrained::open(&folder).is_err());
}

#[test]
fn a_generator_samples_as_the_folder_recommends() {
    let folder = with_tokenizer("recommended", &tokenizer(|_| ()));
    let generator = || Generator::from_folder(&folder, &Device::flex()).unwrap();
    let recommends = |text: &str| std::fs::write(folder.join("generation_config.json"), text).unwrap();

    let text = r#"{"do_sample": true, "temperature": 0.6, "top_k": 4, "top_p": 0.9, "eos_token_id": 0}"#;
    recommends(text);
    let sampling = SamplingOptions::new().with_temperature(0.6).with_top_k(4).with_top_p(0.9);
    let model = generator().with_config(GenerationConfig::new().with_sync_interval(3));
    assert!(model.config().sampling.is_greedy());
    let model = model.with_recommended_sampling().unwrap().with_max_new_tokens(5);
    assert_eq!((&model.config().sampling, model.config().sync_interval), (&sampling, 3));
    assert_eq!(model.pretrained().generation_config(), Some(text));
    let text = model.generate("ab", None).unwrap();
    let chunks = model.stream("ab", None).unwrap().map(|chunk| chunk.unwrap().text);
    assert_eq!(chunks.collect::<String>(), text);

    recommends(r#"{"num_beams": 4, "eos_token_id": 0}"#);
    let error = generator().with_recommended_sampling().unwrap_err();
    assert!(matches!(error, DecoderError::Generation { .. }), "{error}");
    assert!(error.to_string().starts_with("generation_config.json: num_beams"), "{error}");

    // Without the file, the end of sequence is in config.json.
    let path = folder.join("config.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["eos_token_id"] = json!(0);
    std::fs::write(path, config.to_string()).unwrap();
    std::fs::remove_file(folder.join("generation_config.json")).unwrap();
    let silent = generator().with_recommended_sampling().unwrap();
    assert!(silent.config().sampling.is_greedy() && silent.pretrained().generation_config().is_none());
}

#[test]
fn a_special_token_may_lie_behind_the_last_embedding() {
    let beyond = |special: bool| {
        tokenizer(|json| {
            let token = json!({"id": 8, "content": "<image>", "special": special, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false});
            json["added_tokens"].as_array_mut().unwrap().push(token);
        })
    };
    let folder = with_tokenizer("tokenizer_beyond", &beyond(true));
    let pretrained = Pretrained::load(folder, None, &Device::flex()).unwrap();
    assert_eq!(pretrained.vocabulary().len(), 8);
    assert_eq!(pretrained.encode("ab").unwrap(), [2, 3].map(TokenId));
    let error = pretrained.encode("a<image>b").unwrap_err().to_string();
    assert!(error.contains("\"<image>\", the token 8") && error.contains("8 embeddings"), "{error}");
    // An id that is no special token belongs to another model.
    let error = Pretrained::load(with_tokenizer("tokenizer_other", &beyond(false)), None, &Device::flex());
    assert!(error.unwrap_err().to_string().contains("different models"));
}

#[test]
fn files_may_begin_with_a_byte_order_mark() {
    let folder = with_tokenizer("marked", &format!("\u{feff}{}", tokenizer(|_| ())));
    let config = std::fs::read_to_string(folder.join("config.json")).unwrap();
    std::fs::write(folder.join("config.json"), format!("\u{feff}{config}")).unwrap();
    assert_eq!(Pretrained::load(folder, None, &Device::flex()).unwrap().encode("f").unwrap(), [TokenId(7)]);
}

#[test]
fn weights_that_were_saved_otherwise_say_what_to_do() {
    let mlx = CONFIG.replacen('{', r#"{"quantization": {"group_size": 64, "bits": 4}, "#, 1);
    let error = Pretrained::load(folder("mlx", &[("config.json", &mlx)]), None, &Device::flex()).unwrap_err();
    assert!(matches!(&error, DecoderError::Config { field: "quantization", .. }), "{error}");

    let folder = model("bare");
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let bare = tensors.iter().map(|(name, view)| (name.trim_start_matches("model.").to_owned(), view));
    std::fs::write(folder.join("model.safetensors"), safetensors::serialize(bare, None).unwrap()).unwrap();
    let error = Pretrained::load(&folder, None, &Device::flex()).unwrap_err().to_string();
    assert!(error.contains("embed_tokens.weight") && error.contains("AutoModelForCausalLM"), "{error}");
}

#[test]
fn of_several_templates_one_is_the_default() {
    let read = |templates: Value| {
        ChatTemplate::from_files(Some(&json!({"chat_template": templates}).to_string()), None)
    };
    let named =
        |name: &str| json!({"name": name, "template": format!("{name}: {{{{ messages[0].content }}}}")});
    let text = |templates| read(templates).unwrap().unwrap().render(&[Message::user("a")], true).unwrap();
    assert_eq!(text(json!([named("tool_use"), named("default")])), "default: a");
    assert_eq!(text(json!([named("rag")])), "rag: a");
    let error = read(json!([named("rag"), named("tool_use")])).unwrap_err().to_string();
    assert!(error.contains("rag, tool_use") && error.contains("chat_template.jinja"), "{error}");
}

#[test]
fn none_is_not_iterable() {
    let template = "{% for value in [none, 1, 'a', [], {}, missing] %}{{ value is iterable }} {% endfor %}";
    let text = ChatTemplate::new(template).unwrap().render(&[], false).unwrap();
    assert_eq!(text, "False False True True True True ");
}
