//! A model writes text that matches a constraint.
//!
//! Without arguments, the embedded model answers a few prompts unconstrained and constrained, side by side:
//!
//!     cargo run --release --example smollm2
//!
//! With arguments it does what `burn-dfa generate` does, with the embedded model where no other is named.

mod demo;

use std::process::ExitCode;

use burn_dfa::cli::{Failure, parse, report};
use burn_dfa_decoder::cli::GenerateArgs;
use clap::Parser;

/// Text from a model of a Hugging Face folder that matches a constraint. Without `--model`, the embedded one; without anything to
/// generate, a demonstration.
#[derive(Parser)]
#[command(name = "smollm2")]
struct Cli {
    #[command(flatten)]
    generate: GenerateArgs,
}

fn main() -> ExitCode {
    let Cli { generate } = parse();
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

/// Whether there is nothing to generate but the demonstration.
fn is_demo(args: &GenerateArgs) -> bool {
    let sampled = !args.sampling.config().sampling.is_greedy();
    let other = args.json || args.unconstrained || args.graph || args.batch != 1;
    args.prompt.is_none() && args.model.is_none() && !args.constraint.is_some() && !sampled && !other
}
