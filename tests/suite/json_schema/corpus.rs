//! Every schema of MaskBench: members are accepted, others are not, refusals point into the schema.

use std::collections::BTreeMap;
use std::time::Duration;

use burn_dfa::{Constraint, Limits};
use serde_json::Value;

use super::instances::{arrangements, close};
use super::oracle;
use crate::common::data;

#[derive(Default, Debug)]
struct Counts {
    schemas: usize,
    compiled: usize,
    refused: usize,
    over_limits: usize,
    unsatisfiable: usize,
    members_accepted: usize,
    /// Valid, but with properties beyond those of a silent, closed object.
    members_closed_out: usize,
    others_rejected: usize,
    others_need_format: usize,
    drawn: usize,
}

#[test]
fn maskbench() {
    let mut counts = Counts::default();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let limits = Limits { states: 300_000, ..Limits::default() };
    for file in data::list("maskbench").iter().filter(|name| name.ends_with(".jsonl")) {
        let Some(text) = data::read(&format!("maskbench/{file}")) else { return };
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let (id, schema) = (row["id"].as_str().unwrap(), &row["schema"]);
            counts.schemas += 1;
            let constraint = match Constraint::json_schema(schema.clone()) {
                Ok(constraint) => constraint,
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
            let began = std::time::Instant::now();
            let dfa = match constraint.to_byte_dfa(&limits) {
                Ok(dfa) => dfa.expect("text"),
                Err(error) if error.is_limit() => {
                    println!("{id}: {error} ({:?})", began.elapsed());
                    counts.over_limits += 1;
                    continue;
                }
                Err(error) if error.is_unsatisfiable() => {
                    println!("{id}: {error}");
                    counts.unsatisfiable += 1;
                    continue;
                }
                Err(error) => panic!("{id}: {error}"),
            };
            if began.elapsed() > Duration::from_millis(500) {
                println!("{id}: {} states in {:?}", dfa.state_count(), began.elapsed());
            }
            counts.compiled += 1;
            let closed = oracle::validator(&close(schema));
            for test in row["tests"].as_array().unwrap() {
                let instance = &test["data"];
                let texts = arrangements(instance, schema, schema);
                let accepted = texts.iter().any(|value| dfa.matches(value.to_string().as_bytes()));
                match (test["valid"].as_bool().unwrap(), accepted) {
                    (true, true) => counts.members_accepted += 1,
                    (true, false) if !closed.is_valid(instance) => counts.members_closed_out += 1,
                    (true, false) => wrong.push(format!("{id}: rejects {}", texts[0])),
                    (false, false) => counts.others_rejected += 1,
                    (false, true) if test["needs_format"] == true => counts.others_need_format += 1,
                    (false, true) => wrong.push(format!("{id}: accepts {instance}")),
                }
            }
            if dfa.state_count() < 20_000 {
                let validator = oracle::validator(schema);
                for text in oracle::draw(&dfa, 8, counts.schemas as u64) {
                    counts.drawn += 1;
                    if let Err(why) = oracle::check(&validator, &text) {
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
    // A ratchet: more may compile, not fewer.
    assert!(counts.compiled >= 2_495 && counts.members_accepted >= 2_950, "{counts:#?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}
