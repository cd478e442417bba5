//! Small handmade `tokenizer.json` files of each kind.

use super::*;

#[test]
fn byte_level_tokens_become_bytes() {
    let model = r#"{"type": "BPE", "ignore_merges": true, "vocab": {"a": 0, "Ġb": 1, "Ċ": 2, "Ã": 3, "©": 4,
        "日": 5, "<|end|>": 6, "": 7, "Ġ日": 9}, "merges": [["a", "b"]]}"#;
    let added = r#"[{"id": 6, "content": "<|end|>", "special": true},
        {"id": 10, "content": "é <x>", "special": false, "lstrip": true}]"#;
    let expected = [
        Some(&b"a"[..]),
        Some(b" b"),
        Some(b"\n"),
        Some(&[0xC3]),
        Some(&[0xA9]),
        Some("日".as_bytes()),
        None,
        None,
        None,
        Some("Ġ日".as_bytes()),
        Some("é <x>".as_bytes()),
    ];
    let pre = |pre: &str| format!(r#"{{"added_tokens": {added}, "pre_tokenizer": {pre}, "model": {model}}}"#);
    let split = r#"{"type": "Split", "pattern": {"Regex": "x"}, "behavior": "Isolated", "invert": false}"#;
    let all = [
        tokenizer(r#"{"type": "ByteLevel"}"#, model, added),
        tokenizer(
            r#"{"type": "Sequence", "decoders": [{"type": "ByteLevel"}, {"type": "Fuse"}]}"#,
            model,
            added,
        ),
        Vocabulary::from_tokenizer_json(pre(r#"{"type": "ByteLevel"}"#)),
        Vocabulary::from_tokenizer_json(pre(&format!(
            r#"{{"type": "Sequence", "pretokenizers": [{split}, {{"type": "ByteLevel"}}]}}"#
        ))),
    ];
    for vocabulary in all.map(Result::unwrap) {
        let bytes: Vec<_> = (0..11).map(|id| vocabulary.bytes(TokenId(id))).collect();
        assert_eq!(bytes, expected);
        let kind = |id| vocabulary.kind(TokenId(id));
        use TokenKind::{Added, Normal, Special, Unused};
        assert_eq!([6, 7, 8, 9, 10, 11].map(kind), [Special, Normal, Unused, Normal, Added, Unused]);
        assert_eq!(vocabulary.decode(&ids(&[3, 4, 1, 6])), "é b".as_bytes());
    }
}

#[test]
fn sentencepiece_with_byte_fallback() {
    let model = r#"{"type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "vocab": {"<unk>": 0, "<0x61>": 1,
        "<0xE2>": 2, "▁Hello": 3, "a": 4, "▁▁": 5, "Ġ": 6, "<0x6>": 7, "<0x+1>": 8, "<0x0a>": 9}, "merges": []}"#;
    let gemma = r#"{"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"}, {"type": "Fuse"}]}"#;
    let late = r#"{"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Replace", "pattern": {"Regex": "▁"}, "content": " "}]}"#;
    let added = r#"[{"id": 10, "content": "▁▁▁", "special": false}]"#;
    for decoder in [
        SENTENCEPIECE,
        gemma,
        late,
        r#"{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}"#,
    ] {
        let vocabulary = tokenizer(decoder, model, added).unwrap();
        let bytes: Vec<_> = (0..11).map(|id| vocabulary.bytes(TokenId(id)).unwrap_or(b"-")).collect();
        let expected: [&[u8]; 11] =
            [b"-", b"a", &[0xE2], b" Hello", b"a", b"  ", "Ġ".as_bytes(), b"<0x6>", b"<0x+1>", b"\n", b"   "];
        assert_eq!(bytes, expected, "{decoder}");
        assert_eq!(vocabulary.kind(TokenId(0)), TokenKind::Special);
    }
}

#[test]
fn a_unigram_model_is_read() {
    let model = r#"{"type": "Unigram", "unk_id": 2, "vocab": [["<pad>", 0.0], ["</s>", 0], ["<unk>", 0.0],
        ["▁", -2.01], ["X", -2.5], ["▁the", -3e0]]}"#;
    let added = r#"[{"id": 0, "content": "<pad>", "special": true}, {"id": 1, "content": "</s>", "special": true},
        {"id": 6, "content": "<extra_id_0>", "special": true}]"#;
    let json = format!(
        r#"{{"added_tokens": {added}, "pre_tokenizer": {{"type": "Metaspace", "replacement": "▁"}}, "model": {model}}}"#
    );
    let decoder = r#"{"type": "Metaspace", "replacement": "▁", "add_prefix_space": true}"#;
    for vocabulary in
        [tokenizer(decoder, model, added), Vocabulary::from_tokenizer_json(json)].map(Result::unwrap)
    {
        let expected = [None, None, None, Some(" "), Some("X"), Some(" the"), None];
        assert_eq!(texts(&vocabulary), expected.map(|text| text.map(str::to_owned)));
    }
}

#[test]
fn files_without_a_model_type() {
    let bpe = r#"{"vocab": {"Ġa": 0}, "merges": ["Ġ a"]}"#;
    assert_eq!(texts(&tokenizer(r#"{"type": "ByteLevel"}"#, bpe, "null").unwrap()), [Some(" a".to_owned())]);
    let unigram = r#"{"vocab": [["▁a", 0.0]]}"#;
    assert_eq!(
        texts(&tokenizer(r#"{"type": "Metaspace"}"#, unigram, "[]").unwrap()),
        [Some(" a".to_owned())]
    );
    let pieces = r###"{"vocab": {"a": 0, "##b": 1}, "max_input_chars_per_word": 100}"###;
    assert!(tokenizer(r#"{"type": "Fuse"}"#, pieces, "[]").is_err());
    let words = r#"{"vocab": {"a": 0, "b": 1}}"#;
    assert_eq!(tokenizer(r#"{"type": "Fuse"}"#, words, "[]").unwrap().decode(&ids(&[1, 0])), b"ba");
}

#[test]
fn added_tokens_go_first() {
    let model = r#"{"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "s": 3}, "merges": []}"#;
    let added = r#"[{"id": 1, "content": "Ġé", "special": false}, {"id": 1, "content": "Ġé", "special": false},
        {"id": 2, "content": "", "special": true}, {"id": 5, "content": "s", "special": true}]"#;
    let vocabulary = tokenizer(r#"{"type": "ByteLevel"}"#, model, added).unwrap();
    let expected = [Some("a"), Some("Ġé"), Some("c"), None, None, None];
    assert_eq!(texts(&vocabulary), expected.map(|text| text.map(str::to_owned)));
    let kind = |id| vocabulary.kind(TokenId(id));
    assert_eq!([3, 4, 5].map(kind), [TokenKind::Special, TokenKind::Unused, TokenKind::Special]);
}
