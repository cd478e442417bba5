//! [`Activations`]: rows of activations in blocks of 8-bit numbers.

use super::simd::{BLOCK, Lanes, Simd};

/// 32 activations: `d` times a number from -127 to 127 each.
#[derive(Clone, Copy, Default)]
pub(crate) struct Block {
    /// The numbers, four in each word, the first in the lowest byte.
    pub(crate) q: Lanes<u32>,
    pub(crate) d: f32,
    /// `d` times the sum of the first 16 numbers, of the last 16, and of all.
    pub(crate) sums: [f32; 3],
}

/// Rows of activations in blocks of 32 numbers of 8 bits with a scale.
///
/// The greatest magnitude of a block becomes 127, so that each activation is off by at most half
/// the scale, which is 1/254 of the greatest magnitude of its block. A block without a magnitude of
/// at least 4e-37 becomes zero.
pub(crate) struct Activations {
    pub(crate) blocks: Vec<Block>,
}

impl Activations {
    /// Quantizes rows whose length is a multiple of 32.
    #[inline(always)]
    pub(crate) fn quantize<S: Simd>(simd: S, x: &[f32]) -> Self {
        let (x, _) = x.as_chunks::<BLOCK>();
        let mut blocks = vec![Block::default(); x.len()];
        // `collect` is not inlined into the function that has these instructions, and would call
        // each of them.
        for (block, x) in blocks.iter_mut().zip(x) {
            let (greatest, zeros) = simd.magnitudes(x);
            let greatest = greatest.into_iter().fold(0.0, |max, next| if next > max { next } else { max });
            // A zero times infinity or NaN is NaN, and then so is the scale.
            let greatest = greatest + zeros.into_iter().sum::<f32>();
            let inverse = 127.0 / greatest;
            // The inverse of less than 4e-37 would overflow.
            let (d, inverse) =
                if inverse == f32::INFINITY { (0.0, 0.0) } else { (greatest / 127.0, inverse) };
            let (q, sums) = simd.round(x, inverse);
            let (first, last) = sums.split_at(4);
            let (first, last) = (first.iter().sum::<i32>(), last.iter().sum::<i32>());
            *block = Block { q, d, sums: [first, last, first + last].map(|sum| d * sum as f32) };
        }
        Self { blocks }
    }
}
