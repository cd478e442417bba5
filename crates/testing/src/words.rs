//! Small vocabularies.

use burn_dfa_tokens::{
    CompiledConstraint, Constraint, Limits, TokenId, Vocabulary,
    constraint::{JsonOptions, Whitespace},
};
use serde_json::Value;

/// The end token of these vocabularies.
pub const EOS: TokenId = TokenId(256);

/// All bytes, the end token, and some words.
pub fn vocabulary_of(words: &[&str]) -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| Some(vec![byte]));
    let words = words.iter().map(|word| Some(word.as_bytes().to_vec()));
    Vocabulary::from_bytes(bytes.chain([None]).chain(words)).unwrap().with_eos([EOS]).unwrap()
}

/// As [`vocabulary_of`], with a few words of JSON.
pub fn vocabulary() -> Vocabulary {
    vocabulary_of(&["true", "false", "null", "\":", ",\"", "{\"", "\"}", "name", "age", "12", "été"])
}

/// The constraint of a schema in compact JSON; the words of these vocabularies are parts of such
/// texts.
pub fn compact(schema: &Value) -> Constraint {
    let options = JsonOptions::new().with_whitespace(Whitespace::Compact);
    Constraint::json_schema_with(schema.clone(), &options).unwrap()
}

/// The compiled constraint in the token-level form.
pub fn token_level(constraint: &Constraint, vocabulary: &Vocabulary) -> CompiledConstraint {
    CompiledConstraint::compile_token_level(constraint, vocabulary, &Limits::default()).unwrap()
}
