//! The step on Flex: plain loops over the constraints on the host.

use std::ops::Range;
use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::tensor::{DType, Int, Shape, Tensor, bf16, f16};

use crate::sampling::{FusedSampler, Keys};
use crate::tensor::{HostRow, HostTable, Position};
use burn_dfa_tokens::{Logit, TokenMask, threads};

/// The sampling rule of [`FlexStep::choose_after`].
#[derive(Clone, Debug)]
pub(crate) enum FlexRule {
    /// The greatest logit.
    Greedy,
    /// The greatest logit over the temperature plus noise.
    Gumbel(Arc<Keys>),
}

/// Integers are `i32`, logits `f32`, `f16` or `bf16`; `tokens` are `[batch]`, `position` is
/// `[batch, numbers]`.
#[backend_extension(Flex)]
pub(crate) trait FlexStep: Backend {
    /// The position after `tokens`.
    fn after(
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        table: Arc<HostTable>,
        vocab_size: usize,
    ) -> IntTensor<Self>;

    /// `logits` `[batch, vocab_size]`, masked, and the position after `tokens`.
    fn mask_after(
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        table: Arc<HostTable>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// `logits` `[batch, nodes, vocab_size]`, masked, and the positions of all nodes
    /// `[batch, nodes, numbers]`, whose `tokens` are `[batch, nodes]`.
    fn mask_tree(
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        table: Arc<HostTable>,
        parents: Arc<[usize]>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// The tokens chosen from `logits` `[batch, vocab_size]`, and the position after `tokens`;
    /// `step` is `[1]` or `[batch]`.
    fn choose_after(
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        step: IntTensor<Self>,
        table: Arc<HostTable>,
        rule: FlexRule,
    ) -> (IntTensor<Self>, IntTensor<Self>);
}

impl FlexStep for Flex {
    fn after(
        position: FlexTensor,
        tokens: FlexTensor,
        table: Arc<HostTable>,
        vocab_size: usize,
    ) -> FlexTensor {
        let mut position = packed(position);
        advanced(&table, &mut position, tokens, vocab_size);
        position
    }

    fn mask_after(
        logits: FlexTensor,
        position: FlexTensor,
        tokens: FlexTensor,
        table: Arc<HostTable>,
    ) -> (FlexTensor, FlexTensor) {
        let vocab_size = logits.layout().shape()[1];
        let mut position = packed(position);
        let rows = advanced(&table, &mut position, tokens, vocab_size);
        (masked(logits, vocab_size, rows), position)
    }

    fn mask_tree(
        logits: FlexTensor,
        position: FlexTensor,
        tokens: FlexTensor,
        table: Arc<HostTable>,
        parents: Arc<[usize]>,
    ) -> (FlexTensor, FlexTensor) {
        let [batch, nodes, vocab_size] = logits.layout().shape().dims();
        let (position, tokens) = (packed(position), packed(tokens));
        let count = numbers(&position);
        let mut tree = FlexTensor::zeros(Shape::from([batch, nodes, count]), DType::I32);
        let trees = tree.storage_mut::<i32>().chunks_exact_mut(nodes * count);
        let trees = trees.zip(ints(&tokens).chunks_exact(nodes)).zip(ints(&position).chunks_exact(count));
        let rows =
            trees.flat_map(|((tree, tokens), start)| table.follow(&parents, start, tokens, tree, vocab_size));
        let rows = rows.collect();
        (masked(logits, vocab_size, rows), tree)
    }

    fn choose_after(
        logits: FlexTensor,
        position: FlexTensor,
        tokens: FlexTensor,
        step: FlexTensor,
        table: Arc<HostTable>,
        rule: FlexRule,
    ) -> (FlexTensor, FlexTensor) {
        let mut logits = packed(logits);
        let vocab_size = logits.layout().shape()[1];
        let (mut chosen, mut position) = (packed(tokens.clone()), packed(position));
        let rows = advanced(&table, &mut position, tokens, vocab_size);
        let step = packed(step);
        let (step, out) = (ints(&step), chosen.storage_mut::<i32>());
        match logits.dtype() {
            DType::F32 => choose_rows(logits.storage_mut::<f32>(), &rows, step, &rule, out),
            DType::F16 => choose_rows(logits.storage_mut::<f16>(), &rows, step, &rule, out),
            DType::BF16 => choose_rows(logits.storage_mut::<bf16>(), &rows, step, &rule, out),
            other => unreachable!("logits of {other:?} take the built-in operations"),
        }
        (chosen, position)
    }
}

/// The tensor with contiguous elements from the first on.
fn packed(tensor: FlexTensor) -> FlexTensor {
    let whole = tensor.layout().num_elements() * tensor.dtype().size() == tensor.bytes().len();
    if whole && tensor.is_contiguous() { tensor } else { tensor.to_contiguous() }
}

/// The values of a packed tensor.
fn ints(tensor: &FlexTensor) -> &[i32] {
    tensor.storage::<i32>()
}

/// The size of a position in numbers.
fn numbers(position: &FlexTensor) -> usize {
    *position.layout().shape().to_vec().last().unwrap_or(&1)
}

/// Advances each position of a packed tensor by its token, and returns the rows at the new
/// positions.
fn advanced<'a>(
    table: &'a HostTable,
    position: &mut FlexTensor,
    tokens: FlexTensor,
    vocab_size: usize,
) -> Vec<HostRow<'a>> {
    let (tokens, count) = (packed(tokens), numbers(position));
    let positions = position.storage_mut::<i32>().chunks_exact_mut(count).zip(ints(&tokens));
    positions.map(|(position, &token)| table.advance(position, token, vocab_size)).collect()
}

