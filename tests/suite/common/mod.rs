//! What several test files share.

pub mod data;
pub mod devices;
pub mod model;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// An `i32` tensor.
pub fn ints(values: Vec<i32>, device: &Device) -> Tensor<1, Int> {
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), (device, DType::I32))
}
