//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::measure::Effort;
use crate::tokens::{Name, Tokens};
use crate::work::Part;

/// burn-dfa beside llguidance, XGrammar and outlines-core: same vocabulary, constraint and text.
#[derive(Parser)]
pub struct Args {
    /// Vocabularies; without this and --tokenizer, smollm2 and o200k
    #[arg(long, value_delimiter = ',')]
    pub vocabulary: Vec<Name>,

    /// A folder with a tokenizer.json, and what else names tokens: the vocabulary is measured under the folder's name. May be
    /// given more than once
    #[arg(long, value_name = "FOLDER")]
    pub tokenizer: Vec<PathBuf>,

    /// A file of rows in the format of a corpus, measured instead of the schemas and grammars chosen here. May be given more
    /// than once
    #[arg(long, value_name = "FILE", conflicts_with_all = ["grammars", "tools", "models"])]
    pub rows: Vec<PathBuf>,

    /// First masks of so many schemas at most, of --rows the first, whatever the vocabulary
    #[arg(long, value_name = "COUNT")]
    pub schemas: Option<usize>,

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
    /// The vocabularies that are measured by their names.
    pub fn vocabularies(&self) -> Vec<Name> {
        match self.vocabulary.is_empty() && self.tokenizer.is_empty() {
            true => vec![Name::Smollm2, Name::O200k],
            false => self.vocabulary.clone(),
        }
    }

    /// Whether whole models are measured beside the engines: not where vocabularies or rows are others'.
    pub fn with_models(&self) -> bool {
        !self.no_models && !self.grammars && self.rows.is_empty() && self.tokenizer.is_empty()
    }

    /// How much is measured with the first vocabulary.
    pub fn effort(&self) -> Effort {
        let effort = self.effort_unless_named();
        Effort { schemas: self.schemas.unwrap_or(effort.schemas), ..effort }
    }

    fn effort_unless_named(&self) -> Effort {
        if self.quick {
            let few = Effort { runs: 1, first_runs: 1, schemas: 12, step_schemas: 6, ..Effort::default() };
            return Effort {
                batch_schemas: [2, 2, 1],
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
            schemas: self.schemas.unwrap_or(effort.schemas.min(40)),
            step_schemas: effort.step_schemas.min(25),
            batch_schemas: std::array::from_fn(|size| effort.batch_schemas[size].min([12, 12, 3][size])),
            ..effort
        }
    }
}
