//! The official test suite of JSON Schema, and the sample in the same form: no verdict is wrong.

use burn_dfa_tokens::{
    ErrorKind, Limits,
    constraint::{Formats, JsonOptions, Treatment},
};
use serde_json::{Value, json};

use super::Judge;
use burn_dfa_testing::data::{self, Corpus};

/// A draft, with counts for the official suite that may not get worse.
struct Draft {
    name: &'static str,
    uri: &'static str,
    required: Ratchet,
    optional: Ratchet,
}

struct Ratchet {
    /// The minimum number of passing tests.
    passed: usize,
    /// The maximum number of tests with refused schemas.
    refused: usize,
    /// The maximum number of valid tests that a bounded format rejects, and of invalid tests that a
    /// format as annotation accepts.
    by_format: usize,
}

const NONE: Ratchet = Ratchet { passed: 0, refused: 0, by_format: 0 };

const DRAFTS: [Draft; 5] = [
    Draft {
        name: "draft4",
        uri: "http://json-schema.org/draft-04/schema#",
        required: Ratchet { passed: 559, refused: 41, by_format: 0 },
        optional: NONE,
    },
    Draft {
        name: "draft6",
        uri: "http://json-schema.org/draft-06/schema#",
        required: Ratchet { passed: 774, refused: 41, by_format: 0 },
        optional: NONE,
    },
    Draft {
        name: "draft7",
        uri: "http://json-schema.org/draft-07/schema#",
        required: Ratchet { passed: 862, refused: 41, by_format: 0 },
        optional: Ratchet { passed: 689, refused: 6, by_format: 77 },
    },
    Draft {
        name: "draft2019-09",
        uri: "https://json-schema.org/draft/2019-09/schema",
        required: Ratchet { passed: 1_179, refused: 47, by_format: 0 },
        optional: NONE,
    },
    Draft {
        name: "draft2020-12",
        uri: "https://json-schema.org/draft/2020-12/schema",
        required: Ratchet { passed: 1_210, refused: 56, by_format: 0 },
        optional: Ratchet { passed: 771, refused: 6, by_format: 83 },
    },
];

/// Files of optional tests, in addition to formats, that determine the meaning of a schema here.
const OPTIONAL: [&str; 7] =
    ["anchor", "bignum", "ecmascript-regex", "float-overflow", "id", "non-bmp-regex", "unknownKeyword"];

/// Valid tests that are rejected, by file, schema and test, with the reason. No invalid test is
/// accepted.
const OTHERWISE: [(&str, &str, &str, &str); 7] = [
    (
        "draft4/dependencies.json",
        "dependencies with escaped characters",
        "valid object 2",
        "names that are not declared count once",
    ),
    (
        "draft6/dependencies.json",
        "dependencies with escaped characters",
        "valid object 2",
        "names that are not declared count once",
    ),
    (
        "draft7/dependencies.json",
        "dependencies with escaped characters",
        "valid object 2",
        "names that are not declared count once",
    ),
    (
        "draft2019-09/dependentSchemas.json",
        "dependencies with escaped characters",
        "quoted tab",
        "names that are not declared count once",
    ),
    (
        "draft2020-12/dependentSchemas.json",
        "dependencies with escaped characters",
        "quoted tab",
        "names that are not declared count once",
    ),
    (
        "draft2019-09/vocabulary.json",
        "schema that uses custom metaschema with with no validation vocabulary",
        "no validation: invalid number, but it still validates",
        "the vocabularies of a metaschema elsewhere are not known",
    ),
    (
        "draft2020-12/vocabulary.json",
        "schema that uses custom metaschema with with no validation vocabulary",
        "no validation: invalid number, but it still validates",
        "the vocabularies of a metaschema elsewhere are not known",
    ),
];

#[derive(Default, Debug)]
struct Counts {
    passed: usize,
    refused: usize,
    by_format: usize,
    /// The tests in [`OTHERWISE`].
    otherwise: usize,
    wrong: Vec<String>,
}

