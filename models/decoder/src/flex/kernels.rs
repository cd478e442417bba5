//! Loops over slices. They compute in `f32`, for every stored float type.
//!
//! The compiler vectorizes the loops, since sums are computed in [`LANES`] independent lanes. Their
//! order depends neither on the vectors of the machine nor on the number of rows. Work of at least
//! [`SHARED`] multiplications is divided among threads, and so are passes over at least twice
//! [`LONG`] elements.

use std::ops::Range;

use burn::backend::flex::FlexTensor;
use burn::tensor::Element;
use half::{bf16, f16};
use rayon::prelude::*;

use crate::config::Activation;

/// Independent sums of a dot product.
const LANES: usize = 32;
/// Work of at least this many multiplications is divided among threads.
const SHARED: usize = 1 << 16;
/// A pass is divided among threads into shares of about this many elements, if it has at least two
/// shares.
const LONG: usize = 1 << 14;

/// A float type of stored tensors.
pub(crate) trait Number: Element {
    fn widen(self) -> f32;
    fn narrow(value: f32) -> Self;
    /// The elements of a contiguous tensor.
    fn read(tensor: &FlexTensor) -> &[Self];
    /// Like [`read`](Self::read), for writing in place. The tensor fills its buffer, which is copied
    /// if other tensors share it.
    fn write(tensor: &mut FlexTensor) -> &mut [Self];
}

macro_rules! stored {
    () => {
        fn read(tensor: &FlexTensor) -> &[Self] {
            tensor.as_slice().expect("a contiguous tensor of this type")
        }

        fn write(tensor: &mut FlexTensor) -> &mut [Self] {
            tensor.storage_mut()
        }
    };
}

impl Number for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    fn narrow(value: f32) -> Self {
        value
    }

    stored!();
}

impl Number for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    fn narrow(value: f32) -> Self {
        bf16::from_f32(value)
    }

    stored!();
}

impl Number for f16 {
    /// Like `f16::to_f32`, without branches or calls, which would prevent vectorization.
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        // The exponents of the two types differ by 112.
        let magnitude = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((112 + 127) << 23);
        let special = if magnitude >= 65536.0 { 0xff << 23 } else { 0 };
        f32::from_bits(magnitude.to_bits() | special | (bits & 0x8000) << 16)
    }

    fn narrow(value: f32) -> Self {
        f16::from_f32(value)
    }

    stored!();
}

/// Runs loops with wider vectors than the baseline of the architecture, if this machine has them.
#[inline(always)]
fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = pulp::x86::V4::try_new() {
            return simd.vectorize(work);
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return simd.vectorize(work);
        }
    }
    work()
}

/// The sum of `x[i] * row[i]`.
#[inline(always)]
fn dot<T: Number>(x: &[f32], row: &[T]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (x, x_rest) = x.as_chunks::<LANES>();
    let (row, row_rest) = row.as_chunks::<LANES>();
    for (x, row) in x.iter().zip(row) {
        for ((sum, x), value) in sums.iter_mut().zip(x).zip(row) {
            *sum += x * value.widen();
        }
    }
    total(sums) + x_rest.iter().zip(row_rest).map(|(x, value)| x * value.widen()).sum::<f32>()
}

/// Like [`dot`], for four `x` at once, so that the row is fetched and widened once.
#[inline(always)]
fn four_dots<T: Number>(x: [&[f32]; 4], row: &[T]) -> [f32; 4] {
    let [mut sums_a, mut sums_b, mut sums_c, mut sums_d] = [[0.0f32; LANES]; 4];
    let (row, row_rest) = row.as_chunks::<LANES>();
    let [(a, a_rest), (b, b_rest), (c, c_rest), (d, d_rest)] = x.map(|x| x.as_chunks::<LANES>());
    for ((((row, a), b), c), d) in row.iter().zip(a).zip(b).zip(c).zip(d) {
        for lane in 0..LANES {
            let value = row[lane].widen();
            sums_a[lane] += a[lane] * value;
            sums_b[lane] += b[lane] * value;
            sums_c[lane] += c[lane] * value;
            sums_d[lane] += d[lane] * value;
        }
    }
    let rest = |x: &[f32]| x.iter().zip(row_rest).map(|(x, value)| x * value.widen()).sum::<f32>();
    [
        total(sums_a) + rest(a_rest),
        total(sums_b) + rest(b_rest),
        total(sums_c) + rest(c_rest),
        total(sums_d) + rest(d_rest),
    ]
}

