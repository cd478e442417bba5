//! On the CPU: one pass over a row for a bound or for sums, then a selection among the remaining
//! logits.
//!
//! Top-k takes the maxima of small groups: the `k`-th greatest maximum bounds the least from below,
//! and few logits are above the bound. Top-p adds up the weights by distance from the greatest, in
//! bins of an eighth of an octave, and searches the bin in which the sum reaches its target. The
//! selection among the remaining logits takes linear time.

use burn::backend::{Flex, flex::FlexTensor};
use burn::tensor::{DType, bf16, f16};

use super::FilterOps;
use super::weight::{BITS, OCTAVE_BITS, distance, fraction, target, weight};

impl FilterOps for Flex {
    fn filter_top_k(logits: FlexTensor, k: FlexTensor) -> FlexTensor {
        let vocab_size = logits.layout().shape()[1];
        keep(logits, k, |k| k as usize >= vocab_size, |row, k| kth_greatest(row, k as usize))
    }

    fn filter_top_p(logits: FlexTensor, p: FlexTensor) -> FlexTensor {
        keep(logits, p, |p| p >= 1.0, |row, p| least_of_mass(row, fraction(p)))
    }
}

/// Masks the logits of each row below the row's `least`, a function of the row without NaN and of
/// the row's number in `wanted`. Rows with `everything` wanted do not change.
fn keep(
    logits: FlexTensor,
    wanted: FlexTensor,
    everything: impl Fn(f32) -> bool,
    least: impl Fn(&[f32], f32) -> f32,
) -> FlexTensor {
    let mut logits = if logits.is_contiguous() { logits } else { logits.to_contiguous() };
    let vocab_size = logits.layout().shape()[1];
    let (start, end) = logits.layout().contiguous_offsets().expect("a contiguous tensor");
    let wanted = wanted.to_contiguous();
    let (from, to) = wanted.layout().contiguous_offsets().expect("a contiguous tensor");
    let wanted = &wanted.storage::<f32>()[from..to];
    let mut ranks: Vec<f32> = Vec::with_capacity(vocab_size);
    macro_rules! rows {
        ($element:ty) => {
            let rows = logits.storage_mut::<$element>()[start..end].chunks_exact_mut(vocab_size);
            for (row, &wanted) in rows.zip(wanted.iter().cycle()) {
                if everything(wanted) {
                    continue;
                }
                ranks.clear();
                ranks.extend(row.iter().map(|&x| rank(f32::from(x))));
                let least = least(&ranks, wanted);
                for (x, &rank) in row.iter_mut().zip(&ranks) {
                    *x = if rank < least { <$element>::NEG_INFINITY } else { *x };
                }
            }
        };
    }
    match logits.dtype() {
        DType::F32 => {
            rows!(f32);
        }
        DType::F16 => {
            rows!(f16);
        }
        DType::BF16 => {
            rows!(bf16);
        }
        other => unreachable!("logits of {other:?} are not fused"),
    }
    logits
}

/// NaN as +∞.
fn rank(x: f32) -> f32 {
    if x.is_nan() { f32::INFINITY } else { x }
}

/// Independent maxima of [`maxima`].
const LANES: usize = 16;

/// The greatest value of every lane of every chunk of `LANES · height` values.
fn maxima(row: &[f32], height: usize) -> Vec<f32> {
    let mut all = Vec::with_capacity((row.len() / (LANES * height) + 1) * LANES);
    for piece in row.chunks(LANES * height) {
        let mut greatest = [f32::NEG_INFINITY; LANES];
        for values in piece.chunks(LANES) {
            for (greatest, &x) in greatest.iter_mut().zip(values) {
                *greatest = if x > *greatest { x } else { *greatest };
            }
        }
        all.extend(greatest);
    }
    all
}

/// The `n`-th value, from 0, in descending order.
fn select(values: &mut [f32], n: usize) -> f32 {
    *values.select_nth_unstable_by(n, |a, b| b.total_cmp(a)).1
}

fn greatest(values: &[f32]) -> f32 {
    values.iter().fold(f32::NEG_INFINITY, |greatest, &x| if x > greatest { x } else { greatest })
}

/// The `k`-th greatest of the row.
fn kth_greatest(row: &[f32], k: usize) -> f32 {
    // The fewest groups that still give a good bound.
    let height = (row.len() / (LANES * 2 * k)).min(64);
    if height < 2 {
        return select(&mut row.to_vec(), k - 1);
    }
    let mut maxima = maxima(row, height);
    let pieces = maxima.chunks(LANES).map(greatest).collect::<Vec<_>>();
    let bound = select(&mut maxima, k - 1);
    let mut above = Vec::with_capacity(2 * k);
    for (piece, _) in row.chunks(LANES * height).zip(pieces).filter(|&(_, greatest)| greatest >= bound) {
        above.extend(piece.iter().filter(|&&x| x >= bound && x > f32::NEG_INFINITY));
    }
    if above.len() < k { f32::NEG_INFINITY } else { select(&mut above, k - 1) }
}

/// The width of a bin: an eighth of an octave.
const BIN_BITS: u32 = OCTAVE_BITS - 3;
const BINS: usize = (BITS as usize) << (OCTAVE_BITS - BIN_BITS);

/// The greatest value such that the weights of all values at or above it reach the fraction `p` of
/// the total.
fn least_of_mass(row: &[f32], p: u32) -> f32 {
    let greatest = greatest(&maxima(row, 64));
    if greatest.is_infinite() {
        return greatest;
    }
    let bin = |distance: u32| (distance >> BIN_BITS) as usize;
    let mut bins = [0; BINS + 1];
    for distance in row.iter().filter_map(|x| distance(greatest - x)) {
        bins[bin(distance)] += weight(distance);
    }
    let mut missing = target(bins.iter().sum(), p);
    let reached = bins.iter().position(|&mass| {
        let reached = mass >= missing;
        missing -= if reached { 0 } else { mass };
        reached
    });
    let reached = reached.expect("the target is at most the total");
    let is_in = |x: &&f32| distance(greatest - **x).is_some_and(|distance| bin(distance) == reached);
    let mut rest: Vec<f32> = row.iter().filter(is_in).copied().collect();
    let mut rest = &mut rest[..];
    while rest.len() > 1 {
        let half = rest.len() / 2;
        select(rest, half);
        let (upper, lower) = rest.split_at_mut(half);
        let mass: u64 = upper.iter().filter_map(|x| distance(greatest - x)).map(weight).sum();
        rest = if mass >= missing {
            upper
        } else {
            missing -= mass;
            lower
        };
    }
    rest[0]
}
