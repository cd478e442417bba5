//! Requests that begin together, and prompts read in chunks.

use burn_dfa::ErrorKind;
use std::cell::RefCell;

use burn::tensor::{DType, Device};
use burn_dfa::generation::{
    Cancel, Chunk, ContinuousBatch, ContinuousLm, FinishReason, GenerationConfig, Output, Request,
    SamplingFeatures, SamplingOptions, generate,
};
use burn_dfa::{Capacity, CompiledConstraint, Constraint, Limits, TensorOptions, TokenId, Vocabulary};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::common::altered::{Altered, Call};
use crate::common::{devices, embedded::Embedded, model::RandomLm};
use burn_dfa_testing::words::vocabulary;

fn config(states: usize) -> GenerationConfig {
    let capacity = Capacity { constraints: 4, states, classes: 300, ..Capacity::new() };
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    GenerationConfig::new()
        .with_tensors(tensors)
        .with_sync_interval(4)
        .with_row_features(SamplingFeatures::ALL)
}

fn alone<M: ContinuousLm>(model: &M, vocabulary: &Vocabulary, requests: &[Request]) -> Vec<Output> {
    let config = GenerationConfig::new();
    let one = |request| generate(model, vocabulary, std::slice::from_ref(request), &config);
    requests.iter().map(|request| one(request).unwrap().remove(0)).collect()
}

/// Serves all requests, in all idle rows at once.
fn serve<M: ContinuousLm>(batch: &mut ContinuousBatch<M>, requests: &[Request], seed: u64) -> Vec<Output> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut outputs: Vec<Option<Output>> = vec![None; requests.len()];
    let mut streamed = vec![Vec::new(); requests.len()];
    let (mut waiting, mut in_row) = ((0..requests.len()).rev().collect::<Vec<_>>(), vec![0; batch.rows()]);
    while outputs.iter().any(Option::is_none) {
        let rows: Vec<usize> = batch.idle().filter(|_| rng.random_bool(0.8)).collect();
        let next: Vec<usize> = rows.iter().map_while(|_| waiting.pop()).collect();
        let admissions: Vec<_> =
            rows.iter().zip(&next).map(|(&row, &index)| (row, &requests[index])).collect();
        for ((&row, &index), result) in rows.iter().zip(&next).zip(batch.admit_all(&admissions)) {
            match result {
                Ok(()) => in_row[row] = index,
                Err(error) if error.kind() == ErrorKind::Full => waiting.push(index),
                Err(error) => panic!("{error}"),
            }
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

#[test]
fn outputs_do_not_depend_on_how_prompts_are_read() {
    let vocabulary = vocabulary();
    let constraints = ["[0-9]{4}-[0-9]{2}", "(true|false|été)", "[a-c]{1,9}"].map(|pattern| {
        CompiledConstraint::compile(&Constraint::regex(pattern).unwrap(), &vocabulary, &Limits::default())
            .unwrap()
    });
    let mut rng = StdRng::seed_from_u64(1);
    let warm = SamplingOptions::new().with_temperature(0.9);
    let options = [warm.clone(), SamplingOptions::new(), warm.with_top_p(0.8).with_repetition_penalty(1.4)];
    let requests: Vec<Request> = (0..30)
        .map(|index| {
            let prompt = (0..rng.random_range(1..40)).map(|_| TokenId(rng.random_range(0..256))).collect();
            let request = Request::new(prompt, rng.random_range(12..20)).with_seed(index as u64);
            Request { constraint: constraints.get(index % 4).cloned(), ..request }
                .with_sampling(options[index % 3].clone())
        })
        .collect();
    let flex = RandomLm::new(vocabulary.len() + 5, 9, DType::F32, &Device::flex());
    let expected = alone(&flex, &vocabulary, &requests);
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len() + 5, 9, DType::F32, &device);
        // A software Vulkan is slow.
        let (chunks, requests) = if name == "flex" {
            (&[None, Some(1), Some(7), Some(64)][..], &requests[..])
        } else {
            (&[None, Some(7)][..], &requests[..15])
        };
        for &chunk in chunks {
            for make in [ContinuousBatch::new, ContinuousBatch::record] {
                let config = config(600).with_prompt_chunk(chunk);
                let mut batch = make(&model, &vocabulary, 4, 64, &config).unwrap();
                for (index, (output, expected)) in
                    serve(&mut batch, requests, 2).iter().zip(&expected).enumerate()
                {
                    assert_eq!(output, expected, "{name}, {chunk:?}, request {index}");
                }
                assert_eq!(batch.free_space(), batch.arena_capacity(), "{name}");
            }
        }
    }
}

