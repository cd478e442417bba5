//! The options of the program's commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_dfa::cli::{Backend, ForcedTextArgs, JsonArgs, LimitArgs};
use burn_dfa::constraint::JsonOptions;
use burn_dfa::generation::CausalLm;
use burn_dfa::vocabulary::ModelFiles;
use burn_dfa::{Capacity, Vocabulary};
use burn_dfa_decoder::{Pretrained, cli::Weights};
use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::constraints::Constraints;
use crate::engine::{Engine, Sizes};
use crate::function::Functions;
use crate::prompts::PromptTemplates;

/// An error of the start.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Options of a process that plans queries: the model's tokens, the style of JSON, and the limits
/// of constraints.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("whitespace", |arg| arg.help(WHITESPACE)))]
pub struct PlanArgs {
    /// A GGUF file, or a Hugging Face folder: config.json, tokenizer.json, model.safetensors.
    /// Default: the embedded model.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// Maximum number of states of the constraints that are in use at the same time. They are
    /// reserved on a GPU.
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = sizes(32..=1 << 24))]
    pub arena_states: usize,
    /// Maximum number of token classes of a constraint.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = sizes(64..=1 << 16))]
    pub arena_classes: usize,
    /// Maximum number of exits of a procedure of a constraint, mostly 1.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = sizes(1..=16))]
    pub arena_exits: usize,
    /// The style of the answers of `extract`.
    #[command(flatten)]
    pub json: JsonArgs,
    /// Limits of the compilation of a constraint.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// The tokens that may spell forced text.
    #[command(flatten)]
    pub forced_text: ForcedTextArgs,
}

/// The help of `--whitespace`.
const WHITESPACE: &str = "White space in the JSON that `extract` writes. Default: compact for the embedded model, spaced for others";

impl PlanArgs {
    fn capacity(&self, max_constraints: usize) -> Capacity {
        let capacity = Capacity::new()
            .with_constraints(max_constraints)
            .with_states(self.arena_states)
            .with_classes(self.arena_classes);
        match self.limits.limits().frames {
            0 => capacity,
            frames => capacity.with_stack(self.arena_exits, frames),
        }
    }

    fn constraints(&self, vocabulary: Vocabulary, max_constraints: usize) -> Constraints {
        let usual = match &self.model {
            None => JsonOptions::new().with_whitespace(burn_dfa_tiny::WHITESPACE),
            Some(_) => JsonOptions::new(),
        };
        let limits = self.forced_text.over(self.limits.limits());
        Constraints::with_json(vocabulary, limits, self.capacity(max_constraints), self.json.over(usual))
    }

    /// The functions of a process that only plans. Reads no weights.
    ///
    /// # Errors
    /// The tokenizer cannot be read.
    pub fn functions(&self) -> Result<Functions, Failure> {
        let vocabulary = match &self.model {
            None => Vocabulary::from_files(&embedded_files())?,
            Some(folder) => Vocabulary::from_folder(folder)?,
        };
        Ok(Functions::planning(Arc::new(self.constraints(vocabulary, 1))))
    }
}

