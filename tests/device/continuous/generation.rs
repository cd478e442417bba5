//! The outputs of a continuous batch equal the outputs of each request alone.

use burn::tensor::{DType, Device};
use burn_dfa::ErrorKind;
use burn_dfa::constraint::Syntax;
use burn_dfa::generation::{
    Cancel, ContinuousBatch, ContinuousLm, FinishReason, GenerationConfig, Output, Request, generate,
};
use burn_dfa::{
    Capacity, CompiledConstraint, Constraint, Kernels, Limits, TensorOptions, TokenId, Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::common::{devices, embedded::Embedded, model::RandomLm};
use burn_dfa_testing::words::compact;

const EOS: TokenId = TokenId(256);

fn vocabulary() -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| Some(vec![byte]));
    let words = ["true", "false", "été", "12", "ab"].map(|word| Some(word.as_bytes().to_vec()));
    Vocabulary::from_bytes(bytes.chain([None]).chain(words)).unwrap().with_eos([EOS]).unwrap()
}

fn tensors(kernels: Kernels) -> TensorOptions {
    let capacity = Capacity { constraints: 4, states: 600, classes: 300, ..Capacity::new() };
    TensorOptions { kernels, capacity, ..TensorOptions::default() }
}

/// Serves the requests in random rows, with random numbers of steps; returns the outputs in order.
pub(crate) fn serve<M: ContinuousLm>(
    batch: &mut ContinuousBatch<M>,
    requests: &[Request],
    seed: u64,
) -> Vec<Output> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut outputs: Vec<Option<Output>> = requests.iter().map(|_| None).collect();
    let mut served: Vec<usize> = vec![usize::MAX; batch.rows()];
    let mut pieces: Vec<(String, Vec<TokenId>)> = vec![Default::default(); requests.len()];
    let mut waiting: Vec<usize> = (0..requests.len()).rev().collect();
    while outputs.iter().any(Option::is_none) {
        let idle: Vec<usize> = batch.idle().filter(|_| rng.random_bool(0.7)).collect();
        for row in idle {
            let Some(next) = waiting.pop() else { break };
            match batch.admit(row, &requests[next]) {
                Ok(()) => served[row] = next,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                    waiting.push(next);
                }
            }
        }
        let take = |piece: burn_dfa::generation::Chunk| {
            let (text, tokens) = &mut pieces[served[piece.row]];
            text.push_str(&piece.text);
            tokens.extend_from_slice(&piece.tokens);
        };
        batch.step(rng.random_range(0..9), take).unwrap();
        let finished: Vec<usize> = batch.finished().filter(|_| rng.random_bool(0.8)).collect();
        for row in finished {
            outputs[served[row]] = Some(batch.release(row).unwrap());
        }
    }
    let outputs: Vec<Output> = outputs.into_iter().flatten().collect();
    for (output, (text, tokens)) in outputs.iter().zip(&pieces) {
        assert_eq!((&output.text(), &output.tokens), (text, tokens));
    }
    outputs
}

/// The outputs of requests, each in a separate batch.
pub(crate) fn alone<M: ContinuousLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
) -> Vec<Output> {
    let config = config.clone().with_tensors(TensorOptions::default());
    let one = |request| {
        let outputs = generate(model, vocabulary, std::slice::from_ref(request), &config);
        outputs.unwrap().remove(0)
    };
    requests.iter().map(one).collect()
}

