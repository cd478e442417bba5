//! Log-probabilities against the model's logits on the host, in every loop and on every device.

use burn_dfa::ErrorKind;

use burn::tensor::{DType, Device};
use burn_dfa::generation::speculative::{
    Drafter, ForcedBytes, ForcedTokens, MergedDrafters, PromptLookup, speculate, speculate_recorded,
};
use burn_dfa::generation::{
    ContinuousBatch, DecodeGraph, GenerationConfig, Logprobs, Output, Request, SamplingFeatures,
    SamplingOptions, TokenLogprobs, generate, stream,
};
use burn_dfa::{Capacity, CompiledConstraint, Constraint, Kernels, TensorOptions, TokenId, Vocabulary};

use crate::common::{devices, model::RandomLm};
use burn_dfa_testing::words::{token_level, vocabulary};

/// Sums of exponentials in f32 against f64.
const TOLERANCE: f64 = 1e-5;
const TOP: usize = 4;

/// The natural logarithms of the softmax.
fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let sum: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
    logits.iter().map(|&x| f64::from(x) - sum.ln()).collect()
}

fn assert_is(found: &Logprobs, logits: &[f32], chosen: TokenId, what: &str) {
    let expected = log_softmax(logits);
    let near = |found: f32, token: usize| {
        let (found, expected) = (f64::from(found), expected[token]);
        assert!((found - expected).abs() < TOLERANCE, "{what}: token {token}, {found} for {expected}");
    };
    near(found.chosen, chosen.index());
    let mut ids: Vec<usize> = (0..logits.len()).filter(|&token| logits[token] > f32::NEG_INFINITY).collect();
    ids.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    ids.truncate(TOP);
    let top: Vec<usize> = found.top.iter().map(|(token, _)| token.index()).collect();
    assert_eq!(top, ids, "{what}: the likeliest");
    found.top.iter().for_each(|&(token, logprob)| near(logprob, token.index()));
}

/// Checks every token of an output against the host.
fn check(model: &RandomLm, vocabulary: &Vocabulary, request: &Request, output: &Output, what: &str) {
    assert_eq!(output.logprobs.len(), output.tokens.len(), "{what}");
    let free = CompiledConstraint::unconstrained(vocabulary);
    let constraint = request.constraint.as_ref().unwrap_or(&free);
    let mut state = constraint.start();
    let mut text: Vec<i32> = request.prompt.iter().map(|token| token.0 as i32).collect();
    for (at, (&token, TokenLogprobs { model: raw, constrained })) in
        output.tokens.iter().zip(&output.logprobs).enumerate()
    {
        let logits = model.logits_after(&text);
        assert_is(raw, logits, token, what);
        let left = (request.max_new_tokens - at - 1) as u32;
        let legal = |token: usize| {
            let next = constraint.next(state, TokenId(token as u32));
            next != burn_dfa::StateId::DEAD
                && (request.constraint.is_none() || constraint.tokens_to_end(next) <= left)
        };
        let masked: Vec<f32> = logits
            .iter()
            .enumerate()
            .map(|(token, &x)| if legal(token) { x } else { f32::NEG_INFINITY })
            .collect();
        assert_is(constrained, &masked, token, what);
        state = constraint.next(state, token);
        text.push(token.0 as i32);
    }
}

