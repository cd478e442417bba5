//! The step in Burn's built-in operations: the reference, and what runs on every backend.

use burn::tensor::Tensor;

use super::{Cursor, Moved};
use crate::tensor::TensorTable;

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
