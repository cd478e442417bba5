//! Rows that begin and end under random constraints, some with a stack, against the host. The pages
//! of a constraint that has ended go to others between two steps, and so do the few mask rows.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::ErrorKind;
use burn_dfa::generation::{ContinuousBatch, GenerationConfig, Request};
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, StepContext};
use burn_dfa::sampling::Greedy;
use burn_dfa::tokens::RowPosition;
use burn_dfa::{Arena, Capacity, CompiledConstraint, Limits, TensorOptions, TokenId, Vocabulary};
use burn_dfa_testing::words::{EOS, compact};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Map, Value, json};

use super::super::continuous::generation::{alone, serve};
use super::super::stack::{needed, vocabulary};
use crate::common::model::RandomLm;
use crate::common::{devices, ints, mask_rows_bytes};

/// This number loads each constraint several times. A software GPU computes the threads of a
/// kernel one after the other, but the batch is small.
const STEPS: usize = 200;
const ROWS: usize = 5;
/// The frames of a stack: few, so that rows get near its limit.
const FRAMES: usize = 3;
/// The states of a page of an arena.
const PAGE: usize = 32;

/// A schema of an object with random properties; recursive, or of values that are not nested.
fn random_schema(rng: &mut StdRng, is_recursive: bool) -> Value {
    const NAMES: [&str; 5] = ["name", "a", "next", "k", "children"];
    let first = rng.random_range(0..NAMES.len());
    let name = |at: usize| NAMES[(first + at) % NAMES.len()];
    let mut properties = Map::new();
    for at in 0..rng.random_range(1..4) {
        let value = match rng.random_range(0..6) {
            0 => json!({"type": "integer"}),
            1 => json!({"type": "string"}),
            2 => json!({"type": "string", "maxLength": rng.random_range(1..6)}),
            3 => json!({"enum": ["true", "x", 12, null]}),
            4 => json!({"type": "boolean"}),
            _ => json!({"type": "array", "items": {"type": "boolean"}, "maxItems": rng.random_range(1..4)}),
        };
        properties.insert(name(at).to_owned(), value);
    }
    if is_recursive {
        let own = json!({"$ref": "#"});
        let own = if rng.random() { own } else { json!({"type": "array", "items": own}) };
        properties.insert(name(4).to_owned(), own);
    }
    let required = if rng.random() { vec![name(0)] } else { Vec::new() };
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Constraints of random schemas. Every third is recursive.
fn random_constraints(vocabulary: &Vocabulary, seed: u64) -> Vec<CompiledConstraint> {
    let mut rng = StdRng::seed_from_u64(seed);
    let limits = Limits::new().with_frames(FRAMES);
    let compile = |at: usize| {
        let constraint = compact(&random_schema(&mut rng, at % 3 == 2));
        CompiledConstraint::compile_byte_level(&constraint, vocabulary, &limits).unwrap()
    };
    let constraints: Vec<_> = (0..9).map(compile).collect();
    assert!(
        constraints.iter().filter(|constraint| constraint.exits() > 0).count() >= 3,
        "recursive ones have calls"
    );
    constraints
}

/// Space for the three largest constraints, so others wait for it, and for `slots` mask rows.
fn options(constraints: &[CompiledConstraint], slots: usize) -> TensorOptions {
    let mut pages: Vec<usize> =
        constraints.iter().map(|constraint| constraint.state_count().div_ceil(PAGE)).collect();
    pages.sort_unstable_by(|a, b| b.cmp(a));
    let max = |count: fn(&CompiledConstraint) -> usize| constraints.iter().map(count).max().unwrap();
    let capacity = Capacity::new()
        .with_constraints(4)
        .with_states(PAGE * pages[..3].iter().sum::<usize>())
        .with_classes(max(CompiledConstraint::class_count))
        .with_stack(max(CompiledConstraint::exits), FRAMES);
    TensorOptions::new().with_capacity(capacity).with_mask_rows_bytes(mask_rows_bytes(slots, true))
}

/// Steps of rows that begin and end at random, with a pool of `slots` mask rows.
fn walk(
    constraints: &[CompiledConstraint],
    vocabulary: &Vocabulary,
    (name, device): (&str, &Device),
    slots: usize,
) {
    let vocab_size = vocabulary.len() + 3;
    let arena = Arena::new(vocabulary, vocab_size, &options(constraints, slots), device).unwrap();
    assert_eq!(arena.device_constraint().mask_row_count(), if name == "flex" { 0 } else { slots });
    let mut processor = ConstraintProcessor::continuous(arena, ROWS).unwrap();
    let mut position = processor.start();
    let mut rows: Vec<Option<(&CompiledConstraint, RowPosition)>> = vec![None; ROWS];
    let mut rng = StdRng::seed_from_u64(slots as u64);
    let (mut loads, mut deepest) = (0usize, 0usize);
    for step in 0..STEPS {
        for (row, at) in rows.iter_mut().enumerate() {
            if at.is_some() {
                // A row ends, in the middle of its text or after it.
                if rng.random_bool(0.06) {
                    processor.release(&mut position, row).unwrap();
                    *at = None;
                }
                continue;
            }
            let constraint = &constraints[rng.random_range(0..constraints.len())];
            let spare = if rng.random() { rng.random_range(0..30) } else { 100_000 };
            let budget = needed(constraint) + spare;
            match processor.admit(&mut position, row, Some(constraint), budget) {
                Ok(()) => {
                    *at = Some((constraint, RowPosition::new(constraint.start(), budget as u32)));
                    loads += 1;
                }
                // Until the pages of another are free, the row is idle.
                Err(error) => assert_eq!(error.kind(), ErrorKind::Full, "{name}: {error}"),
            }
        }
        let values: Vec<f32> = (0..ROWS * vocab_size).map(|_| rng.random_range(-4.0..4.0)).collect();
        let logits = TensorData::new(values.clone(), [ROWS, vocab_size]);
        let logits = Tensor::<2>::from_data(logits, (device, DType::F32));
        let masked = processor.mask(&position, logits.clone()).into_data().try_to_vec::<f32>().unwrap();
        // The choice visits the same states once more.
        let mut chosen = position.clone();
        let mut context = StepContext {
            tokens: ints(vec![vocab_size as i32; ROWS], device),
            step: ints(vec![step as i32], device),
        };
        processor.sample_step(&mut chosen, &mut context, logits, &Greedy);
        let greedy = context.tokens.into_data().try_to_vec::<i32>().unwrap();
        let mut tokens = Vec::with_capacity(ROWS);
        for (row, at) in rows.iter_mut().enumerate() {
            let is_legal = |token: usize| match at.as_ref() {
                Some((constraint, own)) => constraint.can_end(&constraint.after(own, TokenId(token as u32))),
                // An idle row has ended.
                None => token == EOS.index(),
            };
            let legal: Vec<usize> = (0..vocabulary.len()).filter(|&token| is_legal(token)).collect();
            let own = at.as_ref().map(|(_, own)| own.clone());
            let what = || format!("{name}, {slots} mask rows, step {step}, row {row}: {own:?}");
            let values = &values[row * vocab_size..][..vocab_size];
            let mut expected = vec![f32::NEG_INFINITY; vocab_size];
            legal.iter().for_each(|&token| expected[token] = values[token]);
            assert!(masked[row * vocab_size..][..vocab_size] == expected, "{}", what());
            // Of equal logits, the first.
            let best = legal.iter().rev().copied().max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap();
            assert_eq!(greedy[row] as usize, best, "{}", what());
            // Mostly words, which enter and leave several objects and lists.
            let words: Vec<usize> = legal.iter().copied().filter(|&token| token > EOS.index()).collect();
            let from = if words.is_empty() || rng.random_bool(0.3) { &legal } else { &words };
            let token = from[rng.random_range(0..from.len())];
            tokens.push(token as i32);
            if let Some((constraint, own)) = at {
                *own = constraint.after(own, TokenId(token as u32));
                deepest = deepest.max(own.frames.len() / (1 + constraint.exits()));
            }
        }
        position = processor.advance(position, ints(tokens, device));
    }
    eprintln!("{name}, {slots} mask rows: {STEPS} steps, {loads} rows, {deepest} frames");
    assert!(loads > STEPS / 8 && deepest > 0, "{loads} rows, {deepest} frames");
}

#[test]
fn rows_under_random_constraints_match_the_host() {
    let vocabulary = vocabulary();
    for (name, device) in devices::all() {
        for slots in [1, 2, 3] {
            walk(&random_constraints(&vocabulary, slots as u64), &vocabulary, (name, &device), slots);
        }
    }
}

/// In a recorded batch, each request has the output that it has alone.
#[test]
fn recorded_rows_under_random_constraints_match_the_host() {
    let vocabulary = vocabulary();
    let constraints = random_constraints(&vocabulary, 4);
    let mut rng = StdRng::seed_from_u64(5);
    let requests: Vec<Request> = (0..18)
        .map(|index| {
            let constraint = &constraints[index % constraints.len()];
            let budget = needed(constraint) + rng.random_range(0..30);
            let prompt = vec![TokenId(index as u32)];
            Request::new(prompt, budget).with_constraint(constraint).with_seed(index as u64)
        })
        .collect();
    let model = |device: &Device| RandomLm::new(vocabulary.len() + 3, 6, DType::F32, device);
    // Devices may round `logit / temperature + noise` once or twice. By a power of two, the
    // quotient is exact.
    let config = GenerationConfig::new().with_temperature(2.0).with_sync_interval(3);
    let expected = alone(&model(&Device::flex()), &vocabulary, &requests, &config);
    for (name, device) in devices::all() {
        let model = model(&device);
        for slots in [1, 2, 3] {
            let config = config.clone().with_tensors(options(&constraints, slots));
            let mut batch = ContinuousBatch::record(&model, &vocabulary, 3, 128, &config).unwrap();
            let outputs = serve(&mut batch, &requests, slots as u64);
            for (index, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
                assert_eq!(output, expected, "{name}, {slots} mask rows, request {index}");
            }
        }
    }
}
