//! Sampling options per row: against a reference on the host, and independent of the other rows.

use burn_dfa::ErrorKind;
use std::collections::HashMap;

use burn::tensor::{DType, Device, Int, Tensor};
use burn_dfa::generation::{
    ContinuousBatch, DecodeGraph, GenerationConfig, Output, Request, SamplingFeatures, SamplingOptions,
    generate,
};
use burn_dfa::sampling::{GumbelMax, Sampler};
use burn_dfa::{
    Capacity, CompiledConstraint, Constraint, Kernels, StateId, TensorOptions, TokenId, Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::common::{devices, model::RandomLm};
use burn_dfa_testing::words::{EOS, token_level, vocabulary};

const NEVER: f32 = f32::NEG_INFINITY;

fn constraints(vocabulary: &Vocabulary) -> Vec<CompiledConstraint> {
    let patterns = ["[a-f]{3,30}", r"[0-9]+(,[0-9]+)*", "(true|false|null)+"];
    let compile = |pattern| token_level(&Constraint::regex(pattern).unwrap(), vocabulary);
    patterns.map(compile).into()
}

/// Every option alone, and many at once.
fn all_options() -> Vec<(&'static str, SamplingOptions)> {
    let greedy = SamplingOptions::new();
    let warm = SamplingOptions::new().with_temperature(0.9);
    let letters = |range: std::ops::RangeInclusive<u8>| range.map(|byte| TokenId(u32::from(byte)));
    let bias = |value: f32| letters(b'a'..=b'c').chain([EOS]).map(move |token| (token, value));
    vec![
        ("greedy", greedy.clone()),
        ("temperature 0", greedy.clone().with_temperature(0.0).with_top_k(3).with_top_p(0.1)),
        ("temperature", warm.clone()),
        ("high temperature", greedy.clone().with_temperature(3.0)),
        ("top-k", warm.clone().with_top_k(5)),
        ("top-k of all", warm.clone().with_top_k(usize::MAX)),
        ("top-p", warm.clone().with_top_p(0.4)),
        ("top-p of 1", warm.clone().with_top_p(1.0)),
        ("min-p", warm.clone().with_min_p(0.2)),
        ("repetition", greedy.clone().with_repetition_penalty(1.7)),
        ("presence", greedy.clone().with_presence_penalty(1.5)),
        ("frequency", greedy.clone().with_frequency_penalty(0.75)),
        ("negative frequency", warm.clone().with_frequency_penalty(-0.5).with_presence_penalty(0.25)),
        ("bias up", greedy.clone().with_logit_bias(bias(2.5))),
        ("bias down", warm.clone().with_logit_bias(bias(-100.0))),
        ("bias twice", greedy.clone().with_logit_bias(bias(3.0).chain(bias(-1.0)))),
        ("suppressed", greedy.clone().with_suppress_tokens(letters(b'0'..=b'8').chain(letters(b'a'..=b'd')))),
        ("suppressed, all", warm.clone().with_suppress_tokens((0..1000).map(TokenId))),
        ("least", warm.clone().with_min_new_tokens(9)),
        ("least, too many", greedy.with_min_new_tokens(1000)),
        (
            "everything",
            warm.with_top_k(30)
                .with_top_p(0.9)
                .with_min_p(0.01)
                .with_repetition_penalty(1.2)
                .with_presence_penalty(0.3)
                .with_frequency_penalty(0.2)
                .with_logit_bias(bias(1.0))
                .with_suppress_tokens([TokenId(u32::from(b'e'))])
                .with_min_new_tokens(4),
        ),
    ]
}

/// Requests with all options, under every constraint and none, with prompts of several lengths.
fn requests(constraints: &[CompiledConstraint]) -> Vec<(String, Request)> {
    let mut all = Vec::new();
    for (index, (name, options)) in all_options().into_iter().enumerate() {
        for which in 0..=constraints.len() {
            let prompt = (0..1 + (index + which) % 4).map(|at| TokenId((7 * index + 31 * at) as u32 % 256));
            let request =
                Request::new(prompt.collect(), 14 + index % 5).with_seed((10 * index + which) as u64);
            let request = Request { constraint: constraints.get(which).cloned(), ..request }
                .with_sampling(options.clone());
            all.push((format!("{name}, constraint {which}"), request));
        }
    }
    all
}

fn is_left(logits: &[f32]) -> bool {
    logits.iter().any(|&logit| logit != NEVER)
}

/// Masks tokens if another one is left.
fn mask_unless_last(logits: &mut Vec<f32>, is_masked: impl Fn(usize) -> bool) {
    let masked: Vec<f32> =
        logits.iter().enumerate().map(|(token, &x)| if is_masked(token) { NEVER } else { x }).collect();
    if is_left(&masked) {
        *logits = masked;
    }
}

/// Keeps logits of at least `least`.
fn keep(logits: &mut [f32], least: f32) {
    logits.iter_mut().filter(|x| **x < least).for_each(|x| *x = NEVER);
}

fn sorted(logits: &[f32]) -> Vec<f32> {
    let mut sorted = logits.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    sorted
}

/// The greatest logit such that the probabilities at or above it reach `p`.
fn least_of_mass(logits: &[f32], p: f32) -> f32 {
    let sorted = sorted(logits);
    let weigh = |x: f32| (f64::from(x) - f64::from(sorted[0])).exp();
    let total: f64 = sorted.iter().map(|&x| weigh(x)).sum();
    let mut mass = 0.0;
    let reaches = |x: &&f32| {
        mass += weigh(**x);
        mass >= f64::from(p) * total
    };
    *sorted.iter().find(reaches).unwrap()
}

/// The filtered logits of one step of a row, on the host.
fn filtered(mut logits: Vec<f32>, options: &SamplingOptions, prompt: &[i32], output: &[i32]) -> Vec<f32> {
    let mut counts: HashMap<usize, f32> = HashMap::new();
    output.iter().for_each(|&token| *counts.entry(token as usize).or_default() += 1.0);
    for (token, x) in logits.iter_mut().enumerate() {
        let count = counts.get(&token).copied().unwrap_or(0.0);
        if let Some(penalty) = options.repetition_penalty
            && (count > 0.0 || prompt.contains(&(token as i32)))
        {
            *x *= if *x < 0.0 { penalty } else { penalty.recip() };
        }
        let presence = options.presence_penalty.unwrap_or(0.0) * count.min(1.0);
        *x -= presence + options.frequency_penalty.unwrap_or(0.0) * count;
        let bias = options.logit_bias.iter().filter(|(id, _)| id.index() == token).map(|(_, bias)| bias);
        *x += bias.sum::<f32>();
    }
    mask_unless_last(&mut logits, |token| options.suppress_tokens.contains(&TokenId(token as u32)));
    if output.len() < options.min_new_tokens {
        mask_unless_last(&mut logits, |token| token == EOS.index());
    }
    if options.is_greedy() {
        return logits;
    }
    let factor = options.temperature.unwrap().recip();
    logits.iter_mut().for_each(|x| *x *= factor);
    if let Some(k) = options.top_k.filter(|&k| k < logits.len()) {
        let least = sorted(&logits)[k - 1];
        keep(&mut logits, least);
    }
    if let Some(p) = options.top_p.filter(|&p| p < 1.0) {
        let least = least_of_mass(&logits, p);
        keep(&mut logits, least);
    }
    if let Some(p) = options.min_p {
        let least = sorted(&logits)[0] + p.ln();
        keep(&mut logits, least);
    }
    logits
}

/// The output of a request, step by step on the host; only the noise is the library's.
fn reference(
    model: &RandomLm,
    vocabulary: &Vocabulary,
    vocab_size: usize,
    request: &Request,
) -> Vec<TokenId> {
    let device = Device::flex();
    let free = CompiledConstraint::unconstrained(vocabulary);
    let (constraint, options) =
        (request.constraint.as_ref().unwrap_or(&free), request.sampling.as_ref().unwrap());
    let prompt: Vec<i32> = request.prompt.iter().map(|token| token.0 as i32).collect();
    let noise = GumbelMax::new(&[request.seed], vocab_size, &device).unwrap();
    let (mut state, mut output) = (constraint.start(), Vec::new());
    while output.len() < request.max_new_tokens {
        let mut logits = model.logits_after(&[&prompt[..], &output].concat()).to_vec();
        let left = (request.max_new_tokens - output.len() - 1) as u32;
        for (token, x) in logits.iter_mut().enumerate() {
            let next = constraint.next(state, TokenId(token as u32));
            let is_free = request.constraint.is_none() && next != StateId::DEAD;
            if !is_free && (next == StateId::DEAD || constraint.tokens_to_end(next) > left) {
                *x = NEVER;
            }
        }
        let logits = filtered(logits, options, &prompt, &output);
        let logits = Tensor::<1>::from_floats(&logits[..], &device).reshape([1, vocab_size]);
        let step = Tensor::<1, Int>::from_data([output.len() as i32], (&device, DType::I32));
        let chosen = match options.is_greedy() {
            true => logits.argmax(1).reshape([1]).cast(DType::I32),
            false => noise.sample(logits, &step),
        };
        let token = chosen.into_data().try_to_vec::<i32>().unwrap()[0];
        output.push(token);
        state = constraint.next(state, TokenId(token as u32));
        if token == EOS.0 as i32 {
            break;
        }
    }
    output.into_iter().map(|token| TokenId(token as u32)).collect()
}

fn lm(vocabulary: &Vocabulary, device: &Device) -> RandomLm {
    RandomLm::new(vocabulary.len() + 4, 5, DType::F32, device)
}

fn alone(model: &RandomLm, vocabulary: &Vocabulary, request: &Request) -> Output {
    let request = std::slice::from_ref(request);
    generate(model, vocabulary, request, &GenerationConfig::new()).unwrap().remove(0)
}

#[test]
fn every_option_matches_the_host() {
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    let model = lm(&vocabulary, &Device::flex());
    let mut differ = 0;
    for (name, request) in requests(&constraints) {
        let expected = reference(&model, &vocabulary, vocabulary.len() + 4, &request);
        let output = alone(&model, &vocabulary, &request);
        assert_eq!(output.tokens, expected, "{name}");
        let plain = request.clone().with_sampling(SamplingOptions::new());
        differ += usize::from(alone(&model, &vocabulary, &plain).tokens != output.tokens);
        if let Some(constraint) = &request.constraint {
            assert!(output.is_complete() && constraint.accepts(&output.tokens), "{name}: {}", output.text());
        }
    }
    assert!(differ > 50, "most options change what is written, {differ} did");
}

fn tensors(kernels: Kernels) -> TensorOptions {
    let capacity = Capacity { constraints: 4, states: 600, classes: 300, ..Capacity::new() };
    TensorOptions { kernels, capacity, ..TensorOptions::default() }
}

#[test]
fn the_options_of_other_rows_do_not_affect_a_row() {
    let vocabulary = vocabulary();
    let constraints = constraints(&vocabulary);
    let flex = lm(&vocabulary, &Device::flex());
    let (names, all): (Vec<_>, Vec<_>) = requests(&constraints).into_iter().unzip();
    let expected: Vec<_> = all.iter().map(|request| alone(&flex, &vocabulary, request)).collect();
    for (device_name, device) in devices::all() {
        let model = lm(&vocabulary, &device);
        for kernels in [Kernels::Fused, Kernels::BuiltIn] {
            // A software Vulkan is slow: every third request still has every option and every
            // constraint.
            let stride = if device_name == "flex" { 1 } else { 3 };
            let mut order: Vec<usize> = (0..all.len()).step_by(stride).collect();
            let mut rng = StdRng::seed_from_u64(3);
            for at in (1..order.len()).rev() {
                order.swap(at, rng.random_range(0..=at));
            }
            let config = GenerationConfig::new()
                .with_tensors(tensors(kernels))
                .with_row_features(SamplingFeatures::ALL);
            let requests_of =
                |of: &[usize]| -> Vec<Request> { of.iter().map(|&index| all[index].clone()).collect() };
            let check = |how: &str, of: &[usize], outputs: Vec<Output>| {
                for (&index, output) in of.iter().zip(outputs) {
                    assert_eq!(
                        output, expected[index],
                        "{device_name}, {kernels:?}, {how}: {}",
                        names[index]
                    );
                }
            };
            let mut graph = None;
            for of in order.chunks_exact(7) {
                let requests = requests_of(of);
                check("eager", of, generate(&model, &vocabulary, &requests, &config).unwrap());
                let graph = graph.get_or_insert_with(|| {
                    DecodeGraph::record(&model, &vocabulary, &requests, &config, 40).unwrap()
                });
                check("graph", of, graph.generate(&requests).unwrap());
            }
            for is_recorded in [false, true] {
                let make = if is_recorded { ContinuousBatch::record } else { ContinuousBatch::new };
                let mut batch = make(&model, &vocabulary, 5, 40, &config).unwrap();
                let (mut waiting, mut in_row) = (order.clone(), [0; 5]);
                while !waiting.is_empty() || batch.idle().count() < 5 {
                    for row in batch.idle().collect::<Vec<_>>() {
                        let Some(next) = waiting.pop() else { break };
                        batch.admit(row, &all[next]).unwrap();
                        in_row[row] = next;
                    }
                    batch.step(rng.random_range(0..5), |_| ()).unwrap();
                    for row in batch.finished().collect::<Vec<_>>() {
                        let output = batch.release(row).unwrap();
                        check(&format!("batch, recorded {is_recorded}"), &[in_row[row]], vec![output]);
                    }
                }
            }
        }
    }
}

#[test]
fn no_option_overrides_a_constraint() {
    let vocabulary = vocabulary();
    let constraint = token_level(&Constraint::regex("ab[0-9]{2}(x|y)").unwrap(), &vocabulary);
    let everything = || (0..vocabulary.len() as u32).map(TokenId);
    for (_, device) in devices::all() {
        let model = lm(&vocabulary, &device);
        for bias in [-100.0, 100.0] {
            for temperature in [0.0, 1.0] {
                let options = SamplingOptions::new()
                    .with_temperature(temperature)
                    .with_logit_bias(everything().filter(|token| token.0 % 3 != 0).map(|token| (token, bias)))
                    .with_suppress_tokens(everything())
                    .with_repetition_penalty(100.0)
                    .with_presence_penalty(-100.0)
                    .with_min_new_tokens(50);
                let request =
                    Request::new(vec![TokenId(1)], 8).with_constraint(&constraint).with_sampling(options);
                let output = alone(&model, &vocabulary, &request);
                assert!(constraint.accepts(&output.tokens), "{}", output.text());
            }
        }
    }
}

#[test]
fn options_out_of_range_or_not_allowed_are_refused() {
    let vocabulary = vocabulary();
    let model = lm(&vocabulary, &Device::flex());
    let options = SamplingOptions::new;
    let request = |options| Request::new(vec![TokenId(1)], 4).with_sampling(options);
    let config = GenerationConfig::new().with_tensors(tensors(Kernels::Fused));
    for wrong in [
        options().with_temperature(-0.1),
        options().with_temperature(f32::NAN),
        options().with_temperature(1000.0),
        options().with_top_k(0),
        options().with_top_p(0.0),
        options().with_min_p(1.5),
        options().with_repetition_penalty(0.0),
        options().with_presence_penalty(f32::INFINITY),
        options().with_frequency_penalty(f32::NAN),
        options().with_logit_bias([(TokenId(3), f32::INFINITY)]),
        options().with_logit_bias([(TokenId(3), -100.5)]),
    ] {
        let error = generate(&model, &vocabulary, &[request(wrong.clone())], &config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{wrong:?}: {error}");
        let all = config.clone().with_row_features(SamplingFeatures::ALL);
        let mut batch = ContinuousBatch::new(&model, &vocabulary, 1, 16, &all).unwrap();
        assert_eq!(batch.admit(0, &request(wrong)).unwrap_err().kind(), ErrorKind::Input);
        batch.admit(0, &request(options())).unwrap();
    }
    // A batch without a feature refuses its options, and accepts others.
    let few = SamplingFeatures { temperature: true, ..SamplingFeatures::NONE };
    let config = config.with_row_features(few);
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 1, 16, &config).unwrap();
    let plain = [request(options())];
    let mut graph = DecodeGraph::record(&model, &vocabulary, &plain, &config, 16).unwrap();
    for (name, options) in all_options() {
        let request = request(options);
        let is_covered = few.covers(SamplingFeatures::of(request.sampling.as_ref().unwrap()));
        let admitted = batch.admit(0, &request);
        let replayed = graph.generate(std::slice::from_ref(&request));
        match is_covered {
            true => {
                admitted.unwrap();
                batch.release(0).unwrap();
                replayed.unwrap();
            }
            false => {
                let error = admitted.unwrap_err();
                assert!(
                    error.kind() == ErrorKind::Input && error.to_string().contains("row_features"),
                    "{name}: {error}"
                );
                assert_eq!(replayed.unwrap_err().kind(), ErrorKind::Input, "{name}");
            }
        }
    }
}
