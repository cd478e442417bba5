//! The official test suite of JSON Schema: no verdict is wrong.

use std::collections::BTreeMap;

use burn_dfa::Limits;
use burn_dfa::constraint::{Formats, JsonOptions, Treatment};
use serde_json::{Value, json};

use super::Judge;
use crate::common::data;

/// Tests that are valid and rejected, and why; by words of their descriptions.
const NARROWED: &[(&str, &str)] = &[
    ("valid object 2", "names that are not declared count once"),
    ("quoted tab", "names that are not declared count once"),
    ("no validation: invalid number", "the vocabularies of a metaschema elsewhere are not known"),
];

#[test]
fn official_suite() {
    for (draft, uri) in [
        ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
        ("draft7", "http://json-schema.org/draft-07/schema#"),
    ] {
        let mut wrong = Vec::new();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let folder = format!("json-schema-test-suite/{draft}");
        let files = |folder: &str| -> Vec<String> {
            let names = data::list(folder).into_iter().filter(|name| name.ends_with(".json"));
            names.map(|name| format!("{folder}/{name}")).collect()
        };
        // What is in need of a server stays out.
        let required: Vec<String> =
            files(&folder).into_iter().filter(|file| !file.ends_with("refRemote.json")).collect();
        if required.is_empty() {
            return;
        }
        let optional = [
            "anchor",
            "bignum",
            "ecmascript-regex",
            "float-overflow",
            "id",
            "non-bmp-regex",
            "unknownKeyword",
        ]
        .map(|name| format!("{folder}/optional/{name}.json"));
        let formats = files(&format!("{folder}/optional/format"));
        let all = required.iter().map(|file| (file, ["passed", "refused"]));
        let all = all.chain(
            optional.iter().chain(&formats).map(|file| (file, ["passed of optional", "refused of optional"])),
        );
        for (file, [passed, refused]) in all {
            let Some(text) = data::find(file).and_then(|_| data::read(file)) else { continue };
            // Required tests take formats for annotations.
            let asserted = file.contains("/format/");
            let options = JsonOptions {
                formats: if asserted { Formats::Assert } else { Formats::Annotate },
                ..JsonOptions::default()
            };
            let groups: Vec<Value> = serde_json::from_str(&text).unwrap();
            for group in groups {
                let mut schema = group["schema"].clone();
                if let Some(keywords) = schema.as_object_mut() {
                    keywords.entry("$schema").or_insert(json!(uri));
                }
                let tests = group["tests"].as_array().unwrap();
                let judge = match Judge::new(&schema, &options, &Limits::default()) {
                    Ok(judge) => judge,
                    Err(error) => {
                        assert!(error.is_schema() || error.is_limit(), "{file}: {schema}: {error}");
                        println!("{file}: {}: {error}", group["description"]);
                        *counts.entry(refused).or_default() += tests.len();
                        continue;
                    }
                };
                for test in tests {
                    let (instance, description) = (&test["data"], test["description"].as_str().unwrap());
                    // Its digits were lost when the suite was read.
                    if instance.as_f64().is_some_and(|float| float.abs() >= 1e18) {
                        continue;
                    }
                    let (text, accepted) = judge.judge(instance);
                    let treatments = || judge.constraint.explain().iter().map(|note| &note.treatment);
                    let ignored = asserted && treatments().any(|how| matches!(how, Treatment::Ignored(_)));
                    let bounded = asserted && treatments().any(|how| matches!(how, Treatment::Bounded(_)));
                    let verdict = match (test["valid"].as_bool().unwrap(), accepted) {
                        (valid, accepted) if valid == accepted => passed,
                        (false, _) if ignored => "formats that are not known",
                        (true, _) if bounded => "formats that are bounded",
                        (true, _) if NARROWED.iter().any(|(words, _)| description.contains(words)) => {
                            "narrowed"
                        }
                        (valid, _) => {
                            wrong.push(format!("{file}: {schema}: {text}: {description}: valid: {valid}"));
                            "wrong"
                        }
                    };
                    *counts.entry(verdict).or_default() += 1;
                }
            }
        }
        println!("{draft}: {counts:?}");
        assert!(wrong.is_empty(), "{draft}: {} wrong:\n{}", wrong.len(), wrong.join("\n"));
        assert!(counts["passed"] >= 9 * counts.get("refused").unwrap_or(&0), "{draft}: {counts:?}");
    }
}
