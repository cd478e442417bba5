//! The summary of a file: counts, quantiles, reasons.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use super::measure::{Class, Compiled, Outcome};
use super::rows::{Compiles, Row};

/// The outcomes of many rows.
#[derive(Default)]
pub struct Summary {
    /// Rows with instances, and how many of them pass.
    pub rows: usize,
    pub passing: usize,
    pub without_tests: usize,
    pub skipped: usize,
    pub refused: usize,
    pub over_limit: usize,
    pub unsatisfiable: usize,
    pub panicked: usize,
    pub valid: usize,
    pub valid_rejected: usize,
    pub invalid: usize,
    pub invalid_accepted: usize,
    pub format_only: usize,
    pub unspelled: usize,
    pub split: usize,
    pub samples: usize,
    pub not_json: usize,
    /// Prefixes that nothing completes, and how many of them could continue.
    pub dead: usize,
    pub not_stopped: usize,
    /// Prefixes that some text completes, and how many of them could not continue.
    pub viable: usize,
    pub stopped: usize,
    /// Rows that must be refused, and how many of them were compiled.
    pub must_not_compile: usize,
    pub wrongly_compiled: usize,
    /// Rows with an accepted valid instance, and how many of them have a least budget of at most
    /// the tokens of the shortest one.
    pub with_instance: usize,
    pub within_instance: usize,
    compiled: Vec<Compiled>,
    reasons: BTreeMap<String, usize>,
}

impl Summary {
    pub fn new(skipped: usize) -> Self {
        Self { skipped, ..Self::default() }
    }

    pub fn add(&mut self, row: &Row, outcome: Outcome) {
        let says_nothing = matches!(row.compiles, Compiles::Must | Compiles::May);
        if row.tests.is_empty() && row.prefixes.is_empty() && says_nothing {
            self.without_tests += 1;
        } else {
            self.rows += 1;
            self.passing += usize::from(outcome.passes());
        }
        self.refused += usize::from(outcome.class == Class::Refused);
        self.over_limit += usize::from(outcome.class == Class::Limit);
        self.unsatisfiable += usize::from(outcome.unsatisfiable);
        self.panicked += usize::from(outcome.class == Class::Panicked);
        // The instances of a row that was not compiled were not checked.
        if !matches!(outcome.class, Class::Refused | Class::Limit | Class::Panicked) {
            self.valid += outcome.valid;
            self.invalid += outcome.invalid;
        }
        self.valid_rejected += outcome.valid_rejected;
        self.invalid_accepted += outcome.invalid_accepted;
        self.format_only += outcome.format_only;
        self.unspelled += outcome.unspelled;
        self.split += outcome.split;
        self.samples += outcome.samples;
        self.not_json += outcome.not_json;
        self.dead += outcome.dead;
        self.not_stopped += outcome.not_stopped;
        self.viable += outcome.viable;
        self.stopped += outcome.stopped;
        self.must_not_compile += usize::from(row.compiles == Compiles::MustNot);
        self.wrongly_compiled += usize::from(outcome.wrongly_compiled);
        if let Some((compiled, shortest)) = outcome.compiled.zip(outcome.shortest) {
            self.with_instance += 1;
            self.within_instance += usize::from(compiled.least as usize <= shortest);
        }
        self.compiled.extend(outcome.compiled);
        if let (Class::Refused | Class::Limit | Class::Panicked, Some(reason)) =
            (outcome.class, outcome.reason)
        {
            *self.reasons.entry(without_location(&reason)).or_default() += 1;
        }
    }

    pub fn plus(mut self, other: Self) -> Self {
        self.rows += other.rows;
        self.passing += other.passing;
        self.without_tests += other.without_tests;
        self.skipped += other.skipped;
        self.refused += other.refused;
        self.over_limit += other.over_limit;
        self.unsatisfiable += other.unsatisfiable;
        self.panicked += other.panicked;
        self.valid += other.valid;
        self.valid_rejected += other.valid_rejected;
        self.invalid += other.invalid;
        self.invalid_accepted += other.invalid_accepted;
        self.format_only += other.format_only;
        self.unspelled += other.unspelled;
        self.split += other.split;
        self.samples += other.samples;
        self.not_json += other.not_json;
        self.dead += other.dead;
        self.not_stopped += other.not_stopped;
        self.viable += other.viable;
        self.stopped += other.stopped;
        self.must_not_compile += other.must_not_compile;
        self.wrongly_compiled += other.wrongly_compiled;
        self.with_instance += other.with_instance;
        self.within_instance += other.within_instance;
        self.compiled.extend(other.compiled);
        for (reason, count) in other.reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
        self
    }

    /// The summary as one line that a program can read.
    pub fn line(&self) -> String {
        let [p50, p90, p99, max] = self.quantiles(|compiled| compiled.ttfm_us);
        format!(
            "passing={}/{} refused={} valid_rejected={}/{} invalid_accepted={}/{} ttfm_us_p50={p50:.1} ttfm_us_p90={p90:.1} ttfm_us_p99={p99:.1} ttfm_us_max={max:.1} unspelled={}",
            self.passing,
            self.rows,
            self.refused,
            self.valid_rejected,
            self.valid,
            self.invalid_accepted,
            self.invalid,
            self.unspelled
        )
    }

