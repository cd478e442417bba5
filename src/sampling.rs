//! Samplers: one token per row, on the device.
//!
//! [`GumbelMax`] draws from the softmax of the logits by adding Gumbel noise and taking the greatest
//! (Gumbel 1954; Maddison, Tarlow, Minka, "A* Sampling", 2014). The noise of a token is a function of the
//! row's seed, the number of the step and the token id alone, so the same seed gives the same tokens at any
//! position in any batch, in an eager loop or in a replayed graph. It is made of integer operations and a
//! table of quantiles, without a logarithm on the device: equal logits give equal tokens on every backend.

use std::sync::{Arc, LazyLock};

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use crate::error::{Error, Result};
use crate::persistent::{Persistent, RowState};
use crate::tensor::ints;

/// Chooses the next token of every row.
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use burn_dfa::sampling::Sampler;
///
/// /// The token of the least logit.
/// struct Least;
///
/// impl Sampler for Least {
///     fn sample(&self, logits: Tensor<2>, _step: &Tensor<1, Int>) -> Tensor<1, Int> {
///         let [batch, _] = logits.dims();
///         logits.argmin(1).reshape([batch]).cast(DType::I32)
///     }
/// }
///
/// let device = Device::flex();
/// let logits = Tensor::<2>::from_data([[2.0, 0.0, 1.0]], &device);
/// let token = Least.sample(logits, &Tensor::zeros([1], &device));
/// assert_eq!(token.into_data().try_to_vec::<i32>().unwrap(), [1]);
/// ```
pub trait Sampler {
    /// Samples one token per row.
    ///
    /// # Shapes
    /// - `logits`: `[batch, width]`, with at least one value above −∞ in each row
    /// - `step`: `[1]`, the number of tokens generated so far, or `[batch]` where rows began at different times
    /// - returns `[batch]`, `i32`
    fn sample(&self, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int>;

    /// The rule by which it samples, where it is one that a processor may follow in its own pass over the
    /// logits.
    fn rule(&self) -> Option<Rule<'_>> {
        None
    }
}

/// The samplers of this room.
///
/// ```
/// use burn_dfa::sampling::{Greedy, Rule, Sampler};
///
/// assert!(matches!(Greedy.rule(), Some(Rule::Greedy)));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Rule<'a> {
    /// As [`Greedy`].
    Greedy,
    /// As this [`GumbelMax`].
    GumbelMax(&'a GumbelMax),
}

/// The token of the greatest logit, the lowest id among equals.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::sampling::{Greedy, Sampler};
///
/// let device = Device::flex();
/// let logits = Tensor::<2>::from_data([[0.0, 2.0, 1.0]], &device);
/// let step = Tensor::<1, Int>::zeros([1], &device);
/// assert_eq!(Greedy.sample(logits, &step).into_data().try_to_vec::<i32>().unwrap(), [1]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Greedy;

impl Sampler for Greedy {
    fn sample(&self, logits: Tensor<2>, _step: &Tensor<1, Int>) -> Tensor<1, Int> {
        let [batch, _] = logits.dims();
        logits.argmax(1).reshape([batch]).cast(DType::I32)
    }

    fn rule(&self) -> Option<Rule<'_>> {
        Some(Rule::Greedy)
    }
}

/// A draw from the softmax of the logits; see the [module](self).
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::sampling::{GumbelMax, Sampler};
///
/// let device = Device::flex();
/// let sampler = GumbelMax::new(&[7], 3, &device)?;
/// let logits = Tensor::<2>::from_data([[0.0, f32::NEG_INFINITY, 0.5]], &device);
/// let step = Tensor::<1, Int>::zeros([1], &device);
/// let token = sampler.sample(logits, &step).into_data().try_to_vec::<i32>().unwrap()[0];
/// assert!(token == 0 || token == 2);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GumbelMax {
    /// `[batch, 2]`: the two halves of the seed, mixed.
    keys: Tensor<2, Int>,
    /// `[1, width]`: a hash of every token id.
    tokens: Tensor<2, Int>,
    /// `[3 · LEVEL]`: quantiles of the Gumbel distribution, see [`QUANTILES`].
    quantiles: Tensor<1>,
    /// The same keys on the host, and what the logits are multiplied by.
    host: Arc<Keys>,
}

/// What the noise of a batch depends on, on the host.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The two halves of the seed of every row, mixed.
    halves: Vec<[u32; 2]>,
    /// The reciprocal of the temperature: a product rounds the same on every device, a quotient does not.
    factor: f32,
}

/// The noise of one row at one step, on the host.
pub(crate) struct Noise {
    key: u32,
    factor: f32,
    quantiles: &'static [f32],
}

impl Keys {
    #[cfg(feature = "cube")]
    pub(crate) fn factor(&self) -> f32 {
        self.factor
    }

