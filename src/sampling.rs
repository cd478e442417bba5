//! Samplers: one token per row, on the device.
//!
//! [`GumbelMax`] draws from the softmax of the logits by adding Gumbel noise and taking the
//! greatest (Gumbel 1954; Maddison, Tarlow, Minka, "A* Sampling", 2014). The noise of a token
//! depends only on the row's seed, the number of the step and the token id, so the same seed gives
//! the same tokens at any position in any batch, in an eager loop or in a replayed graph. It uses
//! integer operations and a table of quantiles, without a logarithm on the device. So equal logits
//! give equal tokens on every backend that rounds the logit divided by the temperature before it
//! adds the noise. The compiler of CUDA may fuse these two operations; tokens can then differ if two
//! sums are as close as the rounding.

mod laws;

use std::sync::{Arc, LazyLock};

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use crate::in_place::{InPlaceState, RowState};
use crate::tensor::ints;
use burn_dfa_tokens::{Error, Result};
pub use laws::check_laws;

/// Chooses the next token of every row.
///
/// # Laws
/// - a token is an id below the number of logits, with a logit above −∞: the output fits its
///   constraint only then;
/// - the token of a row depends only on the logits of the row, on its number and on its step;
/// - [`sample_row`](Self::sample_row) and the sampler of [`fused`](Self::fused) choose the token of
///   [`sample`](Self::sample);
/// - nothing is read from the device.
///
/// [`check_laws`] checks all but the last in a test.
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use burn_dfa::sampling::Sampler;
///
/// /// The token of the least logit that is not masked.
/// struct Least;
///
/// impl Sampler for Least {
///     fn sample(&self, logits: Tensor<2>, _step: &Tensor<1, Int>) -> Tensor<1, Int> {
///         let [batch, _] = logits.dims();
///         let masked = logits.clone().equal_elem(f32::NEG_INFINITY);
///         logits.mask_fill(masked, f32::INFINITY).argmin(1).reshape([batch]).cast(DType::I32)
///     }
/// }
///
/// let device = Device::flex();
/// let logits = Tensor::<2>::from_data([[2.0, f32::NEG_INFINITY, 1.0]], &device);
/// let token = Least.sample(logits, &Tensor::zeros([1], &device));
/// assert_eq!(token.into_data().try_to_vec::<i32>().unwrap(), [2]);
/// ```
pub trait Sampler {
    /// Samples one token per row.
    ///
    /// # Shapes
    /// - `logits`: `[batch, vocab_size]`, with at least one value above −∞ in each row
    /// - `step`: `[1]`, the number of tokens generated so far, or `[batch]` if rows began at
    ///   different times
    /// - returns `[batch]`, `i32`
    fn sample(&self, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int>;

    /// Samples the token of one row of a batch of `batch` rows, as [`sample`](Self::sample) would
    /// choose it in this row.
    ///
    /// A [`ContinuousBatch`](crate::generation::ContinuousBatch) chooses the first token of a
    /// request while the other rows wait. By default, `sample` gets these logits in all rows, and
    /// the token of `row` is taken. So a sampler may hold a value per row, such as a seed. A
    /// sampler that can choose for one row alone may do so at less cost.
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor};
    /// use burn_dfa::sampling::{GumbelMax, Sampler};
    ///
    /// let device = Device::flex();
    /// let sampler = GumbelMax::new(&[7, 8], 3, &device)?;
    /// let step = Tensor::<1, Int>::zeros([1], &device);
    /// let ids = |tokens: Tensor<1, Int>| tokens.into_data().try_to_vec::<i32>().unwrap();
    ///
    /// let both = Tensor::<2>::from_data([[0.0, 0.2, 0.5], [0.1, 0.3, 0.0]], &device);
    /// let second = both.clone().slice([1..2, 0..3]);
    /// let alone = sampler.sample_row(1, 2, second, &step);
    /// assert_eq!(ids(alone), ids(sampler.sample(both, &step))[1..]);
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Shapes
    /// - `logits`: `[1, vocab_size]`
    /// - `step`: `[1]`
    /// - returns `[1]`, `i32`
    fn sample_row(
        &self,
        row: usize,
        batch: usize,
        logits: Tensor<2>,
        step: &Tensor<1, Int>,
    ) -> Tensor<1, Int> {
        let [_, vocab_size] = logits.dims();
        self.sample(logits.expand([batch, vocab_size]), step).narrow(0, row, 1)
    }

    /// The sampler that a processor may apply in its own pass over the logits, if there is one.
    fn fused(&self) -> Option<FusedSampler<'_>> {
        None
    }
}

/// The samplers that a processor can fuse with its own pass.
///
/// ```
/// use burn_dfa::sampling::{Greedy, FusedSampler, Sampler};
///
/// assert!(matches!(Greedy.fused(), Some(FusedSampler::Greedy)));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FusedSampler<'a> {
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

    fn fused(&self) -> Option<FusedSampler<'_>> {
        Some(FusedSampler::Greedy)
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
    /// `[batch, 3]`: the two mixed halves of the seed, and the bits of the factor of a row, see
    /// [`Keys::factors`].
    keys: Tensor<2, Int>,
    /// `[batch, 2]`: the factors of the logits and of the noise; 1 and 0 for a greedy row.
    factors: Tensor<2>,
    /// `[1, vocab_size]`: a hash of every token id.
    tokens: Tensor<2, Int>,
    /// `[3 · LEVEL]`: quantiles of the Gumbel distribution, see [`QUANTILES`].
    quantiles: Tensor<1>,
    /// The same keys on the host.
    host: Arc<Keys>,
}

