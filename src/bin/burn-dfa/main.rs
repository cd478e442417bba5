//! The command line over the library: compile, check, explain, draw and sample constraints, write vocabularies
//! down, measure a corpus.

mod args;
mod check;
mod classes;
mod compile;
mod completions;
mod corpus;
mod cutter;
mod draw;
mod explain;
mod generate;
mod random;
mod sample;
mod vocab;

use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Compile, check, draw and sample constraints for constrained decoding.
///
/// Exit codes: 0, done, or the text matches; 1, a text does not match, or a figure got worse; 2, an error.
#[derive(Parser)]
#[command(name = "burn-dfa", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print JSON: an object, or one per line.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    Compile(compile::Compile),
    Check(check::Check),
    Draw(draw::Draw),
    Explain(explain::Explain),
    Sample(sample::Sample),
    Vocab(vocab::Vocab),
    Corpus(corpus::Corpus),
    Generate(generate::Generate),
    Completions(completions::Completions),
}

/// What a subcommand returns: an error is printed, and the exit code 2.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Where a subcommand prints.
struct Output<'a> {
    to: &'a mut dyn Write,
    json: bool,
}

/// The exit code of a text that does not match.
const NO_MATCH: u8 = 1;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut stdout = BufWriter::new(io::stdout().lock());
    let result = run(&cli.command, &mut Output { to: &mut stdout, json: cli.json });
    let result = result.and_then(|code| Ok(stdout.flush().map(|()| code)?));
    result.unwrap_or_else(|error| {
        // A reader that has read enough, such as `head`.
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            return ExitCode::SUCCESS;
        }
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}

fn run(command: &Command, out: &mut Output) -> Result<ExitCode> {
    match command {
        Command::Compile(command) => command.run(out),
        Command::Check(command) => command.run(out),
        Command::Draw(command) => command.run(out),
        Command::Explain(command) => command.run(out),
        Command::Sample(command) => command.run(out),
        Command::Vocab(command) => command.run(out),
        Command::Corpus(command) => command.run(out),
        Command::Generate(command) => command.run(out),
        Command::Completions(command) => command.run(out),
    }
}
