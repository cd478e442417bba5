//! The three vocabularies, with the tokenizers that they belong to.

use burn_dfa::TokenId;
use burn_dfa::vocabulary::{TokenKind, Vocabulary};
use clap::ValueEnum;
use tiktoken_rs::CoreBPE;

use crate::data;

/// A vocabulary by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// SmolLM2's, 49,152 ids.
    Smollm2,
    /// OpenAI's cl100k, 100,277 ids.
    Cl100k,
    /// OpenAI's o200k, 200,019 ids.
    O200k,
}

/// A vocabulary and its tokenizer.
pub struct Tokens {
    pub name: &'static str,
    /// Its name on the command line.
    pub flag: &'static str,
    pub vocabulary: Vocabulary,
    pub eos: u32,
    /// What cuts a text; `None` where no text is cut.
    pub tokenizer: Option<Tokenizer>,
}

/// What cuts a text into tokens.
#[derive(Clone)]
pub enum Tokenizer {
    HuggingFace(Box<tokenizers::Tokenizer>),
    Tiktoken(&'static CoreBPE),
}

impl Tokenizer {
    /// The tokens of `text`, special ones not recognised.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        match self {
            Self::HuggingFace(tokenizer) => {
                tokenizer.encode(text, false).expect("a text that can be encoded").get_ids().to_vec()
            }
            Self::Tiktoken(tokenizer) => tokenizer.encode_ordinary(text),
        }
    }
}

impl Tokens {
    /// Reads the vocabulary; `None`, having said so, where it needs data that is not there.
    pub fn load(name: Name) -> Option<Self> {
        match name {
            Name::Smollm2 => smollm2(),
            Name::Cl100k => Some(tiktoken("cl100k", tiktoken_rs::cl100k_base_singleton(), 100_277)),
            Name::O200k => Some(tiktoken("o200k", tiktoken_rs::o200k_base_singleton(), 200_019)),
        }
    }

    /// Number of ids, which is the width of the logits.
    pub fn width(&self) -> usize {
        self.vocabulary.len()
    }

    /// The tokens of `text`.
    ///
    /// # Panics
    /// Where their bytes are not those of the text.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let tokens = self.tokenizer.as_ref().expect("a tokenizer").encode(text);
        let ids: Vec<_> = tokens.iter().map(|&id| TokenId(id)).collect();
        assert_eq!(self.vocabulary.decode(&ids), text.as_bytes(), "{}: {text}", self.name);
        tokens
    }
}

fn smollm2() -> Option<Tokens> {
    let json = data::read("tokenizers/smollm2/tokenizer.json", "SmolLM2's vocabulary")?;
    let tokenizer: tokenizers::Tokenizer = json.parse().expect("a tokenizer");
    let eos = tokenizer.token_to_id("<|im_end|>").expect("a token that ends a turn");
    let vocabulary = Vocabulary::from_tokenizer_json(json.as_bytes())
        .and_then(|vocabulary| vocabulary.with_eos([TokenId(eos)]))
        .expect("a vocabulary");
    Some(Tokens {
        name: "SmolLM2",
        flag: "smollm2",
        vocabulary,
        eos,
        tokenizer: Some(Tokenizer::HuggingFace(Box::new(tokenizer))),
    })
}

fn tiktoken(name: &'static str, tokenizer: &'static CoreBPE, width: u32) -> Tokens {
    let special: Vec<u32> = tokenizer
        .special_tokens()
        .into_iter()
        .flat_map(|name| tokenizer.encode_with_special_tokens(name))
        .collect();
    let tokens = (0..width).map(|id| match tokenizer.decode_bytes(&[id]) {
        Ok(bytes) if special.contains(&id) => (TokenKind::Special, bytes),
        Ok(bytes) => (TokenKind::Normal, bytes),
        Err(_) => (TokenKind::Unused, Vec::new()),
    });
    let eos = tokenizer.encode_with_special_tokens("<|endoftext|>")[0];
    let vocabulary = Vocabulary::from_tokens(tokens)
        .and_then(|vocabulary| vocabulary.with_eos([TokenId(eos)]))
        .expect("a vocabulary");
    Tokens { name, flag: name, vocabulary, eos, tokenizer: Some(Tokenizer::Tiktoken(tokenizer)) }
}

/// Finite logits that no two neighbours share.
pub fn logits(width: usize) -> Vec<f32> {
    (0..width as u32).map(|id| (id.wrapping_mul(0x9e37_79b9) >> 8) as f32 / (1 << 20) as f32 - 8.0).collect()
}
