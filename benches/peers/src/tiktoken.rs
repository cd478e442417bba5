//! Vocabularies of tiktoken: published ones, and larger ones made from them, with the size of
//! recent models' vocabularies, since no crate provides one of that size.
//!
//! Llama 3 and Gemma have 128,000 and 262,000 tokens; most of the new ones are words of more
//! languages. A made vocabulary is a published one, with its ids, followed by missing tokens of
//! other vocabularies in their original order. cl100k and o200k make 131,072 ids this way. For
//! 262,144 ids, the rest are o200k tokens of whole characters with an added leading space, like the
//! word beginnings in other vocabularies. No model has these vocabularies. Byte-pair encoding with
//! the ids as ranks splits the texts, so that new tokens occur in a text like the old ones.

use std::collections::HashSet;

use burn_dfa::vocabulary::TokenKind;
use tiktoken_rs::{CoreBPE, ENDOFTEXT, O200K_BASE_PAT_STR};

/// The number of ids of cl100k, o200k and p50k, special tokens of the first two included.
pub const CL100K: usize = 100_277;
pub const O200K: usize = 200_019;
const P50K: usize = 50_281;

/// The number of ids of the made vocabularies.
pub const K128: usize = 1 << 17;
pub const K262: usize = 1 << 18;

/// cl100k, followed by tokens of o200k.
pub fn made_128k() -> CoreBPE {
    let [cl100k, o200k] = [tiktoken_rs::cl100k_base(), tiktoken_rs::o200k_base()];
    let [cl100k, o200k] = [cl100k, o200k].map(|tokens| tokens.expect("its tokens"));
    extended(&words(&cl100k, CL100K), normal(&o200k, O200K), K128)
}

/// o200k, followed by the tokens of cl100k and p50k, and by tokens of o200k after a space.
pub fn made_262k() -> CoreBPE {
    let [o200k, cl100k, p50k] =
        [tiktoken_rs::o200k_base(), tiktoken_rs::cl100k_base(), tiktoken_rs::p50k_base()]
            .map(|tokens| tokens.expect("its tokens"));
    let spaced = normal(&o200k, O200K).filter_map(|bytes| {
        let word = String::from_utf8(bytes).ok()?;
        (!word.starts_with(char::is_whitespace)).then(|| format!(" {word}").into_bytes())
    });
    let more = normal(&cl100k, CL100K).chain(normal(&p50k, P50K)).chain(spaced);
    extended(&words(&o200k, O200K), more, K262)
}

/// The kind and the bytes of each of `vocab_size` ids.
pub fn words(tokenizer: &CoreBPE, vocab_size: usize) -> Vec<(TokenKind, Vec<u8>)> {
    let special: Vec<u32> = tokenizer
        .special_tokens()
        .into_iter()
        .flat_map(|name| tokenizer.encode_with_special_tokens(name))
        .collect();
    let word = |id: u32| match tokenizer.decode_bytes(&[id]) {
        Ok(bytes) if special.contains(&id) => (TokenKind::Special, bytes),
        Ok(bytes) => (TokenKind::Normal, bytes),
        Err(_) => (TokenKind::Unused, Vec::new()),
    };
    (0..vocab_size as u32).map(word).collect()
}

/// The text tokens of a vocabulary.
fn normal(tokenizer: &CoreBPE, vocab_size: usize) -> impl Iterator<Item = Vec<u8>> + use<> {
    words(tokenizer, vocab_size)
        .into_iter()
        .filter(|(kind, _)| *kind == TokenKind::Normal)
        .map(|(_, bytes)| bytes)
}

/// Extends a vocabulary to `vocab_size` ids by tokens of `more`, without duplicates.
///
/// # Panics
/// If `more` has too few new tokens.
fn extended(
    base: &[(TokenKind, Vec<u8>)],
    more: impl Iterator<Item = Vec<u8>>,
    vocab_size: usize,
) -> CoreBPE {
    let with_ids = || base.iter().zip(0..);
    let mut encoder: Vec<(Vec<u8>, u32)> = with_ids()
        .filter(|((kind, _), _)| *kind == TokenKind::Normal)
        .map(|((_, bytes), id)| (bytes.clone(), id))
        .collect();
    let mut known: HashSet<Vec<u8>> = encoder.iter().map(|(bytes, _)| bytes.clone()).collect();
    let new = more.filter(|bytes| known.insert(bytes.clone()));
    encoder.extend(new.zip(base.len() as u32..vocab_size as u32));
    assert_eq!(encoder.iter().map(|(_, id)| *id as usize + 1).max(), Some(vocab_size), "too few tokens");
    let special = with_ids()
        .filter(|((kind, _), _)| *kind == TokenKind::Special)
        .filter_map(|((_, name), id)| Some((String::from_utf8(name.clone()).ok()?, id)));
    let special: Vec<(String, u32)> = special.collect();
    assert!(special.iter().any(|(name, _)| name == ENDOFTEXT), "no token that ends a text");
    CoreBPE::new(encoder.into_iter().collect(), special.into_iter().collect(), O200K_BASE_PAT_STR)
        .expect("a pattern that is published")
}
