//! Mask rows that a batch keeps on a device, against the host: with stacks and budgets, in batches
//! of equal and different states, in pools of any size.

mod random;
mod trees;

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::constraint::Syntax;
use burn_dfa::generation::{DecodeGraph, GenerationConfig, Request, generate};
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, StepContext};
use burn_dfa::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa::tokens::RowPosition;
use burn_dfa::{
    Arena, Capacity, CompiledConstraint, Constraint, DeviceConstraint, Limits, StateId, TensorOptions,
    TokenId, Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::stack::{compile, grammars, legal, schemas, vocabulary, walk_rows};
use crate::common::model::RandomLm;
use crate::common::{devices, ints, mask_rows_bytes};

/// Options for a pool of `slots` mask rows with a stack.
fn with_slots(slots: usize) -> TensorOptions {
    TensorOptions::new().with_mask_rows_bytes(mask_rows_bytes(slots, true))
}

/// After `x[` and `y[` the state is the same. After `y[`, only one exit leads to the end: `d0` needs
/// more frames than there are.
fn exits_of_the_depth(vocabulary: &Vocabulary, frames: usize) -> CompiledConstraint {
    let last = frames + 1;
    let mut grammar = r#"root ::= "x" (a "1" | b "2") | "y" (a "3" | b "4" d0)
        a ::= "[" a* "]" | "12" | "name"
        b ::= "[" b* "]" | "{" b "}" | "true"
        "#
    .to_owned();
    (0..last).for_each(|depth| grammar += &format!("d{depth} ::= \"(\" d{} \")\"\n", depth + 1));
    grammar += &format!("d{last} ::= \"(\" d0 \")\" | \".\"\n");
    let constraint = Constraint::grammar(Syntax::Gbnf, &grammar).unwrap();
    let limits = Limits::new().with_frames(frames);
    CompiledConstraint::compile_byte_level(&constraint, vocabulary, &limits).unwrap()
}

#[test]
fn masks_match_the_host_in_pools_of_any_size() {
    let vocabulary = vocabulary();
    for frames in [64, 4] {
        let mut constraints: Vec<_> =
            schemas().iter().map(|schema| compile(schema, &vocabulary, frames)).collect();
        constraints.extend(grammars(&vocabulary, frames));
        constraints.push(exits_of_the_depth(&vocabulary, frames));
        let constraints: Vec<&CompiledConstraint> = constraints.iter().collect();
        // Several rows of each constraint begin in the same state, and meet again.
        let rows: Vec<usize> =
            (0..constraints.len()).chain(0..constraints.len()).chain([0, 0, 2, 2, 2]).collect();
        for (name, device) in devices::all() {
            if name == "flex" {
                continue;
            }
            for slots in [1, 2, 3, 40, 10_000] {
                let options = with_slots(slots);
                let device_constraint =
                    DeviceConstraint::new(&constraints, vocabulary.len() + 3, &options, &device);
                let count = device_constraint.unwrap().mask_row_count();
                // A state needs no more than one slot.
                assert!(count == slots || slots == 10_000 && count > 40, "{count} of {slots} slots");
                // Budgets that are just enough, that run out early and late, and that never decide.
                let spares = [3, 60, 150, 100_000];
                walk_rows(&constraints, &rows, &options, &device, 200, &spares, slots as u64);
            }
        }
    }
}

#[test]
fn rows_with_different_exits_share_no_mask_row() {
    let vocabulary = vocabulary();
    let constraint = exits_of_the_depth(&vocabulary, 2);
    let texts = ["x[", "y["].map(str::as_bytes);
    let own = texts.map(|text| {
        let start = RowPosition::unlimited(constraint.start());
        text.iter().fold(start, |position, byte| constraint.after(&position, TokenId(u32::from(*byte))))
    });
    assert_eq!((own[0].state, own[0].frames.len()), (own[1].state, own[1].frames.len()));
    let expected = own.map(|own| legal(&constraint, &own));
    assert_ne!(expected[0], expected[1]);
    let vocab_size = vocabulary.len();
    for (name, device) in devices::all() {
        let options = with_slots(1_000);
        let tensors = DeviceConstraint::new(&[&constraint], vocab_size, &options, &device).unwrap();
        let processor = ConstraintProcessor::new(tensors, &[0, 0]).unwrap();
        let logits = Tensor::<2>::zeros([2, vocab_size], (&device, DType::F32));
        let mut position = processor.start();
        for (step, (first, second)) in texts[0].iter().zip(texts[1]).enumerate() {
            let tokens = ints(vec![i32::from(*first), i32::from(*second)], &device);
            let context = StepContext { tokens, step: ints(vec![step as i32], &device) };
            (_, position) = processor.process(position, logits.clone(), &context);
        }
        // The first row fills a mask row, then the second one needs another, then both read theirs.
        for visit in 0..3 {
            let masked = processor.mask(&position, logits.clone()).into_data().try_to_vec::<f32>().unwrap();
            let found: Vec<bool> = masked.iter().map(|&logit| logit == 0.0).collect();
            assert_eq!(found, expected.concat(), "{name}, visit {visit}");
        }
    }
}

/// The states of a constraint have the numbers of the states that were in the same page before.
#[test]
fn a_reloaded_page_has_no_mask_rows_yet() {
    let vocabulary = vocabulary();
    let vocab_size = vocabulary.len();
    let tables = ["[a-c]{1,9}", "[d-f]{1,9}"].map(|pattern| {
        let constraint = Constraint::regex(pattern).unwrap();
        CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap()
    });
    assert_eq!(tables[0].start(), tables[1].start());
    let classes = tables.iter().map(CompiledConstraint::class_count).max().unwrap();
    let capacity = Capacity::new().with_constraints(1).with_states(32).with_classes(classes);
    let options = TensorOptions::new().with_capacity(capacity);
    for (name, device) in devices::all() {
        let arena = Arena::new(&vocabulary, vocab_size, &options, &device).unwrap();
        let mut processor = ConstraintProcessor::continuous(arena, 1).unwrap();
        let mut position = processor.start();
        for table in tables.iter().chain(&tables) {
            processor.admit(&mut position, 0, Some(table), 20).unwrap();
            let expected = legal(table, &RowPosition::unlimited(table.start()));
            // The first visit fills a mask row, and the second one reads it.
            for visit in 0..2 {
                let logits = Tensor::<2>::zeros([1, vocab_size], (&device, DType::F32));
                let masked = processor.mask(&position, logits).into_data().try_to_vec::<f32>().unwrap();
                let found: Vec<bool> = masked.iter().map(|&logit| logit == 0.0).collect();
                assert_eq!(found, expected, "{name}, visit {visit}");
            }
            processor.release(&mut position, 0).unwrap();
        }
    }
}

/// Rows wider than one tile, and a choice by several cubes.
#[test]
fn wide_rows_match_the_host() {
    let words: Vec<String> = (0..9_000).map(|word| format!("w{word}\"")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let vocabulary = burn_dfa_testing::words::vocabulary_of(&words);
    let mut constraints: Vec<_> = schemas().iter().map(|schema| compile(schema, &vocabulary, 8)).collect();
    // Each step chooses among words of all tiles.
    let words = Constraint::regex("(w[0-9]+\")+").unwrap();
    constraints
        .push(CompiledConstraint::compile_byte_level(&words, &vocabulary, &Limits::default()).unwrap());
    let constraints: Vec<&CompiledConstraint> = constraints.iter().collect();
    for (name, device) in devices::all() {
        if name == "flex" {
            continue;
        }
        walk_rows(&constraints, &[0, 1, 2, 2, 3, 6, 7], &TensorOptions::new(), &device, 200, &[500], 1);
    }
}

/// A recorded step reads and fills the pool as an eager step does.
#[test]
fn recorded_steps_keep_rows() {
    let vocabulary = vocabulary();
    let constraint = compile(&schemas()[0], &vocabulary, 8);
    let prompt = |text: &str| text.bytes().map(|byte| TokenId(byte.into())).collect();
    let request = |text, budget| Request::new(prompt(text), budget).with_constraint(&constraint).with_seed(5);
    let requests = [request("one", 60), request("two", 61), request("three", 200)];
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len(), 5, DType::F32, &device);
        for slots in [0, 1, 3, 1_000] {
            let tensors = with_slots(slots);
            let config = GenerationConfig::new().with_tensors(tensors).with_temperature(Some(1.3));
            let eager = generate(&model, &vocabulary, &requests, &config).unwrap();
            let mut graph = DecodeGraph::record(&model, &vocabulary, &requests, &config, 210).unwrap();
            assert_eq!(graph.is_hardware(), name != "flex");
            for _ in 0..2 {
                assert_eq!(graph.generate(&requests).unwrap(), eager, "{name}, {slots} slots");
            }
        }
    }
}

