//! The operations that need instructions of their own, for each kind of machine.
//!
//! Sums are of integers and exact, so the results are the same on every machine.

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::Avx512;

/// Activations in a block.
pub(crate) const BLOCK: usize = 32;

/// One number for each of the eight outputs of a tile.
pub(crate) type Lanes<T> = [T; 8];

/// Whether weights are signed, and how many products of pairs fit into 16 bits.
///
/// An activation is at most 127. A pair of products of weights of 4 bits is at most 2 · 15 · 127,
/// so that eight pairs can be added; of 5 bits four pairs, of 6 bits two, of 8 bits one.
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

/// The instructions of a machine. The default operations are loops that the compiler vectorizes.
pub(crate) trait Simd: Copy {
    /// Runs a loop with these instructions.
    fn run<R>(self, work: impl FnOnce() -> R) -> R;

    /// Asks the machine to read a cache line soon. The address need not be one of this process.
    #[inline(always)]
    fn prefetch(self, _address: *const u8) {}

    /// Four columns of four bytes of eight rows.
    fn transpose(self, rows: Lanes<&[u8; 16]>) -> [Lanes<u32>; 4];

    /// The two `f16` of each word as `f32`, the lower ones first.
    #[inline(always)]
    fn widen(self, words: Lanes<u32>) -> [Lanes<f32>; 2] {
        [words.map(|word| widen(word & 0xffff)), words.map(|word| widen(word >> 16))]
    }

    /// The sums of weights times activations, for rows of activations. A word holds four bytes of
    /// consecutive inputs.
    fn dot<const K: usize, const R: usize>(
        self,
        range: Range,
        weights: &[Lanes<u32>; K],
        x: [&[u32; K]; R],
    ) -> [Lanes<i32>; R];

    /// The greatest magnitudes of every eighth number, and the sums of these numbers times zero.
    #[inline(always)]
    fn magnitudes(self, x: &[f32; BLOCK]) -> (Lanes<f32>, Lanes<f32>) {
        let (mut greatest, mut zeros) = ([0.0; 8], [0.0; 8]);
        for (i, x) in x.iter().enumerate() {
            let greatest = &mut greatest[i % 8];
            *greatest = if x.abs() > *greatest { x.abs() } else { *greatest };
            zeros[i % 8] += x * 0.0;
        }
        (greatest, zeros)
    }

    /// Products with a factor, at most 127, rounded to integers, four in each word; and the sum of
    /// each word.
    #[inline(always)]
    fn round(self, x: &[f32; BLOCK], factor: f32) -> (Lanes<u32>, Lanes<i32>) {
        let q: [[i8; 4]; 8] = std::array::from_fn(|word| {
            std::array::from_fn(|byte| {
                // Adding this number rounds a small one to an integer.
                const INTEGER: f32 = 12_582_912.0;
                ((x[4 * word + byte] * factor + INTEGER) - INTEGER) as i8
            })
        });
        let words = q.map(|four| u32::from_le_bytes(four.map(|q| q as u8)));
        (words, q.map(|four| four.iter().map(|q| i32::from(*q)).sum()))
    }

    /// `a | b`.
    #[inline(always)]
    fn or(self, a: Lanes<u32>, b: Lanes<u32>) -> Lanes<u32> {
        std::array::from_fn(|lane| a[lane] | b[lane])
    }

    /// `total + (a · factor) · integers`, rounded after each operation.
    #[inline(always)]
    fn add_integers(self, total: Lanes<f32>, a: Lanes<f32>, factor: f32, integers: Lanes<i32>) -> Lanes<f32> {
        std::array::from_fn(|lane| total[lane] + a[lane] * factor * integers[lane] as f32)
    }

    /// `total + a · factor`, rounded after each operation.
    #[inline(always)]
    fn add_floats(self, total: Lanes<f32>, a: Lanes<f32>, factor: f32) -> Lanes<f32> {
        std::array::from_fn(|lane| total[lane] + a[lane] * factor)
    }
}

