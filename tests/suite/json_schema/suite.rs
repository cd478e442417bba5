//! The official test suite of JSON Schema: of what is honoured, every verdict is right.

use std::collections::BTreeMap;

use burn_dfa::{Constraint, Limits};
use jsonschema::Draft;
use serde_json::Value;

use super::instances::{arrangements, close};
use super::oracle;
use crate::common::data;

#[test]
fn official_suite() {
    for (draft, dialect) in [("draft2020-12", Draft::Draft202012), ("draft7", Draft::Draft7)] {
        let mut wrong = Vec::new();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let folder = format!("json-schema-test-suite/{draft}");
        let names = data::list(&folder).into_iter().map(|name| format!("{folder}/{name}"));
        let optional = ["ecmascript-regex", "non-bmp-regex", "bignum", "float-overflow"]
            .map(|name| format!("{folder}/optional/{name}.json"));
        for file in names.filter(|name| name.ends_with(".json")).chain(optional) {
            let Some(text) = data::read(&file) else { continue };
            let groups: Vec<Value> = serde_json::from_str(&text).unwrap();
            for group in groups {
                // The suite seldom names a type; any one will do for the instances of that type.
                for name in ["", "null", "boolean", "number", "string", "array", "object"] {
                    let mut schema = group["schema"].clone();
                    // References to a server.
                    if schema.to_string().contains("http://localhost") {
                        continue;
                    }
                    if let (Some(keywords), false) = (schema.as_object_mut(), name.is_empty()) {
                        if keywords.contains_key("type") || keywords.contains_key("$ref") {
                            continue;
                        }
                        keywords.insert("type".into(), name.into());
                    }
                    let Ok(constraint) = Constraint::json_schema(schema.clone()) else {
                        *counts.entry("refused").or_default() += 1;
                        continue;
                    };
                    let dfa = match constraint.to_byte_dfa(&Limits::default()) {
                        Ok(dfa) => dfa,
                        Err(error) if error.is_unsatisfiable() => None,
                        Err(error) => panic!("{file}: {schema}: {error}"),
                    };
                    *counts.entry("honoured").or_default() += 1;
                    let (open, closed) = (
                        oracle::validator_of(dialect, &schema),
                        oracle::validator_of(dialect, &close(&schema)),
                    );
                    for test in group["tests"].as_array().unwrap() {
                        let instance = &test["data"];
                        // Its digits were lost when the suite was read.
                        if instance.as_f64().is_some_and(|float| float.abs() >= 1e18) {
                            continue;
                        }
                        let valid = match name {
                            "" => test["valid"].as_bool().unwrap(),
                            _ => open.is_valid(instance),
                        };
                        let accepted = arrangements(instance, &schema, &schema).iter().any(|value| {
                            dfa.as_ref().is_some_and(|dfa| dfa.matches(value.to_string().as_bytes()))
                        });
                        let verdict = match (valid, accepted) {
                            (true, true) => "accepted",
                            (false, false) => "rejected",
                            (true, false) if !closed.is_valid(instance) => "closed out",
                            _ => {
                                wrong.push(format!("{file}: {schema}: {instance}: {}", test["description"]));
                                "wrong"
                            }
                        };
                        *counts.entry(verdict).or_default() += 1;
                    }
                }
            }
        }
        println!("{draft}: {counts:?}");
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
}
