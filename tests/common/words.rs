//! A small vocabulary.

use burn_dfa::{TokenId, Vocabulary};

pub const EOS: TokenId = TokenId(256);

/// The bytes, a few words, the end; padded rows after it.
pub fn vocabulary() -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| Some(vec![byte]));
    let words = ["true", "false", "null", "\":", ",\"", "{\"", "\"}", "name", "age", "12", "été"];
    let words = words.iter().map(|word| Some(word.as_bytes().to_vec()));
    Vocabulary::from_bytes(bytes.chain([None]).chain(words)).unwrap().with_eos([EOS]).unwrap()
}
