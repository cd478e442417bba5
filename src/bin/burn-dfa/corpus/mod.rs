//! `burn-dfa corpus`: compiles, times and checks token by token schemas, regexes, grammars and
//! structural tags with known verdicts.

mod baseline;
mod measure;
mod parts;
mod read;
mod rows;
mod spelled;
mod summary;
mod toy;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn_dfa::cli::{DeviceArgs, JsonArgs, LimitArgs};
use burn_dfa::constraint::{Formats, JsonOptions, Numbers};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::args::TokenizerArgs;
use crate::output::{FOUND, Output, Result};
use baseline::Baseline;
use measure::{Bench, Outcome};
use read::read;
use rows::Row;
use summary::Summary;

/// Compile every schema, regex, grammar and structural tag of some files, and check its instances
/// token by token.
///
/// A file holds JSON lines `{id, schema, tests: [{valid, data, needs_format?}]}`,
/// `{schema, accepts, rejects}`, `{regex, accepts, rejects}` or `{kind:
/// "gbnf"|"ebnf"|"lark"|"structural_tag", grammar, start?, accepts, rejects, prefixes?, dead?,
/// compiles?}`, a JSON array of such objects, or of groups of the official test suite of JSON
/// Schema. A schema is JSON, or a string with its text. A value is written in the schema's order of
/// properties, with the requested white space, and with its numbers as spelled in the file.
/// `NAME.cases.jsonl` holds lines `{accepts: TEXT}`, `{rejects: TEXT}` or `{incomplete: TEXT}` of
/// the grammar in the same folder, NAME.gbnf, NAME.ebnf or NAME.lark. A row with its own
/// vocabulary, `vocab` and `stop`, has lists of token ids instead of texts, and
/// `masks: [{after, allowed}]`. An instance that the tokenizer cannot spell counts as not spelled,
/// neither accepted nor rejected. The last printed line summarizes all files.
#[derive(Args)]
#[command(mut_arg("tokenizer", |arg| arg.required(true)))]
#[command(mut_arg("max_seconds", |arg| arg.default_value("2").visible_alias("seconds")))]
#[command(mut_arg("max_threads", |arg| arg.default_value("1")))]
#[command(after_help = "Examples:
  burn-dfa corpus --tokenizer tokenizer.json -o rows.jsonl maskbench/*.jsonl
  burn-dfa corpus --tokenizer tokenizer.json examples/grammars/*.cases.jsonl
  burn-dfa corpus --tokenizer tokenizer.json --baseline benches/results/corpus.json maskbench/*.jsonl")]
pub struct Corpus {
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// Take only the rows whose id contains TEXT.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Write a JSON line for each row to FILE.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Number of threads; compare only times of one thread.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,
    /// Number of random texts to draw from each compiled schema; each text must be JSON.
    #[arg(long, value_name = "N", default_value_t = 0)]
    samples: usize,
    #[command(flatten)]
    json: JsonArgs,
    /// Treat `format` as an annotation, as the official test suite does, instead of asserting it.
    #[arg(long)]
    annotate_formats: bool,
    /// Allow every spelling of `integer` in its draft, such as `10.0`, as the official test suite
    /// does, instead of only digits.
    #[arg(long)]
    any_integers: bool,
    /// How often to follow a recursive reference, instead of as often as is cheap.
    #[arg(long, value_name = "N")]
    recursion: Option<usize>,
    /// Levels of nesting if a schema allows any JSON, instead of as many as are cheap.
    #[arg(long, value_name = "N")]
    any_depth: Option<usize>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// A file of counts to compare with: exit code 1 if a count got worse.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the counts to the file of `--baseline` instead.
    #[arg(long, requires = "baseline")]
    update: bool,
    /// Files of schemas, regexes and grammars.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Corpus {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let vocabulary = self.tokenizer.read()?;
        let create = |path: &PathBuf| {
            let file = std::fs::File::create(path);
            file.map(BufWriter::new).map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        let mut lines = self.output.as_ref().map(create).transpose()?;
        let baseline = self.baseline.as_deref().filter(|_| !self.update);
        let baseline = baseline.map(|path| Baseline::read(path, &vocabulary)).transpose()?;
        let options = self.json.over(JsonOptions {
            formats: if self.annotate_formats { Formats::Annotate } else { Formats::Assert },
            numbers: if self.any_integers { Numbers::Any } else { Numbers::Plain },
            recursion: self.recursion,
            any_depth: self.any_depth,
            ..JsonOptions::default()
        });
        let (limits, tensors) = (self.limits.limits(), self.device.options());
        let bench = Bench::new(&vocabulary, self.samples, options, limits, tensors);
        let mut summaries: Vec<(String, Summary)> = Vec::new();
        for path in &self.files {
            let corpus = read(path)?;
            let only = self.only.as_deref().unwrap_or_default();
            let rows: Vec<Row> = corpus.rows.into_iter().filter(|row| row.id.contains(only)).collect();
            let outcomes = self.measure(&bench, &rows, path);
            let mut summary = Summary::new(corpus.skipped);
            for (row, outcome) in rows.iter().zip(outcomes) {
                if let Some(lines) = &mut lines {
                    writeln!(lines, "{}", outcome.json(row, path))?;
                }
                summary.add(row, outcome);
            }
            let name = name(path);
            if out.json {
                writeln!(out.to, "{}", json!({"file": name, "summary": summary.json()}))?;
            } else {
                writeln!(out.to, "{name}\n{summary}")?;
            }
            out.to.flush()?;
            summaries.push((name, summary));
        }
        if let Some(mut lines) = lines {
            lines.flush()?;
        }
        if let (true, Some(path)) = (self.update, &self.baseline) {
            Baseline::new(&vocabulary, &summaries).write(path)?;
        }
        let worse = baseline.map(|baseline| baseline.worse(&summaries)).transpose()?.unwrap_or_default();
        let total = summaries.into_iter().map(|(_, summary)| summary).fold(Summary::default(), Summary::plus);
        if out.json {
            writeln!(out.to, "{}", json!({"worse": worse, "summary": total.json()}))?;
        } else {
            for line in &worse {
                writeln!(out.to, "worse: {line}")?;
            }
            writeln!(out.to, "{}", total.line())?;
        }
        Ok(ExitCode::from(if worse.is_empty() { 0 } else { FOUND }))
    }

    /// The outcomes of `rows`, in order.
    fn measure(&self, bench: &Bench, rows: &[Row], path: &Path) -> Vec<Outcome> {
        let style = ProgressStyle::with_template("checking {msg} {wide_bar} {pos} of {len}, {eta} left");
        let bar = ProgressBar::new(rows.len() as u64).with_message(name(path));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let next = AtomicUsize::new(0);
        let outcomes: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::with_capacity(rows.len()));
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(row) = rows.get(at) else { return };
                let outcome = bench.run(row);
                bar.inc(1);
                outcomes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, outcome));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(work);
            }
        });
        bar.finish_and_clear();
        let mut outcomes = outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        outcomes.sort_by_key(|&(at, _)| at);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

/// The last two parts of the path of a file.
fn name(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts[parts.len().saturating_sub(2)..].join("/")
}
