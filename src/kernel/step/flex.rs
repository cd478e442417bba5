//! The step on Flex: plain loops over the tables of the host.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::tensor::{DType, Int, Tensor, bf16, f16};

use super::row::{self, Logit, Scratch};
use super::{Branches, Cursor, Moved};
use crate::sampling::{Keys, Rule};
use crate::tensor::HostTable;

/// How [`FlexStep::choose`] chooses.
#[derive(Clone, Debug)]
pub(crate) enum FlexRule {
    /// The greatest logit.
    Greedy,
    /// The greatest logit over the temperature plus noise.
    Gumbel(Arc<Keys>),
}

/// Integers are `i32`, logits `f32`, `f16` or `bf16`; `tokens`, `states` and `remaining` are `[batch]`.
#[backend_extension(Flex)]
pub(crate) trait FlexStep: Backend {
    /// `states` and `remaining` after `tokens`.
    fn advance(
        tokens: IntTensor<Self>,
        states: IntTensor<Self>,
        remaining: IntTensor<Self>,
        table: Arc<HostTable>,
        width: usize,
    ) -> (IntTensor<Self>, IntTensor<Self>);

    /// `logits` `[batch, width]`, masked, after `advance`.
    fn advance_and_mask(
        logits: FloatTensor<Self>,
        tokens: IntTensor<Self>,
        states: IntTensor<Self>,
        remaining: IntTensor<Self>,
        table: Arc<HostTable>,
    ) -> (FloatTensor<Self>, IntTensor<Self>, IntTensor<Self>);

    /// `logits` `[batch, nodes, width]`, masked, and the states of all nodes `[batch, nodes]`, whose `tokens` are of
    /// that shape.
    fn advance_and_mask_tree(
        logits: FloatTensor<Self>,
        tokens: IntTensor<Self>,
        states: IntTensor<Self>,
        remaining: IntTensor<Self>,
        table: Arc<HostTable>,
        parents: Arc<[usize]>,
    ) -> (FloatTensor<Self>, IntTensor<Self>, IntTensor<Self>);

    /// The tokens chosen from `logits` `[batch, width]` after `advance`; `step` is `[1]` or `[batch]`.
    fn advance_and_choose(
        logits: FloatTensor<Self>,
        tokens: IntTensor<Self>,
        states: IntTensor<Self>,
        remaining: IntTensor<Self>,
        step: IntTensor<Self>,
        table: Arc<HostTable>,
        rule: FlexRule,
    ) -> (IntTensor<Self>, IntTensor<Self>, IntTensor<Self>);
}

impl FlexStep for Flex {
    fn advance(
        tokens: FlexTensor,
        states: FlexTensor,
        remaining: FlexTensor,
        table: Arc<HostTable>,
        width: usize,
    ) -> (FlexTensor, FlexTensor) {
        let (tokens, mut states, mut remaining) = (packed(tokens), packed(states), packed(remaining));
        for (row, &token) in ints(&tokens).iter().enumerate() {
            let state = &mut states.storage_mut::<i32>()[row];
            *state = table.advance(*state, token, width);
            let left = &mut remaining.storage_mut::<i32>()[row];
            *left = (*left - i32::from(token as usize != width)).max(0);
        }
        (states, remaining)
    }

    fn advance_and_mask(
        logits: FlexTensor,
        tokens: FlexTensor,
        states: FlexTensor,
        remaining: FlexTensor,
        table: Arc<HostTable>,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        let mut logits = packed(logits);
        let width = logits.layout().shape()[1];
        let (states, remaining) = Self::advance(tokens, states, remaining, table.clone(), width);
        let rows = (ints(&states), ints(&remaining));
        match logits.dtype() {
            DType::F32 => mask_rows(logits.storage_mut::<f32>(), rows, width, &table),
            DType::F16 => mask_rows(logits.storage_mut::<f16>(), rows, width, &table),
            DType::BF16 => mask_rows(logits.storage_mut::<bf16>(), rows, width, &table),
            other => unreachable!("logits of {other:?} take the built-in operations"),
        }
        (logits, states, remaining)
    }

