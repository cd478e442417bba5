//! The second kernel of a step that masks: one cube for each tile of each row.

use cubecl::prelude::*;

use super::lookup::Lookup;
use super::rows::{KIND, LEFT, Plan, Rows, SLOT};
use super::tile::{UNITS, legal};
use crate::tensor::arrays::TILE;

/// Copies the logits of legal tokens and sets the others to `never`. `x` covers the tiles, `y` the
/// batch.
#[cube(launch, create_dummy_kernel)]
pub(super) fn mask_kernel<F: Float, N: Size>(
    logits: &Tensor<Vector<F, N>>,
    position: &Tensor<i32>,
    plan: &[i32],
    table: &Lookup,
    rows: &Rows,
    pool: &mut [i32],
    masked: &mut Tensor<Vector<F, N>>,
    stride: u32,
    never: InputScalar,
    #[define(F)] _dtype: ElemType,
) {
    let (row, tile) = (CUBE_POS_Y as usize, CUBE_POS_X);
    let at = row * stride as usize;
    let plan = Plan { kind: plan[at + KIND], slot: u32::cast_from(plan[at + SLOT]), left: plan[at + LEFT] };
    let size = logits.vector_size().comptime();
    // Before the bits: the strides are in memory, too.
    let (from, to) = (row * logits.stride(0) / size, row * masked.stride(0) / size);
    let legal = legal(table, rows, position, &plan, pool, row, tile);
    let never = never.get::<F>();
    let mut offset = UNIT_POS * comptime!(size as u32);
    while offset < TILE && tile * TILE + offset < table.vocab_size {
        let bits = legal.bits(offset);
        let at = (tile * TILE + offset) as usize / size;
        let values = logits[from + at];
        let mut kept = Vector::<F, N>::new(never);
        #[unroll]
        for lane in 0..size {
            let is_legal = (bits >> comptime!(lane as u32)) & 1u32 == 1u32;
            kept.insert(lane, select(is_legal, values.extract(lane), never));
        }
        masked[to + at] = kept;
        offset += UNITS * comptime!(size as u32);
    }
}
