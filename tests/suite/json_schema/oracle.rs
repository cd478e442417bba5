//! The crate `jsonschema` as a judge, and members drawn at random for it.

use burn_dfa::{ByteDfa, StateId};
use jsonschema::{Draft, Validator};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

/// A validator that takes formats for annotations.
pub fn validator(schema: &Value) -> Validator {
    validator_of(Draft::Draft202012, schema)
}

/// As [`validator`], for a schema that does not name its draft.
pub fn validator_of(draft: Draft, schema: &Value) -> Validator {
    let draft = draft.detect(schema);
    jsonschema::options()
        .with_draft(draft)
        .should_validate_formats(false)
        .build(schema)
        .unwrap_or_else(|error| panic!("{schema}: {error}"))
}

/// Whether `text` is JSON and valid; the error says what it is instead.
pub fn check(validator: &Validator, text: &[u8]) -> Result<(), String> {
    match serde_json::from_slice::<Value>(text) {
        // The judge holds numbers in 64 bits.
        Err(error) if error.to_string().contains("out of range") => Ok(()),
        Err(error) => Err(format!("no JSON: {error}")),
        Ok(value) => validator.validate(&value).map_err(|error| error.to_string()),
    }
}

/// Members of a language, drawn at random, not much longer than need be.
pub fn draw(dfa: &ByteDfa, count: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut random = StdRng::seed_from_u64(seed);
    let distances = distances(dfa);
    let mut bytes: Vec<Vec<u8>> = vec![Vec::new(); dfa.class_count()];
    for byte in 0..=255u8 {
        bytes[dfa.classes()[byte as usize] as usize].push(byte);
    }
    (0..count)
        .map(|_| {
            let (mut state, mut text) = (dfa.start(), Vec::new());
            let wander = random.random_range(0..300);
            loop {
                let hurry = text.len() >= wander;
                if dfa.is_accepting(state) && (hurry || random.random_ratio(1, 8)) {
                    return text;
                }
                let ways: Vec<usize> = (0..bytes.len())
                    .filter(|&class| {
                        let next = dfa.next_by_class(state, class);
                        next != StateId::DEAD
                            && (!hurry || distances[next.index()] < distances[state.index()])
                    })
                    .collect();
                if ways.is_empty() {
                    assert!(dfa.is_accepting(state), "a live state goes on or accepts");
                    return text;
                }
                let class = ways[random.random_range(0..ways.len())];
                text.push(bytes[class][random.random_range(0..bytes[class].len())]);
                state = dfa.next_by_class(state, class);
            }
        })
        .collect()
}

/// For each state the fewest bytes to acceptance.
fn distances(dfa: &ByteDfa) -> Vec<usize> {
    let mut before = vec![Vec::new(); dfa.state_count()];
    for state in 1..dfa.state_count() {
        for class in 0..dfa.class_count() {
            before[dfa.next_by_class(StateId(state as u32), class).index()].push(state);
        }
    }
    let mut distances = vec![usize::MAX; dfa.state_count()];
    let mut queue: Vec<usize> =
        (0..dfa.state_count()).filter(|&state| dfa.is_accepting(StateId(state as u32))).collect();
    queue.iter().for_each(|&state| distances[state] = 0);
    let mut at = 0;
    while at < queue.len() {
        for &state in &before[queue[at]] {
            if distances[state] == usize::MAX {
                distances[state] = distances[queue[at]] + 1;
                queue.push(state);
            }
        }
        at += 1;
    }
    distances
}
