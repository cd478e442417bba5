//! `tokenizer.json` files that must be refused, with the reason and the location.

use super::*;
use burn_dfa_tokens::ErrorKind;

const BPE: &str = r#"{"type": "BPE", "vocab": {"a": 0}, "merges": []}"#;
const BYTE_LEVEL: &str = r#"{"type": "ByteLevel"}"#;

/// Checks the message of the refusal, which must contain `part`.
#[track_caller]
fn assert_refused(result: burn_dfa_tokens::Result<Vocabulary>, part: &str) {
    let error = result.expect_err(part);
    assert_eq!(error.kind(), ErrorKind::Vocabulary, "{error}");
    assert!(error.to_string().contains(part), "{error} lacks {part}");
}

#[test]
fn unknown_decoders_are_refused() {
    let table = [
        ("null", "no `decoder`"),
        (r#"{"type": "WordPiece", "prefix": "x", "cleanup": true}"#, "`WordPiece`"),
        (r#"{"type": "BPEDecoder", "suffix": "</w>"}"#, "`BPEDecoder`"),
        (r#"{"type": "CTC", "pad_token": "<pad>"}"#, "`CTC`"),
        (r#"{"type": "Novel"}"#, "`Novel`"),
        (r#"{"type": 3}"#, "without a `type`"),
        (r#""ByteLevel""#, "without a `type`"),
        ("[]", "without a `type`"),
        (r#"{"type": "Sequence"}"#, "`decoders` is not a list"),
        (r#"{"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "CTC"}]}"#, "`CTC`"),
        (r#"{"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteLevel"}]}"#, "joins"),
        (r#"{"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]}"#, "joins"),
        (r#"{"type": "Strip", "content": " ", "start": 1, "stop": 0}"#, "`Strip` of each piece"),
        (
            r#"{"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 0, "stop": 1}]}"#,
            "`Strip` of the end",
        ),
        (r#"{"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}"#, "a+"),
        (r#"{"type": "Replace", "pattern": {"String": ""}, "content": "x"}"#, "`Replace`"),
        (r#"{"type": "Replace", "pattern": {"String": "x"}}"#, "`content`"),
        (
            r#"{"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "ab"}, "content": "x"}]}"#,
            "joins",
        ),
        (r#"{"type": "Metaspace", "replacement": "ab"}"#, "one character"),
        (r#"{"type": "Metaspace", "replacement": 1}"#, "one character"),
    ];
    for (decoder, part) in table {
        assert_refused(tokenizer(decoder, BPE, "[]"), part);
    }
}

#[test]
fn unknown_models_are_refused() {
    let table = [
        (r###"{"type": "WordPiece", "vocab": {"##a": 0}}"###, "`WordPiece`"),
        (r#"{"type": "Novel", "vocab": {"a": 0}}"#, "`Novel`"),
        (r#"{"type": "BPE", "vocab": [["a", 0.5]]}"#, "list"),
        (r#"{"type": "Unigram", "vocab": {"a": 0}}"#, "list"),
        (r#"{"type": "BPE", "vocab": {"a</w>": 0}, "end_of_word_suffix": "</w>"}"#, "</w>"),
        (r#"{"type": "BPE", "vocab": {"a": 0}, "continuing_subword_prefix": "@"}"#, "prefix \"@\""),
        (r#"{"type": "BPE", "vocab": {}}"#, "no tokens"),
        (r#"{"type": "Unigram", "vocab": []}"#, "no tokens"),
        (r#"{"type": "BPE", "vocab": null}"#, "vocab"),
        (r#"{"type": "BPE", "vocab": "a"}"#, "line 1"),
        (r#"{"type": "BPE"}"#, "`vocab`"),
        (r#"{"type": "Unigram", "vocab": ["a"]}"#, "line 1"),
        (r#"{"type": "Unigram", "vocab": [["a"]]}"#, "line 1"),
        (r#"{"type": "Unigram", "vocab": [["a", "b"]]}"#, "line 1"),
        (r#"{"type": "BPE", "vocab": {"a": -1}}"#, "\"a\": id -1 is negative"),
        (r#"{"type": "BPE", "vocab": {"a": 0.5}}"#, "0.5"),
        (r#"{"type": "BPE", "vocab": {"a": "0"}}"#, "\"a\""),
        (r#"{"type": "BPE", "vocab": {"a": 4000000000}}"#, "4000000000"),
        (r#"{"type": "BPE", "vocab": {"a": 16777216}}"#, "16777216"),
        (r#"{"type": "BPE", "vocab": {"a": 99999999999999999999999}}"#, "\"a\""),
        (r#"{"type": "BPE", "vocab": {"a": 16777215}}"#, "too far"),
        (r#"{"type": "BPE", "vocab": {"a": 7, "b": 7}}"#, "id 7 is both \"a\" and \"b\""),
        (r#"{"type": "BPE", "vocab": {"a": 7, "a": 8}}"#, "\"a\" has both"),
        ("null", "line 1"),
        ("[]", "line 1"),
    ];
    for (model, part) in table {
        assert_refused(tokenizer(BYTE_LEVEL, model, "[]"), part);
    }
}

#[test]
fn malformed_added_tokens_are_refused() {
    let table = [
        (r#"{}"#, "line 1"),
        (r#"[{"id": 1}]"#, "content"),
        (r#"[{"id": 1, "content": "x"}]"#, "special"),
        (r#"[{"id": 1, "content": "x", "special": 1}]"#, "boolean"),
        (r#"[{"id": -1, "content": "x", "special": true}]"#, "negative"),
        (r#"[{"id": 3000000000, "content": "x", "special": true}]"#, "3000000000"),
        (r#"[{"id": 3000000, "content": "x", "special": true}]"#, "too far"),
        (
            r#"[{"id": 1, "content": "x", "special": true}, {"id": 1, "content": "y", "special": true}]"#,
            "both \"x\" and \"y\"",
        ),
    ];
    for (added, part) in table {
        assert_refused(tokenizer(BYTE_LEVEL, BPE, added), part);
    }
}

#[test]
fn malformed_files_are_refused() {
    let deep = |bracket: &str| format!(r#"{{"decoder": {}"#, bracket.repeat(100_000));
    let nested = format!(
        r#"{{"model": {BPE}, "decoder": {}{BYTE_LEVEL}{}}}"#,
        r#"{"type": "Sequence", "decoders": ["#.repeat(1000),
        "]}".repeat(1000)
    );
    let table = [
        (String::new(), "empty: download the file again"),
        ("null".into(), "line 1"),
        ("[]".into(), "line 1"),
        ("{}".into(), "`model`"),
        ("\u{feff}{}".into(), "line 1"),
        ("version https://git-lfs.github.com/spec/v1".into(), "line 1 column 1: download the file again"),
        (deep("["), "recursion"),
        (deep(r#"{"a":"#), "recursion"),
        (nested, "recursion"),
        (format!(r#"{{"model": {BPE}, "decoder": {BYTE_LEVEL}}} x"#), "trailing"),
    ];
    for (json, part) in table {
        assert_refused(Vocabulary::from_tokenizer_json(json), part);
    }
    assert_refused(Vocabulary::from_tokenizer_json(b"{\"a\xFF\""), "not UTF-8 at byte 3");
    assert_refused(Vocabulary::from_tokenizer_file("/no/such/tokenizer.json"), "/no/such/tokenizer.json");
    assert_refused(Vocabulary::from_folder("/no/such"), "tokenizer.json");
}

/// Without its first bytes a GGUF file is read as a `tokenizer.json`, and refused with its name and
/// a remedy.
#[test]
fn damaged_gguf_files_are_refused_by_name() {
    let path = std::env::temp_dir().join(format!("burn-dfa-{}-damaged.gguf", std::process::id()));
    for (content, reason) in
        [(&b""[..], "empty"), (b"GGU", "not JSON"), (b"\0\0\0\0", "not JSON"), (b"\xFF", "not UTF-8")]
    {
        std::fs::write(&path, content).unwrap();
        let refused = Vocabulary::from_tokenizer_file(&path);
        let message = refused.as_ref().unwrap_err().to_string();
        assert!(message.starts_with(&format!("vocabulary: {}: {reason}", path.display())), "{message}");
        assert_refused(refused, "name another tokenizer.json, a GGUF file or the folder of a model");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn every_truncation_is_refused() {
    let json = format!(
        r#"{{"added_tokens": [{{"id": 1, "content": "é", "special": false}}], "decoder": {SENTENCEPIECE}, "model": {BPE}}}"#
    );
    assert!(Vocabulary::from_tokenizer_json(&json).is_ok());
    for end in 0..json.len() {
        let error = Vocabulary::from_tokenizer_json(&json.as_bytes()[..end]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Vocabulary, "{error}");
    }
    if let Some(path) = data::find("tokenizers/mistral_v1/tokenizer.json") {
        let whole = std::fs::read(path).unwrap();
        for end in (0..whole.len()).step_by(100_003) {
            assert!(
                Vocabulary::from_tokenizer_json(&whole[..end]).unwrap_err().kind() == ErrorKind::Vocabulary
            );
        }
    }
}

#[test]
fn every_changed_byte_is_read_or_refused() {
    let json = format!(
        r#"{{"added_tokens": [{{"id": 1, "content": "é", "special": true}}], "decoder": {SENTENCEPIECE}, "model": {BPE}}}"#
    );
    for at in 0..json.len() {
        for byte in [0, b'"', b'{', b']', b'9', b'-', b'e', 0x80, 0xFF] {
            let mut json = json.clone().into_bytes();
            json[at] = byte;
            if let Err(error) = Vocabulary::from_tokenizer_json(json) {
                assert_eq!(error.kind(), ErrorKind::Vocabulary, "{error}");
            }
        }
    }
}
