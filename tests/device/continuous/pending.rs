//! Rows that begin before their constraints are compiled.

use burn_dfa::ErrorKind;
use std::cell::RefCell;
use std::thread;

use burn::tensor::{DType, Device};
use burn_dfa::generation::{
    Cancel, Chunk, ContinuousBatch, ContinuousLm, FinishReason, GenerationConfig, Output, Request,
    SamplingFeatures, SamplingOptions, generate,
};
use burn_dfa::{
    Capacity, CompiledConstraint, Constraint, ConstraintSender, Limits, PendingConstraint, Result,
    TensorOptions, TokenId, Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;

use crate::common::altered::{Altered, Call, WholePrompts};
use crate::common::{devices, embedded::Embedded, model::RandomLm};
use burn_dfa_testing::words::{compact, vocabulary, vocabulary_of};

fn config(states: usize) -> GenerationConfig {
    let capacity = Capacity { constraints: 4, states, classes: 300, ..Capacity::new() }.with_stack(4, 64);
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    GenerationConfig::new()
        .with_tensors(tensors)
        .with_sync_interval(4)
        .with_row_features(SamplingFeatures::ALL)
}

fn regex(pattern: &str, vocabulary: &Vocabulary) -> CompiledConstraint {
    CompiledConstraint::compile(&Constraint::regex(pattern).unwrap(), vocabulary, &Limits::default()).unwrap()
}

fn schema(schema: &serde_json::Value, vocabulary: &Vocabulary) -> CompiledConstraint {
    let constraint = compact(schema);
    CompiledConstraint::compile(&constraint, vocabulary, &Limits::default()).unwrap()
}

fn alone<M: ContinuousLm>(model: &M, vocabulary: &Vocabulary, request: &Request) -> Output {
    let config = GenerationConfig::new();
    generate(model, vocabulary, std::slice::from_ref(request), &config).unwrap().remove(0)
}

/// The same request with a pending constraint, and its sender.
fn pending(request: &Request) -> (ConstraintSender, Request) {
    let (sender, pending) = PendingConstraint::channel();
    (sender, Request { constraint: None, ..request.clone() }.with_pending(&pending))
}

/// Serves all requests. Most constraints are compiled some time after the admission, in any order.
fn serve<M: ContinuousLm>(batch: &mut ContinuousBatch<M>, requests: &[Request], seed: u64) -> Vec<Output> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut outputs: Vec<Option<Output>> = vec![None; requests.len()];
    let mut streamed = vec![Vec::new(); requests.len()];
    let (mut waiting, mut in_row) = ((0..requests.len()).rev().collect::<Vec<_>>(), vec![0; batch.rows()]);
    let mut senders: Vec<(usize, ConstraintSender)> = Vec::new();
    while outputs.iter().any(Option::is_none) {
        while rng.random_bool(0.7)
            && let Some(&index) = waiting.last()
            && let Some(row) = batch.idle_for(&requests[index])
        {
            let admitted = if requests[index].constraint.is_some() && rng.random_bool(0.8) {
                let (sender, request) = pending(&requests[index]);
                senders.push((index, sender));
                batch.admit(row, &request)
            } else {
                batch.admit(row, &requests[index])
            };
            match admitted {
                Ok(()) => in_row[row] = index,
                Err(error) if error.kind() == ErrorKind::Full => break,
                Err(error) => panic!("{error}"),
            }
            waiting.pop();
        }
        if !senders.is_empty() && rng.random_bool(0.4) {
            let (index, sender) = senders.swap_remove(rng.random_range(0..senders.len()));
            assert!(streamed[index].is_empty(), "a token without a constraint");
            sender.send(Ok(requests[index].constraint.clone().unwrap()));
        }
        let take = |piece: Chunk| streamed[in_row[piece.row]].extend(piece.tokens);
        batch.step(rng.random_range(0..9), take).unwrap();
        for row in batch.finished().collect::<Vec<_>>() {
            outputs[in_row[row]] = Some(batch.release(row).unwrap());
        }
    }
    let outputs: Vec<Output> = outputs.into_iter().flatten().collect();
    assert!(outputs.iter().zip(&streamed).all(|(output, tokens)| output.tokens == *tokens));
    outputs
}

