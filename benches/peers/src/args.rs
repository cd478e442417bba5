//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::measure::Effort;
use crate::tokens::{Name, Tokens};
use crate::work::Part;

/// burn-dfa beside llguidance, XGrammar and outlines-core: same vocabulary, constraint and text.
#[derive(Parser)]
pub struct Args {
    /// Vocabularies
    #[arg(long, value_delimiter = ',', default_value = "smollm2,o200k")]
    pub vocabulary: Vec<Name>,

    /// Runs of each step, of which medians are taken
    #[arg(long, default_value_t = 5)]
    pub runs: usize,

    /// Few schemas, one run: to see that it works, not to judge by
    #[arg(long)]
    pub quick: bool,

    /// Context-free grammars only: no regexes, schemas, models and picture
    #[arg(long)]
    pub grammars: bool,

    /// Catalogues of tools only: from a structural tag to the first mask, and the decode steps of models in free text
    #[arg(long)]
    pub tools: bool,

    /// Whole models only: beside PyTorch, and with a constraint beside without
    #[arg(long)]
    pub models: bool,

    /// Only cases whose names contain this: to look into one, not to judge by
    #[arg(long, default_value = "")]
    pub only: String,

    /// Where the picture goes
    #[arg(long, default_value = "benches/results/peers.svg")]
    pub out: PathBuf,

    /// A Python that has PyTorch and transformers, or XGrammar
    #[arg(long, default_value = "python3")]
    pub python: PathBuf,

    /// Leave out the decode steps of whole models
    #[arg(long)]
    pub no_models: bool,

    #[command(flatten)]
    pub part: Part,
}

impl Args {
    /// How much is measured with the first vocabulary.
    pub fn effort(&self) -> Effort {
        if self.quick {
            let few = Effort { runs: 1, first_runs: 1, schemas: 12, step_schemas: 6, ..Effort::default() };
            return Effort {
                batch_schemas: 2,
                window: 4,
                patience: 2.0,
                grammar_patience: 10.0,
                text_patience: 3.0,
                ..few
            };
        }
        Effort { runs: self.runs.max(1), ..Effort::default() }
    }

    /// How much is measured with a vocabulary. Processes take longer to start with a large one, and steps of its
    /// batches write more.
    pub fn effort_of(&self, tokens: &Tokens) -> Effort {
        let effort = self.effort();
        if tokens.width() < 100_000 {
            return effort;
        }
        Effort {
            runs: effort.runs.min(3),
            first_runs: 1,
            schemas: effort.schemas.min(40),
            step_schemas: effort.step_schemas.min(25),
            batch_schemas: effort.batch_schemas.min(12),
            ..effort
        }
    }
}