#[test]
fn schemas_agree_with_the_official_suite() {
    let mut complaints = Vec::new();
    for draft in &DRAFTS {
        let (mut sample, mut required, mut optional) = <(Counts, Counts, Counts)>::default();
        let corpora = data::draft(draft.name);
        for corpus in &corpora {
            let counts = if corpus.is_sample() { &mut sample } else { &mut required };
            run(draft, corpus, false, counts);
        }
        let of_sample = Ratchet { passed: 20, ..NONE };
        complaints.extend(sample.complaints(&format!("{}, sample", draft.name), &of_sample));
        // The folder is missing.
        if corpora.len() == 1 {
            continue;
        }
        complaints.extend(required.complaints(&format!("{}, required", draft.name), &draft.required));
        for corpus in data::optional(draft.name, &OPTIONAL) {
            run(draft, &corpus, corpus.name.contains("/format/"), &mut optional);
        }
        complaints.extend(optional.complaints(&format!("{}, optional", draft.name), &draft.optional));
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

/// Runs and counts the tests of a file. In required tests, formats are annotations.
fn run(draft: &Draft, corpus: &Corpus, formats: bool, counts: &mut Counts) {
    let file = &corpus.name;
    let options = JsonOptions {
        formats: if formats { Formats::Assert } else { Formats::Annotate },
        ..JsonOptions::default()
    };
    let groups: Vec<Value> = serde_json::from_str(&corpus.read()).unwrap();
    for group in groups {
        let mut schema = group["schema"].clone();
        if let Some(keywords) = schema.as_object_mut() {
            keywords.entry("$schema").or_insert(json!(draft.uri));
        }
        let tests = group["tests"].as_array().unwrap();
        let described = group["description"].as_str().unwrap();
        let judge = match Judge::new(&schema, &options, &Limits::default()) {
            Ok(judge) => judge,
            Err(error) => {
                assert!(
                    error.kind() == ErrorKind::Schema || error.kind() == ErrorKind::Limit,
                    "{file}: {schema}: {error}"
                );
                println!("{file}: {described}: {error}");
                counts.refused += tests.len();
                continue;
            }
        };
        // The treatment of the schema's own format.
        let notes = judge.constraint.explain(&Limits::default());
        let format = notes.iter().find(|note| note.pointer == "/format").map(|note| &note.treatment);
        // Reading the suite has changed the digits of other numbers.
        let has_its_digits = |test: &&Value| test["data"].as_f64().is_none_or(|float| float.abs() < 1e18);
        let tests: Vec<&Value> = tests.iter().filter(has_its_digits).collect();
        let judged = judge.judge_all(tests.iter().map(|test| &test["data"]));
        for (test, (text, accepted)) in tests.into_iter().zip(judged) {
            let description = test["description"].as_str().unwrap();
            let valid = test["valid"].as_bool().unwrap();
            let otherwise = OTHERWISE.iter().any(|&(of, schema, test, _)| {
                file.ends_with(of) && (schema, test, true) == (described, description, valid)
            });
            match (valid, accepted, format) {
                (true, true, _) | (false, false, _) => counts.passed += 1,
                (false, true, Some(Treatment::Ignored(_) | Treatment::Annotation(_))) if formats => {
                    counts.by_format += 1;
                }
                (true, false, Some(Treatment::Bounded(_))) if formats => counts.by_format += 1,
                _ if otherwise => counts.otherwise += 1,
                _ => counts.wrong.push(format!(
                    "({file:?}, {described:?}, {description:?}): {schema}: {text}: valid: {valid}"
                )),
            }
        }
    }
}

impl Counts {
    /// Wrong verdicts, and counts that got worse.
    fn complaints(&self, name: &str, ratchet: &Ratchet) -> Vec<String> {
        let Self { passed, refused, by_format, otherwise, wrong } = self;
        println!("{name}: {passed} pass, {refused} refused, {by_format} by format, {otherwise} otherwise");
        let mut complaints: Vec<String> = wrong.iter().map(|wrong| format!("{name}: {wrong}")).collect();
        let mut hold = |what: &str, now: usize, then: usize, is_worse: bool| {
            complaints.extend(is_worse.then(|| format!("{name}: {now} tests {what}, {then} before")));
        };
        hold("pass", *passed, ratchet.passed, *passed < ratchet.passed);
        hold("are refused", *refused, ratchet.refused, *refused > ratchet.refused);
        hold("are decided by format", *by_format, ratchet.by_format, *by_format > ratchet.by_format);
        complaints
    }
}
