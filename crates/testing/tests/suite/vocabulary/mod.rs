//! Compares vocabularies with an independent table of token bytes, with handmade tokenizers of each
//! kind, and with files that must be refused.

mod folders;
mod kinds;
mod lists;
mod oracle;
mod peer;
mod refused;

use burn_dfa_testing::data;
use burn_dfa_tokens::{TokenId, Vocabulary, vocabulary::TokenKind};

fn ids(ids: &[u32]) -> Vec<TokenId> {
    ids.iter().copied().map(TokenId).collect()
}

fn texts(vocabulary: &Vocabulary) -> Vec<Option<String>> {
    let text = |id| vocabulary.bytes(TokenId(id)).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    (0..vocabulary.len() as u32).map(text).collect()
}

/// The vocabulary of a tokenizer with this decoder, model and added tokens.
fn tokenizer(decoder: &str, model: &str, added: &str) -> burn_dfa_tokens::Result<Vocabulary> {
    let json =
        format!(r#"{{"version": "1.0", "added_tokens": {added}, "decoder": {decoder}, "model": {model}}}"#);
    Vocabulary::from_tokenizer_json(json)
}

/// The decoder of Llama 2, Mistral, Phi-3.
const SENTENCEPIECE: &str = r#"{"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}"#;
