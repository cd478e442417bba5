//! The kernels of the step. No subgroup operations: a row is reduced through shared memory.

use cubecl::prelude::*;

use super::lookup::Lookup;

/// Units of a cube.
pub(super) const UNITS: u32 = 256;

#[cube]
fn write(values: &mut Tensor<i32>, row: usize, value: i32) {
    let at = row * values.stride(0);
    values[at] = value;
}

/// One unit a logit: the row's state moves on, the logit is masked. `x` covers the row, `y` the batch.
#[cube(launch)]
pub(super) fn mask_kernel<F: Float>(
    logits: &Tensor<F>,
    tokens: &Tensor<i32>,
    states: &Tensor<i32>,
    remaining: &Tensor<i32>,
    table: &Lookup,
    masked: &mut Tensor<F>,
    next_states: &mut Tensor<i32>,
    next_remaining: &mut Tensor<i32>,
    never: InputScalar,
    #[define(F)] _dtype: ElemType,
) {
    let row = CUBE_POS_Y as usize;
    let column = CUBE_POS_X * CUBE_DIM + UNIT_POS;
    let token = tokens[row * tokens.stride(0)];
    let state = table.moved(states[row * states.stride(0)], token);
    let left = table.left(remaining[row * remaining.stride(0)], token);
    if column < table.width {
        let legal = table.is_legal(state, table.owner_of(state), column, left);
        let at = column as usize;
        let logit = logits[row * logits.stride(0) + at * logits.stride(1)];
        let out = row * masked.stride(0) + at * masked.stride(1);
        masked[out] = select(legal, logit, never.get::<F>());
    }
    if column == 0 {
        write(next_states, row, i32::cast_from(state));
        write(next_remaining, row, left);
    }
}

/// A key that orders floats as integers: NaN first of all, equal zeros, −∞ last.
#[cube]
fn order(value: f32) -> u32 {
    let bits = u32::reinterpret(value);
    let magnitude = bits & 0x7fff_ffffu32;
    let key = select(bits < 0x8000_0000u32, bits | 0x8000_0000u32, bits ^ 0xffff_ffffu32);
    let key = select(magnitude == 0u32, 0x8000_0000u32, key);
    select(magnitude > 0x7f80_0000u32, 0xffff_ffffu32, key)
}

/// The bits of the noise hash, see `sampling`.
#[cube]
fn mix(value: u32) -> u32 {
    let mut x = value;
    x = (x ^ (x >> 16u32)) * 0x7feb_352du32;
    x = (x ^ (x >> 15u32)) * 0x846c_a68bu32;
    x ^ (x >> 16u32)
}

/// Where the noise of a hash is in the table of quantiles.
#[cube]
fn quantile_of(hash: u32) -> u32 {
    let high = hash >> 16u32;
    let index = select(hash >> 24u32 == 0u32, ((hash >> 8u32) & 0xffffu32) + 65536u32, high);
    select(high == 0u32, (hash & 0xffffu32) + 131072u32, index)
}

/// The best of all units: the greatest key, the lowest id among equals.
#[cube]
fn best_of_cube(key: u32, id: u32) -> u32 {
    let mut keys = Shared::<[u32]>::new_slice(256usize);
    let mut ids = Shared::<[u32]>::new_slice(256usize);
    let unit = UNIT_POS as usize;
    keys[unit] = key;
    ids[unit] = id;
    sync_cube();
    let mut half = CUBE_DIM / 2;
    while half > 0 {
        if UNIT_POS < half {
            let other = (UNIT_POS + half) as usize;
            let is_tie = keys[other] == keys[unit] && ids[other] < ids[unit];
            if keys[other] > keys[unit] || is_tie {
                keys[unit] = keys[other];
                ids[unit] = ids[other];
            }
        }
        sync_cube();
        half /= 2;
    }
    // All −∞: the first of the row, as a plain argmax has it.
    select(keys[0] == 0x007f_ffffu32, 0u32, ids[0])
}

/// One cube a row: the state moves on, the legal token of the greatest logit is chosen; all written in place.
#[cube(launch)]
pub(super) fn greedy_kernel<F: Float>(
    logits: &Tensor<F>,
    tokens: &mut Tensor<i32>,
    states: &mut Tensor<i32>,
    remaining: &mut Tensor<i32>,
    table: &Lookup,
    #[define(F)] _dtype: ElemType,
) {
    let row = CUBE_POS_X as usize;
    let token = tokens[row * tokens.stride(0)];
    let state = table.moved(states[row * states.stride(0)], token);
    let left = table.left(remaining[row * remaining.stride(0)], token);
    let owner = table.owner_of(state);
    // The key of −∞.
    let mut best = 0x007f_ffffu32;
    let mut id = 0u32;
    let mut column = UNIT_POS;
    while column < table.width {
        if table.is_legal(state, owner, column, left) {
            let logit = logits[row * logits.stride(0) + column as usize * logits.stride(1)];
            let key = order(f32::cast_from(logit));
            if key > best {
                best = key;
                id = column;
            }
        }
        column += CUBE_DIM;
    }
    let chosen = best_of_cube(best, id);
    if UNIT_POS == 0 {
        write(tokens, row, i32::cast_from(chosen));
        write(states, row, i32::cast_from(state));
        write(remaining, row, left);
    }
}

/// As [`greedy_kernel`], with the logit divided by the temperature and the token's noise added.
#[cube(launch)]
pub(super) fn gumbel_kernel<F: Float>(
    logits: &Tensor<F>,
    tokens: &mut Tensor<i32>,
    states: &mut Tensor<i32>,
    remaining: &mut Tensor<i32>,
    step: &Tensor<i32>,
    low: &Tensor<i32>,
    high: &Tensor<i32>,
    quantiles: &Tensor<f32>,
    factor: f32,
    table: &Lookup,
    #[define(F)] _dtype: ElemType,
) {
    let row = CUBE_POS_X as usize;
    let token = tokens[row * tokens.stride(0)];
    let state = table.moved(states[row * states.stride(0)], token);
    let left = table.left(remaining[row * remaining.stride(0)], token);
    let owner = table.owner_of(state);
    // One number for all rows, or one for each.
    let at = min(row, step.shape(0) - 1);
    let time = (u32::cast_from(step[at * step.stride(0)]) + 1) * 0x9e37_79b9u32;
    let key =
        mix(time ^ u32::cast_from(low[row * low.stride(0)])) ^ u32::cast_from(high[row * high.stride(0)]);
    // The key of −∞.
    let mut best = 0x007f_ffffu32;
    let mut id = 0u32;
    let mut column = UNIT_POS;
    while column < table.width {
        if table.is_legal(state, owner, column, left) {
            let logit = logits[row * logits.stride(0) + column as usize * logits.stride(1)];
            let hash = mix(mix(column + 0x9e37_79b9u32) ^ key);
            let noise = quantiles[quantile_of(hash) as usize];
            let order = order(f32::cast_from(logit) * factor + noise);
            if order > best {
                best = order;
                id = column;
            }
        }
        column += CUBE_DIM;
    }
    let chosen = best_of_cube(best, id);
    if UNIT_POS == 0 {
        write(tokens, row, i32::cast_from(chosen));
        write(states, row, i32::cast_from(state));
        write(remaining, row, left);
    }
}