/// Logits of every type, in rows whose widths allow loads of different sizes: masked in place if
/// they have no other handle, else copied; also with the rows of a transposed matrix.
#[test]
fn rows_of_any_type_and_width_match_the_host() {
    let vocabulary = vocabulary();
    let constraint = compile(&schemas()[2], &vocabulary, 8);
    let legal: Vec<bool> = (0..vocabulary.len() as u32)
        .map(|token| constraint.next(constraint.start(), TokenId(token)) != StateId::DEAD)
        .collect();
    for (name, device) in devices::all() {
        let dtypes = [DType::F32, DType::F16, DType::BF16].into_iter();
        for dtype in dtypes.filter(|&dtype| device.supports_dtype(dtype)) {
            for vocab_size in [16_384, 16_392, 8_196, 8_194, 8_191] {
                let tensors =
                    DeviceConstraint::new(&[&constraint], vocab_size, &TensorOptions::new(), &device)
                        .unwrap();
                let processor = ConstraintProcessor::new(tensors, &[0, 0]).unwrap();
                let position = processor.start();
                let values: Vec<f32> = (0..2 * vocab_size).map(|at| (at % 97) as f32).collect();
                let tensor = |values: Vec<f32>, shape: [usize; 2]| {
                    let data = TensorData::new(values, shape).convert_dtype(dtype);
                    Tensor::<2>::from_data(data, (&device, dtype))
                };
                let numbers = |tensor: Tensor<2>| {
                    tensor.into_data().convert_dtype(DType::F32).try_to_vec::<f32>().unwrap()
                };
                let rows = tensor(values.clone(), [2, vocab_size]);
                let columns: Vec<f32> =
                    (0..2 * vocab_size).map(|at| values[at % 2 * vocab_size + at / 2]).collect();
                let transposed = tensor(columns, [vocab_size, 2]).transpose();
                let sole = [rows.clone() + 0.0, rows.clone() + 0.0];
                let logits = sole.into_iter().chain([rows.clone(), transposed]);
                for (visit, logits) in logits.enumerate() {
                    let masked = numbers(processor.mask(&position, logits));
                    for (at, found) in masked.into_iter().enumerate() {
                        let is_legal = *legal.get(at % vocab_size).unwrap_or(&false);
                        let expected = if is_legal { values[at] } else { f32::NEG_INFINITY };
                        assert_eq!(
                            found, expected,
                            "{name}, {dtype:?}, {vocab_size} wide, visit {visit}, {at}"
                        );
                    }
                }
                // Another handle of masked logits keeps them as they were.
                assert_eq!(numbers(rows), values, "{name}, {dtype:?}, {vocab_size} wide");
            }
        }
    }
}

