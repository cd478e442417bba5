//! The second kernel of a step that masks: one cube for each tile of each row.
//!
//! A copy of the logits is masked if there is another handle of them. Otherwise they are masked in
//! place: vectors whose tokens are all legal stay as they are, and are neither read nor written.

use cubecl::prelude::*;

use super::lookup::Lookup;
use super::rows::{KIND, LEFT, Plan, Rows, SLOT};
use super::tile::{UNITS, lanes, legal, read_at};
use crate::tensor::arrays::TILE;

/// Copies the logits of legal tokens and sets the others to `never`. `x` covers the tiles, `y` the
/// rows from `first_row` on.
#[cube(launch, create_dummy_kernel, address_type = "dynamic")]
pub(super) fn mask_kernel<F: Float, N: Size>(
    logits: &Tensor<Vector<F, N>>,
    position: &Tensor<i32>,
    plans: &[i32],
    lookup: &Lookup,
    rows: &Rows,
    pool: &mut [i32],
    masked: &mut Tensor<Vector<F, N>>,
    #[comptime] at_once: u32,
    stride: u32,
    first_row: u32,
    never: InputScalar,
    #[define(F)] _dtype: ElemType,
) {
    let (row, tile) = ((first_row + CUBE_POS_Y) as usize, CUBE_POS_X);
    let size = logits.vector_size().comptime();
    // Before the bits: the strides are in memory, too.
    let (from, to) = (row * logits.stride(0) / size, row * masked.stride(0) / size);
    let legal = legal(lookup, rows, position, &plan(plans, row, stride), pool, row, tile);
    let never = never.get::<F>();
    let step = comptime!(UNITS * size as u32);
    let end = lookup.vocab_size - tile * TILE;
    let mut offset = UNIT_POS * comptime!(size as u32);
    while offset < TILE {
        let vector = (tile * TILE + offset) as usize / size;
        let mut values = Sequence::<Vector<F, N>>::new();
        #[unroll]
        for index in 0..at_once {
            let is_read = legal.bits(offset + index * step) & lanes(size) != 0;
            values.push(logits[from + read_at(vector + (index * UNITS) as usize, is_read)]);
        }
        #[unroll]
        for index in 0..at_once {
            let at = offset + index * step;
            if at < end {
                let bits = legal.bits(at) & lanes(size);
                masked[to + vector + (index * UNITS) as usize] =
                    kept(values[comptime!(index as usize)], bits, never);
            }
        }
        offset += comptime!(at_once * step);
    }
}

/// Sets the logits of illegal tokens to `never`, as [`mask_kernel`].
#[cube(launch, create_dummy_kernel, address_type = "dynamic")]
pub(super) fn mask_in_place_kernel<F: Float, N: Size>(
    logits: &mut Tensor<Vector<F, N>>,
    position: &Tensor<i32>,
    plans: &[i32],
    lookup: &Lookup,
    rows: &Rows,
    pool: &mut [i32],
    stride: u32,
    first_row: u32,
    never: InputScalar,
    #[define(F)] _dtype: ElemType,
) {
    let (row, tile) = ((first_row + CUBE_POS_Y) as usize, CUBE_POS_X);
    let size = logits.vector_size().comptime();
    let from = row * logits.stride(0) / size;
    let legal = legal(lookup, rows, position, &plan(plans, row, stride), pool, row, tile);
    let never = never.get::<F>();
    let mut offset = UNIT_POS * comptime!(size as u32);
    while offset < TILE && tile * TILE + offset < lookup.vocab_size {
        let bits = legal.bits(offset) & lanes(size);
        if bits != lanes(size) {
            let at = from + (tile * TILE + offset) as usize / size;
            // Without legal tokens nothing is read.
            let mut values = Vector::<F, N>::new(never);
            if bits != 0 {
                values = logits[at];
            }
            logits[at] = kept(values, bits, never);
        }
        offset += UNITS * comptime!(size as u32);
    }
}

/// The plan of a row.
#[cube]
fn plan(plans: &[i32], row: usize, stride: u32) -> Plan {
    let at = row * stride as usize;
    Plan { kind: plans[at + KIND], slot: u32::cast_from(plans[at + SLOT]), left: plans[at + LEFT] }
}

/// A vector of logits, with `never` where a bit is 0.
#[cube]
fn kept<F: Float, N: Size>(values: Vector<F, N>, bits: u32, never: F) -> Vector<F, N> {
    let mut kept = Vector::<F, N>::new(never);
    #[unroll]
    for lane in 0..N::value() {
        let is_legal = (bits >> comptime!(lane as u32)) & 1u32 == 1u32;
        kept.insert(lane, select(is_legal, values.extract(lane), never));
    }
    kept
}