    fn advance_and_mask_tree(
        logits: FlexTensor,
        tokens: FlexTensor,
        states: FlexTensor,
        remaining: FlexTensor,
        table: Arc<HostTable>,
        parents: Arc<[usize]>,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        let mut logits = packed(logits);
        let width = logits.layout().shape()[2];
        let (states, remaining) = (packed(states), packed(remaining));
        // The drafts make room for the states, node by node.
        let mut node_states = packed(tokens);
        let mut node_remaining = node_states.clone();
        let starts = ints(&states).iter().zip(ints(&remaining));
        let rows = node_states.storage_mut::<i32>().chunks_exact_mut(parents.len());
        let rows = rows.zip(node_remaining.storage_mut::<i32>().chunks_exact_mut(parents.len()));
        for ((nodes, left), (&state, &remaining)) in rows.zip(starts) {
            follow(&table, &parents, nodes, left, (state, remaining), width);
        }
        let rows = (ints(&node_states), ints(&node_remaining));
        match logits.dtype() {
            DType::F32 => mask_rows(logits.storage_mut::<f32>(), rows, width, &table),
            DType::F16 => mask_rows(logits.storage_mut::<f16>(), rows, width, &table),
            DType::BF16 => mask_rows(logits.storage_mut::<bf16>(), rows, width, &table),
            other => unreachable!("logits of {other:?} take the built-in operations"),
        }
        (logits, node_states, node_remaining)
    }

