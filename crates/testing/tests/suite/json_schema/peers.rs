//! Test cases of other engines.

use burn_dfa_tokens::{ErrorKind, Limits, constraint::JsonOptions};
use std::collections::BTreeMap;

use jsonschema::Draft;
use serde_json::Value;

use super::{Judge, oracle};
use burn_dfa_testing::data;

/// The number of undeclared members of a value.
fn undeclared(schema: &Value, value: &Value) -> usize {
    let names = value.as_object().into_iter().flat_map(|members| members.keys());
    names.filter(|name| schema["properties"].get(name).is_none()).count()
}

#[test]
fn cases_of_other_libraries_have_their_verdicts() {
    let mut wrong = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in data::list("peer-cases") {
        let Some(path) = data::find(&format!("peer-cases/{file}")) else { return };
        let cases: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for case in cases["cases"].as_array().unwrap().iter().filter(|case| case.get("schema").is_some()) {
            let (id, schema) = (&case["id"], &case["schema"]);
            let judge = match Judge::new(schema, &JsonOptions::default(), &Limits::default()) {
                Ok(judge) => judge,
                Err(error) => {
                    println!("{id}: {error}");
                    *counts
                        .entry(if error.kind() == ErrorKind::Limit { "over limits" } else { "refused" })
                        .or_default() += 1;
                    continue;
                }
            };
            *counts.entry("schemas").or_default() += 1;
            let Ok(validator) = oracle::build(Draft::Draft202012, schema, true) else { continue };
            let listed = |name: &str| case[name].as_array().into_iter().flatten().filter_map(Value::as_str);
            let texts =
                listed("accepts").map(|text| (text, true)).chain(listed("rejects").map(|text| (text, false)));
            let values: Vec<(Value, bool)> = texts
                .filter_map(|(text, of_peer)| Some((serde_json::from_str(text).ok()?, of_peer)))
                .collect();
            let judged = judge.judge_all(values.iter().map(|(value, _)| value));
            for ((value, of_peer), (text, accepted)) in values.iter().zip(judged) {
                let valid = validator.is_valid(value);
                let verdict = match (accepted, *of_peer, valid) {
                    (true, _, true) | (false, _, false) => "as the standard",
                    // Undeclared names count once.
                    (false, _, true)
                        if schema.get("minProperties").is_some() && undeclared(schema, value) > 1 =>
                    {
                        "narrowed"
                    }
                    // Strings of these formats that common readers reject are left out.
                    (false, _, true) if is_of_a_bounded_format(schema) => "narrowed",
                    // Formats on which the crate is lenient or strict.
                    (_, of_peer, _) if accepted == of_peer && schema.to_string().contains("\"format\"") => {
                        "as the peer"
                    }
                    _ => {
                        wrong.push(format!("{id}: {schema}: {text}: accepted: {accepted}, peer: {of_peer}"));
                        "wrong"
                    }
                };
                *counts.entry(verdict).or_default() += 1;
            }
        }
    }
    println!("{counts:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether a schema asserts a format whose valid strings are partly left out.
fn is_of_a_bounded_format(schema: &Value) -> bool {
    let format = schema["format"].as_str();
    schema["type"] == "string"
        && format.is_some_and(|format| ["email", "time", "uri-template"].contains(&format))
}