#[test]
fn every_token_has_the_log_probabilities_of_its_logits() {
    let vocabulary = vocabulary();
    let constraints = ["[a-c]{2,9}", "(true|false){2}"]
        .map(|pattern| token_level(&Constraint::regex(pattern).unwrap(), &vocabulary));
    let warm = SamplingOptions::new().with_temperature(1.2).with_top_k(9).with_presence_penalty(0.5);
    let requests: Vec<Request> = (0..5)
        .map(|index| {
            let prompt = (0..=index as u32).map(TokenId).collect();
            let request = Request::new(prompt, 12).with_seed(index as u64);
            let request = Request { constraint: constraints.get(index % 3).cloned(), ..request };
            if index % 2 == 0 { request.with_sampling(warm.clone()) } else { request }
        })
        .collect();
    let without: Vec<Output> = {
        let model = RandomLm::new(vocabulary.len() + 3, 8, DType::F32, &Device::flex());
        generate(&model, &vocabulary, &requests, &GenerationConfig::new()).unwrap()
    };
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len() + 3, 8, DType::F32, &device);
        for kernels in [Kernels::Fused, Kernels::BuiltIn] {
            let capacity = Capacity { constraints: 3, states: 200, classes: 100, ..Capacity::new() };
            let config = GenerationConfig::new()
                .with_tensors(TensorOptions { kernels, capacity, ..TensorOptions::default() })
                .with_row_features(SamplingFeatures::ALL)
                .with_sync_interval(5)
                .with_logprobs(TOP);
            let all = |how: &str, outputs: &[Output]| {
                for (index, (output, request)) in outputs.iter().zip(&requests).enumerate() {
                    check(&model, &vocabulary, request, output, &format!("{name}, {how}, row {index}"));
                    assert_eq!(output.tokens, without[index].tokens, "{name}, {how}: the same without them");
                }
            };
            let mut pieces = vec![Vec::new(); requests.len()];
            let mut chunks = stream(&model, &vocabulary, &requests, &config).unwrap();
            for chunk in &mut chunks {
                let chunk = chunk.unwrap();
                assert_eq!(chunk.tokens.len(), chunk.logprobs.len());
                pieces[chunk.row].extend(chunk.logprobs);
            }
            let outputs = chunks.stop();
            all("eager", &outputs);
            assert!(outputs.iter().zip(&pieces).all(|(output, pieces)| output.logprobs == *pieces));
            let mut graph = DecodeGraph::record(&model, &vocabulary, &requests, &config, 32).unwrap();
            all("graph", &graph.generate(&requests).unwrap());
            for make in [ContinuousBatch::new, ContinuousBatch::record] {
                let mut batch = make(&model, &vocabulary, 2, 32, &config).unwrap();
                let mut outputs = Vec::new();
                for request in &requests {
                    batch.admit(1, request).unwrap();
                    batch.step(12, |_| ()).unwrap();
                    outputs.push(batch.release(1).unwrap());
                }
                all("batch", &outputs);
            }
            let chain = || ForcedTokens::new(3, ForcedBytes::LongestToken);
            let tree = MergedDrafters::new(chain(), PromptLookup::new(2, 1)).unwrap();
            let drafters: [(&str, Box<dyn Drafter>); 3] =
                [("none", Box::new(())), ("chain", Box::new(chain())), ("tree", Box::new(tree))];
            let mut speculative: Vec<_> = drafters
                .into_iter()
                .map(|(how, drafter)| (how, speculate(&model, &vocabulary, &requests, &config, drafter)))
                .collect();
            let recorded = speculate_recorded(&model, &vocabulary, &requests, &config, chain());
            speculative.push(("recorded", recorded));
            for (how, rows) in speculative {
                for (index, (row, request)) in rows.unwrap().iter().zip(&requests).enumerate() {
                    let what = format!("{name}, drafts: {how}, row {index}");
                    check(&model, &vocabulary, request, &row.output, &what);
                    if request.sampling.is_none() {
                        assert_eq!(row.output.tokens, without[index].tokens, "{what}: greedy");
                    }
                }
            }
        }
    }
}

#[test]
fn likeliest_tokens_are_limited_by_the_vocabulary_and_the_request() {
    let vocabulary = vocabulary();
    let constraint = token_level(&Constraint::regex("[xyz]").unwrap(), &vocabulary);
    let model = RandomLm::new(vocabulary.len(), 8, DType::F32, &Device::flex());
    let requests = [Request::new(vec![TokenId(1)], 4).with_constraint(&constraint)];
    let ask = |top: Option<usize>| {
        generate(&model, &vocabulary, &requests, &GenerationConfig::new().with_logprobs(top))
    };
    assert!(ask(None).unwrap()[0].logprobs.is_empty());
    let few = &ask(Some(GenerationConfig::MAX_LOGPROBS)).unwrap()[0].logprobs;
    assert_eq!(few[0].model.top.len(), 20);
    assert_eq!(few[0].constrained.top.len(), 3, "three tokens are legal");
    let sum: f32 = few[0].constrained.top.iter().map(|(_, logprob)| logprob.exp()).sum();
    assert!((sum - 1.0).abs() < 1e-5);
    assert_eq!(few[1].constrained.chosen, 0.0, "the end is certain");
    let chosen = &ask(Some(0)).unwrap()[0].logprobs;
    assert!(chosen[0].model.top.is_empty() && chosen[0].model.chosen == few[0].model.chosen);
    assert_eq!(ask(Some(21)).unwrap_err().kind(), ErrorKind::Input);
}
