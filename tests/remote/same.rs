//! A device of a server gives the same tokens as Flex, with or without hosted operations.

use burn::tensor::{DType, Device};
use burn_dfa::generation::speculative::{DraftToken, Drafter, DrafterContext, Sequences, speculate};
use burn_dfa::generation::{ContinuousBatch, GenerationConfig, Output, Request};
use burn_dfa::processor::{DraftTree, Position};
use burn_dfa::{
    Capacity, CompiledConstraint, Constraint, DeviceConstraint, Error, Kernels, Limits, TensorOptions,
    TokenId, Vocabulary,
};
use serde_json::json;

use crate::common::ints;
use crate::common::model::{RandomLm, run};
use crate::servers::devices;
use burn_dfa_testing::words::{compact, vocabulary};

fn regex(pattern: &str) -> Constraint {
    Constraint::regex(pattern).unwrap()
}

/// Token-level and byte-level constraints, and one with a stack.
fn constraints(vocabulary: &Vocabulary) -> Vec<CompiledConstraint> {
    let limits = Limits::default();
    let tree = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 4},
        "age": {"type": "array", "items": {"$ref": "#"}}}, "required": ["name"], "additionalProperties": false});
    let tree = compact(&tree);
    let stack = CompiledConstraint::compile_byte_level(&tree, vocabulary, &limits.with_frames(5)).unwrap();
    assert!(stack.exits() > 0, "it has calls");
    vec![
        CompiledConstraint::compile_token_level(&regex("[a-z]{5,30}"), vocabulary, &Limits::default())
            .unwrap(),
        CompiledConstraint::compile_byte_level(&regex(r"\d+(,\d+)*"), vocabulary, &Limits::default())
            .unwrap(),
        CompiledConstraint::compile_token_level(&regex("(true|false|null)+"), vocabulary, &Limits::default())
            .unwrap(),
        stack,
    ]
}

fn requests(constraints: &[Option<&CompiledConstraint>]) -> Vec<Request> {
    let row = |(index, &constraint): (usize, &Option<&CompiledConstraint>)| {
        let prompt = (0..=index as u32 % 5).map(TokenId).collect();
        let needed = constraint.map_or(1, |constraint| constraint.tokens_to_end(constraint.start()) as usize);
        Request {
            constraint: constraint.cloned(),
            ..Request::new(prompt, needed + 6 + index).with_seed(40 + index as u64)
        }
    };
    constraints.iter().enumerate().map(row).collect()
}

fn tokens(outputs: &[Output]) -> Vec<Vec<TokenId>> {
    outputs.iter().map(|output| output.tokens.clone()).collect()
}

/// Greedy, sampled, and with every filter.
fn configs() -> Vec<GenerationConfig> {
    let greedy = GenerationConfig::new().with_sync_interval(4);
    let sampled = greedy.clone().with_temperature(0.9);
    let filters =
        greedy.clone().with_temperature(1.3).with_top_k(60).with_min_p(0.001).with_repetition_penalty(1.2);
    vec![greedy, sampled, filters]
}

fn model(vocabulary: &Vocabulary, device: &Device) -> RandomLm {
    RandomLm::new(vocabulary.len() + 4, 3, DType::F32, device)
}

#[test]
fn batches_write_the_same_tokens() {
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    let of = |indices: &[usize]| indices.iter().map(|&index| constraints.get(index)).collect::<Vec<_>>();
    // Only token-level constraints; both forms; one with a stack.
    for batch in [of(&[0, 2, 9]), of(&[0, 1, 2, 9]), of(&[3, 0, 1])] {
        for config in configs() {
            let requests = requests(&batch);
            let mut expected = None;
            for (name, device) in devices() {
                let outputs = run(&model(&vocabulary, &device), &vocabulary, &requests, &config).unwrap();
                for (request, output) in
                    requests.iter().zip(&outputs).filter(|(request, _)| request.constraint.is_some())
                {
                    let constraint = request.constraint.as_ref().unwrap();
                    assert!(output.is_complete(), "{name}: {constraint:?}");
                }
                let found = tokens(&outputs);
                assert_eq!(*expected.get_or_insert(found.clone()), found, "{name}, {batch:?}, {config:?}");
            }
            // The comparison would pass for empty rows or without constraints, so check both.
            let free: Vec<_> =
                requests.iter().map(|request| Request { constraint: None, ..request.clone() }).collect();
            let free = run(&model(&vocabulary, &Device::flex()), &vocabulary, &free, &config).unwrap();
            assert_ne!(tokens(&free), expected.unwrap());
        }
    }
}

