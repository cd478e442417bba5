//! The step on Flex: plain loops over the constraints in memory.

use std::ops::Range;
use std::sync::Arc;

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::{DType, Shape, bf16, f16};

use super::cpu::{CpuStep, StepConstraints, StepSampler};
use crate::sampling::Noise;
use crate::tensor::{CpuConstraints, CpuRow};
use burn_dfa_tokens::{Logit, TokenMask, threads};

impl CpuStep for Flex {
    fn after(
        constraints: StepConstraints<Self>,
        position: FlexTensor,
        tokens: FlexTensor,
        vocab_size: usize,
    ) -> FlexTensor {
        let mut position = packed(position);
        advanced(&constraints.local(), &mut position, tokens, vocab_size);
        position
    }

    fn mask_after(
        constraints: StepConstraints<Self>,
        logits: FlexTensor,
        position: FlexTensor,
        tokens: FlexTensor,
    ) -> (FlexTensor, FlexTensor) {
        let vocab_size = logits.layout().shape()[1];
        let (constraints, mut position) = (constraints.local(), packed(position));
        let rows = advanced(&constraints, &mut position, tokens, vocab_size);
        (masked(logits, vocab_size, rows), position)
    }

    fn mask_tree(
        constraints: StepConstraints<Self>,
        logits: FlexTensor,
        position: FlexTensor,
        tokens: FlexTensor,
        parents: Arc<[usize]>,
    ) -> (FlexTensor, FlexTensor) {
        let constraints = constraints.local();
        let [batch, nodes, vocab_size] = logits.layout().shape().dims();
        let (position, tokens) = (packed(position), packed(tokens));
        let count = numbers(&position);
        let mut tree = FlexTensor::zeros(Shape::from([batch, nodes, count]), DType::I32);
        let trees = tree.storage_mut::<i32>().chunks_exact_mut(nodes * count);
        let trees = trees.zip(ints(&tokens).chunks_exact(nodes)).zip(ints(&position).chunks_exact(count));
        let rows = trees.flat_map(|((tree, tokens), start)| {
            constraints.follow(&parents, start, tokens, tree, vocab_size)
        });
        let rows = rows.collect();
        (masked(logits, vocab_size, rows), tree)
    }

    fn choose_after(
        constraints: StepConstraints<Self>,
        logits: FlexTensor,
        position: FlexTensor,
        tokens: FlexTensor,
        sampler: StepSampler<Self>,
    ) -> (FlexTensor, FlexTensor) {
        let (constraints, mut logits) = (constraints.local(), packed(logits));
        let vocab_size = logits.layout().shape()[1];
        let (mut chosen, mut position) = (packed(tokens.clone()), packed(position));
        let rows = advanced(&constraints, &mut position, tokens, vocab_size);
        let sampler = match sampler {
            StepSampler::Greedy => None,
            StepSampler::GumbelMax { step, keys } => Some((packed(step), packed(keys))),
        };
        // `None`: the row is greedy.
        let noise = |row: usize| {
            let (step, keys) = sampler.as_ref()?;
            let (step, keys) = (ints(step), ints(keys).as_chunks().0);
            Noise::new(keys[row], step[row.min(step.len() - 1)])
        };
        let out = chosen.storage_mut::<i32>();
        match logits.dtype() {
            DType::F32 => choose_rows(logits.storage_mut::<f32>(), &rows, noise, out),
            DType::F16 => choose_rows(logits.storage_mut::<f16>(), &rows, noise, out),
            DType::BF16 => choose_rows(logits.storage_mut::<bf16>(), &rows, noise, out),
            other => unreachable!("logits of {other:?} take the built-in operations"),
        }
        (chosen, position)
    }
}

/// The tensor with contiguous elements from the first on.
pub(crate) fn packed(tensor: FlexTensor) -> FlexTensor {
    let whole = tensor.layout().num_elements() * tensor.dtype().size() == tensor.bytes().len();
    if whole && tensor.is_contiguous() { tensor } else { tensor.to_contiguous() }
}

/// The values of a packed tensor.
pub(crate) fn ints(tensor: &FlexTensor) -> &[i32] {
    tensor.storage::<i32>()
}

/// The size of a position in numbers.
fn numbers(position: &FlexTensor) -> usize {
    *position.layout().shape().to_vec().last().unwrap_or(&1)
}

/// Advances each position of a packed tensor by its token, and returns the rows at the new
/// positions.
fn advanced<'a>(
    constraints: &'a CpuConstraints,
    position: &mut FlexTensor,
    tokens: FlexTensor,
    vocab_size: usize,
) -> Vec<CpuRow<'a>> {
    let (tokens, count) = (packed(tokens), numbers(position));
    let positions = position.storage_mut::<i32>().chunks_exact_mut(count).zip(ints(&tokens));
    positions.map(|(position, &token)| constraints.advance(position, token, vocab_size)).collect()
}

