//! Times of loading an artifact, all checks included, and of writing one, for a vocabulary of
//! 49,152 tokens. The constraint has 1,000 states × 500 token classes, in the token-level form and
//! in the byte-level form.

use std::path::PathBuf;
use std::sync::LazyLock;

use burn_dfa::constraint::Transitions;
use burn_dfa::tokens::Origin;
use burn_dfa::{CompiledConstraint, Constraint, Limits, TokenId, Vocabulary};
use divan::Bencher;

fn main() {
    LazyLock::force(&VOCABULARY);
    divan::main();
}

const VOCAB_SIZE: u32 = 49_152;

/// All bytes, numbers, and an end.
static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let words = (256..VOCAB_SIZE - 1).map(|number| number.to_string().into_bytes());
    let vocabulary = Vocabulary::from_bytes(bytes.chain(words).map(Some).chain([None])).unwrap();
    let vocabulary = vocabulary.with_eos([TokenId(VOCAB_SIZE - 1)]).unwrap();
    // Computed once for a vocabulary.
    vocabulary.fingerprint();
    vocabulary
});

/// 1,000 states and 500 token classes, reserved states and classes included; each state has a
/// transition by each class.
fn token_level() -> CompiledConstraint {
    let (states, classes) = (1_000 - 3, 500 - 3);
    let next = |state: u32, token: u32| (state + 1) * (token + 1) % states;
    let rows = (0..states)
        .flat_map(|state| (0..classes).map(move |token| (state, TokenId(token * 90), next(state, token))));
    let transitions = Transitions::new(0, [states - 1], rows).unwrap();
    let constraint =
        CompiledConstraint::compile(&Constraint::transitions(transitions), &VOCABULARY, &Limits::default())
            .unwrap();
    assert_eq!((constraint.state_count(), constraint.class_count()), (1_000, 500));
    constraint
}

fn byte_level() -> CompiledConstraint {
    let constraint = Constraint::regex("([a-z]+ ?[0-9]){0,498}").unwrap();
    let compiled =
        CompiledConstraint::compile_byte_level(&constraint, &VOCABULARY, &Limits::default()).unwrap();
    assert!((990..2_000).contains(&compiled.state_count()), "{compiled:?}");
    compiled
}

/// Saves a constraint to a temporary file, which the system deletes.
fn file(constraint: &CompiledConstraint, form: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("burn-dfa-bench-{form}-{}.safetensors", std::process::id()));
    constraint.save(&path, &Origin::default()).unwrap();
    path
}

fn load(bencher: Bencher, constraint: &CompiledConstraint, form: &str) {
    let path = file(constraint, form);
    let load = || CompiledConstraint::load(&path, &VOCABULARY, &Limits::default()).unwrap();
    assert!(load() == *constraint);
    bencher.bench(load);
    std::fs::remove_file(path).unwrap();
}

#[divan::bench]
fn load_token_level(bencher: Bencher) {
    load(bencher, &token_level(), "token-level");
}

#[divan::bench]
fn load_byte_level(bencher: Bencher) {
    load(bencher, &byte_level(), "byte-level");
}

#[divan::bench]
fn write_token_level(bencher: Bencher) {
    let constraint = token_level();
    bencher.bench(|| constraint.to_bytes(&Origin::default()).unwrap());
}