#[test]
fn the_embedded_model_reads_prompts_in_chunks_and_together() {
    for (name, device) in devices::all() {
        let embedded = Embedded::load(&device);
        let constraints = [embedded.schema("person"), embedded.regex("[0-9]{3}-[0-9]{4}")];
        let (chunks, count) = if name == "flex" { (&[None, Some(3)][..], 12) } else { (&[Some(3)][..], 6) };
        let rows: Vec<_> = (0..count).map(|index| constraints.get(index % 3)).collect();
        let requests = embedded.requests(&rows, 60, 0);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let expected = alone(model, vocabulary, &requests);
        for &chunk in chunks {
            let config = config(6000).with_prompt_chunk(chunk);
            let mut batch = ContinuousBatch::new(model, vocabulary, 4, 256, &config).unwrap();
            for (index, (output, expected)) in
                serve(&mut batch, &requests, 5).iter().zip(&expected).enumerate()
            {
                assert_eq!(output.text(), expected.text(), "{name}, {chunk:?}, request {index}");
            }
        }
    }
}

#[test]
fn a_long_prompt_delays_a_step_by_at_most_a_chunk() {
    let vocabulary = vocabulary();
    let calls = RefCell::new(Vec::new());
    let random = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let model = Altered::new(random, |call, logits| {
        match call {
            Call::Begin(tokens) | Call::Extend(tokens) => calls.borrow_mut().push(tokens.dims()[1]),
            _ => calls.borrow_mut().push(0),
        }
        logits
    });
    let config = config(600).with_prompt_chunk(10);
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 3, 128, &config).unwrap();
    let of_length = |length: usize| Request::new(vec![TokenId(65); length], 20);
    // The first prompt delays no row: it is read at once.
    batch.admit(0, &of_length(25)).unwrap();
    let mut pieces = Vec::new();
    batch.step(1, |piece| pieces.push((piece.row, piece.tokens.len()))).unwrap();
    assert_eq!(calls.take(), [10, 10, 5, 0]);
    assert_eq!(pieces, [(0, 2)]);
    // Two prompts of 12 and 15 tokens are read in three steps; the last chunk leaves no space for
    // another.
    batch.admit(1, &of_length(12)).unwrap();
    batch.admit(2, &of_length(15)).unwrap();
    pieces.clear();
    batch.step(4, |piece| pieces.push((piece.row, piece.tokens.len()))).unwrap();
    assert_eq!(calls.take(), [10, 0, 2, 8, 0, 7, 0, 0]);
    assert_eq!(pieces, [(0, 4), (1, 4), (2, 3)]);
}

#[test]
fn a_prompt_that_is_being_read_can_be_canceled_and_released() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let config = config(600).with_prompt_chunk(1);
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 3, 64, &config).unwrap();
    let request = Request::new(vec![TokenId(65); 30], 30);
    let short = Request::new(vec![TokenId(65)], 30);
    batch.admit(0, &short).unwrap();
    batch.step(1, |_| ()).unwrap();
    let cancel = Cancel::default();
    batch.admit(1, &request.clone().with_cancel(&cancel)).unwrap();
    batch.admit(2, &request).unwrap();
    batch.step(2, |_| ()).unwrap();
    cancel.cancel();
    batch.step(1, |_| ()).unwrap();
    assert_eq!(batch.finished().collect::<Vec<_>>(), [1]);
    for row in [1, 2] {
        let output = batch.release(row).unwrap();
        assert_eq!((output.finish, output.tokens.len()), (FinishReason::Canceled, 0));
    }
    batch.admit(2, &short).unwrap();
    batch.step(30, |_| ()).unwrap();
    let expected = &alone(&model, &vocabulary, &[short])[0];
    assert_eq!([batch.release(0).unwrap(), batch.release(2).unwrap()], [expected.clone(), expected.clone()]);
}

#[test]
fn a_refused_request_does_not_affect_the_others() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 32, &config(600)).unwrap();
    let fine = Request::new(vec![TokenId(65)], 8);
    let long = Request::new(vec![TokenId(65)], 80);
    let results = batch.admit_all(&[(0, &long), (1, &fine), (1, &fine), (7, &fine)]);
    let accepted: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [false, true, false, false]);
    batch.step(8, |_| ()).unwrap();
    assert_eq!(batch.release(1).unwrap(), alone(&model, &vocabulary, &[fine])[0]);
    assert_eq!(batch.idle().count(), 2);
}