/// The sum of the lanes, by halves.
#[inline(always)]
fn total(mut sums: [f32; LANES]) -> f32 {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        let (low, high) = sums.split_at_mut(width);
        for (low, high) in low.iter_mut().zip(high) {
            *low += *high;
        }
    }
    sums[0]
}

/// `[outputs, rows]`: the rows `[outputs, inputs]` of a matrix times the rows `[rows, inputs]` of
/// `x`.
pub(crate) fn product<T: Number>(x: &[T], weight: &[T], inputs: usize) -> Vec<T> {
    let x: Vec<f32> = x.iter().map(|x| x.widen()).collect();
    let (rows, outputs) = (x.len() / inputs, weight.len() / inputs);
    let (fours, rest) = x.split_at(rows / 4 * 4 * inputs);
    let mut y = vec![T::narrow(0.0); outputs * rows];
    let fill = |y: &mut [T], weight: &[T]| {
        vectorized(
            #[inline(always)]
            || {
                for (y, weight) in y.chunks_exact_mut(rows).zip(weight.chunks_exact(inputs)) {
                    let (y_fours, y_rest) = y.split_at_mut(rows / 4 * 4);
                    for (y, x) in y_fours.chunks_exact_mut(4).zip(fours.chunks_exact(4 * inputs)) {
                        let x = std::array::from_fn(|row| &x[row * inputs..][..inputs]);
                        y.copy_from_slice(&four_dots(x, weight).map(T::narrow));
                    }
                    for (y, x) in y_rest.iter_mut().zip(rest.chunks_exact(inputs)) {
                        *y = T::narrow(dot(x, weight));
                    }
                }
            },
        );
    };
    if weight.len() * rows < SHARED {
        fill(&mut y, weight);
    } else {
        // Two shares for each thread, since a thread may be delayed.
        let share = outputs.div_ceil(2 * rayon::current_num_threads());
        y.par_chunks_mut(share * rows)
            .zip(weight.par_chunks(share * inputs))
            .for_each(|(y, weight)| fill(y, weight));
    }
    y
}

/// Fills `y` by calls of `fill` for shares of whole rows of `width` elements. Each call gets the
/// start of its share.
fn in_shares<T: Number>(y: &mut [T], width: usize, fill: impl Fn(usize, &mut [T]) + Sync) {
    let fill = |from, y: &mut [T]| {
        vectorized(
            #[inline(always)]
            || fill(from, y),
        );
    };
    if y.len() < 2 * LONG {
        return fill(0, y);
    }
    let share = (LONG / width).max(1) * width;
    y.par_chunks_mut(share).enumerate().for_each(|(index, y)| fill(index * share, y));
}

/// `e` to the power of `x`, off by at most two units in the last place from -87 to 88, and clamped
/// to these bounds; without branches or calls, which would prevent vectorization.
///
/// Reference: the polynomial of `expf` in S. L. Moshier's Cephes library,
/// <https://www.netlib.org/cephes/>.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    // Adding this number rounds a small one to an integer, in the lowest bits of the sum.
    const INTEGER: f32 = 12_582_912.0;
    let shifted = x * std::f32::consts::LOG2_E + INTEGER;
    let n = shifted - INTEGER;
    // The logarithm of 2 in two parts. The first part times `n` is exact.
    let r = (x - n * (355.0 / 512.0)) + n * 2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    (p * r * r + r + 1.0) * power
}

/// Divides rows as wide as `weight` by their root mean square, and multiplies by `weight`, or by
/// `1 + weight`.
pub(crate) fn rms_norm<T: Number>(x: &[T], weight: &[T], epsilon: f32, plus_one: bool) -> Vec<T> {
    let width = weight.len();
    let mut y = vec![T::narrow(0.0); x.len()];
    in_shares(
        &mut y,
        width,
        #[inline(always)]
        |from, y| {
            let mut row = vec![0.0; width];
            for (y, x) in y.chunks_exact_mut(width).zip(x[from..].chunks_exact(width)) {
                for (wide, x) in row.iter_mut().zip(x) {
                    *wide = x.widen();
                }
                let rms = (dot(&row, &row) / width as f32 + epsilon).sqrt();
                let weighted = y.iter_mut().zip(&row).zip(weight);
                // Rounds as the built-in operations do: before the weights are applied, or not.
                if plus_one {
                    weighted.for_each(|((y, x), weight)| *y = T::narrow(x / rms * (1.0 + weight.widen())));
                } else {
                    weighted.for_each(|((y, x), weight)| {
                        *y = T::narrow(T::narrow(x / rms).widen() * weight.widen())
                    });
                }
            }
        },
    );
    y
}