/// Constraints of each kind: a regex, a schema, a constraint with calls.
fn constraints(vocabulary: &Vocabulary) -> Vec<CompiledConstraint> {
    let person = json!({
        "type": "object", "properties": {"name": {"type": "string", "maxLength": 4}, "age": {"enum": [12, null]}},
        "required": ["name", "age"], "additionalProperties": false
    });
    let nested = json!({
        "type": "object", "properties": {"name": {"enum": [true, false]}, "age": {"$ref": "#"}},
        "required": ["name"], "additionalProperties": false
    });
    let constraints = vec![
        regex("[0-9]{4}-[0-9]{2}", vocabulary),
        schema(&person, vocabulary),
        schema(&nested, vocabulary),
    ];
    assert!(constraints[2].exits() > 0, "it has calls");
    constraints
}

#[test]
fn outputs_do_not_depend_on_when_constraints_are_compiled() {
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    let mut rng = StdRng::seed_from_u64(1);
    let warm = SamplingOptions::new().with_temperature(0.9);
    let options = [warm.clone(), SamplingOptions::new(), warm.with_top_p(0.8).with_repetition_penalty(1.4)];
    // Some prompts share a prefix.
    let beginning: Vec<TokenId> = (0..20).map(|_| TokenId(rng.random_range(0..256))).collect();
    let requests: Vec<Request> = (0..36)
        .map(|index| {
            let own = rng.random_range(1..20);
            let mut prompt: Vec<_> = (0..own).map(|_| TokenId(rng.random_range(0..256))).collect();
            if rng.random() {
                prompt.splice(0..0, beginning.iter().copied());
            }
            let constraint = constraints.get(index % 4);
            let needed =
                constraint.map_or(1, |constraint| constraint.tokens_to_end(constraint.start()) as usize);
            let request = Request::new(prompt, needed + rng.random_range(0..12)).with_seed(index as u64);
            Request { constraint: constraint.cloned(), ..request }.with_sampling(options[index % 3].clone())
        })
        .collect();
    let flex = RandomLm::new(vocabulary.len() + 5, 9, DType::F32, &Device::flex());
    let expected: Vec<Output> = requests.iter().map(|request| alone(&flex, &vocabulary, request)).collect();
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len() + 5, 9, DType::F32, &device);
        // A software Vulkan is slow.
        let (chunks, requests) = if name == "flex" {
            (&[None, Some(1), Some(7)][..], &requests[..])
        } else {
            (&[Some(7)][..], &requests[..8])
        };
        for &chunk in chunks {
            for (make, prefixes) in [ContinuousBatch::new, ContinuousBatch::record]
                .into_iter()
                .flat_map(|make| [(make, false), (make, true)])
            {
                // Space for the largest constraint, but not for all at once.
                let config = config(320).with_prompt_chunk(chunk).with_prefix_cache(prefixes);
                let mut batch = make(&model, &vocabulary, 3, 96, &config).unwrap();
                let outputs = serve(&mut batch, requests, 2);
                for (index, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
                    assert_eq!(output, expected, "{name}, {chunk:?}, {prefixes}, request {index}");
                }
                assert_eq!(batch.free_space(), batch.arena_capacity(), "{name}");
            }
        }
    }
}

#[test]
fn the_embedded_model_reads_while_constraints_are_compiled() {
    for (name, device) in devices::all() {
        let embedded = Embedded::load(&device);
        let constraints = [embedded.schema("person"), embedded.regex("[0-9]{3}-[0-9]{4}")];
        let count = if name == "flex" { 9 } else { 4 };
        let rows: Vec<_> = (0..count).map(|index| constraints.get(index % 3)).collect();
        let requests = embedded.requests(&rows, 60, 0);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        for chunk in [None, Some(5)] {
            let config = config(6000).with_prompt_chunk(chunk);
            let mut batch = ContinuousBatch::new(model, vocabulary, 3, 256, &config).unwrap();
            for (output, request) in serve(&mut batch, &requests, 5).iter().zip(&requests) {
                assert_eq!(output.text(), alone(model, vocabulary, request).text(), "{name}, {chunk:?}");
            }
        }
    }
}

