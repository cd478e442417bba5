//! The decode loop: the budget, seeds, streaming, refusals.

use burn_dfa::ErrorKind;
use std::collections::HashMap;
use std::slice;

use crate::common::altered::{Altered, Call};
use crate::common::{
    devices,
    model::{RandomLm, run},
};
use burn::tensor::{DType, Device, Int, Tensor};
use burn_dfa::generation::{FinishReason, GenerationConfig, Request, generate, stream};
use burn_dfa::sampling::{GumbelMax, Sampler};
use burn_dfa::{CompiledConstraint, Constraint, StateId, TensorOptions, TokenId, Vocabulary};
use burn_dfa_testing::words::{EOS, token_level, vocabulary};

fn regex(pattern: &str, vocabulary: &Vocabulary) -> CompiledConstraint {
    token_level(&Constraint::regex(pattern).unwrap(), vocabulary)
}

fn sampled() -> GenerationConfig {
    GenerationConfig::new().with_temperature(1.0)
}

#[test]
fn the_same_seed_gives_the_same_tokens_on_every_device_and_batch_position() {
    let vocabulary = vocabulary();
    let patterns = ["[a-z]{5,30}", r"\d+(,\d+)*", "(true|false|null)+"];
    let constraints: Vec<_> = patterns.iter().map(|pattern| regex(pattern, &vocabulary)).collect();
    let row = |index: usize| {
        let prompt = (0..=index as u32).map(TokenId).collect();
        let request = Request::new(prompt, 24 + index).with_seed(40 + index as u64);
        if index < constraints.len() { request.with_constraint(&constraints[index]) } else { request }
    };
    let mut expected: HashMap<(bool, usize), Vec<TokenId>> = HashMap::new();
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len() + 4, 3, DType::F32, &device);
        for sync_interval in [8, 1, 5] {
            for temperature in [None, Some(0.9)] {
                let config =
                    GenerationConfig::new().with_temperature(temperature).with_sync_interval(sync_interval);
                for order in [vec![0, 1, 2, 3], vec![3, 1], vec![2], vec![1, 2, 0, 3]] {
                    let requests: Vec<_> = order.iter().map(|&index| row(index)).collect();
                    let outputs = run(&model, &vocabulary, &requests, &config).unwrap();
                    for (index, output) in order.into_iter().zip(outputs) {
                        let known = expected.entry((temperature.is_some(), index));
                        let known = known.or_insert(output.tokens.clone());
                        assert_eq!(*known, output.tokens, "row {index} on {name}");
                    }
                }
            }
        }
    }
}

#[test]
fn sampling_follows_the_softmax() {
    let device = Device::flex();
    let logits = [0.0f32, 1.0, 2.0, -1.0, f32::NEG_INFINITY, 0.5, 1.5, -3.0];
    let weights: Vec<f64> = logits.iter().map(|&logit| f64::from(logit).exp()).collect();
    let total: f64 = weights.iter().sum();
    const ROWS: usize = 4000;
    const DRAWS: usize = 10;
    let seeds: Vec<u64> = (0..ROWS as u64).collect();
    let sampler = GumbelMax::new(&seeds, logits.len(), &device).unwrap();
    let batch = Tensor::<1>::from_data(logits, &device).reshape([1, 8]).expand([ROWS, 8]);
    let mut counts = [0usize; 8];
    for step in 0..DRAWS {
        let step = Tensor::<1, Int>::from_data([step as i32], (&device, DType::I32));
        for token in sampler.sample(batch.clone(), &step).into_data().try_to_vec::<i32>().unwrap() {
            counts[token as usize] += 1;
        }
    }
    assert_eq!(counts[4], 0, "a masked token is never drawn");
    let drawn = (ROWS * DRAWS) as f64;
    let chi_square: f64 = (0..8)
        .filter(|&token| token != 4)
        .map(|token| {
            let expected = drawn * weights[token] / total;
            (counts[token] as f64 - expected).powi(2) / expected
        })
        .sum();
    // 6 degrees of freedom: exceeded with probability 0.001.
    assert!(chi_square < 22.46, "chi-square {chi_square}, counts {counts:?}");
}

