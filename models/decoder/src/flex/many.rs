//! [`product`]: many rows times a matrix, with AVX-512.
//!
//! Such a product is bound by arithmetic. Rows are arranged in panels, so that a vector holds the
//! same inputs of 16 rows. The matrix is read as it is stored: inputs of one of its rows are
//! multiplied by the vectors of a panel. `bf16` is multiplied in pairs, which takes half the
//! instructions that `f32` takes.

use std::arch::x86_64::{__m512, __m512bh, __m512i, _mm512_dpbf16_ps};
use std::mem::transmute;

use half::bf16;
use pulp::x86::V4;
use pulp::{NullaryFnOnce, cast};
use rayon::prelude::*;

use super::kernels::Number;

/// Rows in a vector.
const LANES: usize = 16;
/// Vectors of a panel.
const VECTORS: usize = 4;
/// Rows of a panel.
const PANEL: usize = LANES * VECTORS;
/// Rows of the matrix in a tile. Its sums, and the vectors of a panel, fit into the registers.
const TILE: usize = 6;

/// One word of each row of a panel.
type Words = [u32; PANEL];
/// The sums of a tile, for each vector.
type Sums<const V: usize> = [[__m512; V]; TILE];
/// The inputs of a row in words, and the inputs that fill no word, in one with zeros.
type Row<'a, T> = (&'a [<T as Vectorized>::Inputs], Option<u32>);

/// A number that AVX-512 multiplies.
pub(crate) trait Vectorized: Number {
    type Simd: Simd;
    /// The inputs in a word of 32 bits.
    type Inputs: Copy;
    fn words(row: &[Self]) -> Row<'_, Self>;
    fn word(inputs: Self::Inputs) -> u32;
}

/// The instructions for a type of numbers.
pub(crate) trait Simd: Copy + Send + Sync {
    /// `None` if this machine lacks them.
    fn try_new() -> Option<Self>;
    /// Does work with these instructions.
    fn run(self, work: impl NullaryFnOnce<Output = ()>);
    /// A vector of one word.
    fn splat(self, word: u32) -> __m512i;
    /// Adds the products of the words of `a` and `b`.
    fn add_products(self, sums: __m512, a: __m512i, b: __m512i) -> __m512;
}

/// What all tokens of pulp do alike.
macro_rules! of_pulp {
    () => {
        fn try_new() -> Option<Self> {
            Self::try_new()
        }

        #[inline(always)]
        fn run(self, work: impl NullaryFnOnce<Output = ()>) {
            self.vectorize(work);
        }

        #[inline(always)]
        fn splat(self, word: u32) -> __m512i {
            self.avx512f._mm512_set1_epi32(word as i32)
        }
    };
}

impl Vectorized for f32 {
    type Simd = V4;
    type Inputs = f32;

    #[inline(always)]
    fn words(row: &[Self]) -> Row<'_, Self> {
        (row, None)
    }

    #[inline(always)]
    fn word(input: f32) -> u32 {
        input.to_bits()
    }
}

impl Simd for V4 {
    of_pulp!();

    #[inline(always)]
    fn add_products(self, sums: __m512, a: __m512i, b: __m512i) -> __m512 {
        self.avx512f._mm512_fmadd_ps(cast(a), cast(b), sums)
    }
}

impl Vectorized for bf16 {
    type Simd = Bf16;
    type Inputs = [bf16; 2];

    #[inline(always)]
    fn words(row: &[Self]) -> Row<'_, Self> {
        let (pairs, rest) = row.as_chunks();
        (pairs, rest.first().map(|&last| Self::word([last, Self::ZERO])))
    }

    #[inline(always)]
    fn word([first, second]: [bf16; 2]) -> u32 {
        u32::from(first.to_bits()) | u32::from(second.to_bits()) << 16
    }
}

pulp::simd_type! {
    pub(crate) struct Bf16 {
        avx512f: "avx512f",
        avx512bf16: "avx512bf16",
    }
}

impl Simd for Bf16 {
    of_pulp!();

    #[inline(always)]
    #[allow(unsafe_code)]
    fn add_products(self, sums: __m512, a: __m512i, b: __m512i) -> __m512 {
        // SAFETY: the instruction belongs to AVX512_BF16, which `try_new` has found. The types of
        // vectors have the same size, and any bits are valid in them.
        unsafe {
            _mm512_dpbf16_ps(sums, transmute::<__m512i, __m512bh>(a), transmute::<__m512i, __m512bh>(b))
        }
    }
}

