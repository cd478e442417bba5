//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::tokens::Name;

/// burn-dfa beside llguidance, XGrammar and outlines-core: same process, vocabulary, constraint and text.
#[derive(Parser)]
pub struct Args {
    /// Vocabularies, all by default
    #[arg(long, value_delimiter = ',')]
    pub vocabulary: Vec<Name>,

    /// Runs, of which medians are taken
    #[arg(long, default_value_t = 5)]
    pub runs: usize,

    /// One run of every third case: to see that it works, not to judge by
    #[arg(long)]
    pub quick: bool,

    /// Where the picture goes
    #[arg(long, default_value = "benches/results/peers.svg")]
    pub out: PathBuf,

    /// A Python that has PyTorch and transformers, or XGrammar
    #[arg(long, default_value = "python3")]
    pub python: PathBuf,

    /// Leave out the decode steps of whole models
    #[arg(long)]
    pub no_models: bool,

    /// Only measure how this process grows while the engine of this number compiles all cases
    #[arg(long, hide = true)]
    pub memory_of: Option<usize>,

    /// The cases for that
    #[arg(long, hide = true, value_delimiter = ';')]
    pub cases: Vec<String>,
}
