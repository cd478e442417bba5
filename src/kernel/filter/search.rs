//! The search as a kernel: one cube per row, integer sums in shared memory.
//!
//! Logits become keys, unsigned integers of the same order. The kernel makes up to seven passes
//! over the row. The first finds the greatest key. The second makes a histogram of the distances
//! from it, in bins of a quarter of an octave, which spreads logits evenly. Four passes make
//! histograms over the bytes of the keys in the bin in which the sum reaches its target; 16-bit
//! floats take two or three, because the last bytes of their keys do not differ. The last pass
//! masks. Integer sums do not depend on the order or the number of the units.
//!
//! No histogram has logits of −∞. A constraint leaves many, and additions to one bin are made one
//! after the other.
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
/// The key of −∞.
const MASKED: u32 = 0x007f_ffff;
/// No distance.
const NONE: u32 = u32::MAX;
/// Neighboring bins with a sum of their own, which shortens the search.
const GROUP: usize = 16;

/// Masks logits below the least: the `wanted`-th greatest logit or, with `by_mass`, the greatest
/// logit such that the weights at or above it reach the fraction `wanted` of the row's total.
/// `wanted` is one number, or one for each row. One cube for each row from `first_row` on. `digits`
/// is the number of histograms.
#[cube(launch, create_dummy_kernel, address_type = "dynamic")]
pub(super) fn keep<F: Float, N: Size>(
    logits: &Tensor<Vector<F, N>>,
    kept: &mut Tensor<Vector<F, N>>,
    wanted: &Tensor<f32>,
    negative_infinity: InputScalar,
    first_row: u32,
    #[comptime] by_mass: bool,
    #[comptime] digits: u32,
    #[define(F)] _dtype: ElemType,
) {
    let vocab_size = logits.shape(1);
    let index = (first_row + CUBE_POS_X) as usize;
    let size = logits.vector_size().comptime();
    let vectors = vocab_size / size;
    // The logits of a vector are neighbors, so then the stride is 1.
    let (row, column) = (index * logits.stride(0) / size, logits.stride(1));
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
    while v < vectors {
        let values = logits[row + v * column];
        #[unroll]
        for lane in 0..N::value() {
            top = max(top, key(f32::cast_from(values.extract(lane))));
        }
        v += units;
    }
    shared_top[0].fetch_max(top);
    sync_cube();
    let top = shared_top[0].load();

    let sums = Shared::<[Atomic<u32>]>::new_slice(comptime!(if by_mass { 3 * BINS } else { BINS }));
    let mut groups = Shared::<[u32]>::new_slice(2 * BINS / GROUP);
    // The bin in which the sum reaches its target, and the rest of the target at its start.
    let mut found = Shared::<[u32]>::new_slice(3usize);
    let mut near = 0u32;
    let mut least = 0u32;
    let mut digit = 0u32;
    while digit < digits {
        let mut bin = UNIT_POS as usize;
        while bin < comptime!(if by_mass { 3 * BINS } else { BINS }) {
            sums[bin].store(0u32);
            bin += units;
        }
        sync_cube();
        // The shift of the next byte of the least, and the mask of its known bytes.
        let shift = 32 - 8 * max(digit, 1u32);
        let known = (!0xffu32) << shift;
        let mut v = UNIT_POS as usize;
        while v < vectors {
            let values = logits[row + v * column];
            #[unroll]
            for lane in 0..N::value() {
                let key = key(f32::cast_from(values.extract(lane)));
                let distance = distance(key, top);
                let mut bin = near_bin(distance);
                let mut counts = digit == 0;
                if digit > 0 {
                    counts = bin == near && (digit == 1 || (key & known) == (least & known));
                    bin = 0xff - ((key >> shift) & 0xff);
                }
                if counts && key != MASKED {
                    if comptime!(by_mass) {
                        if distance != NONE {
                            add_weight(&sums, bin, distance);
                        }
                    } else {
                        sums[bin as usize].fetch_add(1u32);
                    }
                }
            }
            v += units;
        }
        sync_cube();
        let mut group = UNIT_POS as usize;
        while group < BINS / GROUP {
            let mut high = 0u32;
            let mut low = 0u32;
            for bin in 0..GROUP {
                let sum = plus(high, low, &mass(&sums, group * GROUP + bin, by_mass));
                high = sum.high;
                low = sum.low;
            }
            groups[2 * group] = high;
            groups[2 * group + 1] = low;
            group += units;
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
                    for group in 0..BINS / GROUP {
                        let sum = plus(total_high, total_low, &mass_of_group(&groups, group));
                        total_high = sum.high;
                        total_low = sum.low;
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
            // The last bin takes what the others do not reach: if fewer logits than wanted are
            // greater than −∞, the least is 0.
            let mut bin = 0usize;
            let mut missing = true;
            while missing && bin < BINS - GROUP {
                let sum = mass_of_group(&groups, bin / GROUP);
                missing = is_less(&sum, high, low);
                if missing {
                    let rest = minus(high, low, &sum);
                    high = rest.high;
                    low = rest.low;
                    bin += GROUP;
                }
            }
            missing = true;
            while missing && bin < BINS - 1 {
                let sum = mass(&sums, bin, by_mass);
                missing = is_less(&sum, high, low);
                if missing {
                    let rest = minus(high, low, &sum);
                    high = rest.high;
                    low = rest.low;
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
        digit += 1;
    }

    least = select(everything, 0u32, least);
    let (kept_row, kept_column) = (index * kept.stride(0) / size, kept.stride(1));
    let masked = negative_infinity.get::<F>();
    let mut v = UNIT_POS as usize;
    while v < vectors {
        let values = logits[row + v * column];
        let mut own = Vector::<F, N>::new(masked);
        #[unroll]
        for lane in 0..N::value() {
            let logit = values.extract(lane);
            own.insert(lane, select(key(f32::cast_from(logit)) < least, masked, logit));
        }
        kept[kept_row + v * kept_column] = own;
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

/// A sum of weights, or a count in `low`.
#[derive(CubeType, Clone, Copy)]
struct Mass {
    high: u32,
    low: u32,
}

/// The sum of a bin.
#[cube]
fn mass(sums: &Shared<[Atomic<u32>]>, bin: usize, #[comptime] by_mass: bool) -> Mass {
    if comptime!(by_mass) {
        let lowest = sums[3 * bin].load();
        let middle = sums[3 * bin + 1].load() + (lowest >> LIMB);
        let high = sums[3 * bin + 2].load() + (middle >> LIMB);
        Mass { high, low: ((middle & LIMB_MASK) << LIMB) | (lowest & LIMB_MASK) }
    } else {
        Mass { high: 0u32.runtime(), low: sums[bin].load() }
    }
}

/// The sum of a group of bins.
#[cube]
fn mass_of_group(groups: &Shared<[u32]>, group: usize) -> Mass {
    Mass { high: groups[2 * group], low: groups[2 * group + 1] }
}

#[cube]
fn plus(high: u32, low: u32, other: &Mass) -> Mass {
    let low = low + other.low;
    Mass { high: high + other.high + (low >> LOW_BITS), low: low & LOW_MASK }
}

/// The difference from a sum that is no greater.
#[cube]
fn minus(high: u32, low: u32, other: &Mass) -> Mass {
    let borrowed = u32::cast_from(low < other.low);
    Mass { high: high - other.high - borrowed, low: low + (borrowed << LOW_BITS) - other.low }
}

#[cube]
fn is_less(sum: &Mass, high: u32, low: u32) -> bool {
    sum.high < high || (sum.high == high && sum.low < low)
}