#[test]
fn a_constraint_is_compiled_while_a_row_begins() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let constraint = Constraint::regex("[a-f]{5}").unwrap();
    let compile = |limits: Limits| PendingConstraint::compile(&constraint, &vocabulary, &limits);
    let request = Request::new(vec![TokenId(65); 9], 8);
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 64, &config(600)).unwrap();
    batch.admit(0, &request.clone().with_pending(&compile(Limits::default()))).unwrap();
    batch.admit(1, &request.clone().with_pending(&compile(Limits::new().with_states(3)))).unwrap();
    // Without other work the batch waits.
    while batch.finished().count() < 2 {
        batch.step(8, |_| ()).unwrap();
    }
    let compiled = regex("[a-f]{5}", &vocabulary);
    assert_eq!(batch.release(0).unwrap(), alone(&model, &vocabulary, &request.with_constraint(&compiled)));
    assert_eq!(batch.release(1).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn all_but_the_last_token_of_a_prompt_is_read_without_a_constraint() {
    let vocabulary = vocabulary();
    let constraint = regex("[a-f]{5}", &vocabulary);
    for (chunk, before, alone) in
        [(None, vec![24, 0, 0, 0], vec![1, 0, 0]), (Some(10), vec![10, 0, 10, 0, 4, 0], vec![1, 0, 0])]
    {
        let calls = RefCell::new(Vec::new());
        let random = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
        let model = Altered::new(random, |call, logits| {
            calls.borrow_mut().push(match call {
                Call::Begin(tokens) | Call::Extend(tokens) => tokens.dims()[1],
                _ => 0,
            });
            logits
        });
        let config = config(600).with_prompt_chunk(chunk);
        let mut batch = ContinuousBatch::new(&model, &vocabulary, 3, 96, &config).unwrap();
        batch.admit(0, &Request::new(vec![TokenId(65)], 60)).unwrap();
        batch.step(1, |_| ()).unwrap();
        calls.take();
        let request = Request::new(vec![TokenId(65); 25], 8).with_constraint(&constraint);
        let (sender, later) = pending(&request);
        batch.admit(1, &later).unwrap();
        assert!(calls.take().is_empty());
        let mut pieces = Vec::new();
        batch.step(3, |piece| pieces.push((piece.row, piece.tokens.len()))).unwrap();
        assert_eq!((calls.take(), &pieces[..]), (before, &[(0, 3)][..]), "{chunk:?}");
        // A later request does not wait for it.
        batch.admit(2, &Request::new(vec![TokenId(65)], 4)).unwrap();
        batch.step(1, |piece| pieces.push((piece.row, piece.tokens.len()))).unwrap();
        assert_eq!((calls.take(), &pieces[1..]), (vec![1, 0], &[(0, 1), (2, 2)][..]), "{chunk:?}");
        sender.send(Ok(constraint.clone()));
        batch.step(2, |piece| pieces.push((piece.row, piece.tokens.len()))).unwrap();
        assert_eq!((calls.take(), &pieces[3..]), (alone, &[(0, 2), (1, 3), (2, 2)][..]), "{chunk:?}");
    }
}

#[test]
fn a_model_that_reads_prompts_whole_reads_them_with_the_constraint() {
    let vocabulary = vocabulary();
    let constraint = regex("[a-f]{5}", &vocabulary);
    let random = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let model = Altered::with_change(random, WholePrompts);
    let request = Request::new(vec![TokenId(65); 9], 8).with_constraint(&constraint);
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 64, &config(600)).unwrap();
    let (sender, later) = pending(&request);
    batch.admit(0, &later).unwrap();
    batch.admit(1, &Request::new(vec![TokenId(65)], 4)).unwrap();
    batch.step(9, |piece| assert_eq!(piece.row, 1)).unwrap();
    sender.send(Ok(constraint.clone()));
    batch.step(8, |_| ()).unwrap();
    assert_eq!(batch.release(0).unwrap(), alone(&model, &vocabulary, &request));
}

