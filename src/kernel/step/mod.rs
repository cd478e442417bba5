//! The constraint's step: advance the state by the last token, mask the row, or choose from it.

mod built_in;
#[cfg(feature = "cube")]
mod cube;
#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "cube")]
mod kernels;
#[cfg(feature = "cube")]
mod lookup;
#[cfg(feature = "flex")]
mod row;

use std::sync::Arc;

use burn::tensor::{Int, Tensor};

use crate::sampling::Rule;
use crate::tensor::{Store, TensorTable};

/// What a step reads of every row, `[batch]` each, `i32`.
pub(crate) struct Cursor {
    /// The last token; the width of the logits where there was none.
    pub(crate) tokens: Tensor<1, Int>,
    pub(crate) states: Tensor<1, Int>,
    /// Tokens that may still be emitted, the next one included.
    pub(crate) remaining: Tensor<1, Int>,
}

/// What a step makes of it, in the same buffers where they are free.
pub(crate) struct Moved {
    pub(crate) states: Tensor<1, Int>,
    pub(crate) remaining: Tensor<1, Int>,
}

/// What a step over a tree of drafts makes of every row, `[batch, nodes]` each.
pub(crate) struct Branches {
    pub(crate) states: Tensor<2, Int>,
    pub(crate) remaining: Tensor<2, Int>,
}

/// The number of remaining tokens that is no budget.
pub(crate) const ENDLESS: i32 = i32::MAX;

/// Moves every row on by its last token.
pub(crate) fn advance(table: &TensorTable, at: Cursor) -> Moved {
    match table.store() {
        #[cfg(feature = "flex")]
        Store::Host(host) => flex::advance(host, at, table.width()),
        #[cfg(feature = "cube")]
        Store::Cube(_) => built_in::advance(table, at),
        Store::BuiltIn(_) => built_in::advance(table, at),
    }
}

/// Moves every row on by its last token and puts −∞ where a token may not follow.
///
/// # Shapes
/// - `logits`: `[batch, width]`, kept, as is the dtype
pub(crate) fn mask(table: &TensorTable, logits: Tensor<2>, at: Cursor) -> (Tensor<2>, Moved) {
    match table.store() {
        #[cfg(feature = "flex")]
        Store::Host(host) => flex::mask(host, logits, at),
        #[cfg(feature = "cube")]
        Store::Cube(tensors) => cube::mask(tensors, table.width(), logits, at),
        Store::BuiltIn(_) => built_in::mask(table, logits, at),
    }
}

/// Moves every row on by its last token, follows the drafts after it, and puts −∞ where a token may not follow
/// a node.
///
/// A node of a token that may not follow its parent stays in the parent's state, so that its row of logits is
/// never empty.
///
/// # Shapes
/// - `logits`: `[batch, nodes, width]`, kept, as is the dtype
/// - `tokens`: `[batch, nodes]`
/// - `states`, `remaining`: `[batch]`
/// - `parents`: of every node
pub(crate) fn mask_tree(
    table: &TensorTable,
    parents: &Arc<[usize]>,
    logits: Tensor<3>,
    tokens: Tensor<2, Int>,
    [states, remaining]: [Tensor<1, Int>; 2],
) -> (Tensor<3>, Branches) {
    let tensors = match table.store() {
        #[cfg(feature = "flex")]
        Store::Host(host) => return flex::mask_tree(host, parents, logits, tokens, [states, remaining]),
        #[cfg(feature = "cube")]
        Store::Cube(tensors) => tensors,
        Store::BuiltIn(tensors) => tensors,
    };
    let [batch, nodes, width] = logits.dims();
    let branches = built_in::follow(table, tensors, parents, tokens, [states, remaining]);
    let states = branches.states.clone().reshape([-1]);
    let tokens = states.full_like(table.no_token() as i32);
    let at = Cursor { tokens, states, remaining: branches.remaining.clone().reshape([-1]) };
    let (masked, _) = mask(table, logits.reshape([batch * nodes, width]), at);
    (masked.reshape([batch, nodes, width]), branches)
}

/// Moves every row on by its last token and chooses the next one, `[batch]`, in one pass over the logits.
///
/// # Shapes
/// - `logits`: `[batch, width]`
/// - `step`: `[1]` or `[batch]`
///
/// # Panics
/// Where the table's lookups are not fused.
pub(crate) fn choose(
    table: &TensorTable,
    logits: Tensor<2>,
    at: Cursor,
    step: Tensor<1, Int>,
    rule: Rule,
) -> (Tensor<1, Int>, Moved) {
    match table.store() {
        #[cfg(feature = "flex")]
        Store::Host(host) => flex::choose(host, logits, at, step, rule),
        #[cfg(feature = "cube")]
        Store::Cube(tensors) => cube::choose(tensors, table.width(), logits, at, step, rule),
        Store::BuiltIn(_) => panic!("the table's lookups are not fused"),
    }
}
