//! Generates text that matches a constraint.
//!
//! Without arguments, the embedded model answers a few prompts unconstrained and constrained:
//!
//!     cargo run --release --example smollm2
//!
//! With arguments it works as `burn-dfa generate`, with the embedded model as the default.

mod demo;

use std::process::ExitCode;

use burn_dfa::cli::{Failure, parse, report};
use burn_dfa_decoder::cli::GenerateArgs;
use clap::Parser;

/// Generate text that matches a constraint, with a model of a Hugging Face folder or a GGUF file.
/// Default: the embedded model, which was trained on compact JSON, the default of `--whitespace`
/// for it. Without options, run a demonstration.
#[derive(Parser)]
#[command(name = "smollm2")]
struct Cli {
    #[command(flatten)]
    generate: GenerateArgs,
}

fn main() -> ExitCode {
    let Cli { mut generate } = parse();
    if generate.model.is_none() {
        generate.constraint.or_whitespace(burn_dfa_tiny::WHITESPACE);
    }
    run(&generate).unwrap_or_else(|error| report(&error, generate.json))
}

fn run(args: &GenerateArgs) -> Result<ExitCode, Failure> {
    let pretrained = match args.load()? {
        Some(pretrained) => pretrained,
        None => burn_dfa_tiny::load(&args.backend.open()?)?,
    };
    if is_demo(args) {
        demo::run(args, &pretrained)?;
        return Ok(ExitCode::SUCCESS);
    }
    args.run(&pretrained)
}

/// Whether to run only the demonstration.
fn is_demo(args: &GenerateArgs) -> bool {
    let sampled = !args.sampling.config().sampling.is_greedy();
    let other = args.json || args.unconstrained || args.graph || args.batch != 1;
    args.prompt.is_none() && args.model.is_none() && !args.constraint.is_some() && !sampled && !other
}
