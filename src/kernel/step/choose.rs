//! The second kernel of a step that chooses: one cube for each tile of each row.
//!
//! A unit compares vectors of logits by their greatest logits, and does not keep the lane of a
//! logit: the best vector of a tile is read again for its token. Lanes of illegal tokens count as
//! −∞, so the loop over a tile has no branch for a lane.
//!
//! If a row has several tiles, the last of its cubes to arrive compares their results. Where a
//! device does not order memory between cubes, a third kernel compares them.

use cubecl::prelude::*;

use super::lookup::Lookup;
use super::noise::Noise;
use super::rows::{ARRIVED, BEST, KIND, LEFT, Plan, Rows, SLOT};
use super::tile::{UNITS, lanes, legal, read_at};
use crate::tensor::arrays::TILE;

/// The bits of +∞ and −∞.
const INFINITY: u32 = 0x7f80_0000;
const NEGATIVE_INFINITY: u32 = 0xff80_0000;
/// The key of −∞.
const LEAST: u32 = 0;
/// The key of NaN.
const NAN: u32 = 2 * INFINITY + 1;

/// Chooses the legal token of each row with the greatest logit plus noise, and writes it into
/// `tokens`. `x` covers the tiles, `y` the rows; from `first_row` on if the batch is `split` among
/// grids. Batches of one grid do without the addition, which would cost registers.
///
/// Without `merges` the tokens are left to [`merge_kernel`].
#[cube(launch, create_dummy_kernel, address_type = "dynamic")]
pub(super) fn choose_kernel<F: Float, N: Size>(
    logits: &Tensor<Vector<F, N>>,
    position: &Tensor<i32>,
    tokens: &mut Tensor<i32>,
    noise: &Noise,
    plans: &mut [Atomic<u32>],
    lookup: &Lookup,
    rows: &Rows,
    pool: &mut [i32],
    tiles: u32,
    stride: u32,
    first_row: u32,
    #[comptime] split: bool,
    #[comptime] merges: bool,
    #[comptime] planes: bool,
    #[comptime] at_once: u32,
    #[define(F)] _dtype: ElemType,
) {
    let mut row = CUBE_POS_Y;
    if comptime!(split) {
        row += first_row;
    }
    let (row, tile) = (row as usize, CUBE_POS_X);
    let own = row * stride as usize;
    let plan = Plan {
        kind: i32::cast_from(plans[own + KIND].load()),
        slot: plans[own + SLOT].load(),
        left: i32::cast_from(plans[own + LEFT].load()),
    };
    let size = logits.vector_size().comptime();
    // Before the bits: these are in memory, too.
    let from = row * logits.stride(0) / size;
    let (key, factor) = noise.of_row(&*plans, own);
    let legal = legal(lookup, rows, position, &plan, pool, row, tile);
    let mut best = LEAST.runtime();
    // The offset of the first vector with the best key.
    let mut vector = 0u32;
    let mut offset = UNIT_POS * comptime!(size as u32);
    let lanes = lanes(size);
    let step = comptime!(UNITS * size as u32);
    while offset < TILE && tile * TILE + offset < lookup.vocab_size {
        let first = tile * TILE + offset;
        let mut values = Sequence::<Vector<F, N>>::new();
        #[unroll]
        for index in 0..at_once {
            let is_read = legal.bits(offset + index * step) & lanes != 0;
            let vector = first as usize / size + (index * UNITS) as usize;
            values.push(logits[from + read_at(vector, is_read)]);
        }
        #[unroll]
        for index in 0..at_once {
            let at = offset + index * step;
            let bits = legal.bits(at) & lanes;
            if bits != 0 {
                let first = tile * TILE + at;
                let greatest =
                    greatest_of_vector(values[comptime!(index as usize)], bits, first, noise, key, factor);
                vector = select(greatest > best, at, vector);
                best = max(greatest, best);
            }
        }
        offset += comptime!(at_once * step);
    }
    let (best, vector) = best_of_cube(best, vector, planes);
    let mut id = 0u32;
    if UNIT_POS == 0 {
        let bits = legal.bits(vector) & lanes;
        let first = tile * TILE + vector;
        let values = logits[from + first as usize / size];
        let (_, token) = best_of_vector(values, bits, first, noise, key, factor);
        id = token;
    }
    if comptime!(merges) {
        if tiles == 1 {
            if UNIT_POS == 0 {
                write(tokens, row, best, id);
            }
        } else {
            publish(&*plans, own, tile, best, id);
            let mut arrived = Shared::<u32>::new();
            sync_storage();
            if UNIT_POS == 0 {
                *arrived = plans[own + ARRIVED].fetch_add(1u32);
            }
            sync_storage();
            let is_last = *arrived == tiles - 1;
            let (best, id) = best_of_tiles(&*plans, own, tiles, is_last, planes);
            if is_last && UNIT_POS == 0 {
                write(tokens, row, best, id);
            }
        }
    } else {
        publish(&*plans, own, tile, best, id);
    }
}

