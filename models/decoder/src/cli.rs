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
//! let args = ["tool", "--prompt", "Name a color.", "--choice", "red", "--choice", "blue"];
//! let args = Args::parse_from(args);
//! assert!(args.generate.constraint.is_some());
//! assert!(args.generate.load()?.is_none()); // `--model` names no model
//! # Ok::<(), burn_dfa::cli::Failure>(())
//! ```

use std::cell::OnceCell;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anstream::eprintln;
use anstyle::{AnsiColor, Style};
use burn::tensor::{Device, FloatDType};
use burn_dfa::cli::{Backend, CompileArgs, ConstraintArgs, DeviceArgs, Failure, SamplingArgs};
use burn_dfa::generation::{
    DecodeGraph, FinishReason, GenerationConfig, Output, Request, TokenStream, stream,
};
use burn_dfa::{CompiledConstraint, TokenId, Vocabulary};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{DecoderError, Message, Pretrained, PretrainedFolder};

const DIM: Style = AnsiColor::BrightBlack.on_default();

/// The exit code if an output was cut off.
const CUT_OFF: u8 = 1;

/// The type of a model's weights in memory, as written on a command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Weights {
    /// The stored float type; f32 on a device that lacks it. On flex the quantized blocks of a GGUF
    /// file take as much memory as in the file, and multiply as they are stored. Other devices
    /// dequantize them to f32, 4 bytes a weight.
    #[default]
    Stored,
    /// 32-bit floats, 4 bytes a weight. Quantized blocks are dequantized.
    F32,
    /// 16-bit floats of IEEE 754, 2 bytes a weight. Quantized blocks are dequantized and rounded.
    F16,
    /// 16-bit floats with the exponents of f32, 2 bytes a weight. Quantized blocks are dequantized
    /// and rounded.
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

/// Reads a model, and draws a progress bar if standard error is a terminal.
///
/// # Errors
/// As [`Pretrained::load`].
pub fn load(folder: &Path, dtype: Weights, device: &Device) -> Result<Pretrained, DecoderError> {
    read_weights(Pretrained::open(folder)?, folder, dtype, device)
}

/// Reads the weights of `opened`, and draws a progress bar if standard error is a terminal.
fn read_weights(
    opened: PretrainedFolder,
    folder: &Path,
    dtype: Weights,
    device: &Device,
) -> Result<Pretrained, DecoderError> {
    let style = ProgressStyle::with_template(
        "loading {msg} {wide_bar} {decimal_bytes} of {decimal_total_bytes}, {eta} left",
    );
    let bar =
        ProgressBar::new(0).with_style(style.expect("a template")).with_message(folder.display().to_string());
    let loaded = opened.load(dtype, device, |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.bytes);
    });
    bar.finish_and_clear();
    loaded
}

/// The model, the prompt, the constraint and the options of a generation.
#[derive(Args, Clone, Debug)]
pub struct GenerateArgs {
    /// A GGUF file, or a Hugging Face folder: config.json, tokenizer.json, model.safetensors.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// The user's prompt, written with the chat template if the model has one. Default: read from
    /// standard input.
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// The system message for a chat model.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Use no chat template: the model continues the prompt.
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
    /// Limits of the device constraint.
    #[command(flatten)]
    device: DeviceArgs,
    /// How tokens are chosen.
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Where the model runs: flex, vulkan, wgpu, cuda, or remote:ws://host:port. All but flex need
    /// the feature of the same name.
    #[arg(long = "device", value_name = "DEVICE", default_value = "flex")]
    pub backend: Backend,
    /// The type of the weights in memory. With stored, flex keeps the quantized blocks of a GGUF
    /// file; with the other types, and on other devices, they become floats.
    #[arg(long, value_name = "TYPE", value_enum, default_value_t)]
    pub dtype: Weights,
    /// Number of outputs to generate from the prompt.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub batch: u64,
    /// Record the decode step once and replay it; a device that cannot, such as Flex, runs it
    /// again.
    #[arg(long)]
    pub graph: bool,
    /// Print the prompt as the model reads it, special tokens included, to standard error.
    #[arg(long)]
    show_prompt: bool,
    /// Print JSON, one object per output and line. Errors are printed to standard error as
    /// {"error": "…"}.
    #[arg(long)]
    pub json: bool,
    /// The compiled constraint, made before the weights are read.
    #[arg(skip)]
    compiled_constraint: OnceCell<Option<CompiledConstraint>>,
}

