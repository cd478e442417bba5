//! Every pattern of MaskBench, against the regular expressions of the crate `jsonschema`.

use burn_dfa::{Constraint, Limits};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::oracle;
use crate::common::data;

#[test]
fn patterns_of_maskbench() {
    let Some(text) = data::read("maskbench/patterns.json") else { return };
    let patterns: Vec<Value> = serde_json::from_str(&text).unwrap();
    let (mut compiled, mut refused, mut verdicts) = (0, 0, [0, 0]);
    let mut wrong = Vec::new();
    let mut random = StdRng::seed_from_u64(7);
    for (seed, pattern) in patterns.iter().enumerate() {
        let schema = json!({"type": "string", "pattern": pattern["pattern"]});
        let constraint = match Constraint::json_schema(schema.clone()) {
            Ok(constraint) => constraint,
            Err(error) => {
                assert_eq!(error.pointer(), Some("/pattern"));
                refused += 1;
                continue;
            }
        };
        let limits = Limits { states: 50_000, ..Limits::default() };
        let dfa = match constraint.to_byte_dfa(&limits) {
            Ok(dfa) => dfa.unwrap(),
            Err(error) => {
                assert!(error.is_limit() || error.is_unsatisfiable());
                continue;
            }
        };
        compiled += 1;
        // To the judge `\<` is a boundary; in ECMA-262 it is a `<`.
        let Some(judge) = oracle::lenient(&schema) else { continue };
        if schema.to_string().contains(r"\\<") {
            continue;
        }
        for text in oracle::draw(&dfa, 12, seed as u64) {
            let Ok(Value::String(member)) = serde_json::from_slice(&text) else {
                panic!("{schema}: drew {}", String::from_utf8_lossy(&text));
            };
            // The member, and neighbours of it: one character left out, replaced or doubled.
            let mut strings = vec![member.clone()];
            let characters: Vec<char> = member.chars().take(60).collect();
            for _ in 0..6 {
                let mut near = characters.clone();
                if near.is_empty() {
                    near.push('a');
                }
                let at = random.random_range(0..near.len());
                match random.random_range(0..3) {
                    0 => drop(near.remove(at)),
                    1 => {
                        near[at] = *[' ', 'a', 'Z', '0', '-', '.', '/', '_', '\n', 'é']
                            .get(random.random_range(0..10))
                            .unwrap()
                    }
                    _ => near.insert(at, near[at]),
                }
                strings.push(near.into_iter().collect());
            }
            // The judge's `.` is any character but `\n`.
            strings.retain(|string| !string.contains(['\r', '\u{2028}', '\u{2029}']));
            for string in strings {
                let value = Value::String(string);
                let accepted = dfa.matches(value.to_string().as_bytes());
                verdicts[usize::from(accepted)] += 1;
                if accepted != judge.is_valid(&value) {
                    wrong.push(format!("{}: {value}: {accepted}", pattern["pattern"]));
                }
            }
        }
    }
    // A ratchet, as for the schemas.
    assert!(compiled >= 1_359);
    println!("{compiled} compiled, {refused} refused, {verdicts:?} strings rejected and accepted");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
}
