//! Shared code of the test programs.

#![allow(dead_code)]

pub mod altered;
pub mod devices;
pub mod embedded;
pub mod model;

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};

/// An `i32` tensor.
pub fn ints(values: Vec<i32>, device: &Device) -> Tensor<1, Int> {
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), (device, DType::I32))
}

/// The bytes of a pool of `slots` mask rows of up to 8,192 tokens, see
/// `TensorOptions::mask_rows_bytes`.
pub fn mask_rows_bytes(slots: usize, has_stack: bool) -> usize {
    // The numbers of 32 bits before the tags; the tag of a row, its bound, and a word for every 32
    // tokens, with a stack two.
    let row = 8 + 1 + if has_stack { 512 } else { 256 };
    4 * (8 + slots * row)
}

/// The values of a mask, however its device stores them.
pub fn bools<const D: usize>(mask: Tensor<D, Bool>) -> Vec<bool> {
    let values = mask.int().cast(DType::I32).into_data().try_to_vec::<i32>().unwrap();
    values.into_iter().map(|value| value != 0).collect()
}