#[test]
fn chunks_join_to_the_output_without_partial_characters() {
    let vocabulary = vocabulary();
    let constraint = regex("(日|本|é|x){12}", &vocabulary);
    let device = Device::flex();
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &device);
    for sync_interval in [1, 3, 64] {
        let config = sampled().with_sync_interval(sync_interval);
        let requests = [
            Request::new(vec![TokenId(1)], 64).with_constraint(&constraint).with_seed(1),
            Request::new(vec![TokenId(1), TokenId(2)], 64).with_constraint(&constraint).with_seed(2),
        ];
        let mut texts = [String::new(), String::new()];
        let mut tokens = [Vec::new(), Vec::new()];
        let mut chunks = stream(&model, &vocabulary, &requests, &config).unwrap();
        for chunk in &mut chunks {
            let chunk = chunk.unwrap();
            assert!(!chunk.text.contains(char::REPLACEMENT_CHARACTER));
            texts[chunk.row].push_str(&chunk.text);
            tokens[chunk.row].extend_from_slice(&chunk.tokens);
        }
        let outputs = chunks.stop();
        for row in 0..2 {
            assert_eq!(texts[row], outputs[row].text());
            assert_eq!(tokens[row], outputs[row].tokens);
            assert_eq!(texts[row].chars().count(), 12);
        }
    }
}

#[test]
fn a_stream_that_is_stopped_cancels_the_batch() {
    let vocabulary = vocabulary();
    let constraint = regex("a{50}", &vocabulary);
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &Device::flex());
    let request = Request::new(vec![TokenId(1)], 60).with_constraint(&constraint);
    let config = GenerationConfig::new().with_sync_interval(4);
    let mut chunks = stream(&model, &vocabulary, &[request], &config).unwrap();
    chunks.next().unwrap().unwrap();
    let outputs = chunks.stop();
    assert_eq!(outputs[0].finish, FinishReason::Canceled);
    assert_eq!(outputs[0].tokens.len(), 4);
}

#[test]
fn free_rows_end_at_their_own_limit() {
    let vocabulary = vocabulary();
    let constraint = regex("a{9}", &vocabulary);
    let model = RandomLm::new(vocabulary.len() + 8, 2, DType::F32, &Device::flex());
    let requests =
        [Request::new(vec![TokenId(1)], 3), Request::new(vec![TokenId(1)], 40).with_constraint(&constraint)];
    let outputs = run(&model, &vocabulary, &requests, &sampled()).unwrap();
    assert!(outputs[0].tokens.len() <= 3);
    assert!(outputs[0].tokens.iter().all(|token| token.index() < vocabulary.len()));
    assert_eq!(outputs[1].text(), "aaaaaaaaa");
}

#[test]
fn several_ids_may_end_a_sequence() {
    let vocabulary = vocabulary().with_eos([EOS, TokenId(0), TokenId(u32::from(b'z'))]).unwrap();
    let constraint = regex("[a-z]", &vocabulary);
    let state = constraint.next(constraint.start(), TokenId(u32::from(b'b')));
    for id in [EOS.0, 0, u32::from(b'z')] {
        assert_eq!(constraint.next(constraint.start(), TokenId(id)), StateId::DEAD, "not before the end");
        assert_eq!(constraint.next(state, TokenId(id)), StateId::DONE);
    }
}

