//! Measures one row: times its compilation to the first mask, and checks its instances.

use burn_dfa::ErrorKind;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use burn::tensor::Device;
use burn_dfa::cli::message;
use burn_dfa::constraint::{JsonOptions, RequestOptions, StructuralTag, Tools, Whitespace};
use burn_dfa::tokens::RowPosition;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Error, Limits, TensorOptions, TokenId, Vocabulary,
};
use serde_json::{Value, json};

use super::rows::{Begin, Compiles, Instance, Row, Source};
use super::spelled::spelled;
use burn_dfa::vocabulary::cutter::Cutter;

/// The maximum number of tokens of a random text beyond the shortest text.
const SLACK: u32 = 64;

/// The settings of all rows.
pub struct Bench<'a> {
    vocabulary: &'a Vocabulary,
    cutter: Cutter,
    samples: usize,
    options: JsonOptions,
    limits: Limits,
    tensors: TensorOptions,
}

/// The outcome of a row.
#[derive(Default)]
pub struct Outcome {
    pub class: Class,
    pub reason: Option<String>,
    pub valid: usize,
    pub invalid: usize,
    pub valid_rejected: usize,
    pub invalid_accepted: usize,
    /// Accepted, and invalid only if `format` is asserted.
    pub format_only: usize,
    /// Instances that the tokenizer cannot spell: neither accepted nor rejected.
    pub unspelled: usize,
    /// Texts whose two tokenizations have different verdicts.
    pub split: usize,
    pub samples: usize,
    /// Random texts that are not JSON.
    pub not_json: usize,
    /// Prefixes that nothing completes, and how many of them could continue.
    pub dead: usize,
    pub not_stopped: usize,
    /// Prefixes that some text completes, and how many of them could not continue.
    pub viable: usize,
    pub stopped: usize,
    /// Compiled, but must be refused.
    pub wrongly_compiled: bool,
    /// The compilation found that nothing satisfies the schema.
    pub unsatisfiable: bool,
    pub compiled: Option<Compiled>,
    /// The number of tokens of the shortest valid instance that was accepted, and its end.
    pub shortest: Option<usize>,
    /// One verdict per instance, in order; empty if the row was not compiled.
    pub verdicts: Vec<Verdict>,
}

/// The verdict of the compiled constraint on an instance.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    Rejected,
    Unspelled,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Unspelled => "unspelled",
        }
    }
}

/// The size of a compiled row, and its compilation time.
#[derive(Clone, Copy)]
pub struct Compiled {
    pub ttfm_us: f64,
    pub states: usize,
    pub bytes: usize,
    /// The least budget, in tokens.
    pub least: u32,
}

/// The result class of a row.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Class {
    #[default]
    Pass,
    Refused,
    Limit,
    Unsatisfiable,
    ValidRejected,
    InvalidAccepted,
    WronglyCompiled,
    NotStopped,
    Stopped,
    Panicked,
}

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Refused => "refused",
            Self::Limit => "limit",
            Self::Unsatisfiable => "unsatisfiable",
            Self::ValidRejected => "valid_rejected",
            Self::InvalidAccepted => "invalid_accepted",
            Self::WronglyCompiled => "wrongly_compiled",
            Self::NotStopped => "not_stopped",
            Self::Stopped => "stopped",
            Self::Panicked => "panicked",
        }
    }
}

impl<'a> Bench<'a> {
    pub fn new(
        vocabulary: &'a Vocabulary,
        samples: usize,
        options: JsonOptions,
        limits: Limits,
        tensors: TensorOptions,
    ) -> Self {
        let bench = Self { vocabulary, cutter: Cutter::new(vocabulary), samples, options, limits, tensors };
        // Compute the lazy parts of the vocabulary now, for both forms. It does not matter whether
        // these regexes compile within the limits and with the given tokens.
        vocabulary.fingerprint();
        let many = bench.limits.token_level_entries / vocabulary.len().max(1) + 1;
        for regex in ["a", &format!("\"[ -~]{{{many}}}")] {
            let _no_matter = bench.first_mask(vocabulary, || Constraint::regex(regex));
        }
        bench
    }

