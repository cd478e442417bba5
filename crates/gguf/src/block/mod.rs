//! [`BlockType`]: how a GGUF file stores the numbers of a tensor.

mod dequantize;

pub use dequantize::BlockError;

/// How a GGUF file stores the numbers of a tensor: as floats, or in blocks of quantized numbers.
///
/// ```
/// use burn_dfa_gguf::block::BlockType;
///
/// let block = BlockType::from_id(3).unwrap();
/// assert_eq!(block, BlockType::Q4_1);
/// assert_eq!((block.elements(), block.bytes()), (32, 20));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types)]
#[non_exhaustive]
pub enum BlockType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats with 5 bits of exponent.
    F16,
    /// 16-bit floats with 8 bits of exponent.
    BF16,
    /// 8 bits and a scale for 32 numbers.
    Q8_0,
    /// 4 bits and a scale for 32 numbers.
    Q4_0,
    /// 4 bits, a scale and a minimum for 32 numbers.
    Q4_1,
    /// 5 bits and a scale for 32 numbers.
    Q5_0,
    /// 5 bits, a scale and a minimum for 32 numbers.
    Q5_1,
    /// 2 bits, with scales and minima of 4 bits for 16 numbers each, in blocks of 256.
    Q2_K,
    /// 3 bits, with scales of 6 bits for 16 numbers each, in blocks of 256.
    Q3_K,
    /// 4 bits, with scales and minima of 6 bits for 32 numbers each, in blocks of 256.
    Q4_K,
    /// 5 bits, with scales and minima of 6 bits for 32 numbers each, in blocks of 256.
    Q5_K,
    /// 6 bits, with scales of 8 bits for 16 numbers each, in blocks of 256.
    Q6_K,
}

impl BlockType {
    /// All block types.
    pub const ALL: [Self; 13] = [
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::Q8_0,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q2_K,
        Self::Q3_K,
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
    ];

    /// The number that stands for this type in a file.
    pub fn id(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q4_1 => 3,
            Self::Q5_0 => 6,
            Self::Q5_1 => 7,
            Self::Q8_0 => 8,
            Self::Q2_K => 10,
            Self::Q3_K => 11,
            Self::Q4_K => 12,
            Self::Q5_K => 13,
            Self::Q6_K => 14,
            Self::BF16 => 30,
        }
    }

    /// The type of a number in a file, if it is known.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|block| block.id() == id)
    }

    /// Numbers in a block. The length of a row is a multiple of it.
    pub fn elements(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => 1,
            Self::Q8_0 | Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 => 32,
            Self::Q2_K | Self::Q3_K | Self::Q4_K | Self::Q5_K | Self::Q6_K => 256,
        }
    }

    /// Bytes of a block.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::Q8_0 => 34,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q2_K => 84,
            Self::Q3_K => 110,
            Self::Q4_K => 144,
            Self::Q5_K => 176,
            Self::Q6_K => 210,
        }
    }
}
