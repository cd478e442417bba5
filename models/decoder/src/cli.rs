//! Generation from the command line, with the arguments and the output of `burn-dfa-generate`.
//!
//! ```
//! use burn_dfa_decoder::cli::GenerateArgs;
//! use clap::Parser;
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     generate: GenerateArgs,
//! }
//!
//! let args = Args::parse_from(["tool", "--prompt", "Name a colour.", "--choice", "red", "--choice", "blue"]);
//! assert!(args.generate.constraint.is_some());
//! assert!(args.generate.load()?.is_none()); // `--model` names no folder
//! # Ok::<(), burn_dfa::cli::Failure>(())
//! ```

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anstream::{eprintln, print, println};
use anstyle::{AnsiColor, Style};
use burn::tensor::{Device, FloatDType};
use burn_dfa::TokenId;
use burn_dfa::cli::{Backend, CompileArgs, ConstraintArgs, DeviceArgs, Failure, SamplingArgs};
use burn_dfa::generation::{CausalLm, DecodeGraph, Finish, Output, Pieces, Request, stream};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{DecoderError, Message, Pretrained};

const DIM: Style = AnsiColor::BrightBlack.on_default();

/// The exit code where an output was cut off.
const CUT_OFF: u8 = 1;

/// The float type of a model's weights, as it is written on a command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Weights {
    /// As they are stored; f32 on a device that lacks that type.
    #[default]
    Stored,
    /// 32-bit floats.
    F32,
    /// 16-bit floats of IEEE 754.
    F16,
    /// 16-bit floats with the exponents of f32.
    Bf16,
}

impl From<Weights> for Option<FloatDType> {
    fn from(weights: Weights) -> Self {
        match weights {
            Weights::Stored => None,
            Weights::F32 => Some(FloatDType::F32),
            Weights::F16 => Some(FloatDType::F16),
            Weights::Bf16 => Some(FloatDType::BF16),
        }
    }
}

/// Reads a model, and draws how far it has come where standard error is a terminal.
///
/// # Errors
/// As [`Pretrained::load`].
pub fn load(folder: &Path, dtype: Weights, device: &Device) -> Result<Pretrained, DecoderError> {
    let style =
        ProgressStyle::with_template("loading {msg} {wide_bar} {decimal_bytes} of {decimal_total_bytes}");
    let bar =
        ProgressBar::new(0).with_style(style.expect("a template")).with_message(folder.display().to_string());
    let loaded = Pretrained::load_with_progress(folder, dtype, device, |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.bytes);
    });
    bar.finish_and_clear();
    loaded
}

/// What to generate, with which model, under which constraint.
#[derive(Args, Clone, Debug)]
pub struct GenerateArgs {
    /// A Hugging Face folder: config.json, tokenizer.json, model.safetensors.
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// What the model is asked, through its chat template where it has one. Default: what standard input holds.
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// What a chat model is told about its task.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// No chat template: the model goes on with the prompt.
    #[arg(long, conflicts_with = "system")]
    plain: bool,
    /// The constraint.
    #[command(flatten)]
    pub constraint: ConstraintArgs,
    /// Leave the constraint out.
    #[arg(long)]
    pub unconstrained: bool,
    /// How the constraint is compiled.
    #[command(flatten)]
    compile: CompileArgs,
    /// What its table may take on the device.
    #[command(flatten)]
    device: DeviceArgs,
    /// How tokens are chosen.
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Where the model runs: flex, vulkan, wgpu, cuda, or remote:ws://host:port. All but flex need the feature of the same name.
    #[arg(long, value_name = "DEVICE", default_value = "flex", visible_alias = "device")]
    pub backend: Backend,
    /// The float type of the weights.
    #[arg(long, value_name = "TYPE", value_enum, default_value_t)]
    pub dtype: Weights,
    /// Rows to generate from the prompt.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=4096))]
    pub batch: u64,
    /// Record the decode step once and replay it; a device that cannot, such as Flex, runs it again.
    #[arg(long)]
    pub graph: bool,
    /// One JSON object per row, on a line each, instead of text.
    #[arg(long)]
    pub json: bool,
}

impl GenerateArgs {
    /// The model of the folder; `None` where none is named.
    ///
    /// # Errors
    /// As [`Pretrained::load`], and a backend that is not compiled in.
    pub fn load(&self) -> Result<Option<Pretrained>, Failure> {
        let device = self.backend.open()?;
        let loaded = self.model.as_deref().map(|folder| load(folder, self.dtype, &device));
        Ok(loaded.transpose()?)
    }

