//! Probabilities as integers.
//!
//! A logit `x` weighs 2⁴² · exp(x − greatest). The rounding is reproducible bit for bit on every
//! backend: one subtraction and one product in f32, then a polynomial in fixed point.
//!
//! # Error
//! A weight is within 3.6 · 10⁻⁶ of the exact one, relatively: at most 42 octaves below the
//! greatest, times the roundings in f32 (2⁻²³ · ln 2 together), and the polynomial's 10⁻⁷. Logits
//! further below weigh nothing; together with the truncation, at most 2⁻²⁴ of the row's mass is
//! lost at 2¹⁸ logits. So the mass of a set of tokens is within 2⁻¹⁸ of its probability.

/// Bits of a weight.
pub(super) const BITS: u32 = 42;
/// Fraction bits of a distance in octaves.
pub(super) const OCTAVE_BITS: u32 = 24;
/// Units of 2⁻²⁴ octaves in a difference of 1 between two logits.
pub(super) const OCTAVES: f32 = std::f32::consts::LOG2_E * (1 << OCTAVE_BITS) as f32;
/// Logits at this difference (42 octaves) or further weigh nothing.
pub(super) const FAR: f32 = BITS as f32 * std::f32::consts::LN_2;
/// 2³¹ · 2⁻ᶠ for 0 ≤ f < 1: coefficients of (−f)ⁱ, interpolated at the Chebyshev points; in units
/// of 2⁻³¹.
pub(super) const POLYNOMIAL: [u32; 6] =
    [2_147_483_527, 1_488_513_547, 515_780_381, 118_751_808, 19_776_564, 2_033_403];

/// A fraction below 1 in units of 2⁻³².
pub(super) fn fraction(p: f32) -> u32 {
    (p * 32f32.exp2()) as u32
}

/// The distance below the greatest logit, in units of 2⁻²⁴ octaves; `None` from [`FAR`] on.
pub(super) fn distance(below: f32) -> Option<u32> {
    (below < FAR).then_some((below * OCTAVES) as u32)
}

/// The weight at a distance.
pub(super) fn weight(distance: u32) -> u64 {
    let fraction = u64::from(distance << (32 - OCTAVE_BITS));
    let [rest @ .., last] = POLYNOMIAL;
    let mantissa = rest.iter().rfold(last, |sum, &c| c - ((u64::from(sum) * fraction) >> 32) as u32);
    (u64::from(mantissa) << (BITS - 31)) >> (distance >> OCTAVE_BITS)
}

/// The least mass that reaches the fraction `p` of `total`: `p · total`, from products of 32 bits.
pub(super) fn target(total: u64, p: u32) -> u64 {
    const LOW: u32 = 28;
    let (high, low) = (total >> LOW, total & ((1 << LOW) - 1));
    let high = high * u64::from(p);
    let low = ((high & 0xffff_ffff) >> (32 - LOW)) + ((low * u64::from(p)) >> 32);
    (((high >> 32) << LOW) + low).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_exponentials() {
        let mut last = u64::MAX;
        for step in 0..100_000 {
            let below = step as f32 * (FAR / 100_000.0);
            let weight = weight(distance(below).unwrap());
            assert!(weight <= last && weight < 1 << BITS, "monotonic");
            last = weight;
            let exact = (-f64::from(below)).exp() * 42f64.exp2();
            assert!((weight as f64 - exact).abs() <= exact * 3.6e-6 + 1.0, "{below}: {weight}, {exact}");
        }
        assert_eq!(distance(FAR), None);
        assert_eq!(distance(f32::INFINITY), None);
        assert_eq!(distance(f32::NAN), None);
    }

    #[test]
    fn a_target_is_the_fraction_of_the_total() {
        for total in [1, 5, (1 << 28) - 1, 1 << 42, 123_456_789_012_345, (1 << 60) - 1] {
            for p in [0, 1, 1 << 31, 0x1234_5678, u32::MAX] {
                let exact = ((u128::from(total) * u128::from(p)) >> 32) as u64;
                let target = target(total, p);
                assert!(target.abs_diff(exact.max(1)) <= 1 && target <= total, "{total}, {p}");
            }
        }
    }
}