/// `activation(gate) * up`.
pub(crate) fn gated<T: Number>(activation: Activation, gate: &[T], up: &[T]) -> Vec<T> {
    let mut y = vec![T::narrow(0.0); gate.len()];
    in_shares(
        &mut y,
        1,
        #[inline(always)]
        |from, y| {
            let both = y.iter_mut().zip(&gate[from..]).zip(&up[from..]);
            let both = both.map(|((y, gate), up)| (y, gate.widen(), up.widen()));
            match activation {
                Activation::Silu => {
                    both.for_each(|(y, gate, up)| *y = T::narrow(gate / (1.0 + exp(-gate)) * up))
                }
                Activation::GeluTanh => both.for_each(|(y, gate, up)| *y = T::narrow(gelu_tanh(gate) * up)),
            }
        },
    );
    y
}

/// `x / 2 * (1 + tanh(y))` with `y = sqrt(2 / π) (x + 0.044715 x³)`, which is
/// `x / (1 + exp(-2 y))`.
#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    let y = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
    x / (1.0 + exp(-2.0 * y))
}

/// Softmax of rows of scores, in place, over the visible positions; over all positions if none is
/// visible.
///
/// # Shapes
/// - `scores`: `[batch, heads, rows, seen]`
/// - `hidden`: `[batch or 1, rows, seen]`, not 0 at hidden positions
pub(crate) fn masked_softmax<T: Number>(
    scores: &mut [T],
    hidden: &[u8],
    heads: usize,
    [rows, seen]: [usize; 2],
) {
    if scores.is_empty() {
        return;
    }
    let masks = hidden.len() / (rows * seen);
    in_shares(
        scores,
        seen,
        #[inline(always)]
        |from, scores| {
            let mut row = vec![0.0; seen];
            for (index, scores) in (from / seen..).zip(scores.chunks_exact_mut(seen)) {
                let mask = index / (rows * heads) % masks;
                let hidden = &hidden[(mask * rows + index % rows) * seen..][..seen];
                softmax_row(scores, hidden, &mut row);
            }
        },
    );
}

#[inline(always)]
fn softmax_row<T: Number>(scores: &mut [T], hidden: &[u8], row: &mut [f32]) {
    for ((wide, score), hidden) in row.iter_mut().zip(&*scores).zip(hidden) {
        *wide = if *hidden == 0 { score.widen() } else { f32::NEG_INFINITY };
    }
    let mut greatest = [f32::NEG_INFINITY; LANES];
    let (lanes, rest) = row.as_chunks::<LANES>();
    for lane in lanes {
        greatest.iter_mut().zip(lane).for_each(|(greatest, value)| *greatest = greatest.max(*value));
    }
    let greatest = greatest.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
    for (wide, hidden) in row.iter_mut().zip(hidden) {
        *wide = if *hidden == 0 { exp(*wide - greatest) } else { 0.0 };
    }
    let mut sums = [0.0; LANES];
    let (lanes, rest) = row.as_chunks::<LANES>();
    for lane in lanes {
        sums.iter_mut().zip(lane).for_each(|(sum, value)| *sum += *value);
    }
    let total = total(sums) + rest.iter().sum::<f32>();
    if total == 0.0 {
        return scores.fill(T::narrow(1.0 / row.len() as f32));
    }
    for (score, wide) in scores.iter_mut().zip(row) {
        *score = T::narrow(*wide / total);
    }
}

/// The layout of heads in a row and in a cache.
pub(crate) struct Heads {
    pub(crate) kv_heads: usize,
    /// Query heads that share a key head.
    pub(crate) group: usize,
    /// Elements of a head.
    pub(crate) width: usize,
    /// Positions of the cache.
    pub(crate) capacity: usize,
    /// The factor of the scores.
    pub(crate) scale: f32,
}

/// Rotates the halves of every head.
///
/// # Shapes
/// - `x`: `[batch, heads, length, width]`
/// - `cos`, `sin`: `[batch or 1, length, width / 2]`
pub(crate) fn rotate<X: Number, T: Number>(
    x: &mut [X],
    [cos, sin]: [&[T]; 2],
    [heads, length, width]: [usize; 3],
) {
    let half = width / 2;
    in_shares(
        x,
        width,
        #[inline(always)]
        |from, x| {
            for (row, x) in (from / width..).zip(x.chunks_exact_mut(width)) {
                let position = row / (heads * length) * length + row % length;
                let table = position * half % cos.len();
                let (first, second) = x.split_at_mut(half);
                for (((a, b), cos), sin) in first.iter_mut().zip(second).zip(&cos[table..]).zip(&sin[table..])
                {
                    let (x, y, cos, sin) = (a.widen(), b.widen(), cos.widen(), sin.widen());
                    (*a, *b) = (X::narrow(x * cos - y * sin), X::narrow(y * cos + x * sin));
                }
            }
        },
    );
}

