//! The step in Burn's built-in operations: the reference, and what runs on every backend.

use burn::tensor::{Int, Tensor};

use super::{Branches, Cursor, Moved};
use crate::table::StateId;
use crate::tensor::{TensorTable, Tensors};

pub(super) fn advance(table: &TensorTable, at: Cursor) -> Moved {
    let spent = at.tokens.clone().not_equal_elem(table.no_token() as i32).int().cast(at.tokens.dtype());
    Moved { remaining: (at.remaining - spent).clamp_min(0), states: table.next(at.states, at.tokens) }
}

pub(super) fn mask(table: &TensorTable, logits: Tensor<2>, at: Cursor) -> (Tensor<2>, Moved) {
    let moved = super::advance(table, at);
    let spare = (moved.remaining.clone() - 1).clamp_min(0);
    let illegal = table.illegal(moved.states.clone(), Some(spare));
    (logits.mask_fill(illegal, f32::NEG_INFINITY), moved)
}

/// The states of all nodes; a node that may not follow its parent has the parent's.
pub(super) fn follow(
    table: &TensorTable,
    tensors: &Tensors,
    parents: &[usize],
    tokens: Tensor<2, Int>,
    [states, remaining]: [Tensor<1, Int>; 2],
) -> Branches {
    let [batch, _] = tokens.dims();
    let token = |node: usize| tokens.clone().slice([0..batch, node..node + 1]).reshape([batch]);
    let root = super::advance(table, Cursor { tokens: token(0), states, remaining });
    let (mut states, mut remaining) = (vec![root.states], vec![root.remaining]);
    for (node, &parent) in parents.iter().enumerate().skip(1) {
        let (state, left) = (states[parent].clone(), remaining[parent].clone());
        let at = Cursor { tokens: token(node), states: state.clone(), remaining: left.clone() };
        let moved = super::advance(table, at);
        let dead = moved.states.clone().equal_elem(StateId::DEAD.0 as i32);
        let to_end = tensors.tokens_to_end.clone().select(0, moved.states.clone());
        let bad = dead.bool_or(to_end.greater(moved.remaining.clone()));
        states.push(moved.states.mask_where(bad.clone(), state));
        remaining.push(moved.remaining.mask_where(bad, left));
    }
    Branches { states: Tensor::stack(states, 1), remaining: Tensor::stack(remaining, 1) }
}