/// Compares the best tokens of the tiles: one cube for each row from `first_row` on.
#[cube(launch, create_dummy_kernel)]
pub(super) fn merge_kernel(
    plans: &[Atomic<u32>],
    tokens: &mut Tensor<i32>,
    tiles: u32,
    stride: u32,
    first_row: u32,
    #[comptime] planes: bool,
) {
    let row = (first_row + CUBE_POS_X) as usize;
    let (best, id) = best_of_tiles(plans, row * stride as usize, tiles, true, planes);
    if UNIT_POS == 0 {
        write(tokens, row, best, id);
    }
}

/// Writes the best token of a tile, with one unit.
#[cube]
fn publish(plans: &[Atomic<u32>], own: usize, tile: u32, best: u32, id: u32) {
    if UNIT_POS == 0 {
        let at = own + BEST + 2 * tile as usize;
        plans[at].store(best);
        plans[at + 1].store(id);
    }
}

/// The best token of all tiles, if `reads`, with all units of a cube.
#[cube]
fn best_of_tiles(
    plans: &[Atomic<u32>],
    own: usize,
    tiles: u32,
    reads: bool,
    #[comptime] planes: bool,
) -> (u32, u32) {
    let mut best = LEAST.runtime();
    let mut id = 0u32;
    let mut tile = UNIT_POS;
    while reads && tile < tiles {
        let at = own + BEST + 2 * tile as usize;
        let order = plans[at].load();
        if order > best {
            best = order;
            id = plans[at + 1].load();
        }
        tile += UNITS;
    }
    best_of_cube(best, id, planes)
}

/// Writes the token of a row: the first token if all legal logits are −∞, as a plain argmax.
#[cube]
fn write(tokens: &mut Tensor<i32>, row: usize, best: u32, id: u32) {
    let at = row * tokens.stride(0);
    tokens[at] = i32::cast_from(select(best == LEAST, 0u32, id));
}

/// The greatest key of the legal tokens of a vector, which begins at token `first`. Logits are
/// compared as floats, which takes fewer instructions for each than a key; NaN is found by its
/// bits.
#[cube]
fn greatest_of_vector<F: Float, N: Size>(
    values: Vector<F, N>,
    bits: u32,
    first: u32,
    noise: &Noise,
    key: u32,
    factor: f32,
) -> u32 {
    let mut greatest = f32::reinterpret(NEGATIVE_INFINITY.runtime());
    let mut magnitude = 0u32;
    #[unroll]
    for lane in 0..N::value() {
        let token = first + comptime!(lane as u32);
        let logit = noise.disturb(f32::cast_from(values.extract(lane)), token, key, factor);
        let is_legal = (bits >> comptime!(lane as u32)) & 1u32 == 1u32;
        let logit = select(is_legal, u32::reinterpret(logit), NEGATIVE_INFINITY);
        greatest = max(greatest, f32::reinterpret(logit));
        magnitude = max(magnitude, logit & 0x7fff_ffffu32);
    }
    select(magnitude > INFINITY, NAN, order(u32::reinterpret(greatest)))
}

