//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::measure::Effort;
use crate::tokens::{Name, Tokens};
use crate::work::Part;

/// Compares burn-dfa with llguidance, XGrammar and outlines-core on the same vocabulary, constraint
/// and text.
#[derive(Parser)]
pub struct Args {
    /// Vocabularies; without this and --tokenizer, smollm2 and o200k
    #[arg(long, value_delimiter = ',')]
    pub vocabulary: Vec<Name>,

    /// A folder with a tokenizer.json and, optionally, other files that name tokens. Its name
    /// becomes the name of the vocabulary. May be given more than once
    #[arg(long, value_name = "FOLDER")]
    pub tokenizer: Vec<PathBuf>,

    /// A file of rows in the corpus format, measured instead of the built-in schemas and grammars.
    /// May be given more than once
    #[arg(long, value_name = "FILE", conflicts_with_all = ["grammars", "tools", "models"])]
    pub rows: Vec<PathBuf>,

    /// Measure first masks of at most COUNT schemas, or the first COUNT rows of --rows, for every
    /// vocabulary
    #[arg(long, value_name = "COUNT")]
    pub schemas: Option<usize>,

    /// Runs of each step; medians count
    #[arg(long, default_value_t = 5)]
    pub runs: usize,

    /// Few schemas and one run: a check that the program works, without reliable figures
    #[arg(long)]
    pub quick: bool,

    /// Context-free grammars only: no regexes, schemas, models and picture
    #[arg(long)]
    pub grammars: bool,

    /// Catalogs of tools only: from a structural tag to the first mask, and decode steps of models
    /// in free text
    #[arg(long)]
    pub tools: bool,

    /// Whole models only: compared with PyTorch, and with and without a constraint
    #[arg(long)]
    pub models: bool,

    /// Only cases with this text in their name: to examine one case, without reliable totals
    #[arg(long, default_value = "")]
    pub only: String,

    /// Masks in the memory of the host only: no other engine, no device
    #[arg(long)]
    pub masks: bool,

    /// Masks in the memory of the host without each part of the search: writes the tables to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    #[arg(default_missing_value = "benches/results/ablation.md")]
    pub ablation: Option<PathBuf>,

    /// The time limit of --ablation, shared by the vocabularies
    #[arg(long, value_name = "COUNT", default_value_t = 420)]
    pub seconds: u64,

    /// The file for the picture
    #[arg(long, default_value = "benches/results/peers.svg")]
    pub out: PathBuf,

    /// A file that gets the figures, as `name=value` lines: benches/results/peers.txt, which prose
    /// quotes
    #[arg(long, value_name = "FILE")]
    pub figures: Option<PathBuf>,

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
    /// The vocabularies that are selected by name.
    pub fn vocabularies(&self) -> Vec<Name> {
        match self.vocabulary.is_empty() && self.tokenizer.is_empty() {
            true => vec![Name::Smollm2, Name::O200k],
            false => self.vocabulary.clone(),
        }
    }

    /// Whether to measure whole models too: only with the built-in vocabularies and rows.
    pub fn with_models(&self) -> bool {
        !self.no_models && !self.grammars && self.rows.is_empty() && self.tokenizer.is_empty()
    }

    /// The amount of measurement for the first vocabulary.
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

    /// The amount of measurement for a vocabulary. With a large vocabulary, processes start more
    /// slowly, and batched steps write more bytes.
    pub fn effort_of(&self, tokens: &Tokens) -> Effort {
        let effort = self.effort();
        if tokens.vocab_size() < 100_000 {
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