/// The values of a row of logits; the last one is the most frequent.
const EXTREMES: [&[f32]; 7] = [
    &[f32::NEG_INFINITY],
    &[-0.0, 0.0, f32::NEG_INFINITY, -1.0],
    &[f32::INFINITY, f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xffff_ffff), 1.0],
    &[f32::INFINITY, f32::NEG_INFINITY, 65_504.0],
    &[-1.0, -2.0, -3.0],
    &[-65_504.0, f32::NEG_INFINITY],
    // Subnormal numbers of `f16`.
    &[5.0e-5, 4.9e-5, 6.0e-8, -6.0e-8, 0.0, -5.0e-5],
];

/// How tokens are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Greedy,
    Sampled,
    /// With a sampler whose rows have no temperature.
    GreedyRows,
}

/// The choices at the start of a constraint, in two visits: the second reads the mask that the
/// first wrote.
fn choices(
    constraint: &CompiledConstraint,
    logits: &TensorData,
    choice: Choice,
    device: &Device,
) -> [Vec<i32>; 2] {
    let [rows, vocab_size] = logits.shape().dims();
    let tensors = DeviceConstraint::new(&[constraint], vocab_size, &TensorOptions::new(), device).unwrap();
    let processor = ConstraintProcessor::new(tensors, &vec![0; rows]).unwrap();
    let gumbel = GumbelMax::new(&vec![7; rows], vocab_size, device).unwrap();
    let greedy_rows = gumbel.clone().with_temperatures(&vec![None; rows]).unwrap();
    let sampler: &dyn Sampler = match choice {
        Choice::Greedy => &Greedy,
        Choice::Sampled => &gumbel,
        Choice::GreedyRows => &greedy_rows,
    };
    let position = processor.start();
    [0, 1].map(|_| {
        let mut context =
            StepContext { tokens: ints(vec![vocab_size as i32; rows], device), step: ints(vec![3], device) };
        let logits = Tensor::<2>::from_data(logits.clone(), (device, logits.dtype()));
        processor.sample_step(&mut position.clone(), &mut context, logits, sampler);
        context.tokens.into_data().try_to_vec::<i32>().unwrap()
    })
}