    /// The noise of `row` at `step`.
    pub(crate) fn noise(&self, row: usize, step: i32) -> Noise {
        let [low, high] = self.halves[row];
        let step = step.wrapping_add(1).wrapping_mul(GOLDEN) as u32;
        Noise { key: mix(step ^ low) ^ high, factor: self.factor, quantiles: &QUANTILES }
    }
}

impl Noise {
    /// The logit of `token`, divided by the temperature, plus the token's noise.
    pub(crate) fn disturb(&self, logit: f32, token: u32) -> f32 {
        let hash = mix(hash_of_token(token) ^ self.key);
        let (high, level) = (hash >> 16, LEVEL as u32);
        let index = match (high, hash >> 24) {
            (0, _) => (hash & (level - 1)) + 2 * level,
            (_, 0) => (hash >> 8 & (level - 1)) + level,
            _ => high,
        };
        logit * self.factor + self.quantiles[index as usize]
    }
}

/// Entries of one level of the quantile table.
const LEVEL: i32 = 1 << 16;

impl GumbelMax {
    /// One seed per row, for rows of `width` logits.
    ///
    /// # Errors
    /// [`Error::is_input`] without a seed, or where `width` is 0 or past 2³¹.
    pub fn new(seeds: &[u64], width: usize, device: &Device) -> Result<Self> {
        if seeds.is_empty() {
            return Err(Error::input("a batch needs at least one row"));
        }
        let Some(width @ 1..) = u32::try_from(width).ok().filter(|&w| w <= i32::MAX as u32) else {
            return Err(Error::input(format!("a row of {width} logits cannot be sampled")));
        };
        let halves = halves(seeds);
        let tokens = (0..width).map(hash_of_token).collect();
        let quantiles = TensorData::new(QUANTILES.clone(), [QUANTILES.len()]);
        Ok(Self {
            keys: keys(&halves, device),
            tokens: bits(tokens, device).reshape([1, -1]),
            quantiles: Tensor::from_data(quantiles, (device, DType::F32)),
            host: Arc::new(Keys { halves, factor: 1.0 }),
        })
    }

    /// Divides the logits, as `f32`, by a temperature from 0.01 to 100 before the noise is added.
    ///
    /// # Errors
    /// [`Error::is_input`] outside of that.
    pub fn with_temperature(mut self, temperature: f32) -> Result<Self> {
        Arc::make_mut(&mut self.host).factor = temperature_factor(temperature)?;
        Ok(self)
    }

    /// The keys of the rows, `[batch, 2]`.
    #[cfg(feature = "cube")]
    pub(crate) fn keys(&self) -> Tensor<2, Int> {
        self.keys.clone()
    }

    /// The quantiles of the noise, `[3 · LEVEL]`.
    #[cfg(feature = "cube")]
    pub(crate) fn quantiles(&self) -> Tensor<1> {
        self.quantiles.clone()
    }

    /// Other seeds, one per row, in the buffers that hold the old ones.
    pub(crate) fn reseed(&mut self, seeds: &[u64]) {
        let halves = halves(seeds);
        self.keys.assign(keys(&halves, &self.tokens.device()));
        Arc::make_mut(&mut self.host).halves = halves;
    }

    /// Another seed for one row, in the buffers that hold the old ones.
    pub(crate) fn reseed_row(&mut self, row: usize, seed: u64) {
        let new = halves(&[seed]);
        self.keys.assign_row(row, keys(&new, &self.tokens.device()));
        Arc::make_mut(&mut self.host).halves[row] = new[0];
    }

    /// A sampler of one row.
    pub(crate) fn one(&self, seed: u64) -> Self {
        let halves = halves(&[seed]);
        let keys = keys(&halves, &self.tokens.device());
        Self { keys, host: Arc::new(Keys { halves, factor: self.host.factor }), ..self.clone() }
    }

    /// The keys on the host.
    pub(crate) fn host_keys(&self) -> &Arc<Keys> {
        &self.host
    }

    /// The noise of every token, `[batch, width]`.
    fn noise(&self, step: &Tensor<1, Int>) -> Tensor<2> {
        let [batch, _] = self.keys.dims();
        let [_, width] = self.tokens.dims();
        let step = (step.clone().cast(DType::I32) + 1) * GOLDEN;
        let step = step.reshape([-1, 1]).expand([batch, 1]);
        let half = |half: usize| self.keys.clone().slice([0..batch, half..half + 1]);
        let key = mix_on_device(step.bitwise_xor(half(0))).bitwise_xor(half(1));
        let hash = self.tokens.clone().expand([batch, width]).bitwise_xor(key.expand([batch, width]));
        let hash = mix_on_device(hash);
        let high = shift_right(hash.clone(), 16);
        let middle = shift_right(hash.clone(), 8).bitwise_and_scalar(LEVEL - 1);
        let low = hash.clone().bitwise_and_scalar(LEVEL - 1);
        let index = high
            .clone()
            .mask_where(shift_right(hash, 24).equal_elem(0), middle + LEVEL)
            .mask_where(high.equal_elem(0), low + 2 * LEVEL);
        self.quantiles.clone().select(0, index.reshape([-1])).reshape([batch, width])
    }
}