/// `f16` as `f32`, without branches or calls, which would prevent vectorization.
#[inline(always)]
fn widen(bits: u32) -> f32 {
    // The exponents of the two types differ by 112.
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((112 + 127) << 23);
    let special = if magnitude >= 65536.0 { 0xff << 23 } else { 0 };
    f32::from_bits(magnitude.to_bits() | special | (bits & 0x8000) << 16)
}

/// The baseline of the architecture: loops that the compiler vectorizes. The long
/// ones are not compiled for every caller.
#[derive(Clone, Copy)]
pub(crate) struct Baseline;

impl Simd for Baseline {
    #[inline(never)]
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        work()
    }

    #[inline(never)]
    fn transpose(self, rows: Lanes<&[u8; 16]>) -> [Lanes<u32>; 4] {
        let words = rows.map(|row| row.as_chunks::<4>().0);
        std::array::from_fn(|column| words.map(|words| u32::from_le_bytes(words[column])))
    }

    #[inline(never)]
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
    use std::arch::x86_64::{__m256, __m256i, _MM_HINT_T0, _mm_prefetch, _mm256_dpbusd_epi32};

    use pulp::cast;
    use pulp::x86::V3;

    use super::{BLOCK, Lanes, Range, Simd};

    /// AVX2.
    impl Simd for V3 {
        #[inline(always)]
        fn run<R>(self, work: impl FnOnce() -> R) -> R {
            self.vectorize(work)
        }

        #[inline(always)]
        #[allow(unsafe_code)]
        fn prefetch(self, address: *const u8) {
            // SAFETY: the instruction is a hint. It changes nothing and faults at no address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
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

        #[inline(always)]
        fn magnitudes(self, x: &[f32; BLOCK]) -> (Lanes<f32>, Lanes<f32>) {
            let avx = self.avx;
            let (mut greatest, mut zeros) = (avx._mm256_setzero_ps(), avx._mm256_setzero_ps());
            let magnitude = avx._mm256_castsi256_ps(avx._mm256_set1_epi32(i32::MAX));
            for x in x.as_chunks::<8>().0 {
                let x: __m256 = cast(*x);
                // The second operand is the result if one of them is NaN.
                greatest = avx._mm256_max_ps(avx._mm256_and_ps(x, magnitude), greatest);
                zeros = avx._mm256_add_ps(zeros, avx._mm256_mul_ps(x, avx._mm256_setzero_ps()));
            }
            (cast(greatest), cast(zeros))
        }

        #[inline(always)]
        fn round(self, x: &[f32; BLOCK], factor: f32) -> (Lanes<u32>, Lanes<i32>) {
            let (avx, avx2) = (self.avx, self.avx2);
            let (x, _) = x.as_chunks::<8>();
            let integers = |index: usize| {
                let product = avx._mm256_mul_ps(cast(x[index]), avx._mm256_set1_ps(factor));
                avx._mm256_cvtps_epi32(product)
            };
            let words = avx2._mm256_packs_epi16(
                avx2._mm256_packs_epi32(integers(0), integers(1)),
                avx2._mm256_packs_epi32(integers(2), integers(3)),
            );
            // The instructions work on halves of a vector.
            let order = avx._mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let words = avx2._mm256_permutevar8x32_epi32(words, order);
            let pairs = avx2._mm256_maddubs_epi16(avx._mm256_set1_epi8(1), words);
            (cast(words), cast(avx2._mm256_madd_epi16(pairs, avx._mm256_set1_epi16(1))))
        }

        #[inline(always)]
        fn or(self, a: Lanes<u32>, b: Lanes<u32>) -> Lanes<u32> {
            cast(self.avx2._mm256_or_si256(cast(a), cast(b)))
        }

        #[inline(always)]
        fn add_integers(
            self,
            total: Lanes<f32>,
            a: Lanes<f32>,
            factor: f32,
            integers: Lanes<i32>,
        ) -> Lanes<f32> {
            let avx = self.avx;
            let scale = avx._mm256_mul_ps(cast(a), avx._mm256_set1_ps(factor));
            let products = avx._mm256_mul_ps(scale, avx._mm256_cvtepi32_ps(cast(integers)));
            cast(avx._mm256_add_ps(cast(total), products))
        }

        #[inline(always)]
        fn add_floats(self, total: Lanes<f32>, a: Lanes<f32>, factor: f32) -> Lanes<f32> {
            let avx = self.avx;
            let products = avx._mm256_mul_ps(cast(a), avx._mm256_set1_ps(factor));
            cast(avx._mm256_add_ps(cast(total), products))
        }
    }

    pulp::simd_type! {
        struct Vnni {
            avx512f: "avx512f",
            avx512bw: "avx512bw",
            avx512vl: "avx512vl",
            avx512vnni: "avx512vnni",
        }
    }

    /// AVX-512 with VNNI, in vectors of eight outputs. Their other operations use AVX2.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512 {
        v3: V3,
        vnni: Vnni,
    }

    impl Avx512 {
        pub(crate) fn try_new() -> Option<Self> {
            Some(Self { v3: V3::try_new()?, vnni: Vnni::try_new()? })
        }

        /// Adds the products of four unsigned and four signed bytes to each sum.
        #[inline(always)]
        #[allow(unsafe_code)]
        fn add_products(self, sums: __m256i, unsigned: __m256i, signed: __m256i) -> __m256i {
            // SAFETY: the instruction belongs to AVX512VNNI and AVX512VL. Only `try_new` makes an `Avx512`,
            // and it has found both.
            unsafe { _mm256_dpbusd_epi32(sums, unsigned, signed) }
        }
    }

    impl Simd for Avx512 {
        #[inline(always)]
        fn run<R>(self, work: impl FnOnce() -> R) -> R {
            self.vnni.vectorize(work)
        }

        #[inline(always)]
        fn prefetch(self, address: *const u8) {
            self.v3.prefetch(address);
        }

        #[inline(always)]
        fn transpose(self, rows: Lanes<&[u8; 16]>) -> [Lanes<u32>; 4] {
            let four = |row: usize| cast([*rows[row], *rows[row + 1], *rows[row + 2], *rows[row + 3]]);
            let (first, last) = (four(0), four(4));
            cast([0, 2].map(|column| {
                let order: [[u32; 8]; 2] =
                    [column, column + 1].map(|column| std::array::from_fn(|row| 4 * row as u32 + column));
                self.vnni.avx512f._mm512_permutex2var_epi32(first, cast(order), last)
            }))
        }

        #[inline(always)]
        fn widen(self, words: Lanes<u32>) -> [Lanes<f32>; 2] {
            let avx512 = self.vnni.avx512f;
            let order = cast([[0u32, 2, 4, 6, 8, 10, 12, 14], [1, 3, 5, 7, 9, 11, 13, 15]]);
            cast(avx512._mm512_permutexvar_ps(order, avx512._mm512_cvtph_ps(cast(words))))
        }

        #[inline(always)]
        fn dot<const K: usize, const R: usize>(
            self,
            range: Range,
            weights: &[Lanes<u32>; K],
            x: [&[u32; K]; R],
        ) -> [Lanes<i32>; R] {
            let (avx, avx2) = (self.v3.avx, self.v3.avx2);
            let mut sums = [avx._mm256_setzero_si256(); R];
            for column in 0..K {
                let weight: __m256i = cast(weights[column]);
                for row in 0..R {
                    let x = avx._mm256_set1_epi32(x[row][column] as i32);
                    let (unsigned, signed) = match range {
                        Range::Signed => (avx2._mm256_abs_epi8(weight), avx2._mm256_sign_epi8(x, weight)),
                        _ => (weight, x),
                    };
                    sums[row] = self.add_products(sums[row], unsigned, signed);
                }
            }
            sums.map(cast)
        }

        #[inline(always)]
        fn magnitudes(self, x: &[f32; BLOCK]) -> (Lanes<f32>, Lanes<f32>) {
            self.v3.magnitudes(x)
        }

        #[inline(always)]
        fn round(self, x: &[f32; BLOCK], factor: f32) -> (Lanes<u32>, Lanes<i32>) {
            self.v3.round(x, factor)
        }

        #[inline(always)]
        fn or(self, a: Lanes<u32>, b: Lanes<u32>) -> Lanes<u32> {
            self.v3.or(a, b)
        }

        #[inline(always)]
        fn add_integers(
            self,
            total: Lanes<f32>,
            a: Lanes<f32>,
            factor: f32,
            integers: Lanes<i32>,
        ) -> Lanes<f32> {
            self.v3.add_integers(total, a, factor, integers)
        }

        #[inline(always)]
        fn add_floats(self, total: Lanes<f32>, a: Lanes<f32>, factor: f32) -> Lanes<f32> {
            self.v3.add_floats(total, a, factor)
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use std::arch::aarch64::{int8x16_t, uint32x4_t};

    use pulp::aarch64::Neon;
    use pulp::cast;

    use super::{Lanes, Range, Simd};

    /// NEON, without the dot products of bytes, whose intrinsics are unstable. Two vectors hold the
    /// eight outputs of a tile.
    impl Simd for Neon {
        #[inline(always)]
        fn run<R>(self, work: impl FnOnce() -> R) -> R {
            self.vectorize(work)
        }

        #[inline(always)]
        fn transpose(self, rows: Lanes<&[u8; 16]>) -> [Lanes<u32>; 4] {
            let neon = self.neon;
            let row = |row: usize| cast::<[u8; 16], uint32x4_t>(*rows[row]);
            let four = |first: usize| {
                let (a, b, c, d) = (row(first), row(first + 1), row(first + 2), row(first + 3));
                let (ab, cd) = (neon.vzip1q_u32(a, b), neon.vzip1q_u32(c, d));
                let (ab_high, cd_high) = (neon.vzip2q_u32(a, b), neon.vzip2q_u32(c, d));
                [
                    neon.vzip1q_u64(cast(ab), cast(cd)),
                    neon.vzip2q_u64(cast(ab), cast(cd)),
                    neon.vzip1q_u64(cast(ab_high), cast(cd_high)),
                    neon.vzip2q_u64(cast(ab_high), cast(cd_high)),
                ]
            };
            let (first, last) = (four(0), four(4));
            std::array::from_fn(|column| cast([first[column], last[column]]))
        }

        #[inline(always)]
        fn dot<const K: usize, const R: usize>(
            self,
            range: Range,
            weights: &[Lanes<u32>; K],
            x: [&[u32; K]; R],
        ) -> [Lanes<i32>; R] {
            let neon = self.neon;
            let mut sums = [[neon.vdupq_n_s32(0); 2]; R];
            for (sums, x) in sums.iter_mut().zip(x) {
                let zero = [neon.vdupq_n_s16(0); 2];
                let mut products = [zero; 2];
                for (column, (weights, x)) in weights.iter().zip(x).enumerate() {
                    let weights: [int8x16_t; 2] = cast(*weights);
                    let x: int8x16_t = cast(neon.vdupq_n_u32(*x));
                    let is_last = (column + 1) % range.columns() == 0 || column + 1 == K;
                    for half in 0..2 {
                        let [low, high] = &mut products[half];
                        *low = neon.vmlal_s8(*low, neon.vget_low_s8(weights[half]), neon.vget_low_s8(x));
                        *high = neon.vmlal_high_s8(*high, weights[half], x);
                        if is_last {
                            let pairs = neon.vpaddq_s16(*low, *high);
                            sums[half] = neon.vpadalq_s16(sums[half], pairs);
                            products[half] = zero;
                        }
                    }
                }
            }
            sums.map(cast)
        }
    }
}