    /// The summary for a program.
    pub fn json(&self) -> Value {
        let quantiles =
            |[p50, p90, p99, max]: [f64; 4]| json!({"p50": p50, "p90": p90, "p99": p99, "max": max});
        json!({
            "rows": self.rows,
            "passing": self.passing,
            "without_tests": self.without_tests,
            "skipped": self.skipped,
            "refused": self.refused,
            "over_limit": self.over_limit,
            "unsatisfiable": self.unsatisfiable,
            "panicked": self.panicked,
            "valid": self.valid,
            "valid_rejected": self.valid_rejected,
            "invalid": self.invalid,
            "invalid_accepted": self.invalid_accepted,
            "format_only": self.format_only,
            "unspelled": self.unspelled,
            "split": self.split,
            "samples": self.samples,
            "not_json": self.not_json,
            "dead": self.dead,
            "not_stopped": self.not_stopped,
            "viable": self.viable,
            "stopped": self.stopped,
            "must_not_compile": self.must_not_compile,
            "wrongly_compiled": self.wrongly_compiled,
            "with_instance": self.with_instance,
            "within_instance": self.within_instance,
            "ttfm_us": quantiles(self.quantiles(|compiled| compiled.ttfm_us)),
            "states": quantiles(self.quantiles(|compiled| compiled.states as f64)),
            "bytes": quantiles(self.quantiles(|compiled| compiled.bytes as f64)),
            "reasons": self.reasons,
        })
    }

    /// The median, the 90th and 99th percentile and the maximum; 0 without values.
    fn quantiles(&self, value: impl Fn(&Compiled) -> f64) -> [f64; 4] {
        let mut values: Vec<f64> = self.compiled.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        [0.5, 0.9, 0.99, 1.0].map(|share| {
            let rank = (share * values.len() as f64).ceil() as usize;
            values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  passing           {} of {} ({} more without tests, {} skipped)",
            self.passing, self.rows, self.without_tests, self.skipped
        )?;
        writeln!(
            f,
            "  refused           {}, over a limit {}, unsatisfiable {}",
            self.refused, self.over_limit, self.unsatisfiable
        )?;
        if self.panicked > 0 {
            writeln!(f, "  panicked          {}", self.panicked)?;
        }
        writeln!(f, "  valid rejected    {} of {}", self.valid_rejected, self.valid)?;
        writeln!(
            f,
            "  invalid accepted  {} of {} (and {} by format alone)",
            self.invalid_accepted, self.invalid, self.format_only
        )?;
        if self.must_not_compile > 0 {
            let (wrong, all) = (self.wrongly_compiled, self.must_not_compile);
            writeln!(f, "  wrongly compiled  {wrong} of {all} that have to be refused")?;
        }
        if self.dead > 0 {
            let (wrong, all) = (self.not_stopped, self.dead);
            writeln!(f, "  not stopped       {wrong} of {all} beginnings that nothing completes")?;
        }
        if self.viable > 0 {
            let (wrong, all) = (self.stopped, self.viable);
            writeln!(f, "  stopped           {wrong} of {all} beginnings that something completes")?;
        }
        if self.unspelled > 0 {
            writeln!(
                f,
                "  not spelled       {} instances, which the tokenizer has no tokens for",
                self.unspelled
            )?;
        }
        if self.split > 0 {
            writeln!(f, "  cuts disagree     {} texts, by how they are cut into tokens", self.split)?;
        }
        if self.samples > 0 {
            writeln!(f, "  random texts      {}, not JSON {}", self.samples, self.not_json)?;
        }
        if self.with_instance > 0 {
            let (within, all) = (self.within_instance, self.with_instance);
            writeln!(
                f,
                "  least budgets     {within} of {all} at most the tokens of the shortest valid instance"
            )?;
        }
        let [p50, p90, p99, max] = self.quantiles(|compiled| compiled.ttfm_us);
        writeln!(f, "  first mask, µs    p50 {p50:.0}, p90 {p90:.0}, p99 {p99:.0}, max {max:.0}")?;
        let [p50, _, p99, max] = self.quantiles(|compiled| compiled.states as f64);
        writeln!(f, "  states            p50 {p50}, p99 {p99}, max {max}")?;
        let [p50, _, p99, max] = self.quantiles(|compiled| compiled.bytes as f64);
        writeln!(f, "  table bytes       p50 {p50}, p99 {p99}, max {max}")?;
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        for (reason, count) in reasons {
            writeln!(f, "  {count:>6} {reason}")?;
        }
        Ok(())
    }
}

/// A message without its pointer or offset.
fn without_location(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("grammar") {
        // Also without the line number of the grammar.
        let (location, reason) =
            rest.lines().next().and_then(|line| line.split_once(": ")).unwrap_or(("", rest));
        let of = if location.contains("line") { "" } else { "as a whole: " };
        return format!("grammar, {of}{}", reason.chars().take(100).collect::<String>());
    }
    for head in ["JSON schema, at ", "pattern, at byte "] {
        let rest = message.strip_prefix(head).and_then(|rest| rest.split_once(": "));
        if let Some((location, reason)) = rest {
            let reason: String = reason.chars().take(100).collect();
            // The keyword, if it is one and not the name of a property.
            let mut parts = location.rsplit('/');
            let (last, parent) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let named = ["properties", "patternProperties", "$defs", "definitions"].contains(&parent);
            let is_word = last.starts_with(|c: char| c.is_alphabetic() || c == '$') && !last.contains(' ');
            let says_so = reason.starts_with(&format!("`{last}`"));
            return if named || !is_word || says_so { reason } else { format!("`{last}`: {reason}") };
        }
    }
    message.to_owned()
}
