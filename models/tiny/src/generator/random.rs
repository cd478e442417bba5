//! A small counter-based source of random numbers: the same seed and index give the same example on
//! every machine, and example `n` can be made without the earlier ones.

use burn_dfa_common::random::Random as SplitMix;

/// SplitMix64, started at a mix of a seed and a counter.
///
/// ```
/// use burn_dfa_tiny::generator::Random;
///
/// let die = Random::new(1, 0).between(1, 6);
/// assert!((1..=6).contains(&die));
/// assert_eq!(Random::new(1, 0).between(1, 6), die);
/// ```
#[derive(Debug, Clone)]
pub struct Random(SplitMix);

impl Random {
    /// The stream of numbers for `index` and `seed`.
    pub fn new(seed: u64, index: u64) -> Self {
        let key = SplitMix(seed ^ 0x6A09_E667_F3BC_C908).next_u64();
        let mut stream = SplitMix(key ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        stream.next_u64();
        Self(stream)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`; `bound` must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (((self.next_u64() >> 32) * bound as u64) >> 32) as usize
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`.
    pub fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }
}

/// FNV-1a over the bytes of `text`, mixed once more so that the low bits are usable as buckets.
pub fn hash(text: &str) -> u64 {
    let mut value = 0xCBF2_9CE4_8422_2325_u64;
    for byte in text.bytes() {
        value = (value ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    SplitMix(value).next_u64()
}