    fn advance_and_choose(
        logits: FlexTensor,
        tokens: FlexTensor,
        states: FlexTensor,
        remaining: FlexTensor,
        step: FlexTensor,
        table: Arc<HostTable>,
        rule: FlexRule,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        let mut logits = packed(logits);
        let width = logits.layout().shape()[1];
        let mut chosen = packed(tokens.clone());
        let (states, remaining) = Self::advance(tokens, states, remaining, table.clone(), width);
        let rows = (ints(&states), ints(&remaining));
        let step = packed(step);
        let step = ints(&step);
        let out = chosen.storage_mut::<i32>();
        match logits.dtype() {
            DType::F32 => choose_rows(logits.storage_mut::<f32>(), rows, step, &table, &rule, out),
            DType::F16 => choose_rows(logits.storage_mut::<f16>(), rows, step, &table, &rule, out),
            DType::BF16 => choose_rows(logits.storage_mut::<bf16>(), rows, step, &table, &rule, out),
            other => unreachable!("logits of {other:?} take the built-in operations"),
        }
        (chosen, states, remaining)
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

/// Tokens that may follow the next one.
fn spare(remaining: i32) -> u32 {
    (remaining - 1).max(0) as u32
}

/// Puts the state of every node in the place of its token, and what remains after it into `left`.
fn follow(
    table: &HostTable,
    parents: &[usize],
    nodes: &mut [i32],
    left: &mut [i32],
    (state, remaining): (i32, i32),
    width: usize,
) {
    let spent = |remaining: i32, token: i32| (remaining - i32::from(token as usize != width)).max(0);
    left[0] = spent(remaining, nodes[0]);
    nodes[0] = table.advance(state, nodes[0], width);
    for node in 1..parents.len() {
        let (state, remaining) = (nodes[parents[node]], left[parents[node]]);
        let next = table.advance(state, nodes[node], width);
        let after = spent(remaining, nodes[node]);
        // Too far from the end is as illegal as dead.
        let is_legal = table.tokens_to_end(next) <= after as u32;
        (nodes[node], left[node]) = if is_legal { (next, after) } else { (state, remaining) };
    }
}

fn mask_rows<F: Logit>(logits: &mut [F], rows: (&[i32], &[i32]), width: usize, table: &HostTable) {
    let mut scratch = Scratch::new();
    let rows = rows.0.iter().zip(rows.1);
    // The last rows first: they were written last, and many rows are more than the cache holds.
    for (row, (&state, &remaining)) in logits.chunks_exact_mut(width).zip(rows).rev() {
        row::mask(row, table.locate(state), spare(remaining), &mut scratch);
    }
}

fn choose_rows<F: Logit>(
    logits: &mut [F],
    rows: (&[i32], &[i32]),
    step: &[i32],
    table: &HostTable,
    rule: &FlexRule,
    out: &mut [i32],
) {
    let mut scratch = Scratch::new();
    let width = logits.len() / out.len();
    let rows = rows.0.iter().zip(rows.1).zip(out).enumerate();
    for (row, (index, ((&state, &remaining), out))) in logits.chunks_exact_mut(width).zip(rows) {
        let at = table.locate(state);
        let spare = spare(remaining);
        let token = match rule {
            FlexRule::Greedy => row::greatest(row, at, spare, &mut scratch),
            FlexRule::Gumbel(keys) => {
                let noise = keys.noise(index, step[index.min(step.len() - 1)]);
                row::sampled(row, at, spare, &noise, &mut scratch)
            }
        };
        *out = token as i32;
    }
}

/// [`super::advance`] on Flex.
pub(super) fn advance(table: &Arc<HostTable>, at: Cursor, width: usize) -> Moved {
    let (states, remaining) = <Dispatch as FlexStep>::advance(
        at.tokens.into_dispatch(),
        at.states.into_dispatch(),
        at.remaining.into_dispatch(),
        table.clone(),
        width,
    );
    Moved { states: Tensor::from_dispatch(states), remaining: Tensor::from_dispatch(remaining) }
}

/// [`super::mask`] on Flex.
pub(super) fn mask(table: &Arc<HostTable>, logits: Tensor<2>, at: Cursor) -> (Tensor<2>, Moved) {
    let (logits, states, remaining) = <Dispatch as FlexStep>::advance_and_mask(
        logits.into_dispatch(),
        at.tokens.into_dispatch(),
        at.states.into_dispatch(),
        at.remaining.into_dispatch(),
        table.clone(),
    );
    let moved = Moved { states: Tensor::from_dispatch(states), remaining: Tensor::from_dispatch(remaining) };
    (Tensor::from_dispatch(logits), moved)
}

/// [`super::mask_tree`] on Flex.
pub(super) fn mask_tree(
    table: &Arc<HostTable>,
    parents: &Arc<[usize]>,
    logits: Tensor<3>,
    tokens: Tensor<2, Int>,
    [states, remaining]: [Tensor<1, Int>; 2],
) -> (Tensor<3>, Branches) {
    let (logits, states, remaining) = <Dispatch as FlexStep>::advance_and_mask_tree(
        logits.into_dispatch(),
        tokens.into_dispatch(),
        states.into_dispatch(),
        remaining.into_dispatch(),
        table.clone(),
        parents.clone(),
    );
    let branches =
        Branches { states: Tensor::from_dispatch(states), remaining: Tensor::from_dispatch(remaining) };
    (Tensor::from_dispatch(logits), branches)
}

/// [`super::choose`] on Flex.
pub(super) fn choose(
    table: &Arc<HostTable>,
    logits: Tensor<2>,
    at: Cursor,
    step: Tensor<1, Int>,
    rule: Rule,
) -> (Tensor<1, Int>, Moved) {
    let rule = match rule {
        Rule::Greedy => FlexRule::Greedy,
        Rule::GumbelMax(sampler) => FlexRule::Gumbel(sampler.keys().clone()),
    };
    let (tokens, states, remaining) = <Dispatch as FlexStep>::advance_and_choose(
        logits.into_dispatch(),
        at.tokens.into_dispatch(),
        at.states.into_dispatch(),
        at.remaining.into_dispatch(),
        step.into_dispatch(),
        table.clone(),
        rule,
    );
    let moved = Moved { states: Tensor::from_dispatch(states), remaining: Tensor::from_dispatch(remaining) };
    (Tensor::from_dispatch(tokens), moved)
}
