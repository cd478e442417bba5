//! Replays against the eager loop.

use burn_dfa::constraint::{Format, StructuralTag, Tag, TriggeredTags};
use burn_dfa::generation::{
    DecodeGraph, FinishReason, GenerationConfig, Logprobs, Output, SamplingFeatures, SamplingOptions,
    generate,
};
use burn_dfa::{Capacity, Constraint, Kernels, Limits, TensorOptions, TokenId};
use serde_json::{Value, json};

use crate::alone;
use crate::common::devices;
use crate::common::embedded::{Embedded, POSITIONS};

/// Reserves space for the constraints of all batches.
fn tensors(kernels: Kernels) -> TensorOptions {
    let capacity = Capacity { constraints: 3, states: 2000, classes: 400, ..Capacity::new() };
    TensorOptions { kernels, capacity, ..TensorOptions::default() }
}

/// Every kind of step, with the digits of its longest output. The outputs and the intervals of
/// reads are divided by `part`.
fn cases(part: usize) -> Vec<(&'static str, usize, GenerationConfig)> {
    let base = GenerationConfig::new().with_sync_interval(32 / part).with_tensors(tensors(Kernels::Fused));
    let built_in = base.clone().with_tensors(tensors(Kernels::BuiltIn));
    let filters = base
        .clone()
        .with_temperature(1.2)
        .with_top_k(40)
        .with_top_p(0.95)
        .with_min_p(0.001)
        .with_repetition_penalty(1.1)
        .with_suppress_tokens(vec![TokenId(7), TokenId(100)])
        .with_min_new_tokens(12);
    let penalties = SamplingOptions::new()
        .with_temperature(1.1)
        .with_presence_penalty(0.6)
        .with_frequency_penalty(0.2)
        .with_logit_bias([(TokenId(9), 3.0), (TokenId(40), -100.0)]);
    let penalties = base.clone().with_sampling(penalties).with_row_features(SamplingFeatures::ALL);
    vec![
        ("sampled through all filters", 40 / part, filters),
        ("sampled under penalties and a bias, with log-probabilities", 40 / part, penalties.with_logprobs(5)),
        ("greedy by built-in operations", 40 / part, built_in),
        ("sampled", 60 / part, base.clone().with_temperature(0.9)),
        ("greedy", 70 / part, base),
    ]
}

/// Largest difference of log-probabilities if fusion sums a recorded step in another order than an
/// eager step.
const TOLERANCE: f32 = 1e-4;

/// Equal outputs; log-probabilities to the bit, or within [`TOLERANCE`].
#[track_caller]
fn assert_same(output: &Output, expected: &Output, is_exact: bool, what: &str) {
    if is_exact {
        return assert_eq!(output, expected, "{what}");
    }
    let rest = |output: &Output| Output { logprobs: Vec::new(), ..output.clone() };
    assert_eq!(rest(output), rest(expected), "{what}");
    assert_eq!(output.logprobs.len(), expected.logprobs.len(), "{what}");
    for (at, (found, expected)) in output.logprobs.iter().zip(&expected.logprobs).enumerate() {
        assert_near(&found.model, &expected.model, &format!("{what}, token {at}, of the model"));
        assert_near(&found.constrained, &expected.constrained, &format!("{what}, token {at}, constrained"));
    }
}

#[track_caller]
fn assert_near(found: &Logprobs, expected: &Logprobs, what: &str) {
    let is_near = |a: f32, b: f32| (a - b).abs() <= TOLERANCE;
    assert!(is_near(found.chosen, expected.chosen), "{what}: {found:?} for {expected:?}");
    assert_eq!(found.top.len(), expected.top.len(), "{what}: {found:?} for {expected:?}");
    for (rank, (&(token, found), &(other, logprob))) in found.top.iter().zip(&expected.top).enumerate() {
        // A tie with another of them, or with the token past the last.
        let is_tie = || {
            let among = |(at, &(_, tied)): (usize, &(TokenId, f32))| at != rank && is_near(tied, logprob);
            rank + 1 == expected.top.len() || expected.top.iter().enumerate().any(among)
        };
        assert!(is_near(found, logprob), "{what}, place {rank}: {found} for {logprob}");
        assert!(token == other || is_tie(), "{what}, place {rank}: {token:?} for {other:?}");
    }
}

