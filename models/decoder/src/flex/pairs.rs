//! [`product`]: many rows of `bf16` times a `bf16` matrix, with the instructions that AVX-512 has
//! for pairs of such numbers.
//!
//! A product of many rows is bound by arithmetic, and these instructions multiply twice as many
//! numbers as those for `f32`. The rows of `x` are arranged in panels, so that one vector holds a
//! pair of consecutive inputs of 16 rows. The matrix is read as it is stored: a pair of a row of
//! the matrix is multiplied by vectors of all rows of `x`.

use std::arch::x86_64::{__m512, __m512i, _mm512_dpbf16_ps};

use half::bf16;
use pulp::{NullaryFnOnce, cast};
use rayon::prelude::*;

/// Rows of `x` in a vector.
const LANES: usize = 16;
/// Vectors of a panel.
const VECTORS: usize = 2;
/// Rows of `x` in a panel.
const PANEL: usize = LANES * VECTORS;
/// Rows of the matrix in a tile. Its sums, and the vectors of a panel, fit into the registers.
const OUTPUTS: usize = 12;

/// A pair of consecutive inputs, of each row of a panel.
type Pairs = [u32; PANEL];
/// The sums of a tile for each row of a panel.
type Sums = [[[f32; LANES]; VECTORS]; OUTPUTS];

pulp::simd_type! {
    struct Instructions {
        avx512f: "avx512f",
        avx512bf16: "avx512bf16",
    }
}

/// `[outputs, rows]`: the rows `[outputs, inputs]` of a matrix times the rows `[rows, inputs]` of
/// `x`. The order of a sum does not depend on the number of rows. Numbers below the least normal
/// one count as zero. Returns `None` if the machine has no such instructions, or the number of
/// inputs is odd.
pub(crate) fn product(x: &[bf16], weight: &[bf16], inputs: usize) -> Option<Vec<bf16>> {
    // Pulp without `std` does not ask whether the operating system saves the wide registers.
    let simd = Instructions::try_new().filter(|_| is_x86_feature_detected!("avx512bf16"))?;
    if !inputs.is_multiple_of(2) {
        return None;
    }
    let rows = x.len() / inputs;
    let mut panels: Vec<Pairs> = vec![[0; PANEL]; rows.div_ceil(PANEL) * (inputs / 2)];
    panels.par_chunks_mut(inputs / 2).zip(x.par_chunks(PANEL * inputs)).for_each(|(panel, x)| {
        for (lane, x) in x.chunks_exact(inputs).enumerate() {
            for (pairs, x) in panel.iter_mut().zip(x.as_chunks().0) {
                pairs[lane] = pair(*x);
            }
        }
    });
    let mut y = vec![bf16::ZERO; weight.len() / inputs * rows];
    let tiles = y.par_chunks_mut(OUTPUTS * rows).zip(weight.par_chunks(OUTPUTS * inputs));
    tiles.for_each(|(y, weight)| simd.vectorize(Tile { simd, panels: &panels, weight, inputs, y }));
    Some(y)
}

/// The first number in the lower half.
#[inline(always)]
fn pair([first, second]: [bf16; 2]) -> u32 {
    u32::from(first.to_bits()) | u32::from(second.to_bits()) << 16
}

/// The work on at most [`OUTPUTS`] rows of the matrix.
///
/// A closure would become a function of its own that is not inlined and lacks the instructions.
struct Tile<'a> {
    simd: Instructions,
    panels: &'a [Pairs],
    weight: &'a [bf16],
    inputs: usize,
    /// `[outputs, rows]`
    y: &'a mut [bf16],
}

impl NullaryFnOnce for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let outputs = self.weight.len() / self.inputs;
        let rows = self.y.len() / outputs;
        // Missing rows repeat the last one; their results are not used.
        let weight = std::array::from_fn(|output| {
            let from = output.min(outputs - 1) * self.inputs;
            self.weight[from..from + self.inputs].as_chunks().0
        });
        for (index, panel) in self.panels.chunks_exact(self.inputs / 2).enumerate() {
            let sums = self.simd.sums(panel, weight);
            for (y, sums) in self.y.chunks_exact_mut(rows).zip(&sums) {
                for (y, sum) in y[index * PANEL..].iter_mut().zip(sums.as_flattened()) {
                    *y = bf16::from_f32(*sum);
                }
            }
        }
    }
}

impl Instructions {
    #[inline(always)]
    fn sums(self, panel: &[Pairs], weight: [&[[bf16; 2]]; OUTPUTS]) -> Sums {
        let weight = weight.map(|row| &row[..panel.len()]);
        let mut sums: [[__m512; VECTORS]; OUTPUTS] = [[cast([0.0f32; LANES]); VECTORS]; OUTPUTS];
        for (index, x) in panel.iter().enumerate() {
            let (x, _) = x.as_chunks::<LANES>();
            for (sums, row) in sums.iter_mut().zip(weight) {
                let weight = self.avx512f._mm512_set1_epi32(pair(row[index]) as i32);
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = self.add_products(*sum, cast(*x), weight);
                }
            }
        }
        sums.map(cast)
    }

    /// Adds the products of two pairs to each sum.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn add_products(self, sums: __m512, a: __m512i, b: __m512i) -> __m512 {
        // SAFETY: the instruction belongs to AVX512_BF16, which `try_new` has found. The types of
        // vectors have the same size, and any bits are valid in them.
        unsafe { _mm512_dpbf16_ps(sums, std::mem::transmute(a), std::mem::transmute(b)) }
    }
}
