//! Cuts texts into tokens by the vocabulary alone, without the tokenizer's own rules.

use std::collections::HashMap;

use crate::{TokenId, Vocabulary};

/// The tokens of a vocabulary by their bytes.
pub struct Cutter {
    by_bytes: HashMap<Vec<u8>, TokenId>,
    longest: usize,
}

impl Cutter {
    /// Creates a cutter for the tokens of `vocabulary`.
    pub fn new(vocabulary: &Vocabulary) -> Self {
        let by_bytes: HashMap<_, _> = vocabulary.iter().map(|(id, bytes)| (bytes.to_vec(), id)).collect();
        let longest = by_bytes.keys().map(Vec::len).max().unwrap_or(0);
        Self { by_bytes, longest }
    }

    /// `text` as tokens in two ways: by the longest token at each position, or by any spelling if
    /// the longest tokens lead to a dead end; and by single bytes. Both are `None` only if no
    /// tokens spell it.
    pub fn cuts(&self, text: &str) -> [Option<Vec<TokenId>>; 2] {
        [self.cut(text, self.longest).or_else(|| self.any(text)), self.cut(text, 1)]
    }

    /// The tokens of some spelling of `text`; `None` if none exists.
    fn any(&self, text: &str) -> Option<Vec<TokenId>> {
        let text = text.as_bytes();
        // The last token of a spelling of the text up to each byte.
        let mut last: Vec<Option<(usize, TokenId)>> = vec![None; text.len() + 1];
        for start in 0..text.len() {
            if start > 0 && last[start].is_none() {
                continue;
            }
            for end in start + 1..=text.len().min(start + self.longest) {
                if let (None, Some(&token)) = (last[end], self.by_bytes.get(&text[start..end])) {
                    last[end] = Some((start, token));
                }
            }
        }
        let mut tokens = Vec::new();
        let mut end = text.len();
        while end > 0 {
            let (start, token) = last[end]?;
            tokens.push(token);
            end = start;
        }
        tokens.reverse();
        Some(tokens)
    }

    /// Takes the longest token of at most `longest` bytes at each position, if there is one.
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