    /// Generates, printing text as it comes, or JSON. The exit code is 0, or 1 where `--max-tokens` cut an output off.
    ///
    /// # Errors
    /// What the user got wrong, or the model cannot do.
    pub fn run(&self, pretrained: &Pretrained) -> Result<ExitCode, Failure> {
        let tokens = self.encode(pretrained)?;
        let vocabulary = pretrained.vocabulary();
        let constraint = if self.unconstrained { None } else { self.constraint.read()? };
        let compiling = Instant::now();
        let compile = |constraint| self.compile.table(&constraint, vocabulary);
        let table = constraint.map(compile).transpose()?;
        if let Some(table) = table.as_ref().filter(|_| !self.json) {
            eprintln!(
                "{DIM}{} states, {} {}, compiled in {:.1} ms{DIM:#}",
                table.state_count(),
                table.class_count(),
                if table.is_walked() { "byte classes, walked" } else { "token classes" },
                compiling.elapsed().as_secs_f64() * 1e3
            );
        }
        let request = |row| {
            let request = Request::new(tokens.clone(), self.sampling.max_tokens);
            Request { table: table.as_ref(), ..request.with_seed(self.sampling.seed(row)) }
        };
        let requests: Vec<_> = (0..self.batch).map(request).collect();

        let model = pretrained.model();
        let config = self.sampling.config().with_tensors(self.device.options());
        let started = Instant::now();
        let outputs = if self.graph {
            let slots = tokens.len().saturating_add(self.sampling.max_tokens);
            let mut graph = DecodeGraph::record(model, vocabulary, &requests, &config, slots)?;
            self.show(graph.stream(&requests)?)?
        } else {
            self.show(stream(model, vocabulary, &requests, &config)?)?
        };
        model.device().sync().map_err(|error| format!("{error:?}"))?;
        let seconds = started.elapsed().as_secs_f64();
        self.report(&outputs, table.is_some(), seconds);
        let cut_off = outputs.iter().any(|output| output.finish == Finish::MaxNewTokens);
        Ok(ExitCode::from(if cut_off { CUT_OFF } else { 0 }))
    }

    /// The prompt as the model expects it.
    fn encode(&self, pretrained: &Pretrained) -> Result<Vec<TokenId>, Failure> {
        let mut text = String::new();
        let text = match &self.prompt {
            Some(prompt) => prompt,
            None if std::io::stdin().is_terminal() => "",
            None => {
                std::io::stdin().read_to_string(&mut text).map_err(|e| format!("standard input: {e}"))?;
                text.trim_ascii_end()
            }
        };
        if text.is_empty() {
            return Err("what is the model asked? give a --prompt, or a text on standard input".into());
        }
        Ok(match &self.system {
            Some(system) => pretrained.encode_chat(&[Message::system(system), Message::user(text)])?,
            None if self.plain => pretrained.encode(text)?,
            None => pretrained.prompt(text)?,
        })
    }

    /// Whether text is shown as it comes; that of several rows would be mixed.
    fn streams(&self) -> bool {
        !self.json && self.batch == 1
    }

    fn show(&self, mut pieces: Pieces) -> Result<Vec<Output>, Failure> {
        for piece in &mut pieces {
            let piece = piece?;
            if self.streams() {
                print!("{}", piece.text);
                std::io::stdout().flush()?;
            }
        }
        Ok(pieces.stop())
    }

    fn report(&self, outputs: &[Output], constrained: bool, seconds: f64) {
        if self.streams() {
            println!();
        }
        for output in outputs {
            if self.json {
                let row = json!({
                    "text": output.text(),
                    "token_ids": output.tokens.iter().map(|token| token.0).collect::<Vec<_>>(),
                    "complete": output.is_complete(),
                    "constraint": constrained.then(|| self.constraint.to_string()),
                    "seconds": seconds,
                });
                println!("{row}");
            } else if !self.streams() {
                println!("{}", output.text());
            }
        }
        if !self.json {
            let generated: usize = outputs.iter().map(|output| output.tokens.len()).sum();
            let rate = generated as f64 / seconds;
            eprintln!("{DIM}{generated} tokens in {seconds:.2} s, {rate:.0} tokens/s{DIM:#}");
        }
    }
}
