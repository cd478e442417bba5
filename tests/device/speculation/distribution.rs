//! Sampled outputs have the same distribution with and without speculation, by Pearson's test.

use std::collections::HashMap;

use burn::tensor::{DType, Device};
use burn_dfa::generation::speculative::{
    DraftModel, Drafter, ForcedBytes, ForcedTokens, MergedDrafters, PromptLookup, speculate,
};
use burn_dfa::generation::{GenerationConfig, Request, SamplingOptions, generate};
use burn_dfa::{CompiledConstraint, Constraint, Limits, StateId, TokenId, Vocabulary};

use crate::common::model::RandomLm;

const DRAWS: u64 = 6000;
const ROWS: u64 = 500;
const PROMPT: [i32; 2] = [0, 1];
const BUDGET: usize = 5;
const TEMPERATURE: f32 = 1.3;

fn vocabulary() -> Vocabulary {
    let tokens = ["a", "b", "ab", "c"].map(Some).into_iter().chain([None, None]);
    Vocabulary::from_bytes(tokens).unwrap().with_eos([TokenId(4), TokenId(5)]).unwrap()
}

/// The probability of every output.
fn exact(model: &RandomLm, constraint: &CompiledConstraint, temperature: f32) -> HashMap<Vec<TokenId>, f64> {
    let mut outputs = HashMap::new();
    let mut open = vec![(Vec::new(), constraint.start(), 1.0)];
    while let Some((tokens, state, chance)) = open.pop() {
        if state == StateId::DONE {
            outputs.insert(tokens, chance);
            continue;
        }
        let text: Vec<_> = PROMPT.into_iter().chain(tokens.iter().map(|id: &TokenId| id.0 as i32)).collect();
        let left = (BUDGET - tokens.len()) as u32;
        let logits = model.logits_after(&text);
        let weight = |id: TokenId| f64::from(logits[id.index()] / temperature).exp();
        let near = |id: &TokenId| constraint.tokens_to_end(constraint.next(state, *id)) < left;
        let legal: Vec<_> = constraint.allowed(state).filter(near).collect();
        let sum: f64 = legal.iter().map(|&id| weight(id)).sum();
        for id in legal {
            let longer = tokens.iter().copied().chain([id]).collect();
            open.push((longer, constraint.next(state, id), chance * weight(id) / sum));
        }
    }
    outputs
}

/// The standard normal deviate of Pearson's statistic (Wilson and Hilferty, 1931); outputs of fewer
/// than 5 expected draws are counted together.
fn deviate(drawn: &[Vec<TokenId>], expected: &HashMap<Vec<TokenId>, f64>) -> f64 {
    let mut counts: HashMap<&[TokenId], f64> = HashMap::new();
    for output in drawn {
        assert!(expected.contains_key(output), "{output:?} is no output");
        *counts.entry(output).or_default() += 1.0;
    }
    let mut cells = Vec::new();
    let mut rare = (0.0, 0.0);
    for (output, chance) in expected {
        let cell = (counts.get(&output[..]).copied().unwrap_or(0.0), chance * drawn.len() as f64);
        if cell.1 < 5.0 {
            rare = (rare.0 + cell.0, rare.1 + cell.1);
        } else {
            cells.push(cell);
        }
    }
    if rare.1 >= 5.0 {
        cells.push(rare);
    }
    let statistic: f64 = cells.iter().map(|(seen, expected)| (seen - expected).powi(2) / expected).sum();
    let degrees = cells.len() as f64 - 1.0;
    let spread = 2.0 / (9.0 * degrees);
    ((statistic / degrees).cbrt() - (1.0 - spread)) / spread.sqrt()
}

