//! Numbers of stored blocks as `f32`.
//!
//! Each function decodes one block as the Python package `gguf` does, with the same operations in
//! the same order, so that the results are equal bit for bit. `d` is the scale of a block, `m` its
//! minimum, and `q` an unsigned number of a few bits.

use std::fmt;

use half::{bf16, f16};

use super::BlockType;

/// Bytes and numbers that do not fit together as blocks of one type.
///
/// ```
/// use burn_dfa_gguf::block::BlockType;
///
/// let error = BlockType::Q8_0.dequantize(&[0; 33], &mut [0.0; 32]).unwrap_err();
/// assert_eq!(error.to_string(), "32 numbers of type Q8_0 take 34 bytes, but 33 bytes are given");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockError {
    /// The number of elements is not a multiple of the elements of a block.
    Elements {
        /// The type of the blocks.
        block: BlockType,
        /// Elements that were asked for.
        elements: usize,
    },
    /// The number of bytes differs from the size of the blocks.
    Bytes {
        /// The type of the blocks.
        block: BlockType,
        /// Elements that were asked for.
        elements: usize,
        /// Bytes that were given.
        bytes: usize,
        /// Bytes of these elements.
        expected: usize,
    },
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Elements { block, elements } => write!(
                f,
                "{elements} numbers are no whole number of blocks of type {block:?}, which hold {} numbers each",
                block.elements()
            ),
            Self::Bytes { block, elements, bytes, expected } => write!(
                f,
                "{elements} numbers of type {block:?} take {expected} bytes, but {bytes} bytes are given"
            ),
        }
    }
}

impl std::error::Error for BlockError {}

impl BlockType {
    /// Bytes of a number of elements.
    ///
    /// # Errors
    /// The elements are no whole number of blocks.
    pub fn bytes_of(self, elements: usize) -> Result<usize, BlockError> {
        let blocks = elements / self.elements();
        // A product that overflows exceeds every file.
        match elements.is_multiple_of(self.elements()) {
            true => Ok(blocks.saturating_mul(self.bytes())),
            false => Err(BlockError::Elements { block: self, elements }),
        }
    }

    /// Decodes stored blocks into `out`, equal bit for bit to the Python package `gguf`. The bits
    /// of a NaN are not specified.
    ///
    /// # Errors
    /// `out` is no whole number of blocks, or `bytes` does not have the size of these blocks.
    ///
    /// # Example
    ///
    /// ```
    /// use burn_dfa_gguf::block::BlockType;
    ///
    /// // A scale of 0.5 as `f16`, and 32 signed bytes.
    /// let mut block = vec![0x00, 0x38];
    /// block.extend((0..32).map(|number: i8| number.wrapping_neg() as u8));
    /// let mut numbers = [0.0; 32];
    /// BlockType::Q8_0.dequantize(&block, &mut numbers)?;
    /// assert_eq!(numbers[..4], [0.0, -0.5, -1.0, -1.5]);
    /// # Ok::<(), burn_dfa_gguf::block::BlockError>(())
    /// ```
    pub fn dequantize(self, bytes: &[u8], out: &mut [f32]) -> Result<(), BlockError> {
        let elements = out.len();
        let expected = self.bytes_of(elements)?;
        if bytes.len() != expected {
            return Err(BlockError::Bytes { block: self, elements, bytes: bytes.len(), expected });
        }
        match self {
            Self::F32 => each(bytes, out, |bytes, [out]| *out = f32::from_le_bytes(*bytes)),
            Self::F16 => each(bytes, out, |bytes, [out]| *out = f16::from_le_bytes(*bytes).to_f32()),
            Self::BF16 => each(bytes, out, |bytes, [out]| *out = bf16::from_le_bytes(*bytes).to_f32()),
            Self::Q8_0 => each(bytes, out, q8_0),
            Self::Q4_0 => each(bytes, out, q4_0),
            Self::Q4_1 => each(bytes, out, q4_1),
            Self::Q5_0 => each(bytes, out, q5_0),
            Self::Q5_1 => each(bytes, out, q5_1),
            Self::Q2_K => each(bytes, out, q2_k),
            Self::Q3_K => each(bytes, out, q3_k),
            Self::Q4_K => each(bytes, out, q4_k),
            Self::Q5_K => each(bytes, out, q5_k),
            Self::Q6_K => each(bytes, out, q6_k),
        }
        Ok(())
    }
}

/// Decodes blocks of `B` bytes and `N` numbers.
fn each<const B: usize, const N: usize>(
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; B], &mut [f32; N]),
) {
    let (blocks, _) = bytes.as_chunks();
    let (out, _) = out.as_chunks_mut();
    blocks.iter().zip(out).for_each(|(block, out)| decode(block, out));
}

/// The `f16` at an offset.
fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Element `i` of 32 nibbles in 16 bytes: the low nibbles precede the high ones.
fn nibble(bytes: &[u8], i: usize) -> u8 {
    bytes[i % 16] >> (i / 16 * 4) & 15
}

