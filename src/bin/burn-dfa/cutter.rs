//! Texts as tokens, without a tokenizer: the longest token at each place, and byte by byte.

use std::collections::HashMap;

use burn_dfa::{TokenId, Vocabulary};

/// The tokens of a vocabulary by their bytes.
pub struct Cutter {
    by_bytes: HashMap<Vec<u8>, TokenId>,
    longest: usize,
}

impl Cutter {
    pub fn new(vocabulary: &Vocabulary) -> Self {
        let by_bytes: HashMap<_, _> = vocabulary.iter().map(|(id, bytes)| (bytes.to_vec(), id)).collect();
        let longest = by_bytes.keys().map(Vec::len).max().unwrap_or(0);
        Self { by_bytes, longest }
    }

    /// `text` by the longest tokens and by single bytes, where the vocabulary has them.
    pub fn cuts(&self, text: &str) -> [Option<Vec<TokenId>>; 2] {
        [self.cut(text, self.longest), self.cut(text, 1)]
    }

    /// By the longest token of at most `longest` bytes at each place, where there is one.
    fn cut(&self, text: &str, longest: usize) -> Option<Vec<TokenId>> {
        let mut rest = text.as_bytes();
        let mut tokens = Vec::new();
        while !rest.is_empty() {
            let lengths = (1..=longest.min(rest.len())).rev();
            let (length, &token) =
                lengths.filter_map(|n| Some((n, self.by_bytes.get(&rest[..n])?))).next()?;
            tokens.push(token);
            rest = &rest[length..];
        }
        Some(tokens)
    }
}
