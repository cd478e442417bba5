//! The command line over the library: compile a constraint, check a text against it, measure a corpus.

mod args;
mod check;
mod compile;
mod corpus;
mod cutter;
mod random;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Compile and inspect constraints for constrained decoding.
///
/// Exit codes: 0, or the text matches; 1, a text does not match, or a figure got worse; 2, an error.
#[derive(Parser)]
#[command(name = "burn-dfa", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Compile(compile::Compile),
    Check(check::Check),
    Corpus(corpus::Corpus),
}

/// What a subcommand returns: an error is printed, and the exit code 2.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The exit code of a text that does not match.
const NO_MATCH: u8 = 1;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Compile(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Corpus(command) => command.run(),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}