    /// All steps to the first mask: constraint, automaton, compiled constraint, one row.
    fn first_mask(
        &self,
        vocabulary: &Vocabulary,
        read: impl FnOnce() -> burn_dfa::Result<Constraint>,
    ) -> burn_dfa::Result<(CompiledConstraint, Compiled)> {
        let device = Device::flex();
        let clock = Instant::now();
        let constraint = CompiledConstraint::compile(&read()?, vocabulary, &self.limits)?;
        let tensors = DeviceConstraint::new(&[&constraint], vocabulary.len(), &self.tensors, &device)?;
        let states = tensors.states(&[tensors.start(0)])?;
        black_box(tensors.illegal(states, None).into_data());
        let ttfm_us = clock.elapsed().as_secs_f64() * 1e6;
        let least = constraint.tokens_to_end(constraint.start());
        let compiled = Compiled { ttfm_us, states: constraint.state_count(), bytes: tensors.bytes(), least };
        Ok((constraint, compiled))
    }

    /// The outcome of `row`, even if it panics.
    pub fn run(&self, row: &Row) -> Outcome {
        catch_unwind(AssertUnwindSafe(|| self.measure(row))).unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            let reason = Some(format!("panicked: {said}"));
            Outcome { class: Class::Panicked, reason, ..Outcome::of(row) }
        })
    }

    fn measure(&self, row: &Row) -> Outcome {
        let mut outcome = Outcome::of(row);
        let compiled = self.first_mask(self.vocabulary_of(row), || match &row.source {
            Source::Schema(schema) => Constraint::json_schema_from_str_with(schema, &self.options),
            Source::Regex(pattern) => Constraint::regex(pattern),
            Source::Grammar { syntax, text, start: None } => Constraint::grammar(*syntax, text),
            Source::Grammar { syntax, text, start: Some(start) } => {
                Constraint::grammar_from(*syntax, text, start)
            }
            Source::Tag { text, compact } => {
                let options = StructuralTag::json_options();
                let options = if *compact { options.with_whitespace(Whitespace::Compact) } else { options };
                Constraint::structural_tag_with(&StructuralTag::read(text)?, &options)
            }
            Source::Request(body) => of_request(body, &self.options),
        });
        match compiled {
            Ok((constraint, compiled)) => {
                outcome.compiled = Some(compiled);
                outcome.wrongly_compiled = row.compiles == Compiles::MustNot;
                self.walk(&constraint, row, &mut outcome);
                self.begin(&constraint, row, &mut outcome);
                self.draw(&constraint, row, &mut outcome);
            }
            Err(error) => {
                outcome.class = Class::of(&error, row.compiles);
                outcome.reason = Some(message(&error));
                if error.kind() == ErrorKind::Unsatisfiable && outcome.class == Class::Unsatisfiable {
                    outcome.unsatisfiable = true;
                    outcome.valid_rejected = outcome.valid;
                    outcome.verdicts = vec![Verdict::Rejected; row.tests.len()];
                }
            }
        }
        if outcome.invalid_accepted > 0 || outcome.not_json > 0 || outcome.split > 0 {
            outcome.class = Class::InvalidAccepted;
        } else if outcome.wrongly_compiled {
            outcome.class = Class::WronglyCompiled;
        } else if outcome.not_stopped > 0 {
            outcome.class = Class::NotStopped;
        } else if outcome.valid_rejected > 0 {
            outcome.class = Class::ValidRejected;
        } else if outcome.stopped > 0 {
            outcome.class = Class::Stopped;
        }
        outcome
    }

    fn vocabulary_of<'r>(&'r self, row: &'r Row) -> &'r Vocabulary {
        row.vocabulary.as_ref().unwrap_or(self.vocabulary)
    }

    fn walk(&self, constraint: &CompiledConstraint, row: &Row, outcome: &mut Outcome) {
        let vocabulary = self.vocabulary_of(row);
        let schema = match &row.source {
            Source::Schema(schema) => Constraint::json_schema_from_str_with(schema, &self.options).ok(),
            _ => None,
        };
        let written = |value: &str, strings: bool| -> Option<String> {
            let text = schema.as_ref()?.json_text_from_str(value, &self.limits).ok()??;
            spelled(&text.0, value, strings)
        };
        for test in &row.tests {
            let mut tokens = None;
            let texts: Vec<String> = match &test.instance {
                Instance::Tokens(given) => {
                    tokens = Some(given.clone());
                    Vec::new()
                }
                Instance::Value(value) => written(value, false).into_iter().collect(),
                Instance::Text(text) => vec![text.clone()],
                Instance::TextOfValue(text) => {
                    [text.clone()].into_iter().chain(written(text, true)).collect()
                }
            };
            let mut verdict = if texts.is_empty() { Verdict::Rejected } else { Verdict::Unspelled };
            if tokens.is_some_and(|tokens| accepts(constraint, &tokens, vocabulary)) {
                verdict = Verdict::Accepted;
            }
            for text in texts {
                let cuts: Vec<_> = self.cutter.cuts(&text).into_iter().flatten().collect();
                let verdicts: Vec<bool> =
                    cuts.iter().map(|tokens| accepts(constraint, tokens, vocabulary)).collect();
                if test.valid {
                    let accepted = cuts.iter().zip(&verdicts).filter(|(_, accepted)| **accepted);
                    let lengths = accepted.map(|(tokens, _)| tokens.len() + 1);
                    outcome.shortest = lengths.chain(outcome.shortest).min();
                }
                if verdicts.contains(&true) {
                    verdict = Verdict::Accepted;
                } else if !verdicts.is_empty() && verdict == Verdict::Unspelled {
                    verdict = Verdict::Rejected;
                }
                outcome.split += usize::from(are_split(&verdicts, row));
            }
            outcome.verdicts.push(verdict);
            match (test.valid, verdict) {
                (_, Verdict::Unspelled) => outcome.unspelled += 1,
                (true, Verdict::Rejected) => outcome.valid_rejected += 1,
                (false, Verdict::Accepted) if test.needs_format => outcome.format_only += 1,
                (false, Verdict::Accepted) => outcome.invalid_accepted += 1,
                _ => {}
            }
        }
    }

    /// Checks prefixes.
    fn begin(&self, constraint: &CompiledConstraint, row: &Row, outcome: &mut Outcome) {
        for prefix in &row.prefixes {
            let cuts = match &prefix.begin {
                Begin::Text(text) => self.cutter.cuts(text),
                Begin::Tokens(tokens) => [Some(tokens.clone()), None],
            };
            let verdicts: Vec<bool> =
                cuts.into_iter().flatten().map(|tokens| goes_on(constraint, &tokens)).collect();
            outcome.split += usize::from(are_split(&verdicts, row));
            let Some(&goes_on) = verdicts.iter().max() else {
                outcome.unspelled += 1;
                continue;
            };
            let (of, wrong) = match prefix.viable {
                true => (&mut outcome.viable, &mut outcome.stopped),
                false => (&mut outcome.dead, &mut outcome.not_stopped),
            };
            *of += 1;
            *wrong += usize::from(goes_on != prefix.viable);
        }
    }

    fn draw(&self, constraint: &CompiledConstraint, row: &Row, outcome: &mut Outcome) {
        let budget = constraint.tokens_to_end(constraint.start()).saturating_add(SLACK);
        let vocabulary = self.vocabulary_of(row);
        for tokens in constraint.samples(vocabulary, row.id.len() as u64, budget).take(self.samples) {
            outcome.samples += 1;
            let text = vocabulary.decode(&tokens);
            let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&text).is_ok();
            outcome.not_json += usize::from(matches!(row.source, Source::Schema(_)) && !is_json);
        }
    }
}