/// The parameters of the noise of a batch, on the host.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The two mixed halves of the seed of every row.
    halves: Vec<[u32; 2]>,
    /// The reciprocal of the temperature of every row: a product rounds the same on every device, a
    /// quotient does not. 0 for a greedy row.
    factors: Vec<f32>,
}

/// The noise of one row at one step, on the host.
pub(crate) struct Noise {
    key: u32,
    factor: f32,
    quantiles: &'static [f32],
}

impl Keys {
    fn new(seeds: &[u64], temperatures: &[Option<f32>]) -> Result<Self> {
        Ok(Self { halves: halves(seeds), factors: factors(temperatures)? })
    }

    /// `[batch, 3]`, see [`GumbelMax::keys`].
    fn keys(&self, device: &Device) -> Tensor<2, Int> {
        let rows = self.halves.iter().zip(&self.factors);
        let keys = rows.flat_map(|(&[low, high], factor)| [low, high, factor.to_bits()]);
        bits(keys.collect(), device).reshape([-1, 3])
    }

    /// `[batch, 2]`, see [`GumbelMax::factors`].
    fn factors(&self, device: &Device) -> Tensor<2> {
        let factors = self.factors.iter().flat_map(|&factor| match factor {
            0.0 => [1.0, 0.0],
            factor => [factor, 1.0],
        });
        let factors: Vec<f32> = factors.collect();
        let shape = [self.factors.len(), 2];
        Tensor::from_data(TensorData::new(factors, shape), (device, DType::F32))
    }
}

impl Noise {
    /// The noise at `step` of a row with these [keys](GumbelMax::keys); `None` if the row is
    /// greedy.
    pub(crate) fn new([low, high, factor]: [i32; 3], step: i32) -> Option<Self> {
        let factor = f32::from_bits(factor as u32);
        let step = step.wrapping_add(1).wrapping_mul(GOLDEN) as u32;
        let key = mix(step ^ low as u32) ^ high as u32;
        (factor != 0.0).then(|| Self { key, factor, quantiles: &QUANTILES })
    }

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
    /// One seed per row, for rows of `vocab_size` logits.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) without a seed, or if `vocab_size` is 0 or
    /// 2³¹ or more.
    pub fn new(seeds: &[u64], vocab_size: usize, device: &Device) -> Result<Self> {
        if seeds.is_empty() {
            return Err(Error::input("a batch needs at least one row"));
        }
        let Some(vocab_size @ 1..) = u32::try_from(vocab_size).ok().filter(|&w| w <= i32::MAX as u32) else {
            return Err(Error::input(format!("a row of {vocab_size} logits cannot be sampled")));
        };
        let host = Keys::new(seeds, &vec![Some(1.0); seeds.len()])?;
        let tokens = (0..vocab_size).map(hash_of_token).collect();
        let quantiles = TensorData::new(QUANTILES.clone(), [QUANTILES.len()]);
        Ok(Self {
            keys: host.keys(device),
            factors: host.factors(device),
            tokens: bits(tokens, device).reshape([1, -1]),
            quantiles: Tensor::from_data(quantiles, (device, DType::F32)),
            host: Arc::new(host),
        })
    }

    /// Multiplies the logits, as `f32`, by the reciprocal of a temperature from 0.01 to 100 before
    /// the noise is added.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) outside of this range.
    pub fn with_temperature(self, temperature: f32) -> Result<Self> {
        let rows = self.host.halves.len();
        self.with_temperatures(&vec![Some(temperature); rows])
    }

