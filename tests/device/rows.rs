//! Rows with few, many or nearly all tokens legal, at the borders between the masking methods.

use std::num::Wrapping;

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, StepContext};
use burn_dfa::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa::tokens::RowPosition;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, Result, TensorOptions, TokenId, Vocabulary,
};

use crate::common::ints;

const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// `count` words of five letters, and the end.
fn vocabulary(count: usize) -> Vocabulary {
    let letter = |id: usize, digit: u32| (b'a' + (id / 5usize.pow(digit) % 5) as u8) as char;
    let word = |id: usize| (0..5).rev().map(|digit| letter(id, digit)).collect::<String>();
    let words = (0..count).map(|id| Some(word(id))).chain([None]);
    Vocabulary::from_bytes(words).unwrap().with_eos([TokenId(count as u32)]).unwrap()
}

/// A choice of `count` random words of the vocabulary.
fn choice(vocabulary: &Vocabulary, count: usize) -> Constraint {
    let words = vocabulary.len() - 1;
    let mut order: Vec<usize> = (0..words).collect();
    let mut state = Wrapping(0x2545_f491_4f6c_dd1d_u64);
    for at in (1..words).rev() {
        state = state * Wrapping(6_364_136_223_846_793_005) + Wrapping(1_442_695_040_888_963_407);
        order.swap(at, (state.0 >> 33) as usize % (at + 1));
    }
    let words = order[..count].iter().map(|&id| vocabulary.bytes(TokenId(id as u32)).unwrap());
    Constraint::choice(words.map(|word| std::str::from_utf8(word).unwrap())).unwrap()
}

/// Numbers of legal tokens on both sides of every border, in a vocabulary of `all` tokens.
fn counts(all: usize) -> Vec<usize> {
    let borders = [1, all / 32, all / 6, all / 2, all - all / 6, all - all / 32, all - 2];
    let mut counts: Vec<usize> = borders.iter().flat_map(|&border| border - 1..=border + 1).collect();
    counts.retain(|&count| (1..all).contains(&count));
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Bit patterns, after a lossless cast to `f32`.
fn bits(logits: Tensor<2>) -> Vec<u32> {
    let values = logits.into_data().convert_dtype(DType::F32).try_to_vec::<f32>().unwrap();
    values.into_iter().map(f32::to_bits).collect()
}

/// Masks and chooses in batches with one constraint per row, each row twice: without and with the
/// cache.
fn check(vocabulary: &Vocabulary, constraints: &[CompiledConstraint], vocab_size: usize, batches: &[usize]) {
    let device = Device::flex();
    let all: Vec<&CompiledConstraint> = constraints.iter().collect();
    let on_device = DeviceConstraint::new(&all, vocab_size, &TensorOptions::default(), &device).unwrap();
    let may_follow = |constraint: &CompiledConstraint, id: usize| {
        let start = RowPosition::unlimited(constraint.start());
        id < vocabulary.len() && constraint.can_end(&constraint.after(&start, TokenId(id as u32)))
    };
    let legal: Vec<Vec<bool>> = constraints
        .iter()
        .map(|constraint| (0..vocab_size).map(|id| may_follow(constraint, id)).collect())
        .collect();
    let mut row = 0;
    for &batch in batches {
        // Every batch begins with another constraint.
        let rows: Vec<usize> = (0..batch).map(|at| (row + at) % constraints.len()).collect();
        row += batch;
        let processor = ConstraintProcessor::new(on_device.clone(), &rows).unwrap();
        let value = |at: usize| match at % 97 {
            0 => f32::NAN,
            1 => f32::INFINITY,
            _ => ((at * 7919) % 4001) as f32 / 64.0 - 31.0,
        };
        let values: Vec<f32> = (0..batch * vocab_size).map(value).collect();
        for dtype in TYPES {
            let data = TensorData::new(values.clone(), [batch, vocab_size]).convert_dtype(dtype);
            let logits = || Tensor::<2>::from_data(data.clone(), (&device, dtype));
            let context = || StepContext {
                tokens: ints(vec![vocab_size as i32; batch], &device),
                step: ints(vec![3], &device),
            };
            let given = bits(logits());
            let kept = |at: usize| legal[rows[at / vocab_size]][at % vocab_size];
            let never = f32::NEG_INFINITY.to_bits();
            let expected: Vec<u32> =
                (0..given.len()).map(|at| if kept(at) { given[at] } else { never }).collect();
            for time in 0..2 {
                let (masked, _) = processor.process(processor.start(), logits(), &context());
                let found = bits(masked.clone());
                let wrong = (0..found.len()).find(|&at| found[at] != expected[at]);
                let first_wrong = wrong.map(|at| (at / vocab_size, at % vocab_size, kept(at)));
                assert_eq!(
                    first_wrong, None,
                    "{dtype:?}, {batch} rows of {vocab_size}, time {time}: row, token, legal"
                );
                let gumbel = GumbelMax::new(&vec![7; batch], vocab_size, &device).unwrap();
                for sampler in [&Greedy as &dyn Sampler, &gumbel] {
                    let (mut position, mut context) = (processor.start(), context());
                    let wanted = sampler.sample(masked.clone(), &context.step).into_data();
                    processor.sample_step(&mut position, &mut context, logits(), sampler);
                    assert_eq!(context.tokens.into_data(), wanted, "{dtype:?}, {batch} rows of {vocab_size}");
                }
            }
        }
    }
}

#[test]
fn masks_at_the_borders_of_their_forms_match_the_host() {
    type Form = fn(&Constraint, &Vocabulary, &Limits) -> Result<CompiledConstraint>;
    // With the end of the sequence, the sizes are multiples of 64 bits and adjacent sizes.
    for words in [62, 63, 64, 190, 191, 192, 1500] {
        let vocabulary = vocabulary(words);
        for form in [CompiledConstraint::compile_token_level as Form, CompiledConstraint::compile_byte_level]
        {
            let compile = |count| form(&choice(&vocabulary, count), &vocabulary, &Limits::default()).unwrap();
            let constraints: Vec<CompiledConstraint> =
                counts(vocabulary.len()).into_iter().map(compile).collect();
            let batches: Vec<usize> = if words == 191 { (1..=32).collect() } else { vec![constraints.len()] };
            check(&vocabulary, &constraints, vocabulary.len() + 37, &batches);
        }
    }
}
