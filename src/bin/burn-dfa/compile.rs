//! `burn-dfa compile`: how large the table of a constraint is.

use std::process::ExitCode;
use std::time::Instant;

use burn_dfa::{Layout, Limits, TensorOptions, TensorTable, TokenTable};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::{Output, Result};

/// Compile a constraint for a tokenizer and print the size of its table.
#[derive(Args)]
#[command(mut_arg("tokenizer", |arg| arg.required(true)))]
#[command(after_help = "Examples:
  burn-dfa compile --regex '\\d{4}-\\d\\d-\\d\\d' --tokenizer model/
  burn-dfa compile --schema person.json --tokenizer tokenizer.json --eos 2 --json")]
pub struct Compile {
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
}

impl Compile {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let (constraint, vocabulary) = (self.constraint.read()?, self.tokenizer.read()?);
        let started = Instant::now();
        let table = TokenTable::compile(&constraint, &vocabulary, &Limits::default())?;
        let milliseconds = started.elapsed().as_secs_f64() * 1e3;
        let (width, fingerprint) = (vocabulary.len(), vocabulary.fingerprint());
        let (form, columns) =
            if table.is_walked() { ("walked", "byte classes ") } else { ("tabulated", "token classes") };
        let (states, classes, least) =
            (table.state_count(), table.class_count(), table.tokens_to_end(table.start()));
        let (default, _) = TensorTable::plan(&[&table], width, &TensorOptions::default())?;
        let bytes = [Layout::Dense, Layout::Classes, Layout::Walk].map(|layout| {
            let options =
                TensorOptions { layout: Some(layout), max_bytes: usize::MAX, ..TensorOptions::default() };
            (layout, TensorTable::plan(&[&table], width, &options).map(|(_, bytes)| bytes))
        });
        let name = |layout: Layout| format!("{layout:?}").to_lowercase();
        if out.json {
            let bytes: Map<String, Value> =
                bytes.iter().map(|(layout, bytes)| (name(*layout), json!(bytes.as_ref().ok()))).collect();
            let table = json!({
                "vocabulary": width, "fingerprint": fingerprint.to_string(), "form": form, "states": states,
                "classes": classes, "bytes": bytes, "layout": name(default), "least_tokens": least,
                "milliseconds": milliseconds,
            });
            writeln!(out.to, "{table}")?;
            return Ok(ExitCode::SUCCESS);
        }
        writeln!(out.to, "vocabulary     {width} tokens, {fingerprint}")?;
        writeln!(out.to, "form           {form}")?;
        writeln!(out.to, "states         {states}")?;
        writeln!(out.to, "{columns}  {classes}")?;
        for (layout, bytes) in bytes {
            let chosen = if layout == default { ", chosen" } else { "" };
            match bytes {
                Ok(bytes) => writeln!(out.to, "bytes          {bytes} ({}{chosen})", name(layout))?,
                Err(error) => writeln!(out.to, "bytes          none ({}: {error})", name(layout))?,
            }
        }
        writeln!(out.to, "least tokens   {least} (end of sequence included)")?;
        writeln!(out.to, "compiled in    {milliseconds:.1} ms")?;
        Ok(ExitCode::SUCCESS)
    }
}
