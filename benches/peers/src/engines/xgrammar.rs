//! XGrammar in its Rust port: a pushdown automaton with precomputed masks.

use std::cell::RefCell;

use burn_dfa::constraint::Syntax;
use xgrammar::{
    CompiledGrammar, GrammarCompiler, GrammarMatcher, TokenizerInfo, VocabType, get_bitmask_size,
};

use super::host::{HostRows, Matcher, apply};
use super::{Compiled, Engine, Grammar, Rows};
use crate::tokens::Tokens;

/// Whether a step applies its mask to the logits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It does, like the other engines.
    Applied,
    /// It only fills the bits of the mask.
    NotApplied,
}

/// The engine with its tokenizer information, and a new compiler for each grammar.
pub(super) struct XGrammar {
    information: TokenizerInfo,
    compiler: RefCell<GrammarCompiler>,
    vocab_size: usize,
    mode: Mode,
}

impl XGrammar {
    pub(super) fn new(tokens: &Tokens, mode: Mode) -> Self {
        let vocabulary = &tokens.vocabulary;
        // An empty entry is a special token.
        let words: Vec<Vec<u8>> = (0..vocabulary.len() as u32)
            .map(|id| vocabulary.bytes(burn_dfa::TokenId(id)).unwrap_or_default().to_vec())
            .collect();
        let stop = vec![tokens.eos as i32];
        let information = TokenizerInfo::new_from_bytes(
            &words,
            VocabType::RAW,
            Some(words.len() as i32),
            Some(stop),
            false,
        )
        .expect("a vocabulary");
        let compiler = RefCell::new(compiler(&information));
        Self { information, compiler, vocab_size: words.len(), mode }
    }
}

/// A compiler without cached grammars that uses all cores.
fn compiler(information: &TokenizerInfo) -> GrammarCompiler {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    GrammarCompiler::new(information.clone(), threads as i32, true, -1)
}

impl Engine for XGrammar {
    fn name(&self) -> &'static str {
        match self.mode {
            Mode::Applied => "XGrammar (port)",
            Mode::NotApplied => "XGrammar (port), no apply",
        }
    }

    fn forget(&self) {
        *self.compiler.borrow_mut() = compiler(&self.information);
    }

    fn compile(&self, grammar: &Grammar) -> Result<Box<dyn Compiled>, String> {
        let compiler = self.compiler.borrow();
        let compiled = match grammar {
            Grammar::Regex(regex) => compiler.compile_regex(regex),
            Grammar::Schema(schema) => {
                compiler.compile_json_schema(schema, false, None, Some((",", ":")), false, None)
            }
            Grammar::Tools { tag, .. } => compiler.compile_structural_tag(tag),
            Grammar::ContextFree { syntax: Syntax::Lark, text, .. } => compiler.compile_lark(text, &[]),
            Grammar::ContextFree { syntax, text, .. } => compiler.compile_grammar_ebnf(text, syntax.start()),
        };
        let compiled = compiled.map_err(|error| error.to_string())?;
        let matcher = GrammarMatcher::from_compiled_grammar(&compiled, false);
        Ok(Box::new(Automaton { compiled, matcher, vocab_size: self.vocab_size, mode: self.mode }))
    }

    fn is_variant(&self) -> bool {
        self.mode != Mode::Applied
    }

    fn has_batches(&self) -> bool {
        true
    }
}

struct Automaton {
    compiled: CompiledGrammar,
    matcher: GrammarMatcher,
    vocab_size: usize,
    mode: Mode,
}

impl Compiled for Automaton {
    fn start(&self, rows: usize, on_all_cores: bool) -> Box<dyn Rows> {
        let words = get_bitmask_size(self.vocab_size as i32) as usize;
        let row = || Row {
            matcher: self.matcher.clone(),
            mask: vec![-1; words],
            restricts: false,
            mode: self.mode,
        };
        Box::new(HostRows::new((0..rows).map(|_| row()).collect(), on_all_cores))
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.compiled.memory_size_bytes())
    }
}

struct Row {
    matcher: GrammarMatcher,
    mask: Vec<i32>,
    /// Whether the mask forbids any token.
    restricts: bool,
    mode: Mode,
}

impl Row {
    fn apply(&self, logits: &mut [f32]) {
        if self.restricts {
            apply(self.mask.iter().map(|&word| word as u32), logits);
        }
    }
}

impl Matcher for Row {
    fn advance(&mut self, token: u32) -> Result<(), String> {
        let accepted = self.matcher.accept_token(token as i32);
        accepted.then_some(()).ok_or_else(|| format!("token {token} was refused"))
    }

    fn mask(&mut self, logits: &mut [f32]) -> Result<(), String> {
        let shape = [self.mask.len() as i64];
        let restricts = self.matcher.fill_next_token_bitmask(&mut self.mask, &shape, 0);
        self.restricts = restricts.map_err(|error| error.to_string())?;
        if self.mode == Mode::Applied {
            self.apply(logits);
        }
        Ok(())
    }

    fn allows(&self, token: u32) -> bool {
        let bit = self.mask[token as usize / 32] as u32 >> (token % 32) & 1;
        !self.restricts || bit == 1
    }

    fn apply_behind(&self, logits: &mut [f32]) {
        if self.mode == Mode::NotApplied {
            self.apply(logits);
        }
    }
}