/// Fills `y` `[outputs, rows]` with the rows `[outputs, inputs]` of a matrix times the rows
/// `[rows, inputs]` of `x`. The order of a sum does not depend on the number of rows. The
/// instructions for `bf16` take numbers below the least normal one as zero.
pub(crate) fn product<T: Vectorized>(simd: T::Simd, x: &[T], weight: &[T], inputs: usize, y: &mut [T]) {
    let rows = x.len() / inputs;
    let (whole, rest) = T::words(&x[..inputs]);
    let words = whole.len() + usize::from(rest.is_some());
    let mut panels: Vec<Words> = vec![[0; PANEL]; rows.div_ceil(PANEL) * words];
    panels.par_chunks_mut(words).zip(x.par_chunks(PANEL * inputs)).for_each(|(panel, x)| {
        simd.run(Pack { panel, x, inputs });
    });
    let tiles = y.par_chunks_mut(TILE * rows).zip(weight.par_chunks(TILE * inputs));
    tiles.for_each(|(y, weight)| simd.run(Tile { simd, panels: &panels, words, weight, inputs, y }));
}

/// The transpose of a matrix with `columns` columns.
pub(crate) fn transpose<T: Number>(x: &[T], columns: usize) -> Vec<T> {
    /// Rows and columns of a block.
    const BLOCK: usize = 32;
    let rows = x.len() / columns;
    let mut y = vec![T::narrow(0.0); x.len()];
    y.par_chunks_mut(BLOCK * rows).enumerate().for_each(|(block, y)| {
        for (at, x) in x.chunks(BLOCK * columns).enumerate() {
            for (column, y) in (block * BLOCK..).zip(y.chunks_exact_mut(rows)) {
                for (y, x) in y[at * BLOCK..].iter_mut().zip(x.chunks_exact(columns)) {
                    *y = x[column];
                }
            }
        }
    });
    y
}

// Closures would become functions of their own, which are not inlined and lack the instructions.

/// Arranges rows in a panel.
struct Pack<'a, T> {
    panel: &'a mut [Words],
    x: &'a [T],
    inputs: usize,
}

impl<T: Vectorized> NullaryFnOnce for Pack<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (lane, x) in self.x.chunks_exact(self.inputs).enumerate() {
            let (whole, rest) = T::words(x);
            for (words, inputs) in self.panel.iter_mut().zip(whole) {
                words[lane] = T::word(*inputs);
            }
            if let (Some(rest), Some(words)) = (rest, self.panel.last_mut()) {
                words[lane] = rest;
            }
        }
    }
}

/// Multiplies at most [`TILE`] rows of the matrix.
struct Tile<'a, T: Vectorized> {
    simd: T::Simd,
    panels: &'a [Words],
    words: usize,
    weight: &'a [T],
    inputs: usize,
    /// `[outputs, rows]`
    y: &'a mut [T],
}

impl<T: Vectorized> NullaryFnOnce for Tile<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let outputs = self.weight.len() / self.inputs;
        let rows = self.y.len() / outputs;
        // Missing rows repeat the last one; their results are not used.
        let weight = std::array::from_fn(|output| {
            let from = output.min(outputs - 1) * self.inputs;
            T::words(&self.weight[from..from + self.inputs])
        });
        for (panel, from) in self.panels.chunks_exact(self.words).zip((0..rows).step_by(PANEL)) {
            let y = self.y.chunks_exact_mut(rows).map(|y| &mut y[from..]);
            match (rows - from).div_ceil(LANES) {
                1 => fill::<T, 1>(self.simd, panel, weight, y),
                2 => fill::<T, 2>(self.simd, panel, weight, y),
                3 => fill::<T, 3>(self.simd, panel, weight, y),
                _ => fill::<T, VECTORS>(self.simd, panel, weight, y),
            }
        }
    }
}

/// Fills the first numbers of each `y` with the products of the first vectors of a panel.
#[inline(always)]
fn fill<'a, T: Vectorized, const V: usize>(
    simd: T::Simd,
    panel: &[Words],
    weight: [Row<'_, T>; TILE],
    y: impl Iterator<Item = &'a mut [T]>,
) {
    let mut sums: Sums<V> = [[cast([0.0f32; LANES]); V]; TILE];
    let (panel, last) = panel.split_at(weight[0].0.len());
    let whole = weight.map(|(whole, _)| &whole[..panel.len()]);
    for (index, words) in panel.iter().enumerate() {
        add(simd, &mut sums, words, |output| T::word(whole[output][index]));
    }
    if let [words] = last {
        add(simd, &mut sums, words, |output| weight[output].1.unwrap_or(0));
    }
    for (y, sums) in y.zip(sums) {
        let sums: [[f32; LANES]; V] = sums.map(cast);
        for (y, sum) in y.iter_mut().zip(sums.as_flattened()) {
            *y = T::narrow(*sum);
        }
    }
}

/// Adds the products of one word of each row.
#[inline(always)]
fn add<S: Simd, const V: usize>(simd: S, sums: &mut Sums<V>, words: &Words, weight: impl Fn(usize) -> u32) {
    let (words, _) = words.as_chunks::<LANES>();
    let words: [__m512i; V] = std::array::from_fn(|vector| cast(words[vector]));
    for (output, sums) in sums.iter_mut().enumerate() {
        let weight = simd.splat(weight(output));
        for (sum, words) in sums.iter_mut().zip(words) {
            *sum = simd.add_products(*sum, words, weight);
        }
    }
}
