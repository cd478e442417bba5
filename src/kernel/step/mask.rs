//! The second kernel of a step that masks: one cube for each tile of each row.
//!
//! A copy of the logits is masked if there is another handle of them. Otherwise they are masked in
//! place: vectors whose tokens are all legal stay as they are, and are neither read nor written.

use cubecl::prelude::*;

use super::lookup::Lookup;
use super::packing::{Packing, kept, size_of};
use super::rows::{KIND, LEFT, Plan, Rows, SLOT};
use super::tile::{UNITS, lanes, legal, read_at};
use crate::tensor::arrays::TILE;

/// Copies the logits of legal tokens and sets the others to `never`. `x` covers the tiles, `y` the
/// rows from `first_row` on. For the strides see `choose_kernel`.
#[cube(launch, create_dummy_kernel, address_type = "dynamic")]
pub(super) fn mask_kernel<S: Numeric, N: Size>(
    logits: &Tensor<Vector<S, N>>,
    position: &Tensor<i32>,
    plans: &[i32],
    lookup: &Lookup,
    rows: &Rows,
    pool: &mut [i32],
    masked: &mut Tensor<Vector<S, N>>,
    #[comptime] at_once: u32,
    vectors: u32,
    masked_vectors: u32,
    numbers: u32,
    stride: u32,
    first_row: u32,
    never: InputScalar,
    #[comptime] packing: Packing,
    #[define(S)] _dtype: ElemType,
) {
    let (row, tile) = ((first_row + CUBE_POS_Y) as usize, CUBE_POS_X);
    let size = size_of::<N>(packing);
    let (from, to) = (row * vectors as usize, row * masked_vectors as usize);
    let base = row * numbers as usize;
    let legal = legal(lookup, rows, position, &plan(plans, row, stride), pool, base, tile);
    let never = never.get::<S>();
    let step = comptime!(UNITS * size as u32);
    let end = lookup.vocab_size - tile * TILE;
    let mut offset = UNIT_POS * comptime!(size as u32);
    while offset < TILE {
        let vector = (tile * TILE + offset) as usize / size;
        let mut values = Sequence::<Vector<S, N>>::new();
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
                    kept(values[comptime!(index as usize)], bits, never, packing);
            }
        }
        offset += comptime!(at_once * step);
    }
}

/// Sets the logits of illegal tokens to `never`, as [`mask_kernel`].
#[cube(launch, create_dummy_kernel, address_type = "dynamic")]
pub(super) fn mask_in_place_kernel<S: Numeric, N: Size>(
    logits: &mut Tensor<Vector<S, N>>,
    position: &Tensor<i32>,
    plans: &[i32],
    lookup: &Lookup,
    rows: &Rows,
    pool: &mut [i32],
    vectors: u32,
    numbers: u32,
    stride: u32,
    first_row: u32,
    never: InputScalar,
    #[comptime] packing: Packing,
    #[define(S)] _dtype: ElemType,
) {
    let (row, tile) = ((first_row + CUBE_POS_Y) as usize, CUBE_POS_X);
    let size = size_of::<N>(packing);
    let from = row * vectors as usize;
    let base = row * numbers as usize;
    let legal = legal(lookup, rows, position, &plan(plans, row, stride), pool, base, tile);
    let never = never.get::<S>();
    let mut offset = UNIT_POS * comptime!(size as u32);
    while offset < TILE && tile * TILE + offset < lookup.vocab_size {
        let bits = legal.bits(offset) & lanes(size);
        if bits != lanes(size) {
            let at = from + (tile * TILE + offset) as usize / size;
            // Without legal tokens nothing is read.
            let mut values = Vector::<S, N>::new(never);
            if bits != 0 {
                values = logits[at];
            }
            logits[at] = kept(values, bits, never, packing);
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
