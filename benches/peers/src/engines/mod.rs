//! The engines behind one trait, so that all do the same work on the same logits.
//!
//! A step of a row advances by the chosen token, computes the mask, and writes −∞ for each illegal
//! token into 32-bit logits in memory. Copying the logits is not timed.

mod burn_dfa;
mod host;
mod llguidance;
mod outlines;
mod xgrammar;

use ::burn_dfa::constraint::Syntax;

use crate::tokens::Tokens;

/// The constraint on the output, as text.
#[derive(Clone, Debug)]
pub enum Grammar {
    /// A regex, matched by the whole output.
    Regex(String),
    /// A JSON schema with the semantics of the standard: objects are open by default.
    Schema(String),
    /// A context-free grammar in its own syntax, and in Lark if a conversion exists.
    ContextFree { syntax: Syntax, text: String, lark: Option<String> },
    /// A structural tag as JSON, and an equivalent Lark grammar if one exists.
    Tools { tag: String, lark: Option<String> },
}

/// An engine that has prepared a vocabulary.
pub trait Engine {
    /// Its name in the tables.
    fn name(&self) -> &'static str;

    /// Compiles the text of a grammar to a matcher at its start, with this engine's settings for
    /// compact JSON.
    fn compile(&self, grammar: &Grammar) -> Result<Box<dyn Compiled>, String>;

    /// Drops any cached grammars. Not timed.
    fn forget(&self) {}

    /// Whether its rows can run in sequence or on all cores; if so, both are measured.
    fn on_all_cores(&self) -> bool {
        true
    }

    /// Whether this is a second mode of another engine, which compiles the same grammars and
    /// accepts the same texts.
    fn is_variant(&self) -> bool {
        false
    }

    /// Whether it is measured in batches too.
    fn has_batches(&self) -> bool {
        !self.is_variant()
    }
}

/// A compiled grammar.
pub trait Compiled {
    /// Rows at the start of the grammar.
    fn start(&self, rows: usize, on_all_cores: bool) -> Box<dyn Rows>;

    /// Bytes of the compiled grammar, as the engine reports them.
    fn bytes(&self) -> Option<usize>;

    /// The states of a token automaton for the grammar, if the engine builds one.
    fn states(&self) -> Option<usize> {
        None
    }
}

/// The rows of a batch, each at a position of its text.
pub trait Rows {
    /// Advances rows by a token, without a mask. Not timed.
    fn advance(&mut self, tokens: &[Option<u32>]) -> Result<(), String>;

    /// Takes fresh logits `[rows, vocab_size]` and the previously chosen tokens, if any. Not timed.
    fn prepare(&mut self, logits: &[f32], chosen: Option<&[u32]>);

    /// Advances and masks. Timed.
    fn step(&mut self) -> Result<(), String>;

    /// Whether the masked logits of the first row allow a token.
    fn allows(&self, token: u32) -> bool;

    /// The masked logits.
    fn logits(&self) -> Vec<f32>;
}

/// Makes an engine for a vocabulary.
pub type Make = fn(&Tokens) -> Box<dyn Engine>;

/// All engines, burn-dfa first.
pub const ALL: [Make; 8] = [
    |tokens| Box::new(burn_dfa::BurnDfa::new(tokens, burn_dfa::Mode::Fresh)),
    |tokens| Box::new(burn_dfa::BurnDfa::new(tokens, burn_dfa::Mode::Cached)),
    |tokens| Box::new(llguidance::LlGuidance::new(tokens, llguidance::Mode::Fresh)),
    |tokens| Box::new(llguidance::LlGuidance::new(tokens, llguidance::Mode::Warm)),
    |tokens| Box::new(llguidance::LlGuidance::new(tokens, llguidance::Mode::Forced)),
    |tokens| Box::new(xgrammar::XGrammar::new(tokens, xgrammar::Mode::Applied)),
    |tokens| Box::new(xgrammar::XGrammar::new(tokens, xgrammar::Mode::NotApplied)),
    |tokens| Box::new(outlines::Outlines::new(tokens)),
];
