//! [`Activations`]: rows of activations in blocks of 8-bit numbers.

/// Numbers in a block.
pub(crate) const BLOCK: usize = 32;

/// 32 activations: `d` times a number from -127 to 127 each.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    /// The numbers, four in each word, the first in the lowest byte.
    pub(crate) q: [u32; 8],
    pub(crate) d: f32,
    /// `d` times the sum of the first 16 numbers, of the last 16, and of all.
    pub(crate) sums: [f32; 3],
}

/// Rows of activations in blocks of 32 numbers of 8 bits with a scale.
///
/// The greatest magnitude of a block becomes 127, so that each activation is off by at most half the
/// scale, which is 1/254 of the greatest magnitude of its block. A block without a magnitude of at least
/// 4e-37 becomes zero.
pub(crate) struct Activations {
    pub(crate) blocks: Vec<Block>,
}

impl Activations {
    /// Quantizes rows whose length is a multiple of 32.
    #[inline(always)]
    pub(crate) fn quantize(x: &[f32]) -> Self {
        let (blocks, _) = x.as_chunks::<BLOCK>();
        Self { blocks: blocks.iter().map(quantize).collect() }
    }
}

#[inline(always)]
fn quantize(x: &[f32; BLOCK]) -> Block {
    // `unlike_zero` is NaN if an activation is not finite, and then the scale is NaN.
    let (mut greatest, mut unlike_zero) = ([0.0f32; 8], [0.0f32; 8]);
    for lane in x.as_chunks::<8>().0 {
        for ((greatest, unlike_zero), x) in greatest.iter_mut().zip(&mut unlike_zero).zip(lane) {
            *greatest = if x.abs() > *greatest { x.abs() } else { *greatest };
            *unlike_zero += x * 0.0;
        }
    }
    let greatest = greatest.into_iter().fold(0.0, f32::max) + unlike_zero.into_iter().sum::<f32>();
    let inverse = 127.0 / greatest;
    // The inverse of less than 4e-37 would overflow.
    let (d, inverse) = if inverse == f32::INFINITY { (0.0, 0.0) } else { (greatest / 127.0, inverse) };
    // Adding this number rounds a small one to an integer.
    const INTEGER: f32 = 12_582_912.0;
    let q: [i8; BLOCK] = std::array::from_fn(|i| ((x[i] * inverse + INTEGER) - INTEGER) as i8);
    let (halves, _) = q.as_chunks::<16>();
    let [first, last] = [0, 1].map(|half| halves[half].iter().map(|q| i32::from(*q)).sum::<i32>());
    let (words, _) = q.as_chunks::<4>();
    Block {
        q: std::array::from_fn(|word| u32::from_le_bytes(words[word].map(|q| q as u8))),
        d,
        sums: [first, last, first + last].map(|sum| d * sum as f32),
    }
}
