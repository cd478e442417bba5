//! The command line over the library: compile, check, explain, draw and sample constraints, inspect
//! compiled constraints, print vocabularies, measure corpora, check devices.

mod args;
mod check;
mod compile;
mod completions;
mod corpus;
mod doctor;
mod draw;
mod explain;
mod generate;
mod inspect;
mod output;
mod sample;
mod vocab;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use burn_dfa::cli::{parse, report};
use clap::{CommandFactory, Parser, Subcommand};

use output::{Output, Result, Styles};

/// Compile, check, explain, draw and sample constraints for constrained decoding.
///
/// Exit codes: 0, success; 1, the work failed: a check does not hold, a constraint is refused, or a
/// device fails; 2, wrong usage, such as an unknown option or an unreadable file.
#[derive(Parser)]
#[command(name = "burn-dfa", version)]
#[command(after_help = "Examples:
  burn-dfa check --regex '[0-9]{4}-[0-9]{2}' 2026-11
  burn-dfa draw --regex '(cat|dog)s?' -o automaton.svg
  burn-dfa compile --schema person.json --tokenizer model/ -o person.safetensors
  burn-dfa inspect person.safetensors")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print JSON: one object, or one per line. Errors are printed to standard error as
    /// {"error": "…"}.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    Compile(compile::Compile),
    Check(check::Check),
    Draw(draw::Draw),
    Explain(explain::Explain),
    Inspect(inspect::Inspect),
    Sample(sample::Sample),
    Vocab(vocab::Vocab),
    Corpus(corpus::Corpus),
    Generate(generate::Generate),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
}

fn main() -> ExitCode {
    let cli: Cli = parse();
    let styles = Styles::of(&io::stdout());
    let mut stdout = BufWriter::new(io::stdout().lock());
    let result = run(&cli.command, &mut Output { to: &mut stdout, json: cli.json, styles });
    let result = result.and_then(|code| Ok(stdout.flush().map(|()| code)?));
    result.unwrap_or_else(|error| report(&error, cli.json))
}

fn run(command: &Command, out: &mut Output) -> Result<ExitCode> {
    match command {
        Command::Compile(command) => command.run(out),
        Command::Check(command) => command.run(out),
        Command::Draw(command) => command.run(out),
        Command::Explain(command) => command.run(out),
        Command::Inspect(command) => command.run(out),
        Command::Sample(command) => command.run(out),
        Command::Vocab(command) => command.run(out),
        Command::Corpus(command) => command.run(out),
        Command::Generate(command) => command.run(out),
        Command::Doctor(command) => command.run(out),
        Command::Completions(command) => command.run(Cli::command(), out),
    }
}
