//! The constraint's step: move rows on by their last token, mask their logits, or choose from them.
//!
//! There is one rule, in three forms that give the same results: on the host ([`RowPosition`](crate::table::RowPosition)),
//! in a kernel (`lookup`), and in Burn's built-in operations (`built_in`). Each form has two functions: `after`, the
//! position after a token, and `can_end`, whether the end is within what remains there. A token may follow where the
//! position after it can end.

mod built_in;
mod built_in_stack;
#[cfg(feature = "cube")]
mod cube;
#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "remote")]
mod hosted;
#[cfg(feature = "cube")]
mod kernels;
#[cfg(feature = "flex")]
mod legal;
#[cfg(feature = "cube")]
mod lookup;
mod lookups;
#[cfg(feature = "flex")]
mod row;
#[cfg(feature = "cube")]
mod stack;
#[cfg(feature = "flex")]
mod vectorized;

#[cfg(all(feature = "remote-server", feature = "flex"))]
pub(crate) use flex::{FlexRule, FlexStep};

use std::sync::Arc;

use burn::tensor::{Int, Tensor};

use crate::sampling::Rule;
use crate::tensor::{Position, Store, TensorTable};

/// Moves every row on by its last token; the id `width` is no token and leaves a row as it is.
///
/// # Shapes
/// - `tokens`: `[batch]`, `i32`
pub(crate) fn after(table: &TensorTable, position: Position, tokens: Tensor<1, Int>) -> Position {
    match table.store() {
        #[cfg(feature = "flex")]
        Store::Host(host) => flex::after(host, position, tokens, table.width()),
        #[cfg(feature = "remote")]
        Store::Hosted(tables) => hosted::after(tables, position, tokens, table.width()),
        #[cfg(feature = "cube")]
        Store::Cube(image) => built_in::after(image, position, tokens),
        Store::BuiltIn(image) => built_in::after(image, position, tokens),
    }
}

/// Moves every row on by its last token and puts −∞ where a token may not follow.
///
/// # Shapes
/// - `logits`: `[batch, width]`, kept, as is the dtype
/// - `tokens`: `[batch]`, `i32`
pub(crate) fn mask(
    table: &TensorTable,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
) -> (Tensor<2>, Position) {
    match table.store() {
        #[cfg(feature = "flex")]
        Store::Host(host) => flex::mask(host, logits, position, tokens),
        #[cfg(feature = "remote")]
        Store::Hosted(tables) => hosted::mask(tables, logits, position, tokens),
        #[cfg(feature = "cube")]
        Store::Cube(image) => cube::mask(image, logits, position, tokens),
        Store::BuiltIn(image) => built_in::mask(image, logits, position, tokens),
    }
}

/// Moves every row on by its last token, follows the draft tokens after it, and puts −∞ where a token may not follow
/// a node.
///
/// A node of a token that may not follow its parent stays in the parent's position, so that its row of logits is
/// never empty.
///
/// # Shapes
/// - `logits`: `[batch, nodes, width]`, kept, as is the dtype
/// - `tokens`: `[batch, nodes]`, `i32`
/// - `parents`: of every node
pub(crate) fn mask_tree(
    table: &TensorTable,
    parents: &Arc<[usize]>,
    logits: Tensor<3>,
    position: Position,
    tokens: Tensor<2, Int>,
) -> (Tensor<3>, Position<3>) {
    let image = match table.store() {
        #[cfg(feature = "flex")]
        Store::Host(host) => return flex::mask_tree(host, parents, logits, position, tokens),
        #[cfg(feature = "remote")]
        Store::Hosted(tables) => return hosted::mask_tree(tables, parents, logits, position, tokens),
        #[cfg(feature = "cube")]
        Store::Cube(image) => image,
        Store::BuiltIn(image) => image,
    };
    let [batch, nodes, width] = logits.dims();
    let none = Tensor::full([batch * nodes], table.no_token() as i32, (&tokens.device(), tokens.dtype()));
    let tree = built_in::follow(image, parents, position, tokens);
    let (masked, _) = mask(table, logits.reshape([batch * nodes, width]), tree.flatten(), none);
    (masked.reshape([batch, nodes, width]), tree)
}

/// Moves every row on by its last token and chooses the next one, `[batch]`, in one pass over the logits.
///
/// # Shapes
/// - `logits`: `[batch, width]`
/// - `tokens`: `[batch]`, `i32`
/// - `step`: `[1]` or `[batch]`
///
/// # Panics
/// Where the table's lookups are not fused.
pub(crate) fn choose(
    table: &TensorTable,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
    step: Tensor<1, Int>,
    rule: Rule,
) -> (Tensor<1, Int>, Position) {
    match table.store() {
        #[cfg(feature = "flex")]
        Store::Host(host) => flex::choose(host, logits, position, tokens, step, rule),
        #[cfg(feature = "remote")]
        Store::Hosted(tables) => hosted::choose(tables, logits, position, tokens, step, rule),
        #[cfg(feature = "cube")]
        Store::Cube(image) => cube::choose(image, logits, position, tokens, step, rule),
        Store::BuiltIn(_) => panic!("the table's lookups are not fused"),
    }
}
