//! The search as a kernel: one cube per row, integer sums in shared memory.
//!
//! Logits become keys, unsigned integers of the same order. The kernel makes seven passes over the
//! row. The first finds the greatest key. The second makes a histogram of the distances from it, in
//! bins of a quarter of an octave, which spreads logits evenly. Four passes make histograms over
//! the bytes of the keys in the bin in which the sum reaches its target. The last pass masks.
//! Integer sums do not depend on the order or the number of the units.
//!
//! A sum of weights is split into three sums of 14 bits of each weight; as a pair,
//! `high · 2²⁸ + low`.

use cubecl::prelude::*;

use super::weight::{BITS, FAR, OCTAVE_BITS, OCTAVES, POLYNOMIAL};

/// Bins of a histogram.
const BINS: usize = 256;
/// Bits of a weight per partial sum: a sum of 2¹⁸ limbs fits 32 bits.
const LIMB: u32 = 14;
const LIMB_MASK: u32 = (1 << LIMB) - 1;
const LOW_BITS: u32 = 2 * LIMB;
const LOW_MASK: u32 = (1 << LOW_BITS) - 1;
/// The key of +∞ and NaN.
const INFINITE: u32 = 0xff80_0000;
/// No distance.
const NONE: u32 = u32::MAX;

/// Masks logits below the least: the `wanted`-th greatest logit or, with `by_mass`, the greatest
/// logit such that the weights at or above it reach the fraction `wanted` of the row's total.
/// `wanted` is one number, or one for each row. One cube for each row from `first_row` on.
#[cube(launch, address_type = "dynamic")]
pub(super) fn keep<F: Float>(
    logits: &Tensor<F>,
    kept: &mut Tensor<F>,
    wanted: &Tensor<f32>,
    negative_infinity: InputScalar,
    first_row: u32,
    #[comptime] by_mass: bool,
    #[define(F)] _dtype: ElemType,
) {
    let vocab_size = logits.shape(1);
    let index = (first_row + CUBE_POS_X) as usize;
    let (row, column) = (index * logits.stride(0), logits.stride(1));
    let units = CUBE_DIM as usize;
    let number = wanted[min(index, wanted.shape(0) - 1) * wanted.stride(0)];
    // To keep the whole row, the least is below every key.
    let mut everything = number >= f32::cast_from(vocab_size as u32);
    let mut wanted = u32::cast_from(number);
    if comptime!(by_mass) {
        everything = number >= 1.0f32;
        // 2³², as `weight::fraction`.
        wanted = u32::cast_from(number * 4_294_967_296.0f32);
    }

    let shared_top = Shared::<[Atomic<u32>]>::new_slice(1usize);
    if UNIT_POS == 0 {
        shared_top[0].store(0u32);
    }
    sync_cube();
    let mut top = 0u32;
    let mut v = UNIT_POS as usize;
    while v < vocab_size {
        top = max(top, key(f32::cast_from(logits[row + v * column])));
        v += units;
    }
    shared_top[0].fetch_max(top);
    sync_cube();
    let top = shared_top[0].load();

    let sums = Shared::<[Atomic<u32>]>::new_slice(3 * BINS);
    // The bin in which the sum reaches its target, and the rest of the target at its start.
    let mut found = Shared::<[u32]>::new_slice(3usize);
    let mut near = 0u32;
    let mut least = 0u32;
    let mut digit = 0u32;
    while digit < 5 {
        let mut bin = UNIT_POS as usize;
        while bin < 3 * BINS {
            sums[bin].store(0u32);
            bin += units;
        }
        sync_cube();
        // The shift of the next byte of the least, and the mask of its known bytes.
        let shift = 32 - 8 * max(digit, 1u32);
        let known = (!0xffu32) << shift;
        let mut v = UNIT_POS as usize;
        while v < vocab_size {
            let key = key(f32::cast_from(logits[row + v * column]));
            let distance = distance(key, top);
            let mut bin = near_bin(distance);
            let mut counts = digit == 0;
            if digit > 0 {
                counts = bin == near && (digit == 1 || (key & known) == (least & known));
                bin = 0xff - ((key >> shift) & 0xff);
            }
            if counts {
                if comptime!(by_mass) {
                    if distance != NONE {
                        add_weight(&sums, bin, distance);
                    }
                } else {
                    sums[bin as usize].fetch_add(1u32);
                }
            }
            v += units;
        }
        sync_cube();
        if UNIT_POS == 0 {
            let mut high = found[1];
            let mut low = found[2];
            if digit == 0 {
                high = 0u32;
                low = wanted;
                if comptime!(by_mass) {
                    let mut total_high = 0u32;
                    let mut total_low = 0u32;
                    for bin in 0..BINS {
                        let (bin_high, bin_low) = mass(&sums, bin, by_mass);
                        total_low += bin_low;
                        total_high += bin_high + (total_low >> LOW_BITS);
                        total_low &= LOW_MASK;
                    }
                    // As `weight::target`.
                    low = ((total_high * wanted) >> (32 - LOW_BITS)) + total_low.mul_hi(wanted);
                    high = total_high.mul_hi(wanted) + (low >> LOW_BITS);
                    low &= LOW_MASK;
                    if high == 0 && low == 0 {
                        low = 1u32;
                    }
                }
            }
            let mut bin = 0usize;
            let mut missing = true;
            while missing && bin < BINS {
                let (bin_high, bin_low) = mass(&sums, bin, by_mass);
                if bin_high > high || (bin_high == high && bin_low >= low) {
                    missing = false;
                } else {
                    high -= bin_high;
                    if low < bin_low {
                        high -= 1u32;
                        low += 1u32 << LOW_BITS;
                    }
                    low -= bin_low;
                    bin += 1;
                }
            }
            found[0] = bin as u32;
            found[1] = high;
            found[2] = low;
        }
        sync_cube();
        if digit == 0 {
            near = found[0];
        } else {
            least |= (0xff - found[0]) << shift;
        }
        sync_cube();
        digit += 1;
    }

    least = select(everything, 0u32, least);
    let (kept_row, kept_column) = (index * kept.stride(0), kept.stride(1));
    let masked = negative_infinity.get::<F>();
    let mut v = UNIT_POS as usize;
    while v < vocab_size {
        let logit = logits[row + v * column];
        kept[kept_row + v * kept_column] = select(key(f32::cast_from(logit)) < least, masked, logit);
        v += units;
    }
}

