//! What the host reads of a batch now and then.

use std::ops::Range;

use burn::tensor::{DType, Device, IndexingUpdateOp, Int, Tensor};

use crate::error::{Error, Result};

/// One integer per row and step, written on the device and read by the host every few steps.
pub(super) struct StepLog {
    /// `[lines, batch]`: a line per step.
    lines: Tensor<2, Int>,
}

impl StepLog {
    /// Room for `lines` steps of `batch` rows.
    pub(super) fn new(lines: usize, batch: usize, device: &Device) -> Self {
        Self { lines: Tensor::zeros([lines, batch], (device, DType::I32)) }
    }

    /// Writes the values of a step, `[batch]`, at a line, `[1]`; in place.
    pub(super) fn write(&mut self, line: &Tensor<1, Int>, values: Tensor<1, Int>) {
        let (line, values) = (line.clone(), values.reshape([1, -1]));
        self.lines.inplace(|lines| lines.select_assign(0, line, values, IndexingUpdateOp::Assign));
    }

    /// Writes the value of one row, `[1]`, at a line; in place.
    pub(super) fn write_row(&mut self, line: usize, row: usize, value: Tensor<1, Int>) {
        let value = value.reshape([1, 1]);
        self.lines.inplace(|lines| lines.slice_assign([line..line + 1, row..row + 1], value));
    }

    /// Reads some lines, one row of the batch after the other within a line.
    pub(super) fn read(&self, lines: Range<usize>) -> Result<Vec<i32>> {
        let [_, batch] = self.lines.dims();
        read(self.lines.clone().slice([lines, 0..batch]))
    }
}

/// Reads integers back from the device.
pub(super) fn read<const D: usize>(tensor: Tensor<D, Int>) -> Result<Vec<i32>> {
    let data = tensor.try_into_data().map_err(|error| Error::model(format!("tokens: {error}")))?;
    data.try_to_vec::<i32>().map_err(|error| Error::model(format!("tokens: {error:?}")))
}
