//! [`Blocks`]: a matrix in the blocks of a GGUF file, which multiplies as it is stored.
//!
//! The blocks are read by the threads of the CPU, where Flex keeps its tensors. So only a model on
//! Flex keeps them; see [`Decoder::load`](crate::Decoder::load).

use std::fmt;

use burn::tensor::{Bytes, Int, Tensor, TensorData};
use burn_dfa_gguf::block::{BlockError, BlockType};
use burn_dfa_gguf::product::products;

/// A matrix `[outputs, inputs]` as it is stored, with its rows in the order of a Hugging Face
/// folder.
pub(crate) struct Blocks {
    /// The type of the blocks.
    pub(crate) block: BlockType,
    /// The number of rows, and of elements of a row.
    pub(crate) shape: [usize; 2],
    /// The blocks, row by row: mapped, or copied if the rows are stored in another order.
    pub(crate) bytes: Bytes,
}

impl Blocks {
    /// Checks that the bytes are the blocks of such a matrix.
    pub(crate) fn check(&self) -> Result<(), BlockError> {
        let [outputs, inputs] = self.shape;
        let (block, expected) = (self.block, self.block.bytes_of(inputs)?.saturating_mul(outputs));
        if self.bytes.len() == expected {
            return Ok(());
        }
        Err(BlockError::Bytes { block, elements: outputs * inputs, bytes: self.bytes.len(), expected })
    }

    /// Rows `[rows, inputs]` times the transpose of each matrix.
    pub(crate) fn products<const N: usize>(matrices: [&Self; N], x: Tensor<2>) -> [Tensor<2>; N] {
        let (device, dtype, [rows, inputs]) = (x.device(), x.dtype(), x.dims());
        let x = x.into_data().convert::<f32>();
        let x = x.as_slice().expect("floats");
        let stored = matrices.map(|matrix| (matrix.block, &matrix.bytes[..]));
        let mut products = products(stored, x, inputs).expect("blocks that were checked").into_iter();
        matrices.map(|matrix| {
            let y = products.next().expect("a product for each matrix");
            Tensor::from_data(TensorData::new(y, [matrix.shape[0], rows]), (&device, dtype)).transpose()
        })
    }

    /// The rows of tokens `[batch, length]`, `[batch, length, inputs]`.
    pub(crate) fn select(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let (device, [batch, length], [_, inputs]) = (tokens.device(), tokens.dims(), self.shape);
        let row = self.block.bytes_of(inputs).expect("blocks that were checked");
        let mut rows = vec![0.0; batch * length * inputs];
        for (token, numbers) in tokens.into_data().iter::<i64>().zip(rows.chunks_exact_mut(inputs)) {
            let from = token as usize * row;
            let decoded = self.block.dequantize(&self.bytes[from..from + row], numbers);
            decoded.expect("blocks that were checked");
        }
        Tensor::from_data(TensorData::new(rows, [batch, length, inputs]), &device)
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, shape, .. } = self;
        f.debug_struct("Blocks").field("block", block).field("shape", shape).finish_non_exhaustive()
    }
}
