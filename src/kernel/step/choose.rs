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
use super::packing::{Packing, SIGN, bits_of, size_of};
use super::rows::{ARRIVED, BEST, KIND, LEFT, Plan, Rows, SLOT};
use super::tile::{UNITS, lanes, legal, read_at};
use crate::tensor::arrays::TILE;

/// The key of −∞.
const LEAST: u32 = 0;

/// Chooses the legal token of each row with the greatest logit plus noise, and writes it into
/// `tokens`. `x` covers the tiles, `y` the rows; from `first_row` on if the batch is `split` among
/// grids. Batches of one grid do without the addition, which would cost registers.
///
/// Without `merges` the tokens are left to [`merge_kernel`]. `infinity` are the bits of +∞ after the
/// noise. From a row to the next one are `vectors` of logits, `numbers` of the position and `stride`
/// of the plan: arguments, because a stride of a tensor is another load.
#[cube(launch, create_dummy_kernel, address_type = "dynamic")]
pub(super) fn choose_kernel<S: Numeric, N: Size>(
    logits: &Tensor<Vector<S, N>>,
    position: &Tensor<i32>,
    tokens: &mut Tensor<i32>,
    noise: &Noise,
    plans: &mut [Atomic<u32>],
    lookup: &Lookup,
    rows: &Rows,
    pool: &mut [i32],
    tiles: u32,
    vectors: u32,
    numbers: u32,
    stride: u32,
    first_row: u32,
    #[comptime] split: bool,
    #[comptime] merges: bool,
    #[comptime] planes: bool,
    #[comptime] at_once: u32,
    #[comptime] packing: Packing,
    #[comptime] infinity: u32,
    #[define(S)] _dtype: ElemType,
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
    let size = size_of::<N>(packing);
    let from = row * vectors as usize;
    let (key, factor) = noise.of_row(&*plans, own);
    let legal = legal(lookup, rows, position, &plan, pool, row * numbers as usize, tile);
    let mut best = LEAST.runtime();
    // The offset of the first vector with the best key.
    let mut vector = 0u32;
    let mut offset = UNIT_POS * comptime!(size as u32);
    let lanes = lanes(size);
    let step = comptime!(UNITS * size as u32);
    while offset < TILE && tile * TILE + offset < lookup.vocab_size {
        let first = tile * TILE + offset;
        let mut values = Sequence::<Vector<S, N>>::new();
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
                let values = values[comptime!(index as usize)];
                let greatest = greatest_of_vector(values, bits, first, noise, key, factor, packing, infinity);
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
        let (_, token) = best_of_vector(values, bits, first, noise, key, factor, packing, infinity);
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

/// The greatest key of the legal tokens of a vector, which begins at token `first`.
///
/// Bits are compared as integers, which takes fewer instructions for each logit than a key. As
/// unsigned integers, negative logits are above the others, and in reverse order.
#[cube]
fn greatest_of_vector<S: Numeric, N: Size>(
    values: Vector<S, N>,
    legal: u32,
    first: u32,
    noise: &Noise,
    key: u32,
    factor: f32,
    #[comptime] packing: Packing,
    #[comptime] infinity: u32,
) -> u32 {
    let negative_infinity = comptime!(infinity | SIGN);
    // The greatest as a signed integer, and the least and the greatest as unsigned integers.
    let mut greatest = i32::reinterpret(negative_infinity.runtime());
    let mut least = negative_infinity.runtime();
    let mut last = negative_infinity.runtime();
    #[unroll]
    for lane in 0..size_of::<N>(packing) {
        let bits = legal_bits(values, legal, lane, first, noise, key, factor, packing, infinity);
        greatest = max(greatest, i32::reinterpret(bits));
        least = min(least, bits);
        last = max(last, bits);
    }
    let bits = select(greatest < 0, least, u32::reinterpret(greatest));
    select(last > negative_infinity, comptime!(nan(infinity)), order(bits, infinity))
}

/// The greatest key of the legal tokens of a vector, which begins at token `first`, and the first
/// token with this key.
#[cube]
fn best_of_vector<S: Numeric, N: Size>(
    values: Vector<S, N>,
    legal: u32,
    first: u32,
    noise: &Noise,
    key: u32,
    factor: f32,
    #[comptime] packing: Packing,
    #[comptime] infinity: u32,
) -> (u32, u32) {
    let mut best = LEAST.runtime();
    let mut id = first;
    #[unroll]
    for lane in 0..size_of::<N>(packing) {
        let bits = legal_bits(values, legal, lane, first, noise, key, factor, packing, infinity);
        let order = order(bits, infinity);
        id = select(order > best, first + comptime!(lane as u32), id);
        best = max(order, best);
    }
    (best, id)
}

/// The bits of a logit with its noise; the bits of −∞ if the token is illegal.
#[cube]
fn legal_bits<S: Numeric, N: Size>(
    values: Vector<S, N>,
    legal: u32,
    #[comptime] lane: usize,
    first: u32,
    noise: &Noise,
    key: u32,
    factor: f32,
    #[comptime] packing: Packing,
    #[comptime] infinity: u32,
) -> u32 {
    let token = first + comptime!(lane as u32);
    let bits = noise.disturb(bits_of(values, lane, packing), token, key, factor, packing);
    let is_legal = (legal >> comptime!(lane as u32)) & 1u32 == 1u32;
    select(is_legal, bits, comptime!(infinity | SIGN))
}

/// The key of NaN.
fn nan(infinity: u32) -> u32 {
    2 * infinity + 1
}

/// A key that orders the bits of floats as integers: NaN greatest, both zeros equal, −∞ least.
#[cube]
fn order(bits: u32, #[comptime] infinity: u32) -> u32 {
    // The sum and the difference wrap, so that NaN of both signs is above +∞.
    let negative_infinity = comptime!(infinity | SIGN);
    let key = select(bits < SIGN, bits + infinity, negative_infinity - bits);
    min(key, comptime!(nan(infinity)))
}

/// The best of all units: the greatest key, and the lowest id, of a vector or a token, among
/// equals.
///
/// With `planes`, the units of a plane exchange registers, and only the planes meet in shared
/// memory. Else all units meet in two atomic numbers.
#[cube]
fn best_of_cube(key: u32, id: u32, #[comptime] planes: bool) -> (u32, u32) {
    if comptime!(planes) {
        let mut keys = Shared::<[u32]>::new_slice(UNITS as usize);
        let mut ids = Shared::<[u32]>::new_slice(UNITS as usize);
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
            let (other, first) = (keys[at], ids[at]);
            id = select(other > best || (other == best && first < id), first, id);
            best = max(best, other);
        }
        (best, id)
    } else {
        let best = Shared::<[Atomic<u32>]>::new_slice(1usize);
        let first = Shared::<[Atomic<u32>]>::new_slice(1usize);
        if UNIT_POS == 0 {
            best[0].store(LEAST);
            first[0].store(u32::MAX);
        }
        sync_cube();
        best[0].fetch_max(key);
        sync_cube();
        let best = best[0].load();
        if key == best {
            first[0].fetch_min(id);
        }
        sync_cube();
        (best, first[0].load())
    }
}
