//! A measurement over the schemas of MaskBench.

use burn_dfa_common::ErrorKind;
use std::time::{Duration, Instant};

use super::*;
use burn_dfa_automata::Jump;

#[test]
#[ignore = "a measurement; it needs the schemas of MaskBench in the folder that BURN_DFA_DATA names"]
fn schemas_of_maskbench_are_measured() {
    let folder = std::env::var("BURN_DFA_DATA").unwrap();
    let files = std::fs::read_dir(format!("{folder}/maskbench")).unwrap();
    let mut files: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    let (mut sizes, mut micros) = (Vec::new(), Vec::new());
    let (mut refused, mut limit, mut copied, mut to_depth) = (0, 0, 0, 0);
    let (mut valid, mut rejected, mut invalid, mut accepted) = (0, 0, 0, 0);
    let limits = Limits::new().with_frames(64);
    // Four numbers, to compare other choices.
    let copies = std::env::var("BURN_DFA_COPIES").map_or_else(
        |_| Preferred::default(),
        |text| {
            let sizes: Vec<usize> = text.split(',').map(|size| size.parse().unwrap()).collect();
            Preferred {
                schema: sizes[0],
                sub_plan: sizes[1],
                characters: sizes[2] as u64,
                block: sizes[3] as u64,
                ..Preferred::default()
            }
        },
    );
    for file in files {
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let schema = Json::read(&row["schema"].to_string()).unwrap();
            let Ok(schema) = parse(&schema, &JsonOptions::default()) else {
                refused += 1;
                continue;
            };
            let began = Instant::now();
            let (texts, unrolled) = match schema.lower_preferring(copies, &Meter::start(&limits)) {
                Ok(lowered) => lowered,
                Err(error) if error.kind() == ErrorKind::Limit => {
                    println!("limit {} {error}", row["id"]);
                    limit += 1;
                    continue;
                }
                Err(_) => {
                    refused += 1;
                    continue;
                }
            };
            let time = began.elapsed();
            micros.push(time.as_micros());
            let (states, calls) = match &texts {
                SparseAutomaton::Finite(dfa) => (dfa.rows().state_count(), 0),
                SparseAutomaton::Pushdown(pushdown) => {
                    let is_call = |state: &u32| matches!(pushdown.jump(*state), Jump::Call(_));
                    let states = pushdown.state_count();
                    (states, (0..states as u32).filter(is_call).count())
                }
            };
            copied += u32::from(calls == 0);
            if unrolled != Unrolled::default() {
                println!("to a depth {} {unrolled:?}", row["id"]);
                to_depth += 1;
            }
            if states > 20_000 || time > Duration::from_millis(300) {
                println!("large {} {states} {calls} {time:?}", row["id"]);
            }
            sizes.push(states);
            let to_dense = match &texts {
                SparseAutomaton::Finite(rows) if row["tests"].is_array() => {
                    Some(rows.to_dense(&Meter::start(&limits)).unwrap())
                }
                _ => None,
            };
            let tests = row["tests"].as_array().into_iter().flatten();
            let values: Vec<Json> =
                tests.clone().map(|test| Json::read(&test["data"].to_string()).unwrap()).collect();
            let Ok(written) = schema.write(&values, &Meter::start(&limits)) else { continue };
            for (test, (text, member)) in tests.zip(written) {
                let found = match &to_dense {
                    Some(dfa) => dfa.matches(&text),
                    None => reads(&texts, &text, 64),
                };
                assert_eq!(found, member, "{} {}", row["id"], String::from_utf8_lossy(&text));
                match (test["valid"].as_bool().unwrap(), found) {
                    (true, false) => {
                        println!("rejected {}", row["id"]);
                        rejected += 1;
                    }
                    (true, true) => valid += 1,
                    // Because of 1.0, which is no integer in draft 4 and is written 1, or of a
                    // format that is not asserted.
                    (false, true) => {
                        println!("accepted {}", row["id"]);
                        accepted += 1;
                    }
                    (false, false) => invalid += 1,
                }
            }
        }
    }
    sizes.sort_unstable();
    micros.sort_unstable();
    println!(
        "schemas {} refused {refused} limit {limit}; without calls {copied}, to a depth {to_depth}",
        sizes.len()
    );
    for permille in [500, 900, 990, 1000] {
        let at = (sizes.len() - 1) * permille / 1000;
        println!("{permille} ‰: {} states, {} µs", sizes[at], micros[at]);
    }
    println!("valid {valid} rejected {rejected}, invalid {invalid} accepted {accepted}");
}