impl GenerateArgs {
    /// Loads the model of the folder or file; `None` if none is given. The constraint is compiled
    /// before the weights are read.
    ///
    /// # Errors
    /// As [`Pretrained::load`], a backend that is not compiled in, and a constraint that is
    /// rejected.
    pub fn load(&self) -> Result<Option<Pretrained>, Failure> {
        let device = self.backend.open()?;
        let Some(folder) = self.model.as_deref() else { return Ok(None) };
        let opened = Pretrained::open(folder)?;
        self.compiled(opened.vocabulary())?;
        self.name_sampling(opened.generation_config());
        Ok(Some(read_weights(opened, folder, self.dtype, &device)?))
    }

    /// If the user samples greedily, prints the sampling options that the model's
    /// `generation_config.json` recommends.
    fn name_sampling(&self, generation_config: Option<&str>) {
        let Some(text) = generation_config.filter(|_| !self.json) else { return };
        if self.sampling.config().sampling.temperature.is_some() {
            return;
        }
        let sampling = match GenerationConfig::from_json(text) {
            Ok(config) => config.sampling,
            Err(error) => {
                eprintln!("{DIM}note: decoding is greedy; {error}{DIM:#}");
                return;
            }
        };
        let Some(temperature) = sampling.temperature else { return };
        let mut options = vec![format!("--temperature {temperature}")];
        options.extend(sampling.top_k.map(|k| format!("--top-k {k}")));
        options.extend(sampling.top_p.map(|p| format!("--top-p {p}")));
        options.extend(sampling.min_p.map(|p| format!("--min-p {p}")));
        let options = options.join(" ");
        eprintln!(
            "{DIM}note: decoding is greedy; the model's generation_config.json recommends {options}{DIM:#}"
        );
    }

    /// The compiled constraint; `None` for free text.
    fn compiled(&self, vocabulary: &Vocabulary) -> Result<Option<&CompiledConstraint>, Failure> {
        if let Some(compiled) = self.compiled_constraint.get() {
            return Ok(compiled.as_ref());
        }
        let constraint = if self.unconstrained { None } else { self.constraint.read()? };
        if let Some(constraint) = &constraint {
            self.constraint.warn(constraint, &self.compile.limits(), false, self.json);
        }
        let compiling = Instant::now();
        let compiled =
            constraint.map(|constraint| self.compile.compile(&constraint, vocabulary)).transpose()?;
        if let Some(compiled) = compiled.as_ref().filter(|_| !self.json) {
            eprintln!(
                "{DIM}{} states, {} {}, compiled in {:.1} ms{DIM:#}",
                compiled.state_count(),
                compiled.class_count(),
                if compiled.is_byte_level() { "byte classes, byte-level" } else { "token classes" },
                compiling.elapsed().as_secs_f64() * 1e3
            );
        }
        Ok(self.compiled_constraint.get_or_init(|| compiled).as_ref())
    }

    /// Generates and prints text as it comes, or JSON. The exit code is 0, or 1 if `--max-tokens`
    /// cut an output off.
    ///
    /// # Errors
    /// The user made a mistake, the model does not support the request, the device failed, or the
    /// output cannot be written.
    pub fn run(&self, pretrained: &Pretrained) -> Result<ExitCode, Failure> {
        let tokens = self.encode(pretrained)?;
        let vocabulary = pretrained.vocabulary();
        let constraint = self.compiled(vocabulary)?;
        if self.show_prompt {
            let prompt = tokens.iter().flat_map(|&token| vocabulary.content(token).unwrap_or_default());
            let prompt: Vec<u8> = prompt.copied().collect();
            eprintln!("{DIM}{}{DIM:#}", String::from_utf8_lossy(&prompt));
        }
        let request = |row| {
            let request = Request::new(tokens.clone(), self.sampling.max_tokens);
            Request { constraint: constraint.cloned(), ..request.with_seed(self.sampling.seed(row)) }
        };
        let requests: Vec<_> = (0..self.batch).map(request).collect();

        let model = pretrained.model();
        let mut config = self.sampling.config().with_tensors(self.device.options());
        if self.streams() {
            // A reader of the stream wants each token immediately.
            config = config.with_sync_interval(1);
        }
        let (outputs, times) = if self.graph {
            let slots = tokens.len().saturating_add(self.sampling.max_tokens);
            let mut graph = DecodeGraph::record(model, vocabulary, &requests, &config, slots)?;
            let started = Instant::now();
            self.show(graph.stream(&requests)?, started)?
        } else {
            let started = Instant::now();
            self.show(stream(model, vocabulary, &requests, &config)?, started)?
        };
        self.report(&outputs, constraint.is_some(), tokens.len(), times)?;
        let cut_off = outputs.iter().any(|output| output.finish == FinishReason::MaxNewTokens);
        Ok(ExitCode::from(if cut_off { CUT_OFF } else { 0 }))
    }

