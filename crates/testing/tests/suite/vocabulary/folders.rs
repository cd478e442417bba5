//! Information from the files next to `tokenizer.json`.

use burn_dfa_tokens::{ErrorKind, vocabulary::eos_from_config};
use std::path::PathBuf;

use super::*;

const TOKENIZER: &str = r#"{"added_tokens": [{"id": 2, "content": "</s>", "special": true}], "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "vocab": {"</s>": 0, "a": 1}, "merges": []}}"#;

/// Names and contents.
type Files<'a> = &'a [(&'a str, &'a str)];

/// Creates a folder with these files, named after the test.
fn folder(name: &str, files: Files) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("burn-dfa-vocabulary-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (file, content) in files {
        std::fs::write(folder.join(file), content).unwrap();
    }
    folder
}

#[test]
fn ends_of_sequences_are_read_from_configurations() {
    let table: [(&str, Result<&[u32], &str>); 10] = [
        ("{}", Ok(&[])),
        (r#"{"eos_token_id": null}"#, Ok(&[])),
        (r#"{"eos_token_id": 2}"#, Ok(&[2])),
        (r#"{"eos_token_id": [128001, 128009]}"#, Ok(&[128_001, 128_009])),
        (r#"{"text_config": {"eos_token_id": 7}}"#, Ok(&[7])),
        (r#"{"eos_token_id": -1}"#, Err("-1")),
        (r#"{"eos_token_id": "</s>"}"#, Err("</s>")),
        (r#"{"eos_token_id": [1, null]}"#, Err("null")),
        ("[]", Err("object")),
        ("{", Err("line 1")),
    ];
    for (json, expected) in table {
        match (eos_from_config(json), expected) {
            (Ok(read), Ok(expected)) => assert_eq!(read, ids(expected), "{json}"),
            (Err(error), Err(part)) => {
                assert!(error.kind() == ErrorKind::Vocabulary && error.to_string().contains(part), "{error}");
            }
            (read, _) => panic!("{json}: {read:?}"),
        }
    }
}

#[test]
fn the_nearest_file_names_the_end() {
    let generation = ("generation_config.json", r#"{"eos_token_id": [1, 3]}"#);
    let config = ("config.json", r#"{"eos_token_id": 0, "vocab_size": 4}"#);
    let object = ("tokenizer_config.json", r#"{"eos_token": {"content": "</s>", "special": true}}"#);
    let string = ("tokenizer_config.json", r#"{"eos_token": "a"}"#);
    let silent = ("generation_config.json", r#"{"do_sample": true}"#);
    let table: [(&str, Files, usize, &[u32]); 5] = [
        ("generation", &[generation, config, object], 4, &[1, 3]),
        ("config", &[config, object], 4, &[0]),
        ("silent", &[silent, config], 4, &[0]),
        ("object", &[silent, object], 3, &[0]),
        ("string", &[string], 3, &[1]),
    ];
    for (name, files, len, eos) in table {
        let folder = folder(name, &[&[("tokenizer.json", TOKENIZER)], files].concat());
        let vocabulary = Vocabulary::from_folder(&folder).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(vocabulary.len(), len, "{name}");
        assert!(vocabulary.eos().iter().eq(&ids(eos)), "{name}");
    }
}

#[test]
fn refusals_name_the_file() {
    let table: [(&str, Files, &str); 8] = [
        ("none", &[], "with_eos"),
        ("unknown", &[("tokenizer_config.json", r#"{"eos_token": "b"}"#)], "tokenizer_config.json"),
        ("wrong", &[("tokenizer_config.json", r#"{"eos_token": 3}"#)], "tokenizer_config.json"),
        ("beyond", &[("generation_config.json", r#"{"eos_token_id": 3}"#)], "generation_config.json"),
        ("not_json", &[("generation_config.json", "x")], "generation_config.json"),
        ("huge", &[("config.json", r#"{"vocab_size": 4000000000}"#)], "config.json"),
        ("negative", &[("config.json", r#"{"vocab_size": -4}"#)], "config.json"),
        ("narrow", &[("config.json", r#"{"vocab_size": 1, "eos_token_id": 1}"#)], "config.json"),
    ];
    for (name, files, part) in table {
        let folder = folder(name, &[&[("tokenizer.json", TOKENIZER)], files].concat());
        let error = Vocabulary::from_folder(&folder).unwrap_err();
        std::fs::remove_dir_all(folder).unwrap();
        assert!(error.kind() == ErrorKind::Vocabulary && error.to_string().contains(part), "{name}: {error}");
        assert_eq!(error.to_string().matches("vocabulary:").count(), 1, "{error}");
    }
}
