//! Vocabularies of any size.

use std::collections::HashSet;

use burn_dfa::{TokenId, Vocabulary};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng, rngs::StdRng};

/// A vocabulary of `vocab_size` ids: all bytes, then parts of words as byte-pair encoding makes
/// them, half of them after a space, and some with punctuation that ends a string. The last id is
/// the end of sequence.
pub fn of_size(vocab_size: usize) -> Vocabulary {
    let rng = &mut StdRng::seed_from_u64(1);
    let mut tokens: Vec<Option<Vec<u8>>> = (0..=u8::MAX).map(|byte| Some(vec![byte])).collect();
    let mut known = HashSet::new();
    while tokens.len() < vocab_size - 1 {
        let word = word(rng);
        if known.insert(word.clone()) {
            tokens.push(Some(word.into_bytes()));
        }
    }
    tokens.push(None);
    let end = TokenId(vocab_size as u32 - 1);
    Vocabulary::from_bytes(tokens).and_then(|vocabulary| vocabulary.with_eos([end])).expect("distinct tokens")
}

/// A random word of two to twelve letters.
fn word(rng: &mut StdRng) -> String {
    let mut word = String::new();
    if rng.random_bool(0.5) {
        word.push(' ');
    }
    for syllable in 0..rng.random_range(1..5) {
        let first = if syllable == 0 && rng.random_bool(0.2) { "BDFKLMNPRSTV" } else { "bdfklmnprstvz" };
        word.push(*first.as_bytes().choose(rng).expect("a consonant") as char);
        word.push(*b"aeiou".choose(rng).expect("a vowel") as char);
        if rng.random_bool(0.4) {
            word.push(*b"lnrst".choose(rng).expect("a consonant") as char);
        }
    }
    if rng.random_bool(0.05) {
        word.push_str([",", ".", "\"", "\",", "\":", "\\n"].choose(rng).expect("punctuation"));
    }
    word
}

/// The token of one byte.
pub fn byte(byte: u8) -> TokenId {
    TokenId(u32::from(byte))
}