impl Class {
    fn of(error: &Error, compiles: Compiles) -> Self {
        if error.kind() == ErrorKind::Limit {
            Self::Limit
        } else if matches!(compiles, Compiles::MustNot | Compiles::May) {
            Self::Pass
        } else if error.kind() == ErrorKind::Unsatisfiable {
            Self::Unsatisfiable
        } else {
            Self::Refused
        }
    }
}

/// The constraint of a request, or else calls of its tools within any text.
fn of_request(body: &str, options: &JsonOptions) -> burn_dfa::Result<Constraint> {
    let request: Value = serde_json::from_str(body).unwrap_or_default();
    let asked = ["response_format", "structured_outputs"].iter().any(|name| !request[name].is_null());
    let options = RequestOptions::new().with_json(options.clone());
    match if asked { Constraint::from_request_str_with(body, &options)? } else { None } {
        Some(constraint) => Ok(constraint),
        // Texts of a corpus follow the styles of many engines.
        None => Constraint::structural_tag(&Tools::from_request(&request)?.to_structural_tag()?),
    }
}

/// Whether the verdicts on a text depend on its tokenization, but must not.
fn are_split(verdicts: &[bool], row: &Row) -> bool {
    !row.counts_tokens() && verdicts.windows(2).any(|pair| pair[0] != pair[1])
}