/// NaN and zeros of both signs, infinities and equal logits, in any lane of a vector, any vector of
/// a tile and any tile of a row.
#[test]
fn choices_among_extreme_logits_match_the_host() {
    // Vectors of legal tokens, of illegal tokens, and of both.
    let first = |word: usize| if matches!((word / 50 % 3, word % 2), (0, _) | (1, 0)) { 'v' } else { 'w' };
    let words: Vec<String> = (0..16_142).map(|word| format!("{}{word}", first(word))).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let vocabulary = burn_dfa_testing::words::vocabulary_of(&words);
    let constraint = Constraint::regex("(w[0-9]+)*").unwrap();
    let compiled =
        CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap();
    let is_legal = |token: usize| {
        token < vocabulary.len() && compiled.next(compiled.start(), TokenId(token as u32)) != StateId::DEAD
    };
    let greatest = |logits: &[f32]| {
        let mut best = (f32::NEG_INFINITY, 0);
        for (token, &logit) in logits.iter().enumerate().filter(|(token, _)| is_legal(*token)) {
            if logit.is_nan() {
                return token as i32;
            }
            if logit > best.0 {
                best = (logit, token as i32);
            }
        }
        best.1
    };
    let devices = devices::all();
    let mut rng = StdRng::seed_from_u64(1);
    // Vectors of the greatest size, of two logits, of four, and of one.
    let greedy = [16_400, 16_402, 16_404, 16_399].map(|vocab_size| (vocab_size, Choice::Greedy));
    let sampled = [16_400, 16_402].map(|vocab_size| (vocab_size, Choice::Sampled));
    let greedy_rows = [16_400, 16_402].map(|vocab_size| (vocab_size, Choice::GreedyRows));
    for (vocab_size, choice) in greedy.into_iter().chain(sampled).chain(greedy_rows) {
        let mut values: Vec<f32> = Vec::new();
        for (extremes, range) in EXTREMES.into_iter().flat_map(|extremes| [(extremes, 8), (extremes, 4_096)])
        {
            let last = extremes[extremes.len() - 1];
            values
                .extend((0..vocab_size).map(|_| *extremes.get(rng.random_range(0..range)).unwrap_or(&last)));
        }
        let rows = values.len() / vocab_size;
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let logits = TensorData::new(values.clone(), [rows, vocab_size]).convert_dtype(dtype);
            let expected = choices(&compiled, &logits, choice, &Device::flex());
            if choice != Choice::Sampled {
                let logits = logits.clone().convert_dtype(DType::F32).try_to_vec::<f32>().unwrap();
                let host: Vec<i32> = logits.chunks(vocab_size).map(greatest).collect();
                assert_eq!(expected, [host.clone(), host], "{dtype:?}, {vocab_size} wide");
            }
            for (name, device) in devices.iter().filter(|(_, device)| device.supports_dtype(dtype)) {
                let found = choices(&compiled, &logits, choice, device);
                assert_eq!(found, expected, "{name}, {dtype:?}, {vocab_size} wide, {choice:?}");
            }
        }
    }
}