/// Element `i` of 32 numbers of 5 bits: nibbles, and their fifth bits in 4 bytes.
fn five_bits(nibbles: &[u8], fifth: &[u8], i: usize) -> u8 {
    nibble(nibbles, i) | (fifth[i / 8] >> (i % 8) & 1) << 4
}

fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    for (out, q) in out.iter_mut().zip(&block[2..]) {
        *out = f32::from(*q as i8) * d;
    }
}

fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    for (i, out) in out.iter_mut().enumerate() {
        *out = d * (f32::from(nibble(&block[2..], i)) - 8.0);
    }
}

fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (half_at(block, 0), half_at(block, 2));
    for (i, out) in out.iter_mut().enumerate() {
        *out = d * f32::from(nibble(&block[4..], i)) + m;
    }
}

fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = half_at(block, 0);
    for (i, out) in out.iter_mut().enumerate() {
        *out = d * (f32::from(five_bits(&block[6..], &block[2..6], i)) - 16.0);
    }
}

fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (half_at(block, 0), half_at(block, 2));
    for (i, out) in out.iter_mut().enumerate() {
        *out = d * f32::from(five_bits(&block[8..], &block[4..8], i)) + m;
    }
}

/// Element `i` of 256 numbers of 2 bits in 64 bytes: each 32 bytes hold 128 numbers.
fn two_bits(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3
}

fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (scales, q) = (&block[..16], &block[16..80]);
    let (d, m) = (half_at(block, 80), half_at(block, 82));
    for (i, out) in out.iter_mut().enumerate() {
        let scale = scales[i / 16];
        *out = d * f32::from(scale & 15) * f32::from(two_bits(q, i)) - m * f32::from(scale >> 4);
    }
}

fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let (third, q, scales) = (&block[..32], &block[32..96], &block[96..108]);
    let scales = scales_of_q3(scales);
    let d = half_at(block, 108);
    for (i, out) in out.iter_mut().enumerate() {
        let bit = third[i % 32] >> (i / 32) & 1;
        let q = f32::from(two_bits(q, i) | bit << 2) - 4.0;
        *out = d * f32::from(scales[i / 16]) * q;
    }
}

/// The 16 scales of a block of type Q3_K: 6 bits less 32, packed in 12 bytes. The first 8 bytes
/// hold the low nibbles, the last 4 bytes the upper two bits.
pub(crate) fn scales_of_q3(packed: &[u8]) -> [i8; 16] {
    std::array::from_fn(|i| {
        let low = packed[i % 8] >> (i / 8 * 4) & 15;
        let high = packed[8 + i % 4] >> (i / 4 * 2) & 3;
        (low | high << 4) as i8 - 32
    })
}

/// The 8 scales and the 8 minima of a block of type Q4_K or Q5_K: 6 bits each, packed in 12 bytes.
/// The first four of both stand in the low bits of bytes 0 to 7; the others have their low nibbles
/// in bytes 8 to 11 and their upper two bits in the bytes of the first.
pub(crate) fn scales_of_q4(packed: &[u8]) -> [[u8; 8]; 2] {
    let upper = |byte: u8| byte >> 2 & 0x30;
    [
        std::array::from_fn(|i| match i {
            0..4 => packed[i] & 63,
            _ => packed[i + 4] & 15 | upper(packed[i - 4]),
        }),
        std::array::from_fn(|i| match i {
            0..4 => packed[i + 4] & 63,
            _ => packed[i + 4] >> 4 | upper(packed[i]),
        }),
    ]
}

/// Element `i` of 256 nibbles in 128 bytes: each 32 bytes hold 64 numbers.
fn nibble_of_32(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15
}

fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (d, m) = (half_at(block, 0), half_at(block, 2));
    let [scales, minima] = scales_of_q4(&block[4..16]);
    for (i, out) in out.iter_mut().enumerate() {
        let q = f32::from(nibble_of_32(&block[16..], i));
        *out = d * f32::from(scales[i / 32]) * q - m * f32::from(minima[i / 32]);
    }
}

fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (d, m) = (half_at(block, 0), half_at(block, 2));
    let [scales, minima] = scales_of_q4(&block[4..16]);
    let (fifth, q) = (&block[16..48], &block[48..]);
    for (i, out) in out.iter_mut().enumerate() {
        let q = f32::from(nibble_of_32(q, i) | (fifth[i % 32] >> (i / 32) & 1) << 4);
        *out = d * f32::from(scales[i / 32]) * q - m * f32::from(minima[i / 32]);
    }
}

fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let d = half_at(block, 208);
    for (i, out) in out.iter_mut().enumerate() {
        let low = low[i / 128 * 64 + i % 64] >> (i / 64 % 2 * 4) & 15;
        let q = f32::from(low | two_bits(high, i) << 4) - 32.0;
        *out = d * f32::from(scales[i / 16] as i8) * q;
    }
}
