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

    /// Only measure how this process grows while the engine of this number compiles all cases
    #[arg(long, hide = true)]
    pub memory_of: Option<usize>,
}
