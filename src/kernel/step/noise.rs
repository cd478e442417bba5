//! The noise of a sampled choice in a kernel; see `sampling::GumbelMax`.

use cubecl::prelude::*;

use super::packing::{Packing, logit_of};
use super::rows::{FACTOR, KEY};

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

/// The keys of the noise of all rows.
#[derive(CubeLaunch, CubeType)]
#[allow(dead_code, reason = "only its launch arguments are ever made")]
pub(super) enum Keys {
    /// No noise.
    None,
    /// See `sampling::GumbelMax`.
    Gumbel(GumbelKeys),
}

/// The step and the keys of Gumbel noise.
#[derive(CubeLaunch, CubeType)]
pub(super) struct GumbelKeys {
    /// `[1]` or `[batch]`
    pub(super) step: OwnedTensor<i32>,
    /// `[batch, 3]`: the halves of the seed, and the bits of the factor of the logits, 0 for a
    /// greedy row.
    pub(super) keys: OwnedTensor<i32>,
}

#[cube]
impl Keys {
    /// Writes the hash key and the factor of a row into its plan.
    pub(super) fn write(&self, plan: &mut [i32], row: usize, to: usize) {
        #[comptime]
        match self {
            Keys::None => {}
            Keys::Gumbel(gumbel) => {
                // One number for all rows, or one for each.
                let at = min(row, gumbel.step.shape(0) - 1);
                let step = u32::cast_from(gumbel.step[at * gumbel.step.stride(0)]);
                let from = row * gumbel.keys.stride(0);
                let low = u32::cast_from(gumbel.keys[from]);
                let high = u32::cast_from(gumbel.keys[from + gumbel.keys.stride(1)]);
                let key = mix(((step + 1) * 0x9e37_79b9u32) ^ low) ^ high;
                plan[to + KEY] = i32::cast_from(key);
                plan[to + FACTOR] = gumbel.keys[from + 2 * gumbel.keys.stride(1)];
            }
        }
    }
}

/// The noise added to the logits before the maximum is taken.
#[derive(CubeLaunch, CubeType)]
#[allow(dead_code, reason = "only its launch arguments are ever made")]
pub(super) enum Noise {
    /// Nothing.
    None,
    /// The quantiles of Gumbel noise.
    Gumbel(OwnedTensor<f32>),
}

#[cube]
impl Noise {
    /// The key and the factor of the row whose plan is at `from`; arbitrary without noise.
    pub(super) fn of_row(&self, plans: &[Atomic<u32>], from: usize) -> (u32, f32) {
        #[comptime]
        match self {
            Noise::None => (0u32.runtime(), 0.0f32.runtime()),
            Noise::Gumbel(_) => (plans[from + KEY].load(), f32::reinterpret(plans[from + FACTOR].load())),
        }
    }

    /// The bits of a logit with its noise, by the key and the factor of its row; a factor of 0 is
    /// greedy. A logit with noise is an `f32`.
    pub(super) fn disturb(
        &self,
        bits: u32,
        token: u32,
        key: u32,
        factor: f32,
        #[comptime] packing: Packing,
    ) -> u32 {
        #[comptime]
        match self {
            Noise::None => bits,
            Noise::Gumbel(quantiles) => {
                let logit = logit_of(bits, packing);
                let hash = mix(mix(token + 0x9e37_79b9u32) ^ key);
                let disturbed = logit * factor + quantiles[quantile_of(hash) as usize];
                u32::reinterpret(select(factor == 0.0f32, logit, disturbed))
            }
        }
    }
}