    /// As [`with_temperature`](Self::with_temperature), a temperature for each row; a row of `None`
    /// is greedy.
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor};
    /// use burn_dfa::sampling::{GumbelMax, Sampler};
    ///
    /// let device = Device::flex();
    /// let sampler = GumbelMax::new(&[7, 7], 3, &device)?.with_temperatures(&[Some(0.8), None])?;
    /// let logits = Tensor::<2>::from_data([[0.0, 0.4, 0.5], [0.0, 0.4, 0.5]], &device);
    /// let tokens = sampler.sample(logits, &Tensor::<1, Int>::zeros([1], &device));
    /// assert_eq!(tokens.into_data().try_to_vec::<i32>().unwrap()[1], 2);
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for a temperature out of range, or another
    /// number of rows.
    pub fn with_temperatures(mut self, temperatures: &[Option<f32>]) -> Result<Self> {
        let rows = self.host.halves.len();
        if temperatures.len() != rows {
            return Err(Error::input(format!("{} temperatures for {rows} rows", temperatures.len())));
        }
        let host = Keys { halves: self.host.halves.clone(), factors: factors(temperatures)? };
        let device = self.tokens.device();
        (self.keys, self.factors) = (host.keys(&device), host.factors(&device));
        self.host = Arc::new(host);
        Ok(self)
    }

    /// The number of rows with a seed.
    pub(crate) fn batch(&self) -> usize {
        self.host.halves.len()
    }

    /// The keys of the rows, `[batch, 3]`: the two mixed halves of the seed, and the bits of the
    /// factor of the logits, 0 for a greedy row.
    #[cfg(any(feature = "flex", feature = "cube", feature = "remote"))]
    pub(crate) fn keys(&self) -> Tensor<2, Int> {
        self.keys.clone()
    }

    /// The quantiles of the noise, `[3 · LEVEL]`.
    #[cfg(feature = "cube")]
    pub(crate) fn quantiles(&self) -> Tensor<1> {
        self.quantiles.clone()
    }

    /// Overwrites the seeds and temperatures, one per row, in place.
    pub(crate) fn reseed(&mut self, seeds: &[u64], temperatures: &[Option<f32>]) -> Result<()> {
        let (host, device) = (Keys::new(seeds, temperatures)?, self.tokens.device());
        self.keys.assign(host.keys(&device));
        self.factors.assign(host.factors(&device));
        self.host = Arc::new(host);
        Ok(())
    }

    /// Overwrites the seed and the temperature of one row with the values of a [sampler of one
    /// row](Self::one), in place.
    pub(crate) fn assign_row(&mut self, row: usize, new: Self) {
        self.keys.assign_row(row, new.keys);
        self.factors.assign_row(row, new.factors);
        let host = Arc::make_mut(&mut self.host);
        (host.halves[row], host.factors[row]) = (new.host.halves[0], new.host.factors[0]);
    }

    /// A sampler of one row.
    pub(crate) fn one(&self, seed: u64, temperature: Option<f32>) -> Result<Self> {
        let (host, device) = (Keys::new(&[seed], &[temperature])?, self.tokens.device());
        let (keys, factors) = (host.keys(&device), host.factors(&device));
        Ok(Self { keys, factors, host: Arc::new(host), ..self.clone() })
    }

    /// The noise of every token, `[batch, vocab_size]`.
    fn noise(&self, step: &Tensor<1, Int>) -> Tensor<2> {
        let [batch, _] = self.keys.dims();
        let [_, vocab_size] = self.tokens.dims();
        let step = (step.clone().cast(DType::I32) + 1) * GOLDEN;
        let step = step.reshape([-1, 1]).expand([batch, 1]);
        let half = |half: usize| self.keys.clone().slice([0..batch, half..half + 1]);
        let key = mix_on_device(step.bitwise_xor(half(0))).bitwise_xor(half(1));
        let hash =
            self.tokens.clone().expand([batch, vocab_size]).bitwise_xor(key.expand([batch, vocab_size]));
        let hash = mix_on_device(hash);
        let high = shift_right(hash.clone(), 16);
        let middle = shift_right(hash.clone(), 8).bitwise_and_scalar(LEVEL - 1);
        let low = hash.clone().bitwise_and_scalar(LEVEL - 1);
        let index = high
            .clone()
            .mask_where(shift_right(hash, 24).equal_elem(0), middle + LEVEL)
            .mask_where(high.equal_elem(0), low + 2 * LEVEL);
        self.quantiles.clone().select(0, index.reshape([-1])).reshape([batch, vocab_size])
    }
}

impl Sampler for GumbelMax {
    fn sample(&self, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int> {
        let rows = self.factors.dims()[0];
        let factor = |at: usize| self.factors.clone().slice([0..rows, at..at + 1]);
        let noise = self.noise(step) * factor(1);
        Greedy.sample(logits.cast(DType::F32) * factor(0) + noise, step)
    }

    fn fused(&self) -> Option<FusedSampler<'_>> {
        Some(FusedSampler::GumbelMax(self))
    }
}

/// The two mixed halves of every seed.
fn halves(seeds: &[u64]) -> Vec<[u32; 2]> {
    let mixed = seeds.iter().map(|&seed| split_mix(seed));
    mixed.map(|seed| [seed as u32, (seed >> 32) as u32]).collect()
}

/// See [`Keys::factors`].
fn factors(temperatures: &[Option<f32>]) -> Result<Vec<f32>> {
    temperatures.iter().map(|temperature| temperature.map_or(Ok(0.0), temperature_factor)).collect()
}

/// The factor of the logits at a temperature.
pub(crate) fn temperature_factor(temperature: f32) -> Result<f32> {
    if !(0.01..=100.0).contains(&temperature) {
        return Err(Error::input(format!(
            "temperature {temperature}: it must be from 0.01 to 100; for 0 sample greedily"
        )));
    }
    Ok(temperature.recip())
}

/// Quantiles of the Gumbel distribution in three levels of 2¹⁶ entries. The index is the upper half
/// of 32 random bits `h`; if the upper 8 bits are 0, the middle 16 bits; if the upper 16 bits are
/// 0, the lower half. So the upper tail, which decides among many tokens, is resolved to 2⁻³².
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

/// The offset keeps token 0 from being the fixed point of the hash.
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