impl Sampler for GumbelMax {
    fn sample(&self, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int> {
        Greedy.sample(logits.cast(DType::F32) * self.host.factor + self.noise(step), step)
    }

    fn rule(&self) -> Option<Rule<'_>> {
        Some(Rule::GumbelMax(self))
    }
}

/// The two halves of every seed, mixed.
fn halves(seeds: &[u64]) -> Vec<[u32; 2]> {
    let mixed = seeds.iter().map(|&seed| split_mix(seed));
    mixed.map(|seed| [seed as u32, (seed >> 32) as u32]).collect()
}

/// The halves as a tensor, `[batch, 2]`.
fn keys(halves: &[[u32; 2]], device: &Device) -> Tensor<2, Int> {
    bits(halves.as_flattened().to_vec(), device).reshape([-1, 2])
}

/// What a temperature multiplies logits by.
pub(crate) fn temperature_factor(temperature: f32) -> Result<f32> {
    if !(0.01..=100.0).contains(&temperature) {
        return Err(Error::input(format!(
            "temperature {temperature}: it must be from 0.01 to 100; for 0 sample greedily"
        )));
    }
    Ok(temperature.recip())
}

/// Quantiles of the Gumbel distribution in three levels of 2¹⁶ entries, addressed by 32 random bits `h`:
/// by their upper half; by the middle where the upper 8 bits are 0; by the lower half where the upper 16
/// bits are 0. So the upper tail, which decides among many tokens, is resolved to 2⁻³².
static QUANTILES: LazyLock<Vec<f32>> = LazyLock::new(|| {
    let level = |bits: i32| {
        let unit = f64::from(bits).exp2().recip();
        (0..LEVEL).map(move |entry| {
            let upper_tail = (f64::from(entry) + 0.5) * unit;
            -(-(-upper_tail).ln_1p()).ln()
        })
    };
    level(16).chain(level(24)).chain(level(32)).map(|quantile| quantile as f32).collect()
});

const GOLDEN: i32 = 0x9e37_79b9_u32 as i32;
const FACTORS: [u32; 2] = [0x7feb_352d, 0x846c_a68b];

/// The 32-bit mixing function `lowbias32` (Wellons, "Prospecting for Hash Functions", 2018).
fn mix(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(FACTORS[0]);
    x = (x ^ (x >> 15)).wrapping_mul(FACTORS[1]);
    x ^ (x >> 16)
}

/// Offset, so that token 0 is not the fixed point of the hash.
fn hash_of_token(id: u32) -> u32 {
    mix(id.wrapping_add(GOLDEN as u32))
}

/// [`mix`], on an `i32` tensor.
fn mix_on_device(x: Tensor<2, Int>) -> Tensor<2, Int> {
    let x = x.clone().bitwise_xor(shift_right(x, 16)) * FACTORS[0] as i32;
    let x = x.clone().bitwise_xor(shift_right(x, 15)) * FACTORS[1] as i32;
    x.clone().bitwise_xor(shift_right(x, 16))
}

/// A logical shift of an `i32` tensor.
fn shift_right(x: Tensor<2, Int>, by: i32) -> Tensor<2, Int> {
    x.bitwise_right_shift_scalar(by).bitwise_and_scalar((u32::MAX >> by) as i32)
}

/// The output function of SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
/// Generators", 2014).
fn split_mix(seed: u64) -> u64 {
    let x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Bit patterns as an `i32` tensor.
fn bits(values: Vec<u32>, device: &Device) -> Tensor<1, Int> {
    ints(values.into_iter().map(|value| value as i32).collect(), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_mixes_like_the_host() {
        let device = Device::default();
        let inputs: Vec<u32> = (0..1000u32).map(|i| i.wrapping_mul(0x0123_4567) ^ (i << 20)).collect();
        let expected: Vec<i32> = inputs.iter().map(|&x| mix(x) as i32).collect();
        let mixed = mix_on_device(bits(inputs, &device).reshape([1, -1]));
        assert_eq!(mixed.into_data().try_to_vec::<i32>().unwrap(), expected);
    }

    #[test]
    fn noise_has_the_moments_of_the_gumbel_distribution() {
        let device = Device::default();
        let sampler = GumbelMax::new(&[1, 2], 50_000, &device).unwrap();
        let noise = sampler.noise(&Tensor::zeros([1], (&device, DType::I32)));
        let noise = noise.into_data().try_to_vec::<f32>().unwrap();
        let count = noise.len() as f64;
        let mean = noise.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let variance = noise.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count;
        // Euler's constant and π²/6; the tolerances are 4 standard errors.
        approx::assert_abs_diff_eq!(mean, 0.577_215_66, epsilon = 0.0163);
        approx::assert_abs_diff_eq!(variance, 1.644_934_07, epsilon = 0.05);
    }
}