/// Whether `tokens` are legal, and some continuation completes them.
fn goes_on(constraint: &CompiledConstraint, tokens: &[TokenId]) -> bool {
    let start = RowPosition::unlimited(constraint.start());
    let walked = tokens.iter().try_fold(start, |position, &token| {
        let next = constraint.after(&position, token);
        constraint.can_end(&next).then_some(next)
    });
    walked.is_some()
}

/// Whether `tokens`, followed by the end, are legal.
fn accepts(constraint: &CompiledConstraint, tokens: &[TokenId], vocabulary: &Vocabulary) -> bool {
    let end = vocabulary.eos().first();
    end.is_some_and(|&end| constraint.accepts(&[tokens, &[end]].concat()))
}

impl Outcome {
    /// An outcome with only the numbers of instances.
    fn of(row: &Row) -> Self {
        let valid = row.tests.iter().filter(|test| test.valid).count();
        Self { valid, invalid: row.tests.len() - valid, ..Self::default() }
    }

    /// Whether all verdicts of the row hold.
    pub fn passes(&self) -> bool {
        matches!(self.class, Class::Pass | Class::Unsatisfiable)
    }

    /// The row as a line of the output file.
    pub fn json(&self, row: &Row, file: &Path) -> Value {
        let compiled = |value: fn(&Compiled) -> Value| self.compiled.as_ref().map(value);
        json!({
            "id": row.id,
            "file": file.file_stem().map(|stem| stem.to_string_lossy()),
            "class": self.class.name(),
            "valid": self.valid,
            "valid_rejected": self.valid_rejected,
            "invalid": self.invalid,
            "invalid_accepted": self.invalid_accepted,
            "format_only": self.format_only,
            "unspelled": self.unspelled,
            "dead": self.dead,
            "not_stopped": self.not_stopped,
            "viable": self.viable,
            "stopped": self.stopped,
            "wrongly_compiled": self.wrongly_compiled,
            "split": self.split,
            "samples": self.samples,
            "not_json": self.not_json,
            "ttfm_us": compiled(|c| json!((c.ttfm_us * 10.0).round() / 10.0)),
            "states": compiled(|c| json!(c.states)),
            "bytes": compiled(|c| json!(c.bytes)),
            "least_tokens": compiled(|c| json!(c.least)),
            "shortest_instance": self.shortest,
            "verdicts": self.verdicts.iter().map(|verdict| verdict.name()).collect::<Vec<_>>(),
            "reason": self.reason,
        })
    }
}
