//! More rows than a grid has cubes in one dimension, and rows of several tiles.

use std::collections::HashMap;

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::processor::{ConstraintProcessor, InitContext, LogitsProcessor, StepContext, TopK};
use burn_dfa::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa::tokens::RowPosition;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId, Vocabulary,
};

use burn_dfa_testing::skip::skipped;

use super::stack::legal;
use crate::common::{devices, ints};

/// WebGPU allows 65,535 cubes in a dimension, and CUDA in the second and the third one. The second
/// kernel of a step and the filters have a cube for each row.
const ROWS: usize = 65_600;
/// The vocabulary, and one more logit.
const VOCAB_SIZE: usize = 4;

/// The results of a step.
#[derive(PartialEq)]
struct Results {
    /// The logits masked before the first token, in a copy.
    first: Vec<f32>,
    /// The greatest of these logits.
    tokens: Vec<i32>,
    states: Vec<i32>,
    /// The logits masked after these tokens, in place.
    second: Vec<f32>,
    filtered: Vec<f32>,
}

fn results(constraints: &[&CompiledConstraint], device: &Device) -> Results {
    let tensors = DeviceConstraint::new(constraints, VOCAB_SIZE, &TensorOptions::new(), device).unwrap();
    // Every other row has the other constraint.
    let rows: Vec<usize> = (0..ROWS).map(|row| row % constraints.len()).collect();
    let processor = ConstraintProcessor::new(tensors, &rows).unwrap();
    let values: Vec<f32> = (0..ROWS * VOCAB_SIZE).map(|at| ((at * 7_919) % 1_009) as f32).collect();
    let data = TensorData::new(values, [ROWS, VOCAB_SIZE]);
    let logits = || Tensor::<2>::from_data(data.clone(), (device, DType::F32));
    let floats = |tensor: Tensor<2>| tensor.into_data().try_to_vec::<f32>().unwrap();
    let other_handle = logits();
    let position = processor.start();
    let first = floats(processor.mask(&position, other_handle.clone()));
    drop(other_handle);
    let none =
        StepContext { tokens: ints(vec![VOCAB_SIZE as i32; ROWS], device), step: ints(vec![0], device) };
    let mut context = none.clone();
    processor.sample_step(&mut position.clone(), &mut context, logits(), &Greedy);
    let tokens = context.tokens.clone().into_data().try_to_vec::<i32>().unwrap();
    let (second, next) = processor.process(position, logits() + 0.0, &context);
    let states = next.states().into_data().try_to_vec::<i32>().unwrap();
    let top = TopK::new(2).unwrap();
    let init = InitContext {
        prompt: ints(vec![0; ROWS], device).reshape([ROWS, 1]),
        padding: ints(vec![0; ROWS], device),
        vocab_size: VOCAB_SIZE,
    };
    let (filtered, _) = top.process(top.init(&init), logits(), &none);
    Results { first, tokens, states, second: floats(second), filtered: floats(filtered) }
}

#[test]
fn more_rows_than_a_grid_has_match_the_host() {
    let vocabulary = Vocabulary::from_chars("ab.".chars()).unwrap().with_eos([TokenId(2)]).unwrap();
    let constraints = ["ab*", "(a|b)a"].map(|pattern| {
        let constraint = Constraint::regex(pattern).unwrap();
        CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap()
    });
    let constraints: Vec<&CompiledConstraint> = constraints.iter().collect();
    let expected = results(&constraints, &Device::flex());
    // Rows of the second grid differ from one another.
    let last = &expected.tokens[ROWS - 64..];
    assert!(last.contains(&0) && last.contains(&1), "{last:?}");
    for (name, device) in devices::all() {
        let found = results(&constraints, &device);
        // Without the message of `assert_eq!`, which would be all logits.
        assert!(found == expected, "{name}");
    }
}

