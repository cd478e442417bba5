//! The engines behind one trait, so that all do the same work on the same logits.
//!
//! A step of a row is: advance by the token chosen before, compute the mask, put −∞ where a token is illegal
//! into 32-bit logits that are already in memory. Making a fresh copy of the logits is not timed.

mod burn_dfa;
mod host;
mod llguidance;
mod outlines;
mod xgrammar;

use ::burn_dfa::constraint::Syntax;

use crate::tokens::Tokens;

/// What the output must match, as text.
#[derive(Clone, Debug)]
pub enum Grammar {
    /// A regex, matched by the whole output.
    Regex(String),
    /// A JSON schema, which means what the standard says: objects that are silent about it take other properties.
    Schema(String),
    /// A context-free grammar as it is written, and in Lark, for who reads nothing else, where there is such a text.
    ContextFree { syntax: Syntax, text: String, lark: Option<String> },
    /// A structural tag as JSON, and the same in Lark, where there is such a text.
    Tools { tag: String, lark: Option<String> },
}

/// An engine that has prepared a vocabulary.
pub trait Engine {
    /// Its name in the tables.
    fn name(&self) -> &'static str;

    /// All from the text of a grammar to a matcher at its start, on this engine's own settings for compact JSON.
    fn compile(&self, grammar: &Grammar) -> Result<Box<dyn Compiled>, String>;

    /// Forgets the grammars it compiled, where it remembers them. Not timed.
    fn forget(&self) {}

    /// Whether its rows can be stepped one after the other or on all cores: then both are measured.
    fn on_all_cores(&self) -> bool {
        true
    }

    /// Whether it is a second way of running an engine that is there already: then it compiles and reads what that does.
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

    /// Bytes that the engine says the grammar takes.
    fn bytes(&self) -> Option<usize>;

    /// The states of a token automaton for the grammar, where the engine makes one.
    fn states(&self) -> Option<usize> {
        None
    }
}

/// The rows of a batch, each somewhere in its text.
pub trait Rows {
    /// Advances rows by a token, without a mask. Not timed.
    fn advance(&mut self, tokens: &[Option<u32>]) -> Result<(), String>;

    /// Takes fresh logits `[rows, width]` and the tokens that were chosen before, if any. Not timed.
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
    |tokens| Box::new(burn_dfa::BurnDfa::new(tokens, burn_dfa::Way::Fresh)),
    |tokens| Box::new(burn_dfa::BurnDfa::new(tokens, burn_dfa::Way::Kept)),
    |tokens| Box::new(llguidance::LlGuidance::new(tokens, llguidance::Way::Fresh)),
    |tokens| Box::new(llguidance::LlGuidance::new(tokens, llguidance::Way::Warm)),
    |tokens| Box::new(llguidance::LlGuidance::new(tokens, llguidance::Way::Forced)),
    |tokens| Box::new(xgrammar::XGrammar::new(tokens, xgrammar::Way::Applied)),
    |tokens| Box::new(xgrammar::XGrammar::new(tokens, xgrammar::Way::NotApplied)),
    |tokens| Box::new(outlines::Outlines::new(tokens)),
];
