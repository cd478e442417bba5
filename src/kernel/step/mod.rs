//! The constraint's step: advance rows by their last token, mask their logits, or choose from them.
//!
//! The rule has three implementations with the same results: on the host
//! ([`RowPosition`](burn_dfa_tokens::RowPosition)), in kernels (`lookup`), and in Burn's built-in
//! operations (`built_in`). Each has two functions: `after`, the position after a token, and
//! `can_end`, whether the end is within the remaining budget. A token may follow if the position
//! after it can end.

#[cfg(feature = "cube")]
mod advance;
mod built_in;
mod built_in_stack;
#[cfg(feature = "cube")]
mod choose;
#[cfg(any(feature = "flex", feature = "remote"))]
mod cpu;
#[cfg(feature = "cube")]
mod cube;
mod device_constraint;
#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "cube")]
mod follow;
#[cfg(feature = "cube")]
mod load;
#[cfg(feature = "cube")]
mod lookup;
#[cfg(feature = "cube")]
mod mask;
#[cfg(feature = "cube")]
mod noise;
#[cfg(feature = "cube")]
mod packing;
#[cfg(feature = "remote")]
mod remote;
#[cfg(feature = "cube")]
mod rows;
#[cfg(feature = "cube")]
mod stack;
#[cfg(feature = "cube")]
mod tile;

#[cfg(feature = "remote-server")]
pub(crate) use cpu::{CpuStep, StepConstraints, StepSampler};
#[cfg(feature = "remote-server")]
pub(crate) use flex::{ints, packed};

use std::sync::Arc;

use burn::tensor::{DType, Int, Tensor};

use crate::sampling::FusedSampler;
use crate::tensor::{DeviceConstraint, Position, Store};

/// Token ids as `i32`. An id that `i32` cannot hold becomes an invalid one, not another token.
pub(crate) fn ids<const D: usize>(tokens: Tensor<D, Int>) -> Tensor<D, Int> {
    match tokens.dtype() {
        DType::I64 => tokens.clamp(-1, i32::MAX).cast(DType::I32),
        DType::U64 => tokens.clamp_max(i32::MAX).cast(DType::I32),
        _ => tokens.cast(DType::I32),
    }
}

/// # Panics
/// If not every row of a batch has a position and one token.
fn expect_rows(rows: usize, position: &Position, tokens: &Tensor<1, Int>) {
    assert_eq!(position.batch(), rows, "one position for every row");
    assert_eq!(tokens.dims(), [rows], "one token for every row");
}

/// Advances every row by its last token; the id `vocab_size` is no token and does not change a row.
///
/// # Shapes
/// - `tokens`: `[batch]`, `i32`
///
/// # Panics
/// If the shapes differ.
pub(crate) fn after(
    device_constraint: &DeviceConstraint,
    position: Position,
    tokens: Tensor<1, Int>,
) -> Position {
    assert_eq!(tokens.dims(), [position.batch()], "one token for every row");
    match device_constraint.store() {
        #[cfg(feature = "flex")]
        Store::Cpu(constraints) => cpu::after(constraints, position, tokens, device_constraint.vocab_size()),
        #[cfg(feature = "remote")]
        Store::Remote(constraints) => {
            cpu::after(constraints, position, tokens, device_constraint.vocab_size())
        }
        #[cfg(feature = "cube")]
        Store::Cube(image) => {
            let tokens: Tensor<2, Int> = tokens.unsqueeze_dim(1);
            cube::follow(image, &[0], position, tokens).flatten()
        }
        Store::BuiltIn(image) => built_in::after(image, position, tokens),
    }
}

/// Advances every row by its last token and sets the logits of illegal tokens to −∞.
///
/// # Shapes
/// - `logits`: `[batch, vocab_size]`; the result has the same shape and dtype
/// - `tokens`: `[batch]`, `i32`
///
/// # Panics
/// If the shapes differ.
pub(crate) fn mask(
    device_constraint: &DeviceConstraint,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
) -> (Tensor<2>, Position) {
    expect_rows(logits.dims()[0], &position, &tokens);
    match device_constraint.store() {
        #[cfg(feature = "flex")]
        Store::Cpu(constraints) => cpu::mask(constraints, logits, position, tokens),
        #[cfg(feature = "remote")]
        Store::Remote(constraints) => cpu::mask(constraints, logits, position, tokens),
        #[cfg(feature = "cube")]
        Store::Cube(image) => cube::mask(image, logits, position, tokens),
        Store::BuiltIn(image) => built_in::mask(image, logits, position, tokens),
    }
}

/// Advances every row by its last token, follows the draft tokens after it, and sets the logits of
/// tokens that are illegal after a node to −∞.
///
/// A node whose token may not follow its parent keeps the parent's position, so its row of logits
/// is never empty.
///
/// # Shapes
/// - `logits`: `[batch, nodes, vocab_size]`; the result has the same shape and dtype
/// - `tokens`: `[batch, nodes]`, `i32`
/// - `parents`: the parent of every node
///
/// # Panics
/// If the position has another number of rows.
pub(crate) fn mask_tree(
    device_constraint: &DeviceConstraint,
    parents: &Arc<[usize]>,
    logits: Tensor<3>,
    position: Position,
    tokens: Tensor<2, Int>,
) -> (Tensor<3>, Position<3>) {
    assert_eq!(position.batch(), tokens.dims()[0], "one position for every row");
    let (device, dtype) = (tokens.device(), tokens.dtype());
    let tree = match device_constraint.store() {
        #[cfg(feature = "flex")]
        Store::Cpu(constraints) => return cpu::mask_tree(constraints, parents, logits, position, tokens),
        #[cfg(feature = "remote")]
        Store::Remote(constraints) => return cpu::mask_tree(constraints, parents, logits, position, tokens),
        #[cfg(feature = "cube")]
        Store::Cube(image) => cube::follow(image, parents, position, tokens),
        Store::BuiltIn(image) => built_in::follow(image, parents, position, tokens),
    };
    let [batch, nodes, vocab_size] = logits.dims();
    let none = Tensor::full([batch * nodes], device_constraint.no_token() as i32, (&device, dtype));
    let (masked, _) =
        mask(device_constraint, logits.reshape([batch * nodes, vocab_size]), tree.flatten(), none);
    (masked.reshape([batch, nodes, vocab_size]), tree)
}

/// Advances every row by its last token and chooses the next token, `[batch]`, in one pass over the
/// logits.
///
/// # Shapes
/// - `logits`: `[batch, vocab_size]`
/// - `tokens`: `[batch]`, `i32`
/// - `step`: `[1]` or `[batch]`
///
/// # Panics
/// If the shapes differ, or the lookups are not fused.
pub(crate) fn choose(
    device_constraint: &DeviceConstraint,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
    step: Tensor<1, Int>,
    fused: FusedSampler,
) -> (Tensor<1, Int>, Position) {
    expect_rows(logits.dims()[0], &position, &tokens);
    match device_constraint.store() {
        #[cfg(feature = "flex")]
        Store::Cpu(constraints) => cpu::choose(constraints, logits, position, tokens, step, fused),
        #[cfg(feature = "remote")]
        Store::Remote(constraints) => cpu::choose(constraints, logits, position, tokens, step, fused),
        #[cfg(feature = "cube")]
        Store::Cube(image) => cube::choose(image, logits, position, tokens, step, fused),
        Store::BuiltIn(_) => panic!("the lookups of the constraint are not fused"),
    }
}
