//! Vocabularies from folders with a `tokenizer.json` and, optionally, a model's other files.
//!
//! Texts continue the output of a model, so nothing may precede them. If a tokenizer puts a space
//! before each text, this module turns that off.

use std::path::Path;

use burn_dfa::TokenId;
use burn_dfa::vocabulary::{ModelFiles, TokenKind, Vocabulary};
use serde_json::{Value, json};

use crate::tokens::{Tokenizer, Tokens};

/// End tokens to try if no other file names one.
const ENDS: [&str; 7] =
    ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>", "<eos>", "</s>"];

/// Reads the folder.
///
/// # Errors
/// A message with the folder's name.
pub fn read(folder: &Path) -> Result<Tokens, String> {
    let in_folder = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
    // Canonical, so that `.` has a name too.
    let path = folder.canonicalize().map_err(|error| in_folder(&error))?;
    let name = path.file_name().ok_or_else(|| in_folder(&"a folder without a name"))?.to_string_lossy();
    // Errors of these functions name the file already.
    let files = ModelFiles::read(folder).map_err(|error| error.to_string())?;
    let named = [&files.config, &files.generation_config, &files.tokenizer_config];
    let vocabulary = match named.iter().any(|file| file.is_some()) {
        true => Vocabulary::from_files(&files).map_err(|error| error.to_string())?,
        false => with_known_end(&files.tokenizer).map_err(|error| in_folder(&error))?,
    };
    let eos = vocabulary.eos().first().ok_or_else(|| in_folder(&"no id that ends a text"))?.0;
    let tokenizer = tokenizer(&files.tokenizer).map_err(|error| in_folder(&error))?;
    let tokenizer = Some(Tokenizer::HuggingFace(Box::new(tokenizer)));
    Tokens::new(&name, &format!("{}_", plain(&name)), vocabulary, eos, tokenizer)
        .map_err(|error| in_folder(&error))
}

/// Replaces all characters but ASCII letters, digits and `_`.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// The vocabulary of a `tokenizer.json` alone.
fn with_known_end(json: &[u8]) -> Result<Vocabulary, String> {
    let vocabulary = Vocabulary::from_tokenizer_json(json).map_err(|error| error.to_string())?;
    let special = |id: &TokenId| vocabulary.kind(*id) == TokenKind::Special;
    let specials: Vec<TokenId> = (0..vocabulary.len() as u32).map(TokenId).filter(special).collect();
    let spelled =
        |end: &str| specials.iter().copied().find(|&id| vocabulary.content(id) == Some(end.as_bytes()));
    let end = ENDS.into_iter().find_map(spelled);
    let end = end.ok_or("no file beside tokenizer.json names a token that ends a text")?;
    vocabulary.with_eos([end]).map_err(|error| error.to_string())
}

/// The tokenizer, changed to put nothing before a text.
fn tokenizer(json: &[u8]) -> Result<tokenizers::Tokenizer, String> {
    let mut json: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    put_nothing_before(&mut json["normalizer"]);
    put_nothing_before(&mut json["pre_tokenizer"]);
    json.to_string().parse().map_err(|error: tokenizers::Error| error.to_string())
}

/// Changes a normalizer or pre-tokenizer so that it puts nothing before a text.
fn put_nothing_before(part: &mut Value) {
    for list in ["normalizers", "pretokenizers"] {
        if let Some(parts) = part.get_mut(list).and_then(Value::as_array_mut) {
            parts.retain(|part| part["type"] != "Prepend");
            parts.iter_mut().for_each(put_nothing_before);
        }
    }
    match part["type"].as_str() {
        Some("Prepend") => *part = Value::Null,
        Some("ByteLevel") => part["add_prefix_space"] = json!(false),
        Some("Metaspace") => {
            part["prepend_scheme"] = json!("never");
            part.as_object_mut().and_then(|part| part.remove("add_prefix_space"));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Creates a folder with these files.
    fn folder(name: &str, files: &[(&str, &Value)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("peers-folder-{}", std::process::id())).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        for (file, json) in files {
            std::fs::write(folder.join(file), json.to_string()).unwrap();
        }
        folder
    }

    /// A tokenizer converted from SentencePiece: spaces become `▁`, and other bytes fall back to
    /// single-byte tokens.
    fn sentence_piece() -> Value {
        let bytes = (0..=255).map(|byte| format!("<0x{byte:02X}>"));
        let words = ["</s>", "▁", "a", "b", "▁a", "ab"].map(str::to_owned);
        let vocab: Value = words
            .into_iter()
            .chain(bytes)
            .zip(0..)
            .collect::<Vec<(String, u32)>>()
            .into_iter()
            .map(|(word, id)| (word, Value::from(id)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        json!({
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
            ]},
            "model": {"type": "BPE", "vocab": vocab, "merges": ["▁ a", "a b"], "byte_fallback": true},
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"}
            ]},
            "added_tokens": [{"id": 0, "content": "</s>", "special": true, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false}]
        })
    }

    #[test]
    fn a_folder_names_its_tokens_and_puts_nothing_before_a_text() {
        let tokenizer = sentence_piece();
        for (name, files) in [
            ("by itself", vec![("tokenizer.json", tokenizer.clone())]),
            (
                "with-config",
                vec![
                    ("tokenizer.json", tokenizer),
                    ("config.json", json!({"eos_token_id": 0, "vocab_size": 300})),
                ],
            ),
        ] {
            let files: Vec<(&str, &Value)> = files.iter().map(|(file, json)| (*file, json)).collect();
            let tokens = read(&folder(name, &files)).unwrap();
            assert_eq!((tokens.name.as_str(), tokens.eos), (name, 0));
            assert!(["by_itself_", "with_config_"].contains(&tokens.prefix.as_str()));
            assert_eq!(tokens.vocab_size(), if files.len() == 1 { 262 } else { 300 });
            let cut = tokens.tokenizer.as_ref().unwrap().encode("ab a");
            assert_eq!(cut, [5, 4], "a space is put before the text");
            for text in ["ab a", "{\"é\": 1}"] {
                let tokens = tokens.encode(text).unwrap().len();
                assert!(tokens <= text.len(), "{text}");
            }
        }
    }

    #[test]
    fn an_unreadable_model_folder_is_an_error_that_names_it() {
        let without_end =
            json!({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "decoder": {"type": "Fuse"}});
        let cases = [
            (folder("empty", &[]), "tokenizer.json"),
            (folder("without-end", &[("tokenizer.json", &without_end)]), "without-end"),
            (std::env::temp_dir().join("peers-nowhere"), "peers-nowhere"),
        ];
        for (folder, named) in cases {
            let error = read(&folder).err().unwrap();
            assert!(error.contains(named), "{error}");
        }
    }
}
