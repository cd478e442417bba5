//! Every schema of the sample and of MaskBench: valid values are accepted, invalid values are
//! rejected, samples are valid, and refusals point into the schema.

use burn_dfa_tokens::automaton::ByteAutomaton;
use burn_dfa_tokens::{ByteDfa, ErrorKind, Limits, constraint::JsonOptions, threads};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jsonschema::Draft;
use serde_json::Value;

use super::{Judge, oracle};
use burn_dfa_testing::data;

/// Labels of MaskBench that are wrong for the text: the row, the index of the instance, and the
/// reason.
const LABELS: [(&str, usize, &str); 1] =
    [("Github_easy---o24544", 3, "draft 4 takes 12345.0 for no integer, and its text is 12345")];

/// Rows with a `oneOf` whose branches differ by `format` alone: if formats are annotations, all
/// branches match.
const BY_FORMAT: [&str; 3] = ["Github_hard---o4237", "Github_medium---o51161", "Github_medium---o83760"];

/// The results so far.
#[derive(Default)]
struct Found {
    /// By name. A schema is `passing` without a wrong verdict, and an instance is
    /// `invalid_by_format` if the label says that only formats make it invalid.
    counts: BTreeMap<&'static str, usize>,
    reasons: BTreeMap<String, usize>,
    wrong: Vec<String>,
    /// The labels that contradict the validator.
    labels: BTreeSet<(String, usize)>,
    /// The rows with samples that are valid only if formats are assertions.
    by_format: BTreeSet<String>,
    /// What else is worth a line.
    remarks: Vec<String>,
}

#[test]
fn every_schema_of_every_corpus() {
    let (mut sample, mut outside) = (Found::default(), Found::default());
    for corpus in data::schemas() {
        let all = if corpus.is_sample() { &mut sample } else { &mut outside };
        let text = corpus.read();
        let lines: Vec<(u64, &str)> = (all.of("schemas") as u64 + 1..).zip(text.lines()).collect();
        let rows = threads::each(&lines, threads::available(), |&(number, line)| {
            let mut found = Found::default();
            found.row(number, &serde_json::from_str(line).unwrap());
            found
        });
        rows.into_iter().for_each(|found| all.add(found));
    }
    sample.assert_right(&[], &[]);
    assert!(sample.of("passing") == sample.of("schemas") && sample.of("valid_rejected") == 0);
    if outside.of("schemas") == 0 {
        return;
    }
    outside.assert_right(&LABELS, &BY_FORMAT);
    // The counts may not get worse.
    assert!(
        outside.of("passing") >= 5_355 && outside.of("valid_rejected") <= 40 && outside.of("refused") <= 59
    );
}

impl Found {
    fn of(&self, name: &str) -> usize {
        self.counts.get(name).copied().unwrap_or_default()
    }

    fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        other.counts.into_iter().for_each(|(name, count)| *self.counts.entry(name).or_default() += count);
        other.reasons.into_iter().for_each(|(name, count)| *self.reasons.entry(name).or_default() += count);
        self.wrong.extend(other.wrong);
        self.labels.extend(other.labels);
        self.by_format.extend(other.by_format);
        self.remarks.extend(other.remarks);
    }

    fn row(&mut self, number: u64, row: &Value) {
        let limits = Limits { states: 300_000, ..Limits::default() };
        let (id, schema) = (row["id"].as_str().unwrap(), &row["schema"]);
        self.count("schemas");
        let began = std::time::Instant::now();
        let judge = match Judge::new(schema, &JsonOptions::default(), &limits) {
            Ok(judge) => judge,
            Err(error) => return self.refusal(id, schema, &error),
        };
        if began.elapsed() > Duration::from_secs(1) {
            self.remarks.push(format!("{id}: compiled in {:?}", began.elapsed()));
        }
        self.count("compiled");
        if judge.automaton.is_none() {
            self.count("unsatisfiable");
        }
        let passes = self.instances(id, row, &judge, true);
        // For schemas with few states, compact texts are checked as well.
        let states = judge.automaton.as_ref().map_or(0, ByteAutomaton::state_count);
        let compact = if states < 5_000 { Judge::new(schema, &super::compact(), &limits).ok() } else { None };
        let passes = compact.is_none_or(|compact| self.instances(id, row, &compact, false)) && passes;
        if passes {
            self.count("passing");
        }
        if let Some(dfa) = judge.finite().filter(|dfa| dfa.state_count() < 20_000) {
            self.samples(id, schema, &dfa, number);
        }
    }

    fn refusal(&mut self, id: &str, schema: &Value, error: &burn_dfa_tokens::Error) {
        if error.kind() == ErrorKind::Limit {
            self.remarks.push(format!("{id}: {error}"));
            return self.count("over_limits");
        }
        self.count("refused");
        let pointer = error.pointer().unwrap_or_else(|| panic!("{id}: {error}"));
        if schema.pointer(pointer).is_none() {
            self.wrong.push(format!("{id}: {pointer:?} is nowhere: {error}"));
        }
        let keyword = pointer.rsplit('/').next().unwrap_or_default();
        let text = error.to_string();
        let reason: String = text.rsplit(": ").next().unwrap_or_default().chars().take(60).collect();
        *self.reasons.entry(format!("{keyword} | {reason}")).or_default() += 1;
    }

    /// Judges the instances of a row; returns whether all verdicts are right. `counted` includes
    /// them in the counts.
    fn instances(&mut self, id: &str, row: &Value, judge: &Judge, counted: bool) -> bool {
        let mut right = true;
        let tests = row["tests"].as_array().unwrap();
        let judged = judge.judge_all(tests.iter().map(|test| &test["data"]));
        for (at, (test, (text, accepted))) in tests.iter().zip(judged).enumerate() {
            let valid = test["valid"].as_bool().unwrap();
            let name = match (valid, accepted) {
                (true, true) => "valid_accepted",
                (false, false) => "invalid_rejected",
                (false, true) if test["needs_format"] == true => "invalid_by_format",
                _ if self.contradicts(row, at, &text, valid) => continue,
                (true, false) => {
                    self.remarks
                        .push(format!("{id}: rejects {}", text.chars().take(300).collect::<String>()));
                    right = false;
                    "valid_rejected"
                }
                (false, true) => {
                    self.wrong.push(format!("{id}: accepts {text}"));
                    right = false;
                    continue;
                }
            };
            if counted {
                self.count(name);
            }
        }
        right
    }

    /// Whether the label of an instance contradicts the validator; if so, records it.
    fn contradicts(&mut self, row: &Value, at: usize, text: &str, valid: bool) -> bool {
        // An integer may have been written although the label is for a float.
        let value = serde_json::from_str(text).unwrap();
        let judge = oracle::build(Draft::Draft202012, &row["schema"], true);
        let contradicts = judge.is_ok_and(|judge| judge.is_valid(&value) != valid);
        if contradicts {
            let id = &row["id"];
            self.remarks.push(format!("{id}, {at}: the label says {valid}, the judge does not: {text}"));
            self.labels.insert((row["id"].as_str().unwrap().to_owned(), at));
        }
        contradicts
    }

    /// Checks that samples of a language satisfy the schema, with formats as assertions and as
    /// annotations.
    fn samples(&mut self, id: &str, schema: &Value, dfa: &ByteDfa, seed: u64) {
        let judges = [false, true].map(|formats| oracle::build(Draft::Draft202012, schema, formats));
        for text in oracle::draw(dfa, 20, seed) {
            self.count("drawn");
            for (judge, formats) in judges.iter().zip([false, true]) {
                let Ok(judge) = judge else { continue };
                match oracle::check(judge, &text) {
                    Ok(()) => {}
                    Err(why) if !formats && why.contains("oneOf: ") => {
                        self.remarks.push(format!("{id}: drew {}: {why}", String::from_utf8_lossy(&text)));
                        self.by_format.insert(id.to_owned());
                    }
                    Err(why) => {
                        self.wrong.push(format!("{id}: drew {}: {why}", String::from_utf8_lossy(&text)));
                    }
                }
            }
        }
    }

    /// Checks that no verdict is wrong, and that the validator disagrees only with the named labels
    /// and with samples of the named rows.
    fn assert_right(&self, labels: &[(&str, usize, &str)], by_format: &[&str]) {
        self.remarks.iter().for_each(|remark| println!("{remark}"));
        println!("{:#?}", self.counts);
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        for (reason, count) in reasons.iter().take(25) {
            println!("{count:6} {reason}");
        }
        let wrong = &self.wrong;
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
        let named =
            |found: &&(String, usize)| labels.iter().any(|(id, at, _)| (*id, *at) == (&*found.0, found.1));
        let new: Vec<_> = self.labels.iter().filter(|found| !named(found)).collect();
        assert!(new.is_empty(), "labels that contradict the judge: {new:#?}");
        let new: Vec<_> = self.by_format.iter().filter(|id| !by_format.contains(&id.as_str())).collect();
        assert!(new.is_empty(), "rows with samples that depend on formats: {new:#?}");
    }
}
