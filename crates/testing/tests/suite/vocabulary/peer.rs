//! Compares sequences of ids with the decoder of the `tokenizers` crate.
//!
//! For ids of any kind, the bytes of a [`Vocabulary`] equal the crate's output without special
//! tokens, if the bytes are UTF-8 (the crate writes `\u{FFFD}` for other bytes). Every sequence
//! starts with a token that the decoder does not change, so that stripping at the start of a text
//! plays no role.

use rand::prelude::*;
use tokenizers::Tokenizer;

use super::*;

/// Decodes each id, and `rounds` sequences of ids, after the token `first`.
fn assert_same(name: &str, json: &str, first: &str, rounds: usize) {
    let peer: Tokenizer = json.parse().unwrap();
    let vocabulary = Vocabulary::from_tokenizer_json(json).unwrap();
    let first = peer.token_to_id(first).unwrap();
    let vocab_size = vocabulary.len() as u32;
    let mut rng = StdRng::seed_from_u64(3);
    let single = (0..vocab_size).map(|id| vec![id]);
    let random =
        (0..rounds).map(|_| (0..rng.random_range(0..12)).map(|_| rng.random_range(0..vocab_size)).collect());
    let (mut same, mut not_text) = (0, 0);
    for sequence in single.chain(random.collect::<Vec<_>>()) {
        let sequence = [vec![first], sequence].concat();
        match String::from_utf8(vocabulary.decode(&ids(&sequence))) {
            Ok(text) => {
                assert_eq!(text, peer.decode(&sequence, true).unwrap(), "{name}: {sequence:?}");
                same += 1;
            }
            Err(_) => not_text += 1,
        }
    }
    println!("{name}: {same} sequences decode alike, {not_text} are not UTF-8");
    assert!(same > 0);
}

#[test]
fn real_tokenizers_decode_like_their_library() {
    for tokenizer in data::tokenizers() {
        assert_same(tokenizer.name, &tokenizer.json(), "a", 20_000);
    }
}

#[test]
fn handmade_tokenizers_decode_like_their_library() {
    let bpe = r#"{"type": "BPE", "unk_token": null, "byte_fallback": true, "merges": [], "vocab": {"a": 0, "▁b": 1,
        "▁▁": 2, "▁": 3, "<0xC3>": 4, "<0xA9>": 5, "<0x0A>": 6, "Ġ": 7, "日": 8, "s": 9, "Ġ日": 10, "<0x6>": 11}}"#;
    let unigram = r#"{"type": "Unigram", "unk_id": 1, "vocab": [["a", 0.0], ["<unk>", 0.0], ["▁b", -1.5], ["▁", -2.0]]}"#;
    // For the crate, the unknown token of a model is text unless it is a special added token.
    let tokens = |first: u32| {
        let unknown = if first == 4 { added(1, "<unk>", true) + ", " } else { String::new() };
        format!("[{unknown}{}, {}]", added(first, "▁▁▁", false), added(first + 1, "<|end|>", true))
    };
    let sequence = |parts: &str| format!(r#"{{"type": "Sequence", "decoders": [{parts}]}}"#);
    let replace = r#"{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}"#;
    let (bytes, fuse) = (r#"{"type": "ByteFallback"}"#, r#"{"type": "Fuse"}"#);
    let metaspace = |scheme: &str| {
        format!(r#"{{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "{scheme}", "split": true}}"#)
    };
    let byte_level =
        r#"{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}"#;
    let table = [
        ("llama 2", SENTENCEPIECE.to_owned(), bpe, 12),
        ("gemma", sequence(&format!("{replace}, {bytes}, {fuse}")), bpe, 12),
        ("bytes first", sequence(&format!("{bytes}, {fuse}, {replace}")), bpe, 12),
        ("t5", metaspace("always"), unigram, 4),
        ("metaspace, never", metaspace("never"), unigram, 4),
        ("metaspace, bytes", sequence(&format!("{}, {bytes}", metaspace("first"))), bpe, 12),
        ("byte-level", byte_level.to_owned(), bpe, 12),
        ("byte-level in a sequence", sequence(byte_level), bpe, 12),
    ];
    for (name, decoder, model, first_added) in table {
        let json = format!(
            r#"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": {}, "normalizer": null,
                "pre_tokenizer": null, "post_processor": null, "decoder": {decoder}, "model": {model}}}"#,
            tokens(first_added)
        );
        assert_same(name, &json, "a", 2_000);
    }
}

/// An added token with all fields.
fn added(id: u32, content: &str, special: bool) -> String {
    format!(
        r#"{{"id": {id}, "content": "{content}", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": {special}}}"#
    )
}