/// The best token of all tiles of a row is chosen, and the first of equals: with vectors of one
/// logit and of several, in a few rows and in more than a GPU works on at a time.
#[test]
fn choices_in_several_tiles_match_the_host() {
    for (words, dtype, batch) in
        [(17_000, DType::F32, 30), (17_007, DType::F32, 30), (17_007, DType::F16, 400)]
    {
        let words: Vec<String> = (0..words).map(|word| format!("w{word}\"")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let vocabulary = burn_dfa_testing::words::vocabulary_of(&words);
        // All words; words of one digit; words of the last tile; a few words of each tile.
        let patterns = ["(w[0-9]+\")+", "(w[0-9]\")+", "(w16[5-9][0-9]+\")+", "(w[0-9]+77\")+"];
        let constraints = patterns.map(|pattern| {
            let constraint = Constraint::regex(pattern).unwrap();
            CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap()
        });
        let choices = Choices::new(&constraints, batch, dtype);
        let greedy = choices.on_host(&constraints);
        let sampled = choices.on(&Device::flex(), &choices.sampler(&Device::flex()));
        for (name, device) in devices::all() {
            if !device.supports_dtype(dtype) {
                skipped(format_args!("{dtype:?} on {name}: the device does not support it"));
                continue;
            }
            assert_eq!(choices.on(&device, &Greedy), greedy, "{name}: {batch} rows of {dtype:?}");
            let found = choices.on(&device, &choices.sampler(&device));
            assert_eq!(found, sampled, "{name}: {batch} sampled rows of {dtype:?}");
        }
    }
}

/// Several steps of rows that follow the constraints in turn.
struct Choices<'a> {
    constraints: Vec<&'a CompiledConstraint>,
    /// The constraint of each row.
    rows: Vec<usize>,
    vocab_size: usize,
    dtype: DType,
}

const STEPS: usize = 2;

impl<'a> Choices<'a> {
    fn new(constraints: &'a [CompiledConstraint], batch: usize, dtype: DType) -> Self {
        let rows = (0..batch).map(|row| row % constraints.len()).collect();
        let vocab_size = constraints[0].vocabulary_len();
        Self { constraints: constraints.iter().collect(), rows, vocab_size, dtype }
    }

    /// Logits with equals in several tiles. In some rows all are −∞.
    fn logit(row: usize, token: usize) -> f32 {
        if row % 7 == 6 { f32::NEG_INFINITY } else { ((row * 7_919 + token * 104_729) % 499) as f32 }
    }

    /// Its noise decides between equal logits.
    fn sampler(&self, device: &Device) -> GumbelMax {
        GumbelMax::new(&vec![7; self.rows.len()], self.vocab_size, device).unwrap()
    }

    /// The tokens of each step.
    fn on_host(&self, constraints: &[CompiledConstraint]) -> Vec<Vec<i32>> {
        let mut known = HashMap::new();
        let mut own: Vec<RowPosition> =
            self.rows.iter().map(|&row| RowPosition::unlimited(constraints[row].start())).collect();
        let mut step = || {
            let mut tokens = Vec::new();
            for (row, position) in own.iter_mut().enumerate() {
                let constraint = &constraints[self.rows[row]];
                let legal = known
                    .entry((self.rows[row], position.state))
                    .or_insert_with(|| legal(constraint, position));
                let logit = |token| Self::logit(row, token);
                let legal = (0..self.vocab_size).filter(|&token| legal[token] && logit(token).is_finite());
                let best = legal.rev().max_by(|a, b| logit(*a).total_cmp(&logit(*b))).unwrap_or(0);
                *position = constraint.after(position, TokenId(best as u32));
                tokens.push(best as i32);
            }
            tokens
        };
        (0..STEPS).map(|_| step()).collect()
    }

    /// The same on a device.
    fn on(&self, device: &Device, sampler: &impl Sampler) -> Vec<Vec<i32>> {
        let (batch, vocab_size) = (self.rows.len(), self.vocab_size);
        let tensors =
            DeviceConstraint::new(&self.constraints, vocab_size, &TensorOptions::new(), device).unwrap();
        let processor = ConstraintProcessor::new(tensors, &self.rows).unwrap();
        let logits = (0..batch).flat_map(|row| (0..vocab_size).map(move |token| Self::logit(row, token)));
        let data = TensorData::new(logits.collect::<Vec<f32>>(), [batch, vocab_size]);
        let logits = Tensor::<2>::from_data(data, (device, self.dtype));
        let mut position = processor.start();
        let tokens = ints(vec![vocab_size as i32; batch], device);
        let mut context = StepContext { tokens, step: ints(vec![0], device) };
        let mut step = || {
            processor.sample_step(&mut position, &mut context, logits.clone(), sampler);
            context.tokens.clone().into_data().try_to_vec::<i32>().unwrap()
        };
        (0..STEPS).map(|_| step()).collect()
    }
}