#[test]
fn bad_requests_are_refused_before_the_first_step() {
    let vocabulary = vocabulary();
    let other = vocabulary.clone().with_eos([TokenId(0)]).unwrap();
    let constraint = regex("abcdef", &vocabulary);
    let foreign = regex("abcdef", &other);
    let device = Device::flex();
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &device);
    let narrow = RandomLm::new(vocabulary.len() - 1, 1, DType::F32, &device);
    let ask = |model: &RandomLm, requests: &[Request], config: &GenerationConfig| {
        run(model, &vocabulary, requests, config).unwrap_err()
    };
    let fine = Request::new(vec![TokenId(1)], 8).with_constraint(&constraint);
    let with = |change: &dyn Fn(&mut Request)| {
        let mut request = fine.clone();
        change(&mut request);
        ask(&model, &[request], &GenerationConfig::new())
    };
    assert_eq!(ask(&model, &[], &GenerationConfig::new()).kind(), ErrorKind::Input, "batch 0");
    assert_eq!(with(&|request| request.max_new_tokens = 0).kind(), ErrorKind::Input);
    assert_eq!(with(&|request| request.prompt.clear()).kind(), ErrorKind::Input);
    assert_eq!(with(&|request| request.prompt.push(TokenId(4000))).kind(), ErrorKind::Input);
    assert_eq!(with(&|request| request.max_new_tokens = usize::MAX).kind(), ErrorKind::Input);
    let generous = GenerationConfig::new().with_sync_interval(usize::MAX).with_top_k(usize::MAX);
    assert_eq!(run(&model, &vocabulary, slice::from_ref(&fine), &generous).unwrap()[0].text(), "abcdef");
    let short = with(&|request| request.max_new_tokens = 3);
    assert_eq!(short.kind(), ErrorKind::Budget);
    assert_eq!(short.tokens_needed(), Some(7));
    assert!(short.to_string().contains("raise it to 7"), "{short}");
    let mut request = fine.clone();
    request.constraint = Some(foreign.clone());
    assert_eq!(ask(&model, &[request], &GenerationConfig::new()).kind(), ErrorKind::IncompatibleVocabulary);
    assert_eq!(
        ask(&narrow, slice::from_ref(&fine), &GenerationConfig::new()).kind(),
        ErrorKind::IncompatibleVocabulary
    );
    for config in [
        GenerationConfig::new().with_temperature(-1.0),
        GenerationConfig::new().with_temperature(f32::NAN),
        GenerationConfig::new().with_top_k(0),
        GenerationConfig::new().with_top_p(0.0),
        GenerationConfig::new().with_min_p(2.0),
        GenerationConfig::new().with_repetition_penalty(-1.0),
        GenerationConfig::new().with_temperature(1e-30),
        GenerationConfig::new().with_repetition_penalty(1e30),
        GenerationConfig::new().with_sync_interval(0),
    ] {
        assert_eq!(ask(&model, slice::from_ref(&fine), &config).kind(), ErrorKind::Input, "{config:?}");
    }
    let tensors = TensorOptions { max_bytes: 100, ..TensorOptions::default() };
    assert_eq!(
        ask(&model, slice::from_ref(&fine), &GenerationConfig::new().with_tensors(tensors)).kind(),
        ErrorKind::Limit
    );
}

/// A model of 16 positions whose logits are all −∞.
fn mute(vocabulary: &Vocabulary) -> Altered<impl Fn(Call, Tensor<2>) -> Tensor<2>> {
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &Device::flex());
    Altered::new(model, |_, logits: Tensor<2>| logits.full_like(f32::NEG_INFINITY)).with_positions(16)
}

#[test]
fn a_model_without_finite_logits_is_an_error_and_not_an_illegal_output() {
    let vocabulary = vocabulary();
    let constraint = regex("abc", &vocabulary);
    let model = mute(&vocabulary);
    let request = Request::new(vec![TokenId(1)], 8).with_constraint(&constraint);
    let result = generate(&model, &vocabulary, slice::from_ref(&request), &GenerationConfig::new());
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Model);
    // Without a logit for the end, `a*` would continue past its budget with tokens allowed by the
    // constraint alone.
    let zeros = Vocabulary::from_bytes([Some("a"), None]).unwrap().with_eos([TokenId(1)]).unwrap();
    let endless = regex("a*", &zeros);
    let unending = Request::new(vec![TokenId(0)], 4).with_constraint(&endless);
    let result = generate(&mute(&zeros), &zeros, &[unending], &GenerationConfig::new());
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Model);
    let long = Request { max_new_tokens: 16, ..request };
    let result = generate(&model, &vocabulary, &[long], &GenerationConfig::new());
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Input, "more positions than the model has");
}
