//! Every schema of MaskBench: members are accepted, others are not, refusals point into the schema.

use std::collections::BTreeMap;
use std::time::Duration;

use burn_dfa::constraint::{JsonOptions, Whitespace};
use burn_dfa::{ByteDfa, Limits};
use jsonschema::Draft;
use serde_json::Value;

use super::{Judge, oracle};
use crate::common::data;

#[derive(Default, Debug)]
struct Counts {
    schemas: usize,
    compiled: usize,
    refused: usize,
    over_limits: usize,
    unsatisfiable: usize,
    /// Schemas without a wrong verdict.
    passing: usize,
    members_accepted: usize,
    members_rejected: usize,
    others_rejected: usize,
    /// The label says that only formats make them invalid.
    others_need_format: usize,
    /// The judge contradicts the label.
    labels_wrong: usize,
    drawn: usize,
}

/// The value of a text, which may be an integer where the label is of a float.
fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn maskbench() {
    let mut counts = Counts::default();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let limits = Limits { states: 300_000, ..Limits::default() };
    let spaced = JsonOptions { whitespace: Whitespace::Spaced, ..JsonOptions::default() };
    for file in data::list("maskbench").iter().filter(|name| name.ends_with(".jsonl")) {
        let Some(text) = data::read(&format!("maskbench/{file}")) else { return };
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let (id, schema) = (row["id"].as_str().unwrap(), &row["schema"]);
            counts.schemas += 1;
            let began = std::time::Instant::now();
            let judge = match Judge::new(schema, &JsonOptions::default(), &limits) {
                Ok(judge) => judge,
                Err(error) if error.is_limit() => {
                    println!("{id}: {error} ({:?})", began.elapsed());
                    counts.over_limits += 1;
                    continue;
                }
                Err(error) => {
                    counts.refused += 1;
                    let pointer = error.pointer().unwrap_or_else(|| panic!("{id}: {error}"));
                    if schema.pointer(pointer).is_none() {
                        wrong.push(format!("{id}: {pointer:?} is nowhere: {error}"));
                    }
                    let keyword = pointer.rsplit('/').next().unwrap_or_default();
                    let text = error.to_string();
                    let reason = text.rsplit(": ").next().unwrap_or_default();
                    let reason: String = reason.chars().take(60).collect();
                    *reasons.entry(format!("{keyword} | {reason}")).or_default() += 1;
                    continue;
                }
            };
            if began.elapsed() > Duration::from_secs(1) {
                println!("{id}: compiled in {:?}", began.elapsed());
            }
            counts.compiled += 1;
            counts.unsatisfiable += usize::from(judge.dfa.is_none());
            // Spaced texts of schemas that are not great.
            let states = judge.dfa.as_ref().map_or(0, ByteDfa::state_count);
            let second = if states < 5_000 { Judge::new(schema, &spaced, &limits).ok() } else { None };
            let passing =
                [&judge].into_iter().chain(&second).enumerate().fold(true, |passing, (at, judge)| {
                    let right = row["tests"].as_array().unwrap().iter().map(|test| {
                        let instance = &test["data"];
                        let (text, accepted) = judge.judge(instance);
                        let asserted = || oracle::build(Draft::Draft202012, schema, true).ok();
                        let count = match (test["valid"].as_bool().unwrap(), accepted) {
                            (true, true) => &mut counts.members_accepted,
                            (false, false) => &mut counts.others_rejected,
                            (false, true) if test["needs_format"] == true => &mut counts.others_need_format,
                            (valid, _)
                                if asserted().is_some_and(|judge| judge.is_valid(&read(&text)) != valid) =>
                            {
                                println!("{id}: the label says {valid}, the judge does not: {text}");
                                &mut counts.labels_wrong
                            }
                            (true, false) => {
                                println!("{id}: rejects {}", text.chars().take(300).collect::<String>());
                                counts.members_rejected += usize::from(at == 0);
                                return false;
                            }
                            (false, true) => {
                                wrong.push(format!("{id}: accepts {text}"));
                                return false;
                            }
                        };
                        *count += usize::from(at == 0);
                        true
                    });
                    right.fold(true, |all, right| all & right) && passing
                });
            counts.passing += usize::from(passing);
            if let Some(dfa) = judge.dfa.filter(|_| states < 20_000)
                && let Ok(validator) = oracle::build(Draft::Draft202012, schema, false)
                && let Ok(strict) = oracle::build(Draft::Draft202012, schema, true)
            {
                for text in oracle::draw(&dfa, 20, counts.schemas as u64) {
                    counts.drawn += 1;
                    // `oneOf` of formats depends on them.
                    if let Err(why) =
                        oracle::check(&validator, &text).or_else(|_| oracle::check(&strict, &text))
                    {
                        wrong.push(format!("{id}: drew {}: {why}", String::from_utf8_lossy(&text)));
                    }
                }
            }
        }
    }
    println!("{counts:#?}");
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (reason, count) in reasons.iter().take(25) {
        println!("{count:6} {reason}");
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    // A ratchet: more may compile, not fewer.
    assert!(counts.passing >= 5_355 && counts.members_rejected <= 40, "{counts:#?}");
}