#[test]
fn a_replayed_step_writes_the_tokens_of_the_eager_loop() {
    let _turn = alone();
    for (name, device) in devices::all() {
        let embedded = Embedded::load(&device);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let (person, order) = (embedded.schema("person"), embedded.schema("order"));
        let part = if devices::is_software_gpu(name, &device) { 2 } else { 1 };
        for (kind, digits, config) in cases(part) {
            // Digits are separate tokens.
            let long = embedded.regex(&format!("[0-9]{{{digits}}}"));
            let other = embedded.regex(&format!("[0-9]{{3}}-[0-9]{{{}}}", digits - 4));
            let steps = digits + 1;
            let first = embedded.requests(&[Some(&long), Some(&person), None, Some(&person)], steps, 0);
            // Other constraints, prompts, lengths and seeds.
            let second = embedded.requests(&[Some(&order), Some(&order), Some(&other), None], steps, 10);
            let eagerly =
                |requests| -> Vec<Output> { generate(model, vocabulary, requests, &config).unwrap() };
            let (of_first, of_second) = (eagerly(&first), eagerly(&second));
            assert_eq!([of_first[0].tokens.len(), of_second[2].tokens.len()], [steps; 2]);

            let mut graph = DecodeGraph::record(model, vocabulary, &first, &config, POSITIONS).unwrap();
            assert_eq!(graph.is_hardware(), name != "flex", "{name}, {kind}");
            for (requests, expected) in [(&first, &of_first), (&first, &of_first), (&second, &of_second)] {
                let outputs = graph.generate(requests).unwrap();
                for (row, (output, expected)) in outputs.iter().zip(expected).enumerate() {
                    assert_same(output, expected, name == "flex", &format!("{name}, {kind}, row {row}"));
                }
            }
            eprintln!("{name}, {kind}: {steps} steps, thrice");
        }
    }
}

#[test]
fn a_replayed_step_keeps_the_stacks_of_its_rows() {
    let _turn = alone();
    let nested = json!({"type": "array", "items": {"$ref": "#"}, "maxItems": 3});
    let chosen = json!({"type": "object", "properties": {"n": {"$ref": "#"}, "b": {"type": "boolean"}}, "additionalProperties": false});
    let tag = Tag::new("{", Format::json_schema(nested.clone()), "}");
    let tag = Constraint::structural_tag(&StructuralTag::new(TriggeredTags::new(["{"], [tag]))).unwrap();
    let text = tag.to_automaton(&Limits::default()).unwrap().unwrap();
    for (name, device) in devices::all() {
        let embedded = Embedded::load(&device);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let constraints = [&nested, &chosen].map(|schema| embedded.recursive(schema, 8));
        let tagged = embedded.called(&tag, 8);
        for temperature in [None, Some(1.4)] {
            let config = GenerationConfig::new().with_temperature(temperature).with_sync_interval(16);
            let requests = embedded.requests(
                &[Some(&constraints[0]), Some(&constraints[1]), None, Some(&tagged)],
                40,
                3,
            );
            let expected = generate(model, vocabulary, &requests, &config).unwrap();
            for (output, schema) in expected.iter().zip([&nested, &chosen]) {
                let value: Value = serde_json::from_str(&output.text()).unwrap();
                assert!(jsonschema::is_valid(schema, &value), "{name}: {}", output.text());
            }
            assert!(text.matches(expected[3].text().as_bytes()), "{name}: {}", expected[3].text());
            let mut graph = DecodeGraph::record(model, vocabulary, &requests, &config, POSITIONS).unwrap();
            for _ in 0..2 {
                assert_eq!(graph.generate(&requests).unwrap(), expected, "{name}, {temperature:?}");
            }
        }
    }
}

#[test]
fn the_host_reads_every_few_steps_and_a_canceled_graph_starts_again() {
    let _turn = alone();
    for (name, device) in devices::all() {
        let embedded = Embedded::load(&device);
        let long = embedded.regex("[0-9]{40}");
        let requests = embedded.requests(&[Some(&long)], 41, 0);
        let config = GenerationConfig::new().with_sync_interval(16);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let mut graph = DecodeGraph::record(model, vocabulary, &requests, &config, POSITIONS).unwrap();
        let mut chunks = graph.stream(&requests).unwrap();
        let lengths: Vec<_> = chunks.by_ref().map(|chunk| chunk.unwrap().tokens.len()).collect();
        assert_eq!(lengths, [16, 16, 9], "{name}");
        let whole = chunks.stop();
        let mut chunks = graph.stream(&requests).unwrap();
        chunks.next().unwrap().unwrap();
        let cut = chunks.stop();
        assert_eq!(cut[0].finish, FinishReason::Canceled);
        assert_eq!(cut[0].tokens, whole[0].tokens[..16], "{name}");
        assert_eq!(graph.generate(&requests).unwrap(), whole, "{name}");
    }
}
