//! The kernels of the step. They reduce a row through shared memory, without subgroup operations.

use cubecl::prelude::*;

use super::lookup::Lookup;
use super::stack;

/// Units of a cube.
pub(super) const UNITS: u32 = 256;

/// A row at its position after its last token: in registers or, with a stack, in shared memory.
#[derive(CubeType)]
struct Row {
    state: u32,
    owner: u32,
    remaining: i32,
    base: Shared<[i32]>,
    own: Array<i32>,
}

#[cube]
impl Row {
    fn after(table: &Lookup, position: &Tensor<i32>, row: usize, token: i32) -> Row {
        let mut own = stack::room(table);
        let base = stack::begin(table, position, row, token, &mut own);
        let mut state = 0u32.runtime();
        let mut remaining = 0i32.runtime();
        if comptime!(table.ends == 0) {
            let at = row * position.stride(0);
            let (next, left) = table.after(position[at], position[at + position.stride(1)], token);
            state = next;
            remaining = left;
        }
        Row { state, owner: table.owner_of(state), remaining, base, own }
    }

    /// Whether a token in range may follow.
    fn may_follow(&mut self, table: &Lookup, token: u32) -> bool {
        if comptime!(table.ends == 0) {
            table.may_follow(self.state, self.owner, self.remaining, token)
        } else {
            stack::may_follow(table, &self.base, &mut self.own, token)
        }
    }

    /// Writes the position, with all units of a cube.
    fn write(&self, table: &Lookup, position: &mut Tensor<i32>, row: usize) {
        if comptime!(table.ends == 0) {
            if UNIT_POS == 0 {
                let (at, next) = (row * position.stride(0), position.stride(1));
                position[at] = i32::cast_from(self.state);
                position[at + next] = self.remaining;
            }
        } else {
            stack::write(table, &self.base, position, row);
        }
    }
}

/// One unit per logit: advances the row and masks the logit. `x` covers the row, `y` the batch.
#[cube(launch)]
pub(super) fn mask_kernel<F: Float>(
    logits: &Tensor<F>,
    position: &Tensor<i32>,
    tokens: &Tensor<i32>,
    table: &Lookup,
    masked: &mut Tensor<F>,
    next_position: &mut Tensor<i32>,
    never: InputScalar,
    #[define(F)] _dtype: ElemType,
) {
    let row = CUBE_POS_Y as usize;
    let column = CUBE_POS_X * CUBE_DIM + UNIT_POS;
    let token = tokens[row * tokens.stride(0)];
    let mut after = Row::after(table, position, row, token);
    if CUBE_POS_X == 0 {
        after.write(table, next_position, row);
    }
    if column < table.vocab_size {
        let legal = after.may_follow(table, column);
        let at = column as usize;
        let logit = logits[row * logits.stride(0) + at * logits.stride(1)];
        let out = row * masked.stride(0) + at * masked.stride(1);
        masked[out] = select(legal, logit, never.get::<F>());
    }
}

/// A key that orders floats as integers: NaN greatest, both zeros equal, −∞ least.
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

/// The index of a hash in the table of quantiles.
#[cube]
fn quantile_of(hash: u32) -> u32 {
    let high = hash >> 16u32;
    let index = select(hash >> 24u32 == 0u32, ((hash >> 8u32) & 0xffffu32) + 65536u32, high);
    select(high == 0u32, (hash & 0xffffu32) + 131072u32, index)
}

/// The noise added to the logits before the maximum is taken.
#[derive(CubeLaunch, CubeType)]
#[allow(dead_code, reason = "only its launch arguments are ever made")]
pub(super) enum Noise {
    /// Nothing.
    None,
    /// See `sampling::GumbelMax`.
    Gumbel(Gumbel),
}

/// The parameters of Gumbel noise.
#[derive(CubeLaunch, CubeType)]
pub(super) struct Gumbel {
    /// `[1]` or `[batch]`
    pub(super) step: OwnedTensor<i32>,
    /// `[batch, 3]`: the halves of the seed, and the bits of the factor of the logits, 0 for a
    /// greedy row.
    pub(super) keys: OwnedTensor<i32>,
    pub(super) quantiles: OwnedTensor<f32>,
}

#[cube]
impl Noise {
    /// The hash key of the noise of a row.
    fn key(&self, row: usize) -> u32 {
        #[comptime]
        match self {
            Noise::None => 0u32.runtime(),
            Noise::Gumbel(gumbel) => {
                // One number for all rows, or one for each.
                let at = min(row, gumbel.step.shape(0) - 1);
                let step = u32::cast_from(gumbel.step[at * gumbel.step.stride(0)]);
                let from = row * gumbel.keys.stride(0);
                let low = u32::cast_from(gumbel.keys[from]);
                let high = u32::cast_from(gumbel.keys[from + gumbel.keys.stride(1)]);
                mix(((step + 1) * 0x9e37_79b9u32) ^ low) ^ high
            }
        }
    }

    /// The factor of the logits of a row; 0 for a greedy row.
    fn factor(&self, row: usize) -> f32 {
        #[comptime]
        match self {
            Noise::None => 0.0f32.runtime(),
            Noise::Gumbel(gumbel) => {
                let at = row * gumbel.keys.stride(0) + 2 * gumbel.keys.stride(1);
                f32::reinterpret(u32::cast_from(gumbel.keys[at]))
            }
        }
    }

    /// The logit of a token with its noise.
    fn disturb(&self, logit: f32, token: u32, key: u32, factor: f32) -> f32 {
        #[comptime]
        match self {
            Noise::None => logit,
            Noise::Gumbel(gumbel) => {
                let hash = mix(mix(token + 0x9e37_79b9u32) ^ key);
                let disturbed = logit * factor + gumbel.quantiles[quantile_of(hash) as usize];
                select(factor == 0.0f32, logit, disturbed)
            }
        }
    }
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
    // If all logits are −∞, the first token, as a plain argmax.
    select(keys[0] == 0x007f_ffffu32, 0u32, ids[0])
}

/// One cube per row: advances the row, and chooses the legal token with the greatest logit plus
/// noise. Writes the token and the position in place.
#[cube(launch)]
pub(super) fn choose_kernel<F: Float>(
    logits: &Tensor<F>,
    position: &mut Tensor<i32>,
    tokens: &mut Tensor<i32>,
    noise: &Noise,
    table: &Lookup,
    #[define(F)] _dtype: ElemType,
) {
    let row = CUBE_POS_X as usize;
    let token = tokens[row * tokens.stride(0)];
    let (key, factor) = (noise.key(row), noise.factor(row));
    // The key of −∞.
    let mut best = 0x007f_ffffu32;
    let mut id = 0u32;
    let mut column = UNIT_POS;
    let mut after = Row::after(table, &*position, row, token);
    while column < table.vocab_size {
        if after.may_follow(table, column) {
            let order = order_of(logits, noise, row, column, key, factor);
            if order > best {
                best = order;
                id = column;
            }
        }
        column += CUBE_DIM;
    }
    let chosen = best_of_cube(best, id);
    if UNIT_POS == 0 {
        let at = row * tokens.stride(0);
        tokens[at] = i32::cast_from(chosen);
    }
    after.write(table, position, row);
}

/// The key of a logit with its noise.
#[cube]
fn order_of<F: Float>(
    logits: &Tensor<F>,
    noise: &Noise,
    row: usize,
    column: u32,
    key: u32,
    factor: f32,
) -> u32 {
    let logit = logits[row * logits.stride(0) + column as usize * logits.stride(1)];
    order(noise.disturb(f32::cast_from(logit), column, key, factor))
}