/// Masks `rows` of `vocab_size` logits.
fn masked(logits: FlexTensor, vocab_size: usize, rows: Vec<CpuRow<'_>>) -> FlexTensor {
    let mut logits = packed(logits);
    match logits.dtype() {
        DType::F32 => mask_rows(logits.storage_mut::<f32>(), vocab_size, &rows),
        DType::F16 => mask_rows(logits.storage_mut::<f16>(), vocab_size, &rows),
        DType::BF16 => mask_rows(logits.storage_mut::<bf16>(), vocab_size, &rows),
        other => unreachable!("logits of {other:?} take the built-in operations"),
    }
    logits
}

/// Each thread but the last masks at least this many bytes of logits, which takes several times as
/// long as starting a thread.
const SHARED_BYTES: usize = 4 << 20;

fn mask_rows<F: Logit>(logits: &mut [F], vocab_size: usize, rows: &[CpuRow<'_>]) {
    let least = SHARED_BYTES.div_ceil(vocab_size.max(1) * size_of::<F>());
    mask_shared(logits, vocab_size, rows, threads::available(), least);
}

/// Masks rows on at most `threads` threads, with at least `least` rows per thread.
fn mask_shared<F: Logit>(
    logits: &mut [F],
    vocab_size: usize,
    rows: &[CpuRow<'_>],
    threads: usize,
    least: usize,
) {
    threads::rows(logits, vocab_size, threads, least, |first, logits| {
        let mut known: Option<(&CpuRow<'_>, Arc<TokenMask>, Range<u32>)> = None;
        // The last rows first: they were written last, and may still be in the CPU cache.
        for (logits, at) in logits.chunks_exact_mut(vocab_size).zip(&rows[first..]).rev() {
            // After an illegal draft token, and often inside strings, rows of a tree have the same
            // position.
            let (legal, alike) = match known.take() {
                Some((same, legal, alike)) if at.is_at(same) && alike.contains(&at.left()) => (legal, alike),
                _ => at.masker.legal(&at.position),
            };
            at.masker.apply(&legal, logits);
            known = Some((at, legal, alike));
        }
    });
}

/// Chooses a token for each of `rows`, with the noise of the row if it has one.
fn choose_rows<F: Logit>(
    logits: &mut [F],
    rows: &[CpuRow<'_>],
    noise: impl Fn(usize) -> Option<Noise>,
    out: &mut [i32],
) {
    let vocab_size = logits.len() / out.len();
    let rows = logits.chunks_exact_mut(vocab_size).zip(rows).zip(out).enumerate();
    for (index, ((logits, row), out)) in rows {
        let token = match noise(index) {
            None => row.masker.greatest(&row.position, logits),
            Some(noise) => row.masker.best_by(&row.position, logits, |logit, id| noise.disturb(logit, id)),
        };
        *out = token.0 as i32;
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::tensor::Store;
    use crate::{
        CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId, Vocabulary,
    };

    #[test]
    fn rows_are_masked_alike_by_any_number_of_threads() {
        let vocabulary = Vocabulary::from_chars("abcde.".chars()).unwrap().with_eos([TokenId(5)]).unwrap();
        let constraint = Constraint::regex("a(b|cd*)e|d{4}").unwrap();
        let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap();
        let on_device =
            DeviceConstraint::new(&[&compiled], 8, &TensorOptions::default(), &Device::flex()).unwrap();
        let Store::Cpu(constraints) = on_device.store() else { panic!("constraints of Flex") };
        let mut positions: Vec<[i32; 2]> = (0..compiled.state_count() as i32)
            .flat_map(|state| [[state, 9], [state, 9], [state, 1]])
            .collect();
        positions.push([compiled.start().0 as i32, 3]);
        let rows: Vec<CpuRow<'_>> = positions.iter().map(|position| constraints.row(position)).collect();
        let given: Vec<f32> = (0..rows.len() * 8).map(|at| at as f32).collect();
        let masked = |threads, least| {
            let mut logits = given.clone();
            mask_shared(&mut logits, 8, &rows, threads, least);
            logits
        };
        let alone = masked(1, 1);
        for (row, logits) in rows.iter().zip(alone.chunks(8)) {
            let legal = (0..6).filter(|&id| compiled.can_end(&compiled.after(&row.position, TokenId(id))));
            let kept = (0..8).filter(|&at| logits[at as usize].is_finite());
            assert!(kept.eq(legal), "{:?}: {logits:?}", row.position);
        }
        for (threads, least) in [(2, 1), (3, 1), (3, 4), (100, 1), (2, 1000)] {
            assert_eq!(masked(threads, least), alone, "{threads} threads");
        }
    }
}
