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

/// The values of a mask, however its device stores them.
pub fn bools<const D: usize>(mask: Tensor<D, Bool>) -> Vec<bool> {
    let values = mask.int().cast(DType::I32).into_data().try_to_vec::<i32>().unwrap();
    values.into_iter().map(|value| value != 0).collect()
}
