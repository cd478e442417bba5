//! The two operations that need instructions of their own, for each kind of machine.
//!
//! Sums are of integers and exact, so the results are the same on every machine.

/// One number for each of the eight outputs of a tile.
pub(crate) type Lanes<T> = [T; 8];

/// Whether weights are signed, and how many products of pairs fit into 16 bits.
///
/// An activation is at most 127. A pair of products of weights of 4 bits is at most 2 · 15 · 127, so
/// that eight pairs can be added; of 5 bits four pairs, of 6 bits two, of 8 bits one.
#[derive(Clone, Copy)]
pub(crate) enum Range {
    /// At most 15.
    Four,
    /// At most 31.
    Five,
    /// At most 63.
    Six,
    /// From -128 to 127.
    Signed,
}

impl Range {
    /// Columns whose products are added in 16 bits.
    #[inline(always)]
    fn columns(self) -> usize {
        match self {
            Self::Four => 8,
            Self::Five => 4,
            Self::Six => 2,
            Self::Signed => 1,
        }
    }
}

/// The instructions of a machine.
pub(crate) trait Simd: Copy {
    /// Runs a loop with these instructions.
    fn run<R>(self, work: impl FnOnce() -> R) -> R;

    /// Four columns of four bytes of eight rows.
    fn transpose(self, rows: Lanes<&[u8; 16]>) -> [Lanes<u32>; 4];

    /// The sums of weights times activations, for rows of activations. A word holds four bytes of
    /// consecutive inputs.
    fn dot<const K: usize, const R: usize>(
        self,
        range: Range,
        weights: &[Lanes<u32>; K],
        x: [&[u32; K]; R],
    ) -> [Lanes<i32>; R];
}

/// The baseline of the architecture.
#[derive(Clone, Copy)]
pub(crate) struct Baseline;

impl Simd for Baseline {
    #[inline(always)]
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        work()
    }

    #[inline(always)]
    fn transpose(self, rows: Lanes<&[u8; 16]>) -> [Lanes<u32>; 4] {
        let words = rows.map(|row| row.as_chunks::<4>().0);
        std::array::from_fn(|column| words.map(|words| u32::from_le_bytes(words[column])))
    }

    #[inline(always)]
    fn dot<const K: usize, const R: usize>(
        self,
        range: Range,
        weights: &[Lanes<u32>; K],
        x: [&[u32; K]; R],
    ) -> [Lanes<i32>; R] {
        let widen = |weight: u8| match range {
            Range::Signed => i32::from(weight as i8),
            _ => i32::from(weight),
        };
        x.map(|x| {
            let mut sums = [0; 8];
            for (weights, x) in weights.iter().zip(x) {
                let x = x.to_le_bytes().map(|x| i32::from(x as i8));
                for (sum, weights) in sums.iter_mut().zip(weights) {
                    let weights = weights.to_le_bytes().map(widen);
                    *sum += weights.iter().zip(&x).map(|(weight, x)| weight * x).sum::<i32>();
                }
            }
            sums
        })
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::__m256i;

    use pulp::cast;
    use pulp::x86::V3;

    use super::{Lanes, Range, Simd};

    /// AVX2.
    impl Simd for V3 {
        #[inline(always)]
        fn run<R>(self, work: impl FnOnce() -> R) -> R {
            self.vectorize(work)
        }

        #[inline(always)]
        fn transpose(self, rows: Lanes<&[u8; 16]>) -> [Lanes<u32>; 4] {
            let avx2 = self.avx2;
            // Rows four apart share a vector, since the instructions work on halves of it.
            let pair = |row: usize| cast::<[[u8; 16]; 2], __m256i>([*rows[row], *rows[row + 4]]);
            let (a, b, c, d) = (pair(0), pair(1), pair(2), pair(3));
            let (ab, cd) = (avx2._mm256_unpacklo_epi32(a, b), avx2._mm256_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (avx2._mm256_unpackhi_epi32(a, b), avx2._mm256_unpackhi_epi32(c, d));
            [
                cast(avx2._mm256_unpacklo_epi64(ab, cd)),
                cast(avx2._mm256_unpackhi_epi64(ab, cd)),
                cast(avx2._mm256_unpacklo_epi64(ab_high, cd_high)),
                cast(avx2._mm256_unpackhi_epi64(ab_high, cd_high)),
            ]
        }

        #[inline(always)]
        fn dot<const K: usize, const R: usize>(
            self,
            range: Range,
            weights: &[Lanes<u32>; K],
            x: [&[u32; K]; R],
        ) -> [Lanes<i32>; R] {
            let (avx, avx2) = (self.avx, self.avx2);
            let (zero, ones) = (avx._mm256_setzero_si256(), avx._mm256_set1_epi16(1));
            let mut sums = [zero; R];
            let mut pairs = [zero; R];
            for column in 0..K {
                let weight: __m256i = cast(weights[column]);
                let is_first = column % range.columns() == 0;
                let is_last = (column + 1) % range.columns() == 0 || column + 1 == K;
                for row in 0..R {
                    let x = avx._mm256_set1_epi32(x[row][column] as i32);
                    let products = match range {
                        Range::Signed => avx2._mm256_maddubs_epi16(
                            avx2._mm256_abs_epi8(weight),
                            avx2._mm256_sign_epi8(x, weight),
                        ),
                        _ => avx2._mm256_maddubs_epi16(weight, x),
                    };
                    pairs[row] =
                        if is_first { products } else { avx2._mm256_add_epi16(pairs[row], products) };
                    if is_last {
                        let four = avx2._mm256_madd_epi16(pairs[row], ones);
                        let is_only = column < range.columns();
                        sums[row] = if is_only { four } else { avx2._mm256_add_epi32(sums[row], four) };
                    }
                }
            }
            sums.map(cast)
        }
    }
}
