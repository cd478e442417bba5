//! Properties of the generated text: disjoint splits, records that fit their schemas and regexes,
//! and values that occur in the sentence.

use std::collections::HashSet;

use burn_dfa_tiny::{
    generator::{Example, Generator, Kind, Split},
    schema, schemas,
};
use serde_json::Value;

fn examples(split: Split, count: u64) -> impl Iterator<Item = Example> {
    let generator = Generator::new(11);
    (0..count).map(move |index| generator.example(split, index))
}

#[test]
fn the_splits_do_not_touch() {
    let held_out: HashSet<String> = examples(Split::HeldOut, 3000).map(|example| example.key).collect();
    for example in examples(Split::Train, 20_000) {
        assert_eq!(Split::of(&example.key), Split::Train);
        assert!(!held_out.contains(&example.key), "{}", example.key);
    }
}

#[test]
fn records_fit_their_schemas() {
    let any = validator("any");
    for kind in Kind::ALL {
        let own = validator(kind.name());
        let generator = Generator::new(3);
        for index in 0..2000 {
            let record = generator.example_of(kind, Split::Train, index).record;
            let value: Value = serde_json::from_str(&record).expect("records are JSON");
            assert!(own.is_valid(&value), "{record}");
            assert!(any.is_valid(&value), "{record}");
        }
    }
}

#[test]
fn records_fit_their_regex_and_no_other() {
    let regexes: Vec<_> = Kind::ALL
        .iter()
        .map(|kind| {
            let pattern =
                schema(kind.name()).and_then(|schema| schema.regex).expect("every kind has a regex");
            regex_automata::meta::Regex::new(&format!("^(?:{pattern})$")).expect("it is well formed")
        })
        .collect();
    for example in examples(Split::Train, 4000) {
        for (kind, regex) in Kind::ALL.iter().zip(&regexes) {
            let matches = regex.is_match(&example.record);
            assert_eq!(matches, *kind == example.kind, "{}", example.record);
        }
    }
}

#[test]
fn records_are_compact_and_in_declared_order() {
    for example in examples(Split::Train, 2000) {
        let value: Value = serde_json::from_str(&example.record).expect("records are JSON");
        assert_eq!(value.to_string(), example.record);
        let declared: Value = schema(example.kind.name())
            .map(|schema| serde_json::from_str(schema.json).expect("schemas are JSON"))
            .expect("every kind has a schema");
        let mut names = declared["properties"].as_object().expect("properties").keys();
        for name in value.as_object().expect("records are objects").keys() {
            assert!(names.any(|declared| declared == name), "{}", example.record);
        }
    }
}

#[test]
fn strings_stand_in_the_sentence() {
    for example in examples(Split::HeldOut, 2000) {
        let value: Value = serde_json::from_str(&example.record).expect("records are JSON");
        let mut strings = Vec::new();
        collect(&value, &mut strings);
        let prompt = example.prompt.to_lowercase();
        for string in strings {
            assert!(prompt.contains(&string.to_lowercase()), "{example:?}");
        }
    }
}

#[test]
fn an_example_depends_on_seed_split_and_index_only() {
    let generator = Generator::new(5);
    let late = generator.example(Split::Train, 1_000_000);
    assert_eq!(late, generator.example(Split::Train, 1_000_000));
    assert_ne!(late, Generator::new(6).example(Split::Train, 1_000_000));
}

#[test]
fn every_schema_is_listed_once() {
    let names: HashSet<_> = schemas().iter().map(|schema| schema.name).collect();
    assert_eq!(names.len(), schemas().len());
    assert!(Kind::ALL.iter().all(|kind| names.contains(kind.name())));
}

fn validator(name: &str) -> jsonschema::Validator {
    let text = schema(name).expect("the schema exists").json;
    let value = serde_json::from_str(text).expect("schemas are JSON");
    jsonschema::validator_for(&value).expect("it is a schema")
}

fn collect<'a>(value: &'a Value, strings: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => strings.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, strings)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, strings)),
        _ => {}
    }
}