/// The greatest key of the legal tokens of a vector, which begins at token `first`, and the first
/// token with this key.
#[cube]
fn best_of_vector<F: Float, N: Size>(
    values: Vector<F, N>,
    bits: u32,
    first: u32,
    noise: &Noise,
    key: u32,
    factor: f32,
) -> (u32, u32) {
    let mut best = LEAST.runtime();
    let mut id = first;
    #[unroll]
    for lane in 0..N::value() {
        let token = first + comptime!(lane as u32);
        let logit = noise.disturb(f32::cast_from(values.extract(lane)), token, key, factor);
        let is_legal = (bits >> comptime!(lane as u32)) & 1u32 == 1u32;
        let order = order(select(is_legal, u32::reinterpret(logit), NEGATIVE_INFINITY));
        id = select(order > best, token, id);
        best = max(order, best);
    }
    (best, id)
}

/// A key that orders the bits of floats as integers: NaN greatest, both zeros equal, −∞ least.
#[cube]
fn order(bits: u32) -> u32 {
    // The sum and the difference wrap, so that NaN of both signs is above +∞.
    let key = select(bits < 0x8000_0000u32, bits + INFINITY, NEGATIVE_INFINITY - bits);
    min(key, NAN)
}

/// The best of all units: the greatest key, and the lowest id, of a vector or a token, among
/// equals.
///
/// With `planes`, the units of a plane exchange registers, and only the planes meet in shared
/// memory. Else in two rounds of 16, because a barrier takes longer than the comparisons.
#[cube]
fn best_of_cube(key: u32, id: u32, #[comptime] planes: bool) -> (u32, u32) {
    let mut keys = Shared::<[u32]>::new_slice(UNITS as usize);
    let mut ids = Shared::<[u32]>::new_slice(UNITS as usize);
    if comptime!(planes) {
        // The loops before may leave the units of a plane at different instructions. On CUDA, only
        // units at the same instruction exchange registers.
        sync_plane();
        let best = plane_max(key);
        let first = plane_min(select(key == best, id, u32::MAX));
        if UNIT_POS_PLANE == 0 {
            keys[PLANE_POS as usize] = best;
            ids[PLANE_POS as usize] = first;
        }
        sync_cube();
        let mut best = keys[0];
        let mut id = ids[0];
        for plane in 1..UNITS / PLANE_DIM {
            let at = plane as usize;
            id = first_of_best(best, id, keys[at], ids[at]);
            best = max(best, keys[at]);
        }
        (best, id)
    } else {
        keys[UNIT_POS as usize] = key;
        ids[UNIT_POS as usize] = id;
        sync_cube();
        if UNIT_POS < 16 {
            // A unit reads every 16th number, so 16 units read neighbors.
            let (best, id) = best_of(&keys, &ids, UNIT_POS as usize, 16usize);
            keys[UNIT_POS as usize] = best;
            ids[UNIT_POS as usize] = id;
        }
        sync_cube();
        best_of(&keys, &ids, 0usize, 1usize)
    }
}

/// The best of 16 numbers, `step` apart.
#[cube]
fn best_of(keys: &Shared<[u32]>, ids: &Shared<[u32]>, from: usize, #[comptime] step: usize) -> (u32, u32) {
    let mut best = keys[from];
    let mut id = ids[from];
    #[unroll]
    for other in 1..16usize {
        let at = from + other * step;
        id = first_of_best(best, id, keys[at], ids[at]);
        best = max(best, keys[at]);
    }
    (best, id)
}

/// The id of the greater of two keys; the lower id if they are equal.
#[cube]
fn first_of_best(best: u32, id: u32, other: u32, other_id: u32) -> u32 {
    select(other > best || (other == best && other_id < id), other_id, id)
}
