//! outlines-core: a precomputed index of the tokens of every state.

use std::sync::Arc;

use outlines_core::json_schema;
use outlines_core::prelude::{Index, Vocabulary};

use super::host::{HostRows, Matcher, apply};
use super::{Compiled, Engine, Grammar, Rows};
use crate::tokens::Tokens;

/// The engine with its vocabulary.
pub(super) struct Outlines {
    vocabulary: Vocabulary,
    vocab_size: usize,
}

impl Outlines {
    pub(super) fn new(tokens: &Tokens) -> Self {
        let mut vocabulary = Vocabulary::new(tokens.eos);
        for (id, bytes) in tokens.vocabulary.iter() {
            vocabulary.try_insert(bytes, id.0).expect("a token that is text");
        }
        Self { vocabulary, vocab_size: tokens.vocab_size() }
    }
}

impl Engine for Outlines {
    fn name(&self) -> &'static str {
        "outlines-core"
    }

    fn compile(&self, grammar: &Grammar) -> Result<Box<dyn Compiled>, String> {
        let regex = match grammar {
            Grammar::Regex(regex) => regex.clone(),
            Grammar::Schema(schema) => {
                json_schema::regex_from_str(schema, Some(""), None).map_err(|error| error.to_string())?
            }
            Grammar::Tools { .. } => return Err("it reads no structural tags".to_owned()),
            Grammar::ContextFree { .. } => return Err("it reads no context-free grammars".to_owned()),
        };
        let index = Index::new(&regex, &self.vocabulary).map_err(|error| error.to_string())?;
        Ok(Box::new(Indexed { index: Arc::new(index), words: self.vocab_size.div_ceil(32) }))
    }
}

struct Indexed {
    index: Arc<Index>,
    words: usize,
}

impl Compiled for Indexed {
    fn start(&self, rows: usize, on_all_cores: bool) -> Box<dyn Rows> {
        let state = self.index.initial_state();
        let row = || Row { index: self.index.clone(), state, mask: vec![0; self.words] };
        Box::new(HostRows::new((0..rows).map(|_| row()).collect(), on_all_cores))
    }

    fn bytes(&self) -> Option<usize> {
        None
    }
}

struct Row {
    index: Arc<Index>,
    state: u32,
    mask: Vec<u32>,
}

impl Matcher for Row {
    fn advance(&mut self, token: u32) -> Result<(), String> {
        let next = self.index.next_state(&self.state, &token);
        self.state = next.ok_or_else(|| format!("token {token} was refused"))?;
        Ok(())
    }

    /// As `Guide::write_mask_into` of its Python package.
    fn mask(&mut self, logits: &mut [f32]) -> Result<(), String> {
        self.mask.fill(0);
        for &token in self.index.allowed_tokens_iter(&self.state).into_iter().flatten() {
            self.mask[token as usize / 32] |= 1 << (token % 32);
        }
        apply(self.mask.iter().copied(), logits);
        Ok(())
    }
}