#[test]
fn a_late_refusal_affects_only_its_request() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let constraint = regex("[a-f]{9}", &vocabulary);
    let compile = |pattern: &str, vocabulary: &Vocabulary, limits: &Limits| {
        CompiledConstraint::compile(&Constraint::regex(pattern).unwrap(), vocabulary, limits)
    };
    let (other, small) = (vocabulary_of(&["other"]), Limits::new().with_states(9));
    let nothing = Constraint::json_schema(json!({"allOf": [{"type": "string"}, {"type": "null"}]})).unwrap();
    type Refused = (&'static str, Option<Result<CompiledConstraint>>, fn(&burn_dfa::Error) -> bool);
    let refused: [Refused; 6] = [
        ("a limit", Some(compile("a{20}", &vocabulary, &small)), |error| error.kind() == ErrorKind::Limit),
        (
            "a contradiction",
            Some(CompiledConstraint::compile(&nothing, &vocabulary, &Limits::default())),
            |error| error.kind() == ErrorKind::Unsatisfiable,
        ),
        ("a budget", Some(Ok(regex("a{20}", &vocabulary))), |error| error.tokens_needed() == Some(21)),
        ("no space at all", Some(Ok(regex("(ab?){5}[a-f]{900}|a", &vocabulary))), |error| {
            error.kind() == ErrorKind::Input
        }),
        ("another vocabulary", Some(Ok(regex("a", &other))), |error| {
            error.kind() == ErrorKind::IncompatibleVocabulary
        }),
        ("nothing", None, |error| error.kind() == ErrorKind::Artifact),
    ];
    for chunk in [None, Some(4)] {
        let config = config(600).with_prompt_chunk(chunk).with_prefix_cache(true);
        let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 96, &config).unwrap();
        for (why, outcome, is_it) in &refused {
            let beside = Request::new(vec![TokenId(66); 3], 40).with_constraint(&constraint).with_seed(7);
            let request = Request::new(vec![TokenId(65); 9], 12).with_constraint(&constraint);
            let (sender, later) = pending(&request);
            batch.admit(0, &beside).unwrap();
            batch.admit(1, &later).unwrap();
            batch.step(2, |piece| assert_eq!(piece.row, 0)).unwrap();
            match outcome.clone() {
                Some(outcome) => sender.send(outcome),
                None => drop(sender),
            }
            batch.step(1, |piece| assert_eq!(piece.row, 0)).unwrap();
            assert_eq!(batch.finished().collect::<Vec<_>>(), [1], "{why}");
            let error = batch.release(1).unwrap_err();
            assert!(is_it(&error), "{why}: {error}");
            // The row is free for the next request.
            batch.admit(1, &request).unwrap();
            batch.step(12, |_| ()).unwrap();
            for (row, request) in [(0, &beside), (1, &request)] {
                assert_eq!(batch.release(row).unwrap(), alone(&model, &vocabulary, request), "{why}");
            }
            assert_eq!(batch.free_space(), batch.arena_capacity(), "{why}");
        }
    }
}

#[test]
fn the_host_follows_a_late_constraint() {
    let vocabulary = vocabulary();
    let random = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let model = Altered::new(random, |call, logits| match call {
        Call::StepRows => logits.full_like(f32::NEG_INFINITY),
        _ => logits,
    });
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 1, 64, &config(600)).unwrap();
    let (sender, pending) = PendingConstraint::channel();
    batch.admit(0, &Request::new(vec![TokenId(65); 4], 8).with_pending(&pending)).unwrap();
    sender.send(Ok(regex("[a-f]{5}", &vocabulary)));
    batch.step(8, |_| ()).unwrap();
    assert_eq!(batch.release(0).unwrap_err().kind(), ErrorKind::Model);
}

#[test]
fn a_row_that_waits_for_its_constraint_can_be_canceled_and_released() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let constraint = regex("[a-f]{5}", &vocabulary);
    for chunk in [None, Some(2)] {
        let mut batch =
            ContinuousBatch::new(&model, &vocabulary, 2, 64, &config(600).with_prompt_chunk(chunk)).unwrap();
        let request = Request::new(vec![TokenId(65); 9], 8).with_constraint(&constraint);
        let cancel = Cancel::default();
        let (first, later) = pending(&request);
        batch.admit(0, &later.with_cancel(&cancel)).unwrap();
        let (second, later) = pending(&request);
        batch.admit(1, &later).unwrap();
        batch.step(3, |_| ()).unwrap();
        cancel.cancel();
        batch.step(1, |_| ()).unwrap();
        assert_eq!(batch.finished().collect::<Vec<_>>(), [0]);
        for row in [0, 1] {
            let output = batch.release(row).unwrap();
            assert_eq!((output.finish, output.tokens.len()), (FinishReason::Canceled, 0));
        }
        // The results of the compilations do not affect later requests in the rows.
        let (third, later) = pending(&request);
        batch.admit(0, &later).unwrap();
        first.send(Ok(regex("x", &vocabulary)));
        drop(second);
        batch.step(2, |_| ()).unwrap();
        third.send(Ok(constraint.clone()));
        batch.step(9, |_| ()).unwrap();
        assert_eq!(batch.release(0).unwrap(), alone(&model, &vocabulary, &request));
    }
}

