//! Vocabularies with their tokenizers.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use burn_dfa::TokenId;
use burn_dfa::vocabulary::Vocabulary;
use clap::ValueEnum;
use tiktoken_rs::CoreBPE;

use crate::data;
use crate::tiktoken::{self, words};

/// The name of a vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// SmolLM2's, 49,152 ids.
    Smollm2,
    /// OpenAI's cl100k, 100,277 ids.
    Cl100k,
    /// OpenAI's o200k, 200,019 ids.
    O200k,
    /// cl100k with tokens of o200k, 131,072 ids.
    Made128k,
    /// o200k with tokens of cl100k and p50k and with spaced tokens of o200k, 262,144 ids.
    Made262k,
}

/// A vocabulary and its tokenizer.
pub struct Tokens {
    /// Its name in the tables.
    pub name: String,
    /// The prefix of the names of its figures.
    pub prefix: String,
    pub vocabulary: Vocabulary,
    pub eos: u32,
    /// The tokenizer; `None` in processes that encode no text.
    pub tokenizer: Option<Tokenizer>,
    longest: OnceLock<Longest>,
}

/// Splits a text into tokens.
#[derive(Clone)]
pub enum Tokenizer {
    HuggingFace(Box<tokenizers::Tokenizer>),
    Tiktoken(Arc<CoreBPE>),
}

impl Tokenizer {
    /// The tokens of `text`, without special tokens; empty if tokenization fails.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        match self {
            Self::HuggingFace(tokenizer) => {
                tokenizer.encode(text, false).map_or(Vec::new(), |encoding| encoding.get_ids().to_vec())
            }
            Self::Tiktoken(tokenizer) => tokenizer.encode_ordinary(text),
        }
    }
}

impl Tokens {
    /// A vocabulary whose only end token is `eos`.
    ///
    /// # Errors
    /// If `eos` is no id of the vocabulary.
    pub fn new(
        name: &str,
        prefix: &str,
        vocabulary: Vocabulary,
        eos: u32,
        tokenizer: Option<Tokenizer>,
    ) -> Result<Self, burn_dfa::Error> {
        let vocabulary = vocabulary.with_eos([TokenId(eos)])?;
        let [name, prefix] = [name, prefix].map(str::to_owned);
        Ok(Self { name, prefix, vocabulary, eos, tokenizer, longest: OnceLock::new() })
    }

    /// Reads the vocabulary. If its data is missing, prints a notice and returns `None`.
    pub fn load(name: Name) -> Option<Self> {
        let tokens = |name: &str, prefix: &str, tokenizer: CoreBPE, vocab_size: usize| {
            let vocabulary = Vocabulary::from_tokens(words(&tokenizer, vocab_size)).expect("a vocabulary");
            let eos = tokenizer.encode_with_special_tokens(tiktoken_rs::ENDOFTEXT)[0];
            let tokenizer = Some(Tokenizer::Tiktoken(Arc::new(tokenizer)));
            Some(Self::new(name, prefix, vocabulary, eos, tokenizer).expect("an id of the vocabulary"))
        };
        match name {
            Name::Smollm2 => smollm2(),
            Name::Cl100k => {
                tokens("cl100k", "v100k_", tiktoken_rs::cl100k_base().expect("its tokens"), tiktoken::CL100K)
            }
            Name::O200k => {
                tokens("o200k", "v200k_", tiktoken_rs::o200k_base().expect("its tokens"), tiktoken::O200K)
            }
            Name::Made128k => tokens("made128k", "made128k_", tiktoken::made_128k(), tiktoken::K128),
            Name::Made262k => tokens("made262k", "made262k_", tiktoken::made_262k(), tiktoken::K262),
        }
    }

    /// The number of ids, which is the width of the logits.
    pub fn vocab_size(&self) -> usize {
        self.vocabulary.len()
    }

    /// The tokens of `text` from the tokenizer. If they spell another text, uses the longest token
    /// at each position instead; `None` if no tokens spell the text that way.
    pub fn encode(&self, text: &str) -> Option<Vec<u32>> {
        let spells = |tokens: &Vec<u32>| {
            let ids: Vec<_> = tokens.iter().map(|&id| TokenId(id)).collect();
            self.vocabulary.decode(&ids) == text.as_bytes()
        };
        let cut = self.tokenizer.as_ref().map(|tokenizer| tokenizer.encode(text)).filter(spells);
        let longest = || self.longest.get_or_init(|| Longest::new(&self.vocabulary)).cut(text.as_bytes());
        cut.or_else(longest)
    }
}

