//! The step on Flex: plain loops over the tables of the host.

use std::slice::ChunksExact;
use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::tensor::{DType, Int, Shape, Tensor, bf16, f16};

use super::legal::legal;
use super::row::{self, Logit};
use crate::sampling::{Keys, Rule};
use crate::tensor::{HostTable, Legal, Position};

/// How [`FlexStep::choose_after`] chooses.
#[derive(Clone, Debug)]
pub(crate) enum FlexRule {
    /// The greatest logit.
    Greedy,
    /// The greatest logit over the temperature plus noise.
    Gumbel(Arc<Keys>),
}

/// Integers are `i32`, logits `f32`, `f16` or `bf16`; `tokens` are `[batch]`, `position` is `[batch, numbers]`.
#[backend_extension(Flex)]
pub(crate) trait FlexStep: Backend {
    /// The position after `tokens`.
    fn after(
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        table: Arc<HostTable>,
        width: usize,
    ) -> IntTensor<Self>;

    /// `logits` `[batch, width]`, masked, and the position after `tokens`.
    fn mask_after(
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        table: Arc<HostTable>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// `logits` `[batch, nodes, width]`, masked, and the positions of all nodes `[batch, nodes, numbers]`, whose `tokens` are
    /// `[batch, nodes]`.
    fn mask_tree(
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        table: Arc<HostTable>,
        parents: Arc<[usize]>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// The tokens chosen from `logits` `[batch, width]`, and the position after `tokens`; `step` is `[1]` or `[batch]`.
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
    fn after(position: FlexTensor, tokens: FlexTensor, table: Arc<HostTable>, width: usize) -> FlexTensor {
        let (tokens, mut position) = (packed(tokens), packed(position));
        let count = numbers(&position);
        for (row, &token) in position.storage_mut::<i32>().chunks_exact_mut(count).zip(ints(&tokens)) {
            table.advance(row, token, width);
        }
        position
    }

    fn mask_after(
        logits: FlexTensor,
        position: FlexTensor,
        tokens: FlexTensor,
        table: Arc<HostTable>,
    ) -> (FlexTensor, FlexTensor) {
        let width = logits.layout().shape()[1];
        let position = Self::after(position, tokens, table.clone(), width);
        (masked(logits, &position, width, &table), position)
    }

    fn mask_tree(
        logits: FlexTensor,
        position: FlexTensor,
        tokens: FlexTensor,
        table: Arc<HostTable>,
        parents: Arc<[usize]>,
    ) -> (FlexTensor, FlexTensor) {
        let [batch, nodes, width] = logits.layout().shape().dims();
        let (position, tokens) = (packed(position), packed(tokens));
        let count = numbers(&position);
        let mut tree = FlexTensor::zeros(Shape::from([batch, nodes, count]), DType::I32);
        let rows = tree.storage_mut::<i32>().chunks_exact_mut(nodes * count);
        let rows = rows.zip(ints(&tokens).chunks_exact(nodes));
        for ((row, tokens), start) in rows.zip(ints(&position).chunks_exact(count)) {
            follow(&table, &parents, start, tokens, row, width);
        }
        (masked(logits, &tree, width, &table), tree)
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
        let width = logits.layout().shape()[1];
        let mut chosen = packed(tokens.clone());
        let position = Self::after(position, tokens, table.clone(), width);
        let step = packed(step);
        let (rows, step, out) = (rows(&position), ints(&step), chosen.storage_mut::<i32>());
        match logits.dtype() {
            DType::F32 => choose_rows(logits.storage_mut::<f32>(), rows, step, &table, &rule, out),
            DType::F16 => choose_rows(logits.storage_mut::<f16>(), rows, step, &table, &rule, out),
            DType::BF16 => choose_rows(logits.storage_mut::<bf16>(), rows, step, &table, &rule, out),
            other => unreachable!("logits of {other:?} take the built-in operations"),
        }
        (chosen, position)
    }
}

/// The tensor in memory of its own shape, from its first element on.
fn packed(tensor: FlexTensor) -> FlexTensor {
    let whole = tensor.layout().num_elements() * tensor.dtype().size() == tensor.bytes().len();
    if whole && tensor.is_contiguous() { tensor } else { tensor.to_contiguous() }
}

/// The values of a packed tensor.
fn ints(tensor: &FlexTensor) -> &[i32] {
    tensor.storage::<i32>()
}

/// How many numbers a position has.
fn numbers(position: &FlexTensor) -> usize {
    *position.layout().shape().to_vec().last().unwrap_or(&1)
}

/// The positions in a packed tensor.
fn rows(position: &FlexTensor) -> ChunksExact<'_, i32> {
    ints(position).chunks_exact(numbers(position))
}

/// Finds the position of every node; one whose token may not follow stays where its parent is.
fn follow(
    table: &HostTable,
    parents: &[usize],
    start: &[i32],
    tokens: &[i32],
    nodes: &mut [i32],
    width: usize,
) {
    let count = start.len();
    let place = |node: usize| node * count..(node + 1) * count;
    nodes[place(0)].copy_from_slice(start);
    table.advance(&mut nodes[place(0)], tokens[0], width);
    for node in 1..parents.len() {
        nodes.copy_within(place(parents[node]), place(node).start);
        table.advance(&mut nodes[place(node)], tokens[node], width);
        if !table.can_end(&nodes[place(node)]) {
            nodes.copy_within(place(parents[node]), place(node).start);
        }
    }
}

/// Masks every row of `width` logits, which has its own position.
fn masked(logits: FlexTensor, position: &FlexTensor, width: usize, table: &HostTable) -> FlexTensor {
    let mut logits = packed(logits);
    let rows = rows(position);
    match logits.dtype() {
        DType::F32 => mask_rows(logits.storage_mut::<f32>(), rows, width, table),
        DType::F16 => mask_rows(logits.storage_mut::<f16>(), rows, width, table),
        DType::BF16 => mask_rows(logits.storage_mut::<bf16>(), rows, width, table),
        other => unreachable!("logits of {other:?} take the built-in operations"),
    }
    logits
}

fn mask_rows<F: Logit>(logits: &mut [F], positions: ChunksExact<'_, i32>, width: usize, table: &HostTable) {
    let mut known: Option<(&[i32], Arc<Legal>)> = None;
    // The last rows first: they were written last, and many rows are more than the cache holds.
    for (logits, position) in logits.chunks_exact_mut(width).zip(positions).rev() {
        let at = table.row(position);
        // Behind a draft that may not follow, all rows of a tree are at the same place.
        let legal = match known.take() {
            Some((same, legal)) if same == position => legal,
            _ => legal(&at),
        };
        row::mask(logits, &at, &legal);
        known = Some((position, legal));
    }
}

fn choose_rows<F: Logit>(
    logits: &mut [F],
    positions: ChunksExact<'_, i32>,
    step: &[i32],
    table: &HostTable,
    rule: &FlexRule,
    out: &mut [i32],
) {
    let width = logits.len() / out.len();
    let rows = logits.chunks_exact_mut(width).zip(positions).zip(out).enumerate();
    for (index, ((logits, position), out)) in rows {
        let row = &table.row(position);
        let token = match rule {
            FlexRule::Greedy => row::greatest(logits, row),
            FlexRule::Gumbel(keys) => match keys.noise(index, step[index.min(step.len() - 1)]) {
                None => row::greatest(logits, row),
                Some(noise) => row::sampled(logits, row, &noise),
            },
        };
        *out = token as i32;
    }
}

/// [`super::after`] on Flex.
pub(super) fn after(
    table: &Arc<HostTable>,
    position: Position,
    tokens: Tensor<1, Int>,
    width: usize,
) -> Position {
    let (position, tokens) = (position.values.into_dispatch(), tokens.into_dispatch());
    let position = <Dispatch as FlexStep>::after(position, tokens, table.clone(), width);
    Position { values: Tensor::from_dispatch(position) }
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
    (Tensor::from_dispatch(logits), Position { values: Tensor::from_dispatch(position) })
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
    (Tensor::from_dispatch(logits), Position { values: Tensor::from_dispatch(tree) })
}

/// [`super::choose`] on Flex.
pub(super) fn choose(
    table: &Arc<HostTable>,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
    step: Tensor<1, Int>,
    rule: Rule,
) -> (Tensor<1, Int>, Position) {
    let rule = match rule {
        Rule::Greedy => FlexRule::Greedy,
        Rule::GumbelMax(sampler) => FlexRule::Gumbel(sampler.host_keys().clone()),
    };
    let (tokens, position) = <Dispatch as FlexStep>::choose_after(
        logits.into_dispatch(),
        position.values.into_dispatch(),
        tokens.into_dispatch(),
        step.into_dispatch(),
        table.clone(),
        rule,
    );
    (Tensor::from_dispatch(tokens), Position { values: Tensor::from_dispatch(position) })
}