/// An unsigned integer of the same order; both zeros are equal, NaN equals +∞.
#[cube]
fn key(logit: f32) -> u32 {
    let bits = u32::reinterpret(logit);
    let size = bits & 0x7fff_ffff;
    let key = select(bits != size && size != 0, !bits, size | 0x8000_0000);
    select(size > 0x7f80_0000, INFINITE, key)
}

/// The logit of a key.
#[cube]
fn logit(key: u32) -> f32 {
    f32::reinterpret(select(key >= 0x8000_0000, key & 0x7fff_ffff, !key))
}

/// As `weight::distance`, [`NONE`] for none.
#[cube]
fn distance(key: u32, top: u32) -> u32 {
    let mut distance = 0u32;
    if key != top {
        let below = logit(top) - logit(key);
        distance = NONE;
        if below < FAR {
            distance = u32::cast_from(below * OCTAVES);
        }
    }
    distance
}

/// Bins of a quarter of an octave; the last bin takes all greater distances.
#[cube]
fn near_bin(distance: u32) -> u32 {
    min(distance >> (OCTAVE_BITS - 2), 0xff)
}

/// Adds `weight::weight` to the sums of a bin.
#[cube]
fn add_weight(sums: &Shared<[Atomic<u32>]>, bin: u32, distance: u32) {
    let fraction = distance << (32 - OCTAVE_BITS);
    let mut mantissa = POLYNOMIAL[5].runtime();
    mantissa = POLYNOMIAL[4] - mantissa.mul_hi(fraction);
    mantissa = POLYNOMIAL[3] - mantissa.mul_hi(fraction);
    mantissa = POLYNOMIAL[2] - mantissa.mul_hi(fraction);
    mantissa = POLYNOMIAL[1] - mantissa.mul_hi(fraction);
    mantissa = POLYNOMIAL[0] - mantissa.mul_hi(fraction);
    // mantissa · 2ᵇⁱᵗˢ⁻³¹⁻ᵒᶜᵗᵃᵛᵉˢ, 14 bits at a time.
    let octaves = distance >> OCTAVE_BITS;
    let extra = BITS - 31;
    let mut low = mantissa << (extra - min(octaves, extra));
    if octaves > extra {
        low = mantissa >> (octaves - extra);
    }
    let bin = 3 * bin as usize;
    sums[bin].fetch_add(low & LIMB_MASK);
    if octaves <= LOW_BITS {
        sums[bin + 1].fetch_add((mantissa >> (octaves + LIMB - extra)) & LIMB_MASK);
    }
    if octaves <= LIMB {
        sums[bin + 2].fetch_add(mantissa >> (octaves + LOW_BITS - extra));
    }
}

/// The sum of a bin, as a pair.
#[cube]
fn mass(sums: &Shared<[Atomic<u32>]>, bin: usize, #[comptime] by_mass: bool) -> (u32, u32) {
    if comptime!(by_mass) {
        let lowest = sums[3 * bin].load();
        let middle = sums[3 * bin + 1].load() + (lowest >> LIMB);
        let high = sums[3 * bin + 2].load() + (middle >> LIMB);
        (high, ((middle & LIMB_MASK) << LIMB) | (lowest & LIMB_MASK))
    } else {
        (0u32, sums[bin].load())
    }
}