/// Splits a text into the longest token at each position.
struct Longest {
    ids: HashMap<Vec<u8>, u32>,
    /// The length of the longest token.
    longest: usize,
}

impl Longest {
    fn new(vocabulary: &Vocabulary) -> Self {
        // If several tokens have the same bytes, keep the first.
        let mut ids = HashMap::new();
        for (id, bytes) in vocabulary.iter() {
            ids.entry(bytes.to_vec()).or_insert(id.0);
        }
        Self { longest: ids.keys().map(Vec::len).max().unwrap_or(0), ids }
    }

    fn cut(&self, mut text: &[u8]) -> Option<Vec<u32>> {
        let mut tokens = Vec::new();
        while !text.is_empty() {
            let lengths = (1..=self.longest.min(text.len())).rev();
            let (length, id) =
                lengths.filter_map(|length| Some((length, *self.ids.get(&text[..length])?))).next()?;
            tokens.push(id);
            text = &text[length..];
        }
        Some(tokens)
    }
}

fn smollm2() -> Option<Tokens> {
    let json = data::read("tokenizers/smollm2/tokenizer.json", "SmolLM2's vocabulary")?;
    let tokenizer: tokenizers::Tokenizer = json.parse().expect("a tokenizer");
    let eos = tokenizer.token_to_id("<|im_end|>").expect("a token that ends a turn");
    let vocabulary = Vocabulary::from_tokenizer_json(json.as_bytes()).expect("a vocabulary");
    let tokenizer = Some(Tokenizer::HuggingFace(Box::new(tokenizer)));
    Some(Tokens::new("SmolLM2", "", vocabulary, eos, tokenizer).expect("an id of the vocabulary"))
}

/// Finite logits; neighbors differ.
pub fn logits(vocab_size: usize) -> Vec<f32> {
    (0..vocab_size as u32)
        .map(|id| (id.wrapping_mul(0x9e37_79b9) >> 8) as f32 / (1 << 20) as f32 - 8.0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_a_tokenizer_changes_are_cut_into_the_longest_tokens() {
        let vocabulary =
            Vocabulary::from_bytes([Some("a"), Some("b"), Some("ab"), Some("abb"), None]).unwrap();
        // This tokenizer knows none of these texts.
        let other = Tokenizer::Tiktoken(Arc::new(tiktoken_rs::r50k_base().unwrap()));
        let tokens = Tokens::new("", "", vocabulary, 4, Some(other)).unwrap();
        assert_eq!(tokens.encode("abbaab"), Some(vec![3, 0, 2]));
        assert_eq!(tokens.encode("abc"), None);
        assert_eq!(tokens.encode(""), Some(vec![]));
    }

    #[test]
    fn made_vocabularies_extend_published_ones() {
        let text =
            "{\"наименование\": \"a long text, 中文、日本語\", \"n\": -12.5e7}\n\tfn main() {} riedenheit";
        for (made, of, vocab_size) in
            [(Name::Made128k, Name::Cl100k, 131_072), (Name::Made262k, Name::O200k, 262_144)]
        {
            let [made, of] = [made, of].map(|name| Tokens::load(name).unwrap());
            assert_eq!((made.vocab_size(), made.eos), (vocab_size, of.eos));
            for id in (0..of.vocab_size() as u32).map(TokenId) {
                assert_eq!(made.vocabulary.bytes(id), of.vocabulary.bytes(id));
            }
            let mut all: Vec<&[u8]> = made.vocabulary.iter().map(|(_, bytes)| bytes).collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count, "a token that is there twice");
            let tokenizer = made.tokenizer.as_ref().unwrap();
            let tokens = tokenizer.encode(text);
            let ids: Vec<TokenId> = tokens.iter().map(|&id| TokenId(id)).collect();
            assert_eq!(made.vocabulary.decode(&ids), text.as_bytes());
            assert!(tokens.iter().any(|&id| id as usize >= of.vocab_size()), "{tokens:?}");
        }
    }
}