/// Options of a process that runs queries: a model, and the sizes of its engine.
#[derive(Args, Clone, Debug)]
pub struct EngineArgs {
    /// The options for planning.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Where the model runs: flex, vulkan, wgpu, cuda, or remote:ws://host:port. All but flex need
    /// the feature of the same name.
    #[arg(long, value_name = "DEVICE", default_value = "flex")]
    pub device: Backend,
    /// The type of the weights in memory. With stored, flex keeps the quantized blocks of a GGUF
    /// file; with the other types, and on other devices, they become floats.
    #[arg(long, value_name = "TYPE", value_enum, default_value_t)]
    pub dtype: Weights,
    /// Number of rows of a table that are generated at the same time. Keys and values of all rows
    /// are reserved at the start.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = sizes(1..=4096))]
    pub rows: usize,
    /// Maximum number of tokens of a row, prompt and answer together. Default: the model's
    /// positions, at most 4096.
    #[arg(long, value_name = "TOKENS", default_value_t = 4096, hide_default_value = true, value_parser = sizes(2..=1 << 24))]
    pub slots: usize,
    /// Maximum number of tokens of an answer.
    #[arg(long, value_name = "TOKENS", default_value_t = 512, value_parser = sizes(1..=1 << 24))]
    pub max_tokens: usize,
    /// Number of steps between two reads from the device. More steps are faster on a GPU.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = sizes(1..=256))]
    pub sync_interval: usize,
    /// Number of threads of the model on the CPU. Default: one for each core.
    #[arg(long, value_name = "N", value_parser = sizes(1..=1024))]
    pub threads: Option<usize>,
    /// The message of `extract`, with {text} and {schema}.
    #[arg(long, value_name = "FORM")]
    pub extract_prompt: Option<String>,
    /// The message of `classify`, with {text} and {labels}.
    #[arg(long, value_name = "FORM")]
    pub classify_prompt: Option<String>,
    /// The message of `matches`, with {text} and {instruction}.
    #[arg(long, value_name = "FORM")]
    pub matches_prompt: Option<String>,
}

impl EngineArgs {
    /// The sizes of the engine, for a model with `positions` positions.
    pub fn sizes(&self, positions: Option<usize>) -> Sizes {
        let sizes = Sizes {
            rows: self.rows,
            slots: self.slots,
            max_new_tokens: self.max_tokens,
            sync_interval: self.sync_interval,
            capacity: self.plan.capacity(self.rows),
        };
        sizes.within(positions)
    }

    /// The messages to the model: only the text for the embedded model, with instructions for other
    /// models.
    pub fn prompt_templates(&self) -> PromptTemplates {
        let usual =
            if self.plan.model.is_some() { PromptTemplates::instructing() } else { PromptTemplates::plain() };
        PromptTemplates {
            extract: self.extract_prompt.clone().unwrap_or(usual.extract),
            classify: self.classify_prompt.clone().unwrap_or(usual.classify),
            matches: self.matches_prompt.clone().unwrap_or(usual.matches),
        }
    }

    /// Loads the model and starts its engine. Call it once per process, since all parts of a
    /// process share the CPU threads.
    ///
    /// # Errors
    /// The model cannot be read, the device is not compiled in, or the sizes do not fit.
    pub fn functions(&self) -> Result<Functions, Failure> {
        if let Some(threads) = self.threads {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
        }
        let pretrained = Arc::new(load(&self.device, self.plan.model.as_deref(), self.dtype)?);
        let (model, vocabulary) = (pretrained.model().clone(), pretrained.vocabulary().clone());
        let constraints = self.plan.constraints(vocabulary.clone(), self.rows);
        let sizes = self.sizes(model.max_positions());
        let engine = Engine::start(model, vocabulary, sizes)?;
        Ok(Functions::running(Arc::new(constraints), engine, pretrained, self.prompt_templates()))
    }
}

/// The files of the embedded model that describe its tokens.
pub fn embedded_files() -> ModelFiles<'static> {
    let text = |bytes: &'static [u8]| Some(String::from_utf8_lossy(bytes));
    ModelFiles {
        tokenizer: burn_dfa_tiny::TOKENIZER.into(),
        config: text(burn_dfa_tiny::CONFIG),
        generation_config: text(burn_dfa_tiny::GENERATION_CONFIG),
        tokenizer_config: text(burn_dfa_tiny::TOKENIZER_CONFIG),
        ..ModelFiles::default()
    }
}

/// The model of a folder, or the embedded one.
fn load(device: &Backend, folder: Option<&Path>, dtype: Weights) -> Result<Pretrained, Failure> {
    let device = device.open().map_err(|failure| failure.to_string())?;
    Ok(match folder {
        None => burn_dfa_tiny::load(&device)?,
        Some(folder) => burn_dfa_decoder::cli::load(folder, dtype, &device)?,
    })
}

fn sizes(range: std::ops::RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}