#[test]
fn requests_begin_and_end_in_every_row_under_every_option() {
    let vocabulary = vocabulary();
    let patterns = ["[0-9]{4}-[0-9]{2}", "(true|false|été)", "[a-c]{1,9}", "x{30}", "(ab|12)*", "[^a]{3,12}"];
    let constraints: Vec<CompiledConstraint> = patterns
        .iter()
        .enumerate()
        .map(|(index, pattern)| {
            let compile = if index % 2 == 0 {
                CompiledConstraint::compile
            } else {
                CompiledConstraint::compile_byte_level
            };
            compile(&Constraint::regex(pattern).unwrap(), &vocabulary, &Limits::default()).unwrap()
        })
        .collect();
    let mut rng = StdRng::seed_from_u64(1);
    let requests: Vec<Request> = (0..60)
        .map(|index| {
            let prompt = (0..rng.random_range(1..20)).map(|_| TokenId(rng.random_range(0..256))).collect();
            let constraint = constraints.get(index % 7);
            let needed =
                constraint.map_or(1, |constraint| constraint.tokens_to_end(constraint.start()) as usize);
            let request = Request::new(prompt, needed + rng.random_range(0..20)).with_seed(index as u64);
            Request { constraint: constraint.cloned(), ..request }
        })
        .collect();
    let greedy = GenerationConfig::new().with_sync_interval(3);
    let sampled = greedy.clone().with_temperature(0.9);
    let filters = greedy
        .clone()
        .with_temperature(1.3)
        .with_top_k(60)
        .with_top_p(0.97)
        .with_min_p(0.001)
        .with_repetition_penalty(1.2)
        .with_suppress_tokens(vec![TokenId(7), TokenId(100)])
        .with_min_new_tokens(4);
    let model = |device: &Device| RandomLm::new(vocabulary.len() + 5, 9, DType::F32, device);
    for (kind, config) in [("greedy", &greedy), ("sampled", &sampled), ("filters", &filters)] {
        // For equal logits, every device writes the same tokens.
        let expected = alone(&model(&Device::flex()), &vocabulary, &requests, config);
        for (name, device) in devices::all() {
            let model = model(&device);
            for kernels in [Kernels::Fused, Kernels::BuiltIn] {
                // The built-in operations are slow on a GPU, and equal on all devices.
                if name != "flex" && kernels == Kernels::BuiltIn && kind != "filters" {
                    continue;
                }
                let config = config.clone().with_tensors(tensors(kernels));
                let mut batch = ContinuousBatch::new(&model, &vocabulary, 5, 64, &config).unwrap();
                // A software Vulkan is slow.
                let requests = if name == "flex" { &requests[..] } else { &requests[..20] };
                let outputs = serve(&mut batch, requests, 2);
                for (index, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
                    assert_eq!(output, expected, "{name}, {kind}, {kernels:?}, request {index}");
                }
                assert_eq!(batch.free_space(), batch.arena_capacity(), "{name}, {kind}");
            }
        }
    }
}

#[test]
fn rows_with_stacks_begin_and_end_independently() {
    let vocabulary = vocabulary();
    let schemas = [
        json!({"type": "array", "items": {"$ref": "#"}}),
        json!({"type": "object", "properties": {"n": {"$ref": "#"}}, "additionalProperties": false}),
        json!({"type": "array", "contains": {"const": true}, "items": {"anyOf": [{"type": "boolean"}, {"$ref": "#"}]}}),
    ];
    let limits = Limits::new().with_frames(6);
    let compile = |schema: &Value| {
        let constraint = compact(schema);
        CompiledConstraint::compile(&constraint, &vocabulary, &limits).unwrap()
    };
    let blocks = r#"root ::= (part ",")* "."
        part ::= "[" (part ",")* "x" | [x-z]+ "1""#;
    let mut constraints: Vec<CompiledConstraint> = schemas.iter().map(compile).collect();
    let blocks = Constraint::grammar(Syntax::Gbnf, blocks).unwrap();
    constraints.push(CompiledConstraint::compile(&blocks, &vocabulary, &limits).unwrap());
    assert!(constraints.iter().all(|constraint| constraint.exits() > 0));
    let exits = constraints.iter().map(CompiledConstraint::exits).max().unwrap();
    constraints.push(
        CompiledConstraint::compile_byte_level(&Constraint::regex("[0-9]{4}").unwrap(), &vocabulary, &limits)
            .unwrap(),
    );
    let mut rng = StdRng::seed_from_u64(4);
    let requests: Vec<Request> = (0..24)
        .map(|index| {
            let constraint = constraints.get(index % 6);
            let needed =
                constraint.map_or(1, |constraint| constraint.tokens_to_end(constraint.start()) as usize);
            let request = Request::new(vec![TokenId(index as u32)], needed + rng.random_range(0..25));
            Request { constraint: constraint.cloned(), ..request.with_seed(index as u64) }
        })
        .collect();
    let model = |device: &Device| RandomLm::new(vocabulary.len() + 2, 9, DType::F32, device);
    let config = GenerationConfig::new().with_temperature(1.2).with_sync_interval(3);
    let expected = alone(&model(&Device::flex()), &vocabulary, &requests, &config);
    for (name, device) in devices::all() {
        let model = model(&device);
        let refused = config.clone().with_tensors(tensors(Kernels::Fused));
        let mut batch = ContinuousBatch::new(&model, &vocabulary, 1, 64, &refused).unwrap();
        let error = batch.admit(0, &requests[0]).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Input && error.to_string().contains("TensorOptions::capacity"),
            "{error}"
        );
        let mut reserved = tensors(Kernels::Fused);
        reserved.capacity = reserved.capacity.with_stack(exits, 6);
        let mut batch =
            ContinuousBatch::new(&model, &vocabulary, 3, 64, &config.clone().with_tensors(reserved)).unwrap();
        for (index, (output, expected)) in serve(&mut batch, &requests, 2).iter().zip(&expected).enumerate() {
            assert_eq!(output, expected, "{name}, request {index}");
            if let Some(schema) = schemas.get(index % 6) {
                let value: Value = serde_json::from_str(&output.text()).unwrap();
                assert!(jsonschema::is_valid(schema, &value), "{}", output.text());
            }
            if index % 6 == schemas.len() {
                let automaton = blocks.to_automaton(&limits).unwrap().unwrap();
                assert!(automaton.matches(output.text().as_bytes()), "{}", output.text());
            }
        }
    }
}

