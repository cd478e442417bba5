//! `burn-dfa corpus`: schemas, regexes, grammars and structural tags with known verdicts, compiled, timed and walked token by token.

mod baseline;
mod measure;
mod parts;
mod rows;
mod summary;
mod toy;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn_dfa::cli::{DeviceArgs, LimitArgs};
use burn_dfa::constraint::{Formats, JsonOptions, Whitespace};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::args::TokenizerArgs;
use crate::output::{FOUND, Output, Result};
use baseline::Baseline;
use measure::{Bench, Outcome};
use rows::{Row, read};
use summary::Summary;

/// Compile every schema, regex, grammar and structural tag of some files, and walk its instances token by token.
///
/// A file holds JSON lines `{id, schema, tests: [{valid, data, needs_format?}]}`, `{regex, accepts, rejects}` or
/// `{kind: "gbnf"|"ebnf"|"lark"|"structural_tag", grammar, start?, accepts, rejects, prefixes?, dead?, compiles?}`, a JSON array of
/// such objects, or of groups of the official test suite of JSON Schema. `NAME.cases.jsonl` holds lines `{accepts: TEXT}`, `{rejects: TEXT}` or
/// `{incomplete: TEXT}` of the grammar beside it, NAME.gbnf, NAME.ebnf or NAME.lark. A row with a vocabulary of its own, `vocab` and
/// `stop`, has lists of token ids in the place of texts, and `masks: [{after, allowed}]`. An instance that the
/// tokenizer has no tokens for is counted as not spelled, neither accepted nor rejected. The last line printed sums up
/// all files.
#[derive(Args)]
#[command(mut_arg("tokenizer", |arg| arg.required(true)))]
#[command(mut_arg("max_seconds", |arg| arg.default_value("2").visible_alias("seconds")))]
#[command(mut_arg("max_threads", |arg| arg.default_value("1")))]
#[command(after_help = "Examples:
  burn-dfa corpus --tokenizer tokenizer.json --out rows.jsonl maskbench/*.jsonl
  burn-dfa corpus --tokenizer tokenizer.json examples/grammars/*.cases.jsonl
  burn-dfa corpus --tokenizer tokenizer.json --baseline benches/results/corpus.json maskbench/*.jsonl")]
pub struct Corpus {
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// Take only the rows whose id holds this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Write a JSON line for each row here.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Threads that compile and walk; compare times of one thread alone.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,
    /// Random texts to draw from each compiled schema; each has to be JSON.
    #[arg(long, value_name = "N", default_value_t = 0)]
    samples: usize,
    /// White space in the JSON that schemas are compiled to.
    #[arg(long, value_enum, default_value_t = Spaces::Spaced)]
    whitespace: Spaces,
    /// Take `format` for an annotation, as the official test suite does, instead of asserting it.
    #[arg(long)]
    annotate_formats: bool,
    /// How often a recursive reference is followed, instead of as often as is cheap.
    #[arg(long, value_name = "N")]
    recursion: Option<usize>,
    /// Levels of nesting where a schema allows any JSON, instead of as many as are cheap.
    #[arg(long, value_name = "N")]
    any_depth: Option<usize>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// A file of counts to compare with: exit code 1 where one got worse.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the counts to the file of `--baseline` instead.
    #[arg(long, requires = "baseline")]
    update: bool,
    /// Files of schemas, regexes and grammars.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// White space between the tokens of JSON.
#[derive(Clone, Copy, ValueEnum)]
enum Spaces {
    /// None.
    Compact,
    /// One space after `,` and `:`.
    Spaced,
    /// Lines, two spaces a level.
    Pretty,
    /// At most one space, tab or line end anywhere.
    Flexible,
}

impl From<Spaces> for Whitespace {
    fn from(spaces: Spaces) -> Self {
        match spaces {
            Spaces::Compact => Self::Compact,
            Spaces::Spaced => Self::Spaced,
            Spaces::Pretty => Self::Pretty(2),
            Spaces::Flexible => Self::Flexible(1),
        }
    }
}

impl Corpus {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let vocabulary = self.tokenizer.read()?;
        let create = |path: &PathBuf| {
            let file = std::fs::File::create(path);
            file.map(BufWriter::new).map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        let mut lines = self.out.as_ref().map(create).transpose()?;
        let baseline = self.baseline.as_deref().filter(|_| !self.update);
        let baseline = baseline.map(|path| Baseline::read(path, &vocabulary)).transpose()?;
        let options = JsonOptions {
            whitespace: self.whitespace.into(),
            formats: if self.annotate_formats { Formats::Annotate } else { Formats::Assert },
            recursion: self.recursion,
            any_depth: self.any_depth,
            ..JsonOptions::default()
        };
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

    /// The outcomes of `rows`, in their order.
    fn measure(&self, bench: &Bench, rows: &[Row], path: &Path) -> Vec<Outcome> {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}");
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

/// A file by the last two parts of its path.
fn name(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts[parts.len().saturating_sub(2)..].join("/")
}
