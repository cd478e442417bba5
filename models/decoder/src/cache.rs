//! Attention of a layer over a [`KvCache`]; every loop uses it.

use burn::tensor::{Bool, IndexingUpdateOp, Int, Tensor};
use burn_dfa::generation::KvCache;
use burn_dfa::processor::in_place;

use crate::layers::Attention;
use crate::mask::PerKind;
use crate::rotary::Rotations;

/// Write positions of new keys and values, and the attention mask. Both are the same for all
/// layers.
pub(crate) struct Targets {
    pub(crate) positions: WritePositions,
    /// `[rows, 1, positions, capacity]`, true at the slots hidden from a position.
    pub(crate) hidden: PerKind<Tensor<4, Bool>>,
}

/// Write positions of new keys and values.
pub(crate) enum WritePositions {
    /// One slot of all rows, `[1]`. All rows and heads are written in parallel.
    Slot(Tensor<1, Int>),
    /// Indices into the flat buffer of all heads, `[rows * kv_heads * positions]`.
    Flat(Tensor<1, Int>),
}

/// Appends the keys and values of new positions to each row of a layer, and attends over the cache.
/// If [`one_pass`] is true, `targets` may be `None`: each position then sees its row up to itself.
pub(crate) fn attend(
    cache: &mut KvCache,
    layer: usize,
    attention: &Attention,
    qkv: [Tensor<3>; 3],
    rotations: &Rotations,
    targets: Option<&Targets>,
) -> Tensor<3> {
    let Some(Targets { positions, hidden }) = targets else {
        let rows = [cache.lengths(), cache.padding()];
        return attend_in_one_pass(attention, qkv, rotations, rows.each_ref(), cache.layer_mut(layer));
    };
    let [q, k, v] = attention.split(qkv, rotations);
    match positions {
        WritePositions::Slot(slot) => {
            for (buffer, new) in cache.layer_mut(layer).into_iter().zip([k, v]) {
                in_place(buffer, |buffer| {
                    buffer.select_assign(2, slot.clone(), new, IndexingUpdateOp::Assign)
                });
            }
        }
        WritePositions::Flat(indices) => cache.write(layer, indices, [k, v]),
    }
    let [keys, values] = cache.layer(layer);
    attention.mix([q, keys, values], hidden)
}

/// Whether Flex attends to chains of these activations in one pass over the cache.
#[cfg(feature = "flex")]
pub(crate) fn one_pass(x: &Tensor<3>) -> bool {
    crate::flex::supports(x)
}

#[cfg(not(feature = "flex"))]
pub(crate) fn one_pass(_: &Tensor<3>) -> bool {
    false
}

#[cfg(feature = "flex")]
fn attend_in_one_pass(
    attention: &Attention,
    qkv: [Tensor<3>; 3],
    rotations: &Rotations,
    [lengths, padding]: [&Tensor<1, Int>; 2],
    cache: [&mut Tensor<4>; 2],
) -> Tensor<3> {
    let (scale, window) = (attention.scale, attention.window);
    let rotation = attention.rotation(rotations);
    crate::flex::attend(qkv.each_ref(), scale, window, rotation, lengths, padding, cache)
}

#[cfg(not(feature = "flex"))]
fn attend_in_one_pass(
    _: &Attention,
    _: [Tensor<3>; 3],
    _: &Rotations,
    _: [&Tensor<1, Int>; 2],
    _: [&mut Tensor<4>; 2],
) -> Tensor<3> {
    unreachable!("`one_pass` is false without Flex")
}
