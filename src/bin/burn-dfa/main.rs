//! The command line over the library: compile, check, explain, draw and sample constraints, inspect artefacts, write
//! vocabularies down, measure a corpus.

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
mod inspect;
mod sample;
mod style;
mod vocab;

use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use style::Styles;

/// Compile, check, explain, draw and sample constraints for constrained decoding.
///
/// Exit codes: 0, done, or the text matches; 1, a text does not match, a schema is refused, an artefact is not sound,
/// or a figure got worse; 2, an error.
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
    /// Print JSON: an object, or one per line; an error is one as well.
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
    Completions(completions::Completions),
}

/// What a subcommand returns: an error is printed, and the exit code 2.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Where a subcommand prints.
struct Output<'a> {
    to: &'a mut dyn Write,
    json: bool,
    styles: Styles,
}

/// The exit code of a text that does not match.
const NO_MATCH: u8 = 1;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let styles = Styles::of(&io::stdout());
    let mut stdout = BufWriter::new(io::stdout().lock());
    let result = run(&cli.command, &mut Output { to: &mut stdout, json: cli.json, styles });
    let result = result.and_then(|code| Ok(stdout.flush().map(|()| code)?));
    result.unwrap_or_else(|error| {
        // A reader that has read enough, such as `head`.
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            return ExitCode::SUCCESS;
        }
        if cli.json {
            eprintln!("{}", serde_json::json!({"error": error.to_string()}));
        } else {
            let bad = Styles::of(&io::stderr()).bad;
            eprintln!("{bad}error:{bad:#} {error}");
        }
        ExitCode::from(2)
    })
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
        Command::Completions(command) => command.run(out),
    }
}