#[test]
fn slots_write_the_same_tokens() {
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    let capacity = Capacity { constraints: 2, states: 600, classes: 300, ..Capacity::new() }.with_stack(4, 5);
    // Each constraint occurs twice, and the arena holds two at a time.
    let order = [0, 1, 9, 3, 2, 0, 3, 1, 2].map(|index| constraints.get(index));
    for config in configs() {
        let config = config.with_tensors(TensorOptions { capacity, ..TensorOptions::default() });
        let config = config.with_prefix_cache(true);
        let mut requests = requests(&order);
        for request in &mut requests {
            request.prompt.splice(0..0, (0..20).map(TokenId));
        }
        let mut expected = None;
        // The built-in operations are slow, and equal in every config.
        let plain = config.sampling.temperature.is_none();
        for (name, device) in devices().into_iter().filter(|(name, _)| plain || *name != "plain") {
            let model = model(&vocabulary, &device);
            let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 200, &config).unwrap();
            let mut outputs = vec![Vec::new(); requests.len()];
            let mut next = 0;
            let mut served = [0; 2];
            while next < requests.len() || batch.idle().count() < 2 {
                for row in batch.idle().collect::<Vec<_>>() {
                    if next < requests.len() {
                        batch.admit(row, &requests[next]).unwrap();
                        (served[row], next) = (next, next + 1);
                    }
                }
                batch.step(3, |_| {}).unwrap();
                for row in batch.finished().collect::<Vec<_>>() {
                    assert!(served[row] == 0 || batch.cached_tokens(row) >= Some(20), "{name}");
                    outputs[served[row]] = batch.release(row).unwrap().tokens;
                }
            }
            assert!(outputs.iter().all(|tokens| !tokens.is_empty()));
            assert_eq!(*expected.get_or_insert(outputs.clone()), outputs, "{name}, {config:?}");
        }
    }
}

/// Proposes the same tree each time: letters and digits allowed by some constraints.
struct Letters;

impl Drafter for Letters {
    fn tree(&self) -> DraftTree {
        DraftTree::new(&[0, 0, 1, 2]).unwrap()
    }

    fn start(&mut self, _: &DrafterContext) -> Result<(), Error> {
        Ok(())
    }

    fn draft(&mut self, text: &Sequences, _: &Position) -> Vec<DraftToken> {
        let ([batch], device) = (text.lengths().dims(), text.lengths().device());
        let tokens = *b"a1,b";
        let node = |token| ints(vec![i32::from(token); batch], &device);
        tokens.map(|token| DraftToken { tokens: node(token), probabilities: None }).into()
    }
}

#[test]
fn drafts_write_the_same_tokens() {
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    let batch = [0, 3, 1].map(|index| constraints.get(index));
    for config in configs().into_iter().take(2) {
        let requests = requests(&batch);
        let alone = run(&model(&vocabulary, &Device::flex()), &vocabulary, &requests, &config).unwrap();
        let mut expected = None;
        for (name, device) in devices() {
            let model = model(&vocabulary, &device);
            let outputs = speculate(&model, &vocabulary, &requests, &config, Letters).unwrap();
            let found: Vec<_> = outputs.iter().map(|output| output.output.tokens.clone()).collect();
            // Greedy drafts change nothing; sampled ones take other random numbers.
            let greedy = config.sampling.temperature.is_none();
            let expected = expected.get_or_insert(if greedy { tokens(&alone) } else { found.clone() });
            assert_eq!(*expected, found, "{name}, {config:?}");
        }
    }
}

#[test]
fn a_server_with_the_operations_runs_them_and_one_without_does_not() {
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    for (name, device) in devices() {
        for (kernels, fused) in [(Kernels::Fused, name != "plain"), (Kernels::BuiltIn, false)] {
            let options = TensorOptions { kernels, ..TensorOptions::default() };
            let device_constraint =
                DeviceConstraint::new(&[&constraints[0]], vocabulary.len(), &options, &device).unwrap();
            assert_eq!(device_constraint.is_fused(), fused, "{name}, {options:?}");
        }
    }
}
