//! `burn-dfa compile`: how large the table of a constraint is.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use burn_dfa::{Layout, Limits, TensorOptions, TensorTable, TokenTable};
use clap::Args;

use crate::Result;
use crate::args::{ConstraintArgs, vocabulary};

/// Compile a constraint for a tokenizer and print the size of its table.
///
/// burn-dfa compile --regex '\d{4}-\d\d-\d\d' --tokenizer model/
#[derive(Args)]
pub struct Compile {
    #[command(flatten)]
    constraint: ConstraintArgs,
    /// A tokenizer.json, or a folder that holds one.
    #[arg(long, value_name = "PATH")]
    tokenizer: PathBuf,
    /// Ids that end a sequence, instead of those that the folder names.
    #[arg(long, value_name = "ID", num_args = 1..)]
    eos: Vec<u32>,
}

impl Compile {
    pub fn run(&self) -> Result<ExitCode> {
        let (constraint, vocabulary) = (self.constraint.read()?, vocabulary(&self.tokenizer, &self.eos)?);
        let started = Instant::now();
        let table = TokenTable::compile(&constraint, &vocabulary, &Limits::default())?;
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
        Ok(ExitCode::SUCCESS)
    }
}
