//! llguidance: an Earley parser over a lexer of lazily built derivatives.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv,
};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};

use super::host::{self, HostRows, apply};
use super::{Compiled, Engine, Grammar, Rows};
use crate::tokens::{Tokenizer, Tokens};

/// The modes of the engine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A new parser for each text, as after the request that brought the grammar.
    Fresh,
    /// A parser whose lexer has processed the texts before.
    Warm,
    /// A new parser for each text. Bytes that the grammar forces are tokenized, and the mask allows
    /// only that token.
    Forced,
}

/// The engine with its parser factory, which holds the slices of the vocabulary.
pub(super) struct LlGuidance {
    factory: ParserFactory,
    mode: Mode,
}

impl LlGuidance {
    pub(super) fn new(tokens: &Tokens, mode: Mode) -> Self {
        let trie = trie(tokens);
        let environment: TokEnv = match mode {
            Mode::Fresh | Mode::Warm => Arc::new(ApproximateTokEnv::new(trie)),
            Mode::Forced => {
                Arc::new(Canonical { trie, tokenizer: tokens.tokenizer.clone().expect("a tokenizer") })
            }
        };
        let slices = SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&environment, InferenceCapabilities::default(), &slices)
            .expect("slices of a vocabulary");
        factory.quiet();
        Self { factory, mode }
    }
}

/// The vocabulary as a trie; names of special tokens are marked, as llguidance requires.
fn trie(tokens: &Tokens) -> TokTrie {
    let vocabulary = &tokens.vocabulary;
    let words: Vec<Vec<u8>> = (0..vocabulary.len() as u32)
        .map(burn_dfa::TokenId)
        .map(|id| match (vocabulary.bytes(id), vocabulary.content(id)) {
            (Some(bytes), _) => bytes.to_vec(),
            (None, Some(name)) => [&[TokTrie::SPECIAL_TOKEN_MARKER], name].concat(),
            (None, None) => Vec::new(),
        })
        .collect();
    TokTrie::from(&TokRxInfo::new(words.len() as u32, tokens.eos), &words)
}

/// A trie with the tokenizer, which llguidance calls for the tokens of forced bytes.
struct Canonical {
    trie: TokTrie,
    tokenizer: Tokenizer,
}

impl TokenizerEnv for Canonical {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| self.tokenizer.encode(text))
    }

    fn tokenize_is_canonical(&self) -> bool {
        true
    }
}

impl Engine for LlGuidance {
    fn name(&self) -> &'static str {
        match self.mode {
            Mode::Fresh => "llguidance",
            Mode::Warm => "llguidance, warm lexer",
            Mode::Forced => "llguidance, forced tokens",
        }
    }

    fn compile(&self, grammar: &Grammar) -> Result<Box<dyn Compiled>, String> {
        let grammar = match grammar {
            Grammar::Regex(regex) => TopLevelGrammar::from_regex(regex),
            Grammar::Schema(schema) => {
                let mut schema: Value = serde_json::from_str(schema).expect("JSON");
                schema["x-guidance"] =
                    json!({"whitespace_flexible": false, "item_separator": ",", "key_separator": ":"});
                TopLevelGrammar::from_json_schema(schema)
            }
            Grammar::ContextFree { lark, .. } | Grammar::Tools { lark, .. } => {
                let lark = lark.clone().ok_or("it reads Lark, and there is no Lark of it")?;
                TopLevelGrammar::from_lark(lark)
            }
        };
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        match matcher.get_error() {
            Some(error) => Err(error),
            None => Ok(Box::new(Parser { matcher, mode: self.mode })),
        }
    }

    fn is_variant(&self) -> bool {
        self.mode != Mode::Fresh
    }
}

struct Parser {
    matcher: Matcher,
    mode: Mode,
}

impl Compiled for Parser {
    fn start(&self, rows: usize, on_all_cores: bool) -> Box<dyn Rows> {
        // A plain clone shares the lexer with this matcher; a deep clone copies its initial state.
        let matcher = || match self.mode {
            Mode::Warm => Row(self.matcher.clone()),
            Mode::Fresh | Mode::Forced => Row(self.matcher.deep_clone()),
        };
        Box::new(HostRows::new((0..rows).map(|_| matcher()).collect(), on_all_cores))
    }

    fn bytes(&self) -> Option<usize> {
        None
    }
}

struct Row(Matcher);

impl host::Matcher for Row {
    fn advance(&mut self, token: u32) -> Result<(), String> {
        self.0.consume_token(token).map_err(|error| error.to_string())
    }

    fn mask(&mut self, logits: &mut [f32]) -> Result<(), String> {
        let mask = self.0.compute_mask_or_eos().map_err(|error| error.to_string())?;
        apply(mask.as_slice().iter().copied(), logits);
        Ok(())
    }
}