#[test]
fn a_batch_can_be_dropped_while_its_constraints_are_compiled() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let (sender, pending) = PendingConstraint::channel();
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 1, 64, &config(600)).unwrap();
    batch.admit(0, &Request::new(vec![TokenId(65)], 8).with_pending(&pending)).unwrap();
    batch.step(2, |_| ()).unwrap();
    drop(batch);
    assert!(!pending.is_ready());
    sender.send(Ok(regex("a", &vocabulary)));
    assert!(pending.wait().is_ok());
}

#[test]
fn a_constraint_that_waits_for_space_is_loaded_before_later_ones() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    // One page of 32 states, one, and two, of three.
    let (small, other, large) =
        (regex("[a-f]{20}", &vocabulary), regex("[0-9]{9}", &vocabulary), regex("x{50}", &vocabulary));
    let third = regex("y{9}", &vocabulary);
    let of = |constraint| Request::new(vec![TokenId(65); 3], 60).with_constraint(constraint);
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 5, 96, &config(96)).unwrap();
    batch.admit(0, &of(&small)).unwrap();
    batch.admit(1, &of(&other)).unwrap();
    let (first, later) = pending(&of(&large));
    batch.admit(2, &later).unwrap();
    let (second, later) = pending(&of(&third));
    batch.admit(3, &later).unwrap();
    // A request that waits for its constraint delays no other.
    batch.step(1, |_| ()).unwrap();
    batch.admit(4, &of(&third)).unwrap();
    batch.release(4).unwrap();
    first.send(Ok(large.clone()));
    second.send(Ok(third.clone()));
    // The free page is reserved for the first request, but free text always has space.
    batch.step(1, |piece| assert!(piece.row < 2)).unwrap();
    assert!(batch.admit(4, &of(&third)).is_err_and(|error| error.kind() == ErrorKind::Full));
    batch.admit(4, &Request::new(vec![TokenId(65)], 30)).unwrap();
    let begin = |batch: &mut ContinuousBatch<_>, row| {
        batch.release(row).unwrap();
        let mut rows = Vec::new();
        batch.step(1, |piece| rows.push(piece.row)).unwrap();
        rows
    };
    assert_eq!(begin(&mut batch, 0), [1, 2, 4]);
    assert_eq!(begin(&mut batch, 1), [2, 3, 4]);
    batch.step(60, |_| ()).unwrap();
    assert_eq!(batch.release(2).unwrap(), alone(&model, &vocabulary, &of(&large)));
    assert_eq!(batch.release(3).unwrap(), alone(&model, &vocabulary, &of(&third)));
}

#[test]
fn a_panic_of_the_compiling_thread_is_an_error() {
    let (sender, pending) = PendingConstraint::channel();
    let other = pending.clone();
    let thread = thread::spawn(move || {
        let _sender = sender;
        panic!("as it was told");
    });
    assert_eq!(pending.wait().unwrap_err().kind(), ErrorKind::Artifact);
    assert!(thread.join().is_err() && other.is_ready());
}

#[test]
fn only_continuous_batches_accept_pending_constraints() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let (_sender, pending) = PendingConstraint::channel();
    let request = Request::new(vec![TokenId(65)], 8).with_pending(&pending);
    let requests = std::slice::from_ref(&request);
    let error = generate(&model, &vocabulary, requests, &GenerationConfig::new()).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Input && error.to_string().contains("PendingConstraint::wait"),
        "{error}"
    );
    let own = regex("a", &vocabulary);
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 1, 64, &config(600)).unwrap();
    assert_eq!(batch.admit(0, &request.with_constraint(&own)).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(batch.idle().count(), 1);
}