#[test]
fn speculation_does_not_change_the_distribution() {
    let (vocabulary, device) = (vocabulary(), Device::flex());
    let constraint = Constraint::regex("[ab]{1,4}c?|ccc").unwrap();
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap();
    let model = RandomLm::new(7, 5, DType::F32, &device);
    let (near, far) = (model.like(0..7, 1.5, 1), RandomLm::new(7, 6, DType::F32, &device));
    let narrow = model.like([5, 2, 0, 3, 0, 0].into_iter(), 1.0, 2);
    let ids = [5, 2, 0, 3].map(TokenId);
    let config = GenerationConfig::new().with_temperature(TEMPERATURE);
    let requests = |first: u64| -> Vec<_> {
        let prompt = PROMPT.map(|id| TokenId(id as u32)).to_vec();
        let request = |seed| Request::new(prompt.clone(), BUDGET).with_constraint(&compiled).with_seed(seed);
        (first..first + ROWS).map(request).collect()
    };
    let expected = exact(&model, &compiled, TEMPERATURE);
    let sum: f64 = expected.values().sum();
    assert!(expected.len() > 20 && (sum - 1.0).abs() < 1e-6, "{} outputs of {sum}", expected.len());

    let blocks = || (0..DRAWS / ROWS).map(|block| block * ROWS);
    let plain = blocks().flat_map(|first| {
        let rows = generate(&model, &vocabulary, &requests(first), &config);
        rows.unwrap().into_iter().map(|row| row.tokens)
    });
    // One in 30,000 exceeds 4.
    let plain: Vec<_> = plain.collect();
    assert!(deviate(&plain, &expected) < 4.0);
    assert!(
        deviate(&plain, &exact(&near, &compiled, TEMPERATURE)) > 8.0,
        "the test tells distributions apart"
    );

    let forced = || ForcedTokens::new(2, ForcedBytes::LongestToken);
    let draft = || DraftModel::new(&near, 3);
    let drafters: Vec<(&str, Box<dyn Drafter>)> = vec![
        ("none", Box::new(())),
        ("near", Box::new(draft())),
        ("far", Box::new(DraftModel::new(&far, 2))),
        ("unmasked", Box::new(draft().unmasked())),
        ("narrow", Box::new(DraftModel::new(&narrow, 2).with_ids(ids))),
        ("lookup", Box::new(PromptLookup::new(2, 2))),
        ("forced", Box::new(forced().before(draft()).unwrap())),
        (
            "merged",
            Box::new(
                MergedDrafters::new(draft(), MergedDrafters::new(draft(), PromptLookup::new(1, 1)).unwrap())
                    .unwrap(),
            ),
        ),
    ];
    for (name, mut drafter) in drafters {
        let mut calls = 0;
        let mut drawn = Vec::new();
        for first in blocks() {
            let rows = speculate(&model, &vocabulary, &requests(first), &config, &mut drafter);
            for row in rows.unwrap() {
                calls += row.calls;
                drawn.push(row.output.tokens);
            }
        }
        let deviate = deviate(&drawn, &expected);
        let tokens: usize = drawn.iter().map(Vec::len).sum();
        eprintln!("{name}: deviate {deviate:.2}, {calls} calls for {tokens} tokens");
        assert!(deviate < 4.0, "{name}: {deviate}");
    }
}

#[test]
fn every_row_has_the_distribution_of_its_temperature() {
    let (vocabulary, device) = (vocabulary(), Device::flex());
    let constraint = Constraint::regex("[ab]{1,4}c?|ccc").unwrap();
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap();
    let model = RandomLm::new(7, 5, DType::F32, &device);
    let near = model.like(0..7, 1.5, 1);
    let temperatures = [Some(0.7), None, Some(2.0)];
    let request = |seed: u64| {
        let sampling = SamplingOptions::new().with_temperature(temperatures[seed as usize % 3]);
        let prompt = PROMPT.map(|id| TokenId(id as u32)).to_vec();
        let request = Request::new(prompt, BUDGET).with_constraint(&compiled).with_seed(seed);
        request.with_sampling(sampling)
    };
    let config = GenerationConfig::new();
    let likeliest = generate(&model, &vocabulary, &[request(1)], &config).unwrap().remove(0).tokens;
    let tree = || MergedDrafters::new(DraftModel::new(&near, 3), PromptLookup::new(1, 1)).unwrap();
    let drafters: [(&str, Box<dyn Drafter>); 2] =
        [("near", Box::new(DraftModel::new(&near, 3))), ("tree", Box::new(tree()))];
    for (name, mut drafter) in drafters {
        let mut drawn = vec![Vec::new(); 3];
        for first in (0..DRAWS / ROWS * 2).map(|block| block * ROWS) {
            let requests: Vec<_> = (first..first + ROWS).map(request).collect();
            let rows = speculate(&model, &vocabulary, &requests, &config, &mut drafter).unwrap();
            for (seed, row) in (first..).zip(rows) {
                drawn[seed as usize % 3].push(row.output.tokens);
            }
        }
        for (temperature, drawn) in temperatures.into_iter().zip(&drawn) {
            let Some(temperature) = temperature else {
                assert!(drawn.iter().all(|tokens| *tokens == likeliest), "{name}: greedy rows");
                continue;
            };
            let deviate = deviate(drawn, &exact(&model, &compiled, temperature));
            eprintln!("{name}, {temperature}: deviate {deviate:.2}");
            assert!(deviate < 4.0, "{name}, {temperature}: {deviate}");
        }
    }
}
