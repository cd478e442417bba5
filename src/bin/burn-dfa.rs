//! The command line over the library: compile a constraint, check a text against it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use burn_dfa::{Constraint, Layout, Limits, TensorOptions, TensorTable, TokenId, TokenTable, Vocabulary};
use clap::{Args, Parser, Subcommand};

/// Compile and inspect constraints for constrained decoding.
///
/// Exit codes: 0, or the text matches; 1, a text does not match; 2, an error.
#[derive(Parser)]
#[command(name = "burn-dfa", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile a constraint for a tokenizer and print the size of its table.
    ///
    /// burn-dfa compile --regex '\d{4}-\d\d-\d\d' --tokenizer model/
    Compile {
        #[command(flatten)]
        constraint: ConstraintArgs,
        /// A tokenizer.json, or a folder that holds one.
        #[arg(long, value_name = "PATH")]
        tokenizer: PathBuf,
        /// Ids that end a sequence, instead of those that the folder names.
        #[arg(long, value_name = "ID", num_args = 1..)]
        eos: Vec<u32>,
    },
    /// Check whether texts match a constraint.
    ///
    /// burn-dfa check --schema person.json '{"name":"Ada"}'
    Check {
        #[command(flatten)]
        constraint: ConstraintArgs,
        /// The texts.
        #[arg(required = true)]
        texts: Vec<String>,
    },
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct ConstraintArgs {
    /// A regular expression.
    #[arg(long)]
    regex: Option<String>,
    /// A file that holds a JSON schema.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// One of these strings; give it once for each.
    #[arg(long)]
    choice: Option<Vec<String>>,
    /// A file that holds a `response_format` or `structured_outputs` object.
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Compile { constraint, tokenizer, eos } => {
            compile(&constraint.read()?, &vocabulary(&tokenizer, &eos)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Check { constraint, texts } => check(&constraint.read()?, &texts),
    }
}

fn compile(constraint: &Constraint, vocabulary: &Vocabulary) -> Result<()> {
    let started = Instant::now();
    let table = TokenTable::compile(constraint, vocabulary, &Limits::default())?;
    let elapsed = started.elapsed();
    let (states, classes, width) = (table.state_count(), table.class_count(), vocabulary.len());
    let (form, columns) =
        if table.is_walked() { ("walked", "byte classes ") } else { ("tabulated", "token classes") };
    println!("vocabulary     {width} tokens, {}", vocabulary.fingerprint());
    println!("form           {form}");
    println!("states         {states}");
    println!("{columns}  {classes}");
    let (default, _) = TensorTable::plan(&[&table], width, &TensorOptions::default())?;
    for layout in [Layout::Dense, Layout::Classes, Layout::Walk] {
        let options =
            TensorOptions { layout: Some(layout), max_bytes: usize::MAX, ..TensorOptions::default() };
        let name = format!("{layout:?}").to_lowercase();
        let chosen = if layout == default { ", chosen" } else { "" };
        match TensorTable::plan(&[&table], width, &options) {
            Ok((_, bytes)) => println!("bytes          {bytes} ({name}{chosen})"),
            Err(error) => println!("bytes          none ({name}: {error})"),
        }
    }
    println!("least tokens   {} (end of sequence included)", table.tokens_to_end(table.start()));
    println!("compiled in    {:.1} ms", elapsed.as_secs_f64() * 1e3);
    Ok(())
}

fn check(constraint: &Constraint, texts: &[String]) -> Result<ExitCode> {
    let dfa = constraint.to_byte_dfa(&Limits::default())?;
    let dfa = dfa.ok_or("the constraint is on tokens, not on text")?;
    let mut all = true;
    for text in texts {
        let matches = dfa.matches(text.as_bytes());
        println!("{} {text}", if matches { "match   " } else { "no match" });
        all &= matches;
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn vocabulary(path: &Path, eos: &[u32]) -> Result<Vocabulary> {
    if eos.is_empty() && path.is_dir() {
        return Ok(Vocabulary::from_folder(path)?);
    }
    if eos.is_empty() {
        return Err("which ids end a sequence? give --eos, or the model's folder as --tokenizer".into());
    }
    let file = if path.is_dir() { path.join("tokenizer.json") } else { path.to_owned() };
    Ok(Vocabulary::from_tokenizer_file(file)?.with_eos(eos.iter().map(|&id| TokenId(id)))?)
}

impl ConstraintArgs {
    fn read(&self) -> Result<Constraint> {
        if let Some(pattern) = &self.regex {
            Ok(Constraint::regex(pattern)?)
        } else if let Some(path) = &self.schema {
            Constraint::json_schema(json(path)?).map_err(|e| format!("{}: {e}", path.display()).into())
        } else if let Some(choices) = &self.choice {
            Ok(Constraint::choice(choices.iter().cloned())?)
        } else {
            let path = self.spec.as_deref().ok_or("name a constraint")?;
            let constraint =
                Constraint::from_request(&json(path)?).map_err(|e| format!("{}: {e}", path.display()))?;
            constraint.ok_or_else(|| format!("{} asks for free text", path.display()).into())
        }
    }
}

fn json(path: &Path) -> Result<serde_json::Value> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    Ok(serde_json::from_str(&text).map_err(|e| format!("{} is not JSON: {e}", path.display()))?)
}
