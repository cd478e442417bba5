//! Small vocabularies.

use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};

/// The end of sequence of the vocabularies here.
pub const EOS: TokenId = TokenId(256);

/// The bytes, the end, some words.
pub fn vocabulary_of(words: &[&str]) -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| Some(vec![byte]));
    let words = words.iter().map(|word| Some(word.as_bytes().to_vec()));
    Vocabulary::from_bytes(bytes.chain([None]).chain(words)).unwrap().with_eos([EOS]).unwrap()
}

/// As [`vocabulary_of`], of a few words of JSON.
pub fn vocabulary() -> Vocabulary {
    vocabulary_of(&["true", "false", "null", "\":", ",\"", "{\"", "\"}", "name", "age", "12", "été"])
}

/// The table of a constraint in a form of which every layout can be made.
pub fn tabulated(constraint: &Constraint, vocabulary: &Vocabulary) -> TokenTable {
    TokenTable::tabulate(constraint, vocabulary, &Limits::default()).unwrap()
}