#[test]
fn the_embedded_model_writes_the_same_in_a_continuous_batch_and_alone() {
    for (name, device) in devices::all() {
        // Burn times products of matrices for every length of a prompt, and Mesa compiles each of
        // their kernels for up to 20 s. `admission` tests the same model there.
        if devices::is_software_gpu(name, &device) {
            continue;
        }
        let embedded = Embedded::load(&device);
        let constraints = ["person", "order", "event", "team"].map(|kind| embedded.schema(kind));
        let digits = embedded.regex("[0-9]{3}-[0-9]{4}");
        let of = |index: usize| match index % 6 {
            4 => Some(&digits),
            5 => None,
            kind => Some(&constraints[kind]),
        };
        let rows: Vec<_> = (0..if name == "flex" { 24 } else { 4 }).map(of).collect();
        let requests = embedded.requests(&rows, 60, 0);
        let config = GenerationConfig::new().with_sync_interval(6);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let expected = alone(model, vocabulary, &requests, &config);
        let capacity = Capacity { constraints: 3, states: 6000, classes: 300, ..Capacity::new() };
        let tensors = TensorOptions { capacity, ..TensorOptions::default() };
        let config = config.with_tensors(tensors);
        let mut batch = ContinuousBatch::new(model, vocabulary, 4, 256, &config).unwrap();
        for (index, (output, expected)) in serve(&mut batch, &requests, 5).iter().zip(&expected).enumerate() {
            assert_eq!(output, expected, "{name}, request {index}: {} or {}", output.text(), expected.text());
        }
    }
}

#[test]
fn a_step_of_zero_returns_first_tokens() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let config = GenerationConfig::new().with_tensors(tensors(Kernels::Fused));
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 32, &config).unwrap();
    batch.admit(1, &Request::new(vec![TokenId(65)], 8)).unwrap();
    let mut read = Vec::new();
    batch.step(0, |piece| read.push((piece.row, piece.tokens.len()))).unwrap();
    batch.step(0, |piece| read.push((piece.row, piece.tokens.len()))).unwrap();
    batch.admit(0, &Request::new(vec![TokenId(66)], 8)).unwrap();
    batch.step(3, |piece| read.push((piece.row, piece.tokens.len()))).unwrap();
    assert_eq!(read, [(1, 1), (0, 4), (1, 3)]);
}

#[test]
fn a_canceled_row_is_finished_at_the_next_read_and_other_rows_continue() {
    let vocabulary = vocabulary();
    let device = Device::flex();
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &device);
    let config = GenerationConfig::new().with_tensors(tensors(Kernels::Fused)).with_sync_interval(2);
    let pattern = Constraint::regex("[a-z]{12}").unwrap();
    let constraint = CompiledConstraint::compile(&pattern, &vocabulary, &Limits::default()).unwrap();
    let request = Request::new(vec![TokenId(1)], 16).with_constraint(&constraint);
    let cancel = Cancel::default();
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 32, &config).unwrap();
    batch.admit(0, &request.clone().with_cancel(&cancel)).unwrap();
    batch.admit(1, &request).unwrap();
    batch.step(2, |_| {}).unwrap();
    assert_eq!(batch.finished().count(), 0);
    cancel.cancel();
    batch.step(2, |_| {}).unwrap();
    assert_eq!(batch.finished().collect::<Vec<_>>(), [0]);
    let canceled = batch.release(0).unwrap();
    batch.step(16, |_| {}).unwrap();
    let whole = batch.release(1).unwrap();
    assert_eq!((canceled.finish, whole.finish), (FinishReason::Canceled, FinishReason::EndOfSequence));
    assert!(!canceled.tokens.is_empty() && whole.tokens.starts_with(&canceled.tokens));
    assert_eq!(whole, alone(&model, &vocabulary, &[request], &config)[0]);
}