    /// Encodes the prompt in the form that the model expects.
    fn encode(&self, pretrained: &Pretrained) -> Result<Vec<TokenId>, Failure> {
        let mut text = String::new();
        let text = match &self.prompt {
            Some(prompt) => prompt,
            None if io::stdin().is_terminal() => "",
            None => {
                io::stdin()
                    .read_to_string(&mut text)
                    .map_err(|e| format!("cannot read standard input: {e}"))?;
                text.trim_ascii_end()
            }
        };
        if text.is_empty() {
            return Err("no prompt is given: give --prompt, or a text on standard input".into());
        }
        Ok(match &self.system {
            Some(system) => pretrained.encode_chat(&[Message::system(system), Message::user(text)])?,
            None if self.plain => pretrained.encode(text)?,
            None => pretrained.prompt(text)?,
        })
    }

    /// Whether text is printed as it comes; the text of several rows would be mixed.
    fn streams(&self) -> bool {
        !self.json && self.batch == 1
    }

    /// Prints the text as it comes, including escape sequences that the model generated.
    fn show(&self, mut stream: TokenStream, started: Instant) -> Result<(Vec<Output>, Times), Failure> {
        let (mut first, mut stdout) = (None, io::stdout());
        for chunk in &mut stream {
            let chunk = chunk?;
            first.get_or_insert_with(|| started.elapsed());
            if self.streams() {
                write!(stdout, "{}", chunk.text)?;
                stdout.flush()?;
            }
        }
        let all = started.elapsed();
        Ok((stream.stop(), Times { first: first.unwrap_or(all), all }))
    }

    fn report(
        &self,
        outputs: &[Output],
        constrained: bool,
        prompt_tokens: usize,
        times: Times,
    ) -> io::Result<()> {
        let mut stdout = io::stdout();
        if self.streams() {
            writeln!(stdout)?;
        }
        for output in outputs {
            if self.json {
                let row = json!({
                    "text": output.text(),
                    "token_ids": output.tokens.iter().map(|token| token.0).collect::<Vec<_>>(),
                    "complete": output.is_complete(),
                    "constraint": constrained.then(|| self.constraint.to_string()),
                    "prompt_tokens": prompt_tokens,
                    "seconds": times.all.as_secs_f64(),
                });
                writeln!(stdout, "{row}")?;
            } else if !self.streams() {
                writeln!(stdout, "{}", output.text())?;
            }
        }
        if self.json {
            return Ok(());
        }
        let generated: usize = outputs.iter().map(|output| output.tokens.len()).sum();
        let said = if self.streams() {
            times.to_string(prompt_tokens, generated)
        } else {
            let seconds = times.all.as_secs_f64();
            format!("{generated} tokens in {seconds:.2} s, {:.0} tokens/s", generated as f64 / seconds)
        };
        eprintln!("{DIM}{said}{DIM:#}");
        if outputs.iter().any(|output| output.finish == FinishReason::MaxNewTokens) {
            let max = self.sampling.max_tokens;
            eprintln!("{DIM}note: cut off by --max-tokens {max}: raise it, or give a constraint{DIM:#}");
        }
        Ok(())
    }
}

/// How long a generation took.
struct Times {
    /// Time to the first token, mostly spent on the prompt.
    first: Duration,
    all: Duration,
}

impl Times {
    /// The times of one row whose tokens were read one by one.
    fn to_string(&self, prompt_tokens: usize, generated: usize) -> String {
        let (prompt, decode) = (self.first.as_secs_f64(), (self.all - self.first).as_secs_f64());
        let said = format!(
            "prompt of {prompt_tokens} tokens in {prompt:.2} s, {:.0} tokens/s",
            prompt_tokens as f64 / prompt
        );
        match generated {
            0 | 1 => format!("{said}; {generated} token"),
            _ => format!(
                "{said}; {generated} tokens in {:.2} s, {:.1} tokens/s after the first",
                self.all.as_secs_f64(),
                (generated - 1) as f64 / decode
            ),
        }
    }
}
