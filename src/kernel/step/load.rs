//! How kernels load the logits of a row: up to 16 bytes at once, of any type.
//!
//! Logits of 16 bits are loaded in pairs, as words of 32 bits: WGSL has vectors of at most four
//! numbers, so four logits would be 8 bytes. Rows of an odd size do not begin at words, and are
//! loaded one logit at a time.

use burn::backend::cubecl::dtype_to_storage_type;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::ElemType;

use super::packing::Packing;

/// The most words of a load: 16 bytes.
const MAX_WORDS: usize = 4;

/// The loads of a kernel.
#[derive(Clone, Copy)]
pub(super) struct Load {
    /// The type of the numbers that are loaded.
    pub(super) kind: ElemType,
    /// The numbers of a load.
    pub(super) numbers: usize,
    pub(super) packing: Packing,
}

impl Load {
    /// The loads of `logits`, whose rows are contiguous.
    pub(super) fn of(logits: &CubeTensor) -> Self {
        let kind = dtype_to_storage_type(logits.dtype);
        let packing = Packing::of(kind);
        let (client, meta) = (&logits.client, &logits.meta);
        let words = client.io_optimized_vector_sizes(4).filter(|words| *words <= MAX_WORDS);
        let sizes = words.map(|words| words * packing.count());
        match cubecl::try_tensor_vector_size_parallel(sizes, meta.shape(), meta.strides(), 1) {
            Ok(size) => Self { kind: packing.numbers(kind), numbers: size / packing.count(), packing },
            Err(_) => Self { kind, numbers: 1, packing: Packing::One },
        }
    }

    /// The loads from a row to the next one.
    pub(super) fn vectors(&self, logits: &CubeTensor) -> u32 {
        (logits.meta.strides()[0] / (self.numbers * self.packing.count())) as u32
    }
}
