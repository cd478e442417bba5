//! A whole generation with the embedded model, on every device of this build: the same tokens.

use crate::common::devices;
use burn_dfa::generation::{GenerationConfig, Request, generate};
use burn_dfa::{CompiledConstraint, Limits, TokenId};
use burn_dfa_tiny::generator::{Generator, Split};

#[test]
fn every_device_writes_the_same_tokens() {
    let examples: Vec<_> = (0..6).map(|index| Generator::new(5).example(Split::HeldOut, index)).collect();
    let mut expected: Option<Vec<Vec<TokenId>>> = None;
    for (name, device) in devices::all() {
        let pretrained = burn_dfa_tiny::load(&device).unwrap();
        let vocabulary = pretrained.vocabulary();
        let constraints: Vec<_> = examples
            .iter()
            .map(|example| {
                let constraint = burn_dfa_tiny::schema(example.kind.name()).unwrap().constraint().unwrap();
                CompiledConstraint::compile(&constraint, vocabulary, &Limits::default()).unwrap()
            })
            .collect();
        // The last row has no constraint.
        let requests: Vec<_> = examples
            .iter()
            .enumerate()
            .map(|(row, example)| {
                let prompt = pretrained.prompt(&example.prompt).unwrap();
                let request = Request::new(prompt, 80).with_seed(row as u64);
                Request { constraint: (row < 5).then(|| constraints[row].clone()), ..request }
            })
            .collect();
        let mut tokens = Vec::new();
        for temperature in [None, Some(0.7)] {
            let config = GenerationConfig::new().with_temperature(temperature);
            let outputs = generate(pretrained.model(), vocabulary, &requests, &config);
            for (output, constraint) in outputs.unwrap().into_iter().zip(&constraints).take(5) {
                assert!(
                    output.is_complete() && constraint.accepts(&output.tokens),
                    "{name}: {}",
                    output.text()
                );
                tokens.push(output.tokens);
            }
        }
        let known = expected.get_or_insert_with(|| tokens.clone());
        assert_eq!(*known, tokens, "{name}");
        eprintln!("the same tokens on {name}");
    }
}