/// Masks `rows` of `vocab_size` logits.
fn masked(logits: FlexTensor, vocab_size: usize, rows: Vec<HostRow<'_>>) -> FlexTensor {
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

fn mask_rows<F: Logit>(logits: &mut [F], vocab_size: usize, rows: &[HostRow<'_>]) {
    let least = SHARED_BYTES.div_ceil(vocab_size.max(1) * size_of::<F>());
    mask_shared(logits, vocab_size, rows, threads::available(), least);
}

/// Masks rows on at most `threads` threads, with at least `least` rows per thread.
fn mask_shared<F: Logit>(
    logits: &mut [F],
    vocab_size: usize,
    rows: &[HostRow<'_>],
    threads: usize,
    least: usize,
) {
    threads::rows(logits, vocab_size, threads, least, |first, logits| {
        let mut known: Option<(&HostRow<'_>, Arc<TokenMask>, Range<u32>)> = None;
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

fn choose_rows<F: Logit>(
    logits: &mut [F],
    rows: &[HostRow<'_>],
    step: &[i32],
    rule: &FlexRule,
    out: &mut [i32],
) {
    let vocab_size = logits.len() / out.len();
    let rows = logits.chunks_exact_mut(vocab_size).zip(rows).zip(out).enumerate();
    for (index, ((logits, row), out)) in rows {
        let token = match rule {
            FlexRule::Greedy => row.masker.greatest(&row.position, logits),
            FlexRule::Gumbel(keys) => match keys.noise(index, step[index.min(step.len() - 1)]) {
                None => row.masker.greatest(&row.position, logits),
                Some(noise) => {
                    row.masker.best_by(&row.position, logits, |logit, id| noise.disturb(logit, id))
                }
            },
        };
        *out = token.0 as i32;
    }
}

/// [`super::after`] on Flex.
pub(super) fn after(
    table: &Arc<HostTable>,
    position: Position,
    tokens: Tensor<1, Int>,
    vocab_size: usize,
) -> Position {
    let (position, tokens) = (position.values.into_dispatch(), tokens.into_dispatch());
    let position = <Dispatch as FlexStep>::after(position, tokens, table.clone(), vocab_size);
    Position::new(Tensor::from_dispatch(position))
}

/// [`super::mask`] on Flex.
pub(super) fn mask(
    table: &Arc<HostTable>,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
) -> (Tensor<2>, Position) {
    let (logits, position) = <Dispatch as FlexStep>::mask_after(
        logits.into_dispatch(),
        position.values.into_dispatch(),
        tokens.into_dispatch(),
        table.clone(),
    );
    (Tensor::from_dispatch(logits), Position::new(Tensor::from_dispatch(position)))
}

/// [`super::mask_tree`] on Flex.
pub(super) fn mask_tree(
    table: &Arc<HostTable>,
    parents: &Arc<[usize]>,
    logits: Tensor<3>,
    position: Position,
    tokens: Tensor<2, Int>,
) -> (Tensor<3>, Position<3>) {
    let (logits, tree) = <Dispatch as FlexStep>::mask_tree(
        logits.into_dispatch(),
        position.values.into_dispatch(),
        tokens.into_dispatch(),
        table.clone(),
        parents.clone(),
    );
    (Tensor::from_dispatch(logits), Position::new(Tensor::from_dispatch(tree)))
}

/// [`super::choose`] on Flex.
pub(super) fn choose(
    table: &Arc<HostTable>,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
    step: Tensor<1, Int>,
    rule: FusedSampler,
) -> (Tensor<1, Int>, Position) {
    let rule = match rule {
        FusedSampler::Greedy => FlexRule::Greedy,
        FusedSampler::GumbelMax(sampler) => FlexRule::Gumbel(sampler.host_keys().clone()),
    };
    let (tokens, position) = <Dispatch as FlexStep>::choose_after(
        logits.into_dispatch(),
        position.values.into_dispatch(),
        tokens.into_dispatch(),
        step.into_dispatch(),
        table.clone(),
        rule,
    );
    (Tensor::from_dispatch(tokens), Position::new(Tensor::from_dispatch(position)))
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::tensor::Store;
    use crate::{
        CompiledConstraint, Constraint, DeviceConstraint, Layout, Limits, TensorOptions, TokenId, Vocabulary,
    };

    #[test]
    fn rows_are_masked_alike_by_any_number_of_threads() {
        let vocabulary = Vocabulary::from_chars("abcde.".chars()).unwrap().with_eos([TokenId(5)]).unwrap();
        let constraint = Constraint::regex("a(b|cd*)e|d{4}").unwrap();
        let table = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap();
        let options = TensorOptions { layout: Some(Layout::TokenLevel), ..TensorOptions::default() };
        let on_device = DeviceConstraint::new(&[&table], 8, &options, &Device::flex()).unwrap();
        let Store::Host(host) = on_device.store() else { panic!("a table on the host") };
        let mut positions: Vec<[i32; 2]> =
            (0..table.state_count() as i32).flat_map(|state| [[state, 9], [state, 9], [state, 1]]).collect();
        positions.push([table.start().0 as i32, 3]);
        let rows: Vec<HostRow<'_>> = positions.iter().map(|position| host.row(position)).collect();
        let given: Vec<f32> = (0..rows.len() * 8).map(|at| at as f32).collect();
        let masked = |threads, least| {
            let mut logits = given.clone();
            mask_shared(&mut logits, 8, &rows, threads, least);
            logits
        };
        let alone = masked(1, 1);
        for (row, logits) in rows.iter().zip(alone.chunks(8)) {
            let legal = (0..6).filter(|&id| table.can_end(&table.after(&row.position, TokenId(id))));
            let kept = (0..8).filter(|&at| logits[at as usize].is_finite());
            assert!(kept.eq(legal), "{:?}: {logits:?}", row.position);
        }
        for (threads, least) in [(2, 1), (3, 1), (3, 4), (100, 1), (2, 1000)] {
            assert_eq!(masked(threads, least), alone, "{threads} threads");
        }
    }
}
