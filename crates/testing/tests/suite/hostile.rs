//! The fuzz targets on stable Rust: the same functions over known inputs and their mutations.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

/// A target, and the folder of its inputs.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 8] = [
    ("artifact", targets::artifact),
    ("grammar", targets::grammar),
    ("regex", targets::regex),
    ("schema", targets::schema),
    ("request", targets::request),
    ("tags", targets::tags),
    ("tokenizer", targets::tokenizer),
    ("walk", targets::walk),
];

/// Mutations of each target's inputs.
const MUTATIONS: u32 = 400;

/// The seeds, and inputs that found bugs.
fn known(name: &str) -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut inputs = Vec::new();
    for folder in ["seeds", "regressions"] {
        let Ok(files) = std::fs::read_dir(root.join(folder).join(name)) else { continue };
        for file in files {
            let path = file.expect("a file").path();
            inputs.push((path.display().to_string(), std::fs::read(&path).expect("a file")));
        }
    }
    inputs.sort();
    assert!(!inputs.is_empty(), "no seeds for {name}");
    inputs
}

#[test]
fn every_target_of_the_fuzzer_is_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder).expect("a folder of targets");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    let names = files.iter().map(|file| file.file_stem().and_then(|name| name.to_str()).expect("a name"));
    let mut own = TARGETS.map(|(name, _)| name);
    own.sort_unstable();
    assert!(names.eq(own), "{files:?}");
}

#[test]
fn known_inputs_break_nothing() {
    for (name, target) in TARGETS {
        for (path, input) in known(name) {
            println!("{path}");
            target(&input);
        }
    }
}

#[derive(Clone, Debug)]
enum Edit {
    /// Changes a byte.
    Set(usize, u8),
    Remove(usize, usize),
    /// Copies a part to another offset.
    Copy(usize, usize, usize),
    /// Inserts a part of another input.
    Graft(usize, usize, usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<usize>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Set(at, byte)),
        (at(), 1..20usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        (at(), at(), 1..40usize).prop_map(|(from, to, length)| Edit::Copy(from, to, length)),
        (at(), at(), at(), 1..40usize)
            .prop_map(|(other, from, to, length)| Edit::Graft(other, from, to, length)),
    ]
}

fn apply(input: &[u8], edits: &[Edit], others: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut input = input.to_vec();
    for edit in edits {
        let position = |at: usize| at % (input.len() + 1);
        let part = |of: &[u8], at: usize, length: usize| {
            let at = at % (of.len() + 1);
            of[at..(at + length).min(of.len())].to_vec()
        };
        match *edit {
            Edit::Set(at, byte) => {
                let at = position(at);
                input.splice(at..(at + 1).min(input.len()), [byte]);
            }
            Edit::Remove(at, length) => {
                let at = position(at);
                input.drain(at..(at + length).min(input.len()));
            }
            Edit::Copy(from, to, length) => {
                let (copy, to) = (part(&input, from, length), position(to));
                input.splice(to..to, copy);
            }
            Edit::Graft(other, from, to, length) => {
                let (graft, to) = (part(&others[other % others.len()].1, from, length), position(to));
                input.splice(to..to, graft);
            }
        }
    }
    input
}

#[test]
fn mutated_inputs_break_nothing() {
    for (name, target) in TARGETS {
        let known = known(name);
        let mutated = (any::<usize>(), prop::collection::vec(edit(), 1..6));
        let config = Config { cases: MUTATIONS, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        let result = runner.run(&mutated, |(seed, edits)| {
            target(&apply(&known[seed % known.len()].1, &edits, &known));
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn random_bytes_break_nothing() {
    for (name, target) in TARGETS {
        let config = Config { cases: MUTATIONS, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        let bytes = prop::collection::vec(any::<u8>(), 0..300);
        let result = runner.run(&bytes, |bytes| {
            target(&bytes);
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