/// Writes rows `[batch, kv_heads, width]` at the last visible slots.
pub(crate) fn store<T: Number>(cache: &mut [T], rows: &[f32], seen: &[Range<usize>], heads: &Heads) {
    let Heads { kv_heads, width, capacity, .. } = heads;
    for (head, row) in rows.chunks_exact(*width).enumerate() {
        let slot = seen[head / kv_heads].end - 1;
        let start = (head * capacity + slot) * width;
        for (stored, value) in cache[start..start + width].iter_mut().zip(row) {
            *stored = T::narrow(*value);
        }
    }
}

/// Softmax of the scaled scores of every query, times the values; `[batch, heads, width]`.
pub(crate) fn attend<T: Number>(
    q: &[f32],
    keys: &[T],
    values: &[T],
    seen: &[Range<usize>],
    heads: &Heads,
) -> Vec<T> {
    let Heads { kv_heads, group, width, capacity, scale } = *heads;
    let one = |(head, (mixed, q)): (usize, (&mut [T], &[f32]))| {
        vectorized(
            #[inline(always)]
            || {
                let seen = &seen[head / (kv_heads * group)];
                let start = head / group * capacity;
                let slots = (start + seen.start) * width..(start + seen.end) * width;
                let mut greatest = f32::NEG_INFINITY;
                // `collect` is not inlined here, and would not use the wider vectors.
                let mut weights = vec![0.0; seen.len()];
                for (weight, key) in weights.iter_mut().zip(keys[slots.clone()].chunks_exact(width)) {
                    *weight = dot(q, key) * scale;
                    greatest = greatest.max(*weight);
                }
                // The compiler vectorizes the first loop alone: the sum has an order.
                for weight in &mut weights {
                    *weight = exp(*weight - greatest);
                }
                let total: f32 = weights.iter().sum();
                let mut sums = vec![0.0; width];
                // Four slots at a time, so that sums are fetched and stored less often.
                let (fours, rest) = weights.as_chunks::<4>();
                let values = &values[slots];
                let (in_fours, of_rest) = values.split_at(4 * fours.len() * width);
                for ([a, b, c, d], values) in fours.iter().zip(in_fours.chunks_exact(4 * width)) {
                    let (ab, cd) = values.split_at(2 * width);
                    let ((va, vb), (vc, vd)) = (ab.split_at(width), cd.split_at(width));
                    for ((((sum, va), vb), vc), vd) in sums.iter_mut().zip(va).zip(vb).zip(vc).zip(vd) {
                        *sum += a * va.widen() + b * vb.widen() + (c * vc.widen() + d * vd.widen());
                    }
                }
                for (weight, value) in rest.iter().zip(of_rest.chunks_exact(width)) {
                    for (sum, value) in sums.iter_mut().zip(value) {
                        *sum += weight * value.widen();
                    }
                }
                for (mixed, sum) in mixed.iter_mut().zip(sums) {
                    *mixed = T::narrow(sum / total);
                }
            },
        );
    };
    let mut mixed = vec![T::narrow(0.0); q.len()];
    let slots: usize = seen.iter().map(ExactSizeIterator::len).sum();
    if 2 * slots * kv_heads * group * width < SHARED {
        mixed.chunks_exact_mut(width).zip(q.chunks_exact(width)).enumerate().for_each(one);
    } else {
        mixed.par_chunks_exact_mut(width).zip(q.par_chunks_exact(width)).enumerate().for_each(one);
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::exp;

    #[test]
    fn powers_of_e_are_off_by_two_units_at_most() {
        for step in -87_000..=88_000 {
            let x = step as f32 / 1000.0;
            let expected = f64::from(x).exp();
            let error = (f64::from(exp(x)) - expected).abs() / expected;
            assert!(error <= 2.0 * f64::from(f32::EPSILON), "exp({x}): off by {error:e}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!([exp(-1e9), exp(f32::NEG_INFINITY)], [exp(-87.0); 2]);
        assert_eq!([exp(1e9), exp(f32::INFINITY)], [exp(88.0); 2]);
        assert!(exp(f32::NAN).is_nan());
    }
}
