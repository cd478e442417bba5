//! Logs on the device, which the host reads every few steps.

use std::ops::Range;

use burn::backend::ExecutionError;
use burn::tensor::{DType, Device, IndexingUpdateOp, Int, Tensor, TensorData, Transaction};

use super::logprobs::{TokenLogprobs, columns, decode};
use super::row::NewTokens;
use crate::in_place::in_place;
use crate::processor::InPlaceState;
use crate::vocabulary::TokenId;
use burn_dfa_tokens::{Error, Result};

/// One integer per row and step, written on the device and read by the host every few steps.
pub(super) struct StepLog {
    /// `[lines, batch]`: a line per step.
    lines: Tensor<2, Int>,
    /// `[lines, batch * tokens, columns]`, `f32`: the [encoded](super::logprobs::encode)
    /// log-probabilities of the tokens of every row, if they are logged.
    logprobs: Option<Tensor<3>>,
    /// The line of the next step, `[1]`, in a log that every read restarts; `None`: the number of
    /// the step.
    line: Option<Tensor<1, Int>>,
}

impl StepLog {
    /// A log of `lines` steps of `batch` rows.
    pub(super) fn new(lines: usize, batch: usize, device: &Device) -> Self {
        Self { lines: Tensor::zeros([lines, batch], (device, DType::I32)), logprobs: None, line: None }
    }

    /// Also logs log-probabilities of up to `tokens` tokens per row and step, with the `top`
    /// likeliest tokens of each; `None` logs none.
    pub(super) fn with_logprobs(self, top: Option<usize>, tokens: usize) -> Self {
        let ([lines, batch], device) = (self.lines.dims(), self.lines.device());
        let zeros = |top| Tensor::zeros([lines, batch * tokens, columns(top)], (&device, DType::F32));
        Self { logprobs: top.map(zeros), ..self }
    }

    /// Counts its own lines: the first step after a [`rewind`](Self::rewind) writes line 1.
    pub(super) fn restarting(self) -> Self {
        let line = Tensor::ones([1], (&self.lines.device(), DType::I32));
        Self { line: Some(line), ..self }
    }

    /// Writes the values of a step, `[batch]`, and log-probabilities, `[batch * tokens, columns]`,
    /// at the line of the step, `[1]`, unless the log counts its own lines; in place.
    pub(super) fn write(
        &mut self,
        step: &Tensor<1, Int>,
        values: Tensor<1, Int>,
        logprobs: Option<Tensor<2>>,
    ) {
        let (line, values) = (self.line.as_ref().unwrap_or(step).clone(), values.reshape([1, -1]));
        if let (Some(log), Some(new)) = (&mut self.logprobs, logprobs) {
            let (line, new) = (line.clone(), new.unsqueeze::<3>());
            in_place(log, |log| log.select_assign(0, line, new, IndexingUpdateOp::Assign));
        }
        in_place(&mut self.lines, |lines| lines.select_assign(0, line, values, IndexingUpdateOp::Assign));
    }

    /// Moves to the next line, if the log counts its own lines; in place.
    pub(super) fn next_line(&mut self) {
        if let Some(line) = &mut self.line {
            line.assign(line.clone() + 1);
        }
    }

    /// Restarts the log, if it counts its own lines; in place.
    pub(super) fn rewind(&mut self) {
        if let Some(line) = &mut self.line {
            line.assign(line.ones_like());
        }
    }

    /// Writes the value of one row, `[1]`, and its log-probabilities, `[1, columns]`, at a line; in
    /// place.
    pub(super) fn write_row(
        &mut self,
        line: usize,
        row: usize,
        value: Tensor<1, Int>,
        logprobs: Option<Tensor<2>>,
    ) {
        let (line, row) = (line..line + 1, row..row + 1);
        let value = value.reshape([1, 1]);
        in_place(&mut self.lines, |lines| lines.slice_assign([line.clone(), row.clone()], value));
        if let (Some(log), Some(new)) = (&mut self.logprobs, logprobs) {
            let [_, columns] = new.dims();
            in_place(log, |log| log.slice_assign([line, row, 0..columns], new.unsqueeze::<3>()));
        }
    }

    /// Reads some lines, all values at once.
    pub(super) fn read(&self, lines: Range<usize>) -> Result<NewLines> {
        let [_, batch] = self.lines.dims();
        let values = self.lines.clone().slice([lines.clone(), 0..batch]);
        let Some(logprobs) = &self.logprobs else {
            return Ok(NewLines { batch, values: read(values)?, ..NewLines::default() });
        };
        let [_, tokens, columns] = logprobs.dims();
        let logprobs = logprobs.clone().slice([lines, 0..tokens, 0..columns]);
        let device = values.device();
        let read = move || Transaction::default().register(values).register(logprobs).try_execute();
        let read = wait(&device, read)?;
        let [values, logprobs] = <[TensorData; 2]>::try_from(read)
            .map_err(|read| Error::model(format!("tokens: {} tensors were read for 2", read.len())))?;
        let unreadable = |error| Error::model(format!("tokens: {error:?}"));
        Ok(NewLines {
            batch,
            values: values.convert::<i32>().try_to_vec::<i32>().map_err(unreadable)?,
            logprobs: logprobs.convert::<f32>().try_to_vec::<f32>().map_err(unreadable)?,
            tokens: tokens / batch,
            columns,
        })
    }
}

/// Waits for a value of a device; for a server, at most until its deadline.
#[cfg_attr(not(feature = "remote"), allow(unused_variables, reason = "other devices have no deadline"))]
fn wait<T: Send + 'static>(
    device: &Device,
    read: impl FnOnce() -> std::result::Result<T, ExecutionError> + Send + 'static,
) -> Result<T> {
    #[cfg(feature = "remote")]
    if crate::remote::is_remote(device) {
        let lost = |error: ExecutionError| {
            Error::connection(format!("the connection is lost ({}): connect again", error.reason()))
        };
        return crate::remote::within(crate::remote::deadline(device), read)?.map_err(lost);
    }
    read().map_err(|error| Error::model(format!("tokens: {error}")))
}

/// Reads integers back from the device.
pub(super) fn read<const D: usize>(tensor: Tensor<D, Int>) -> Result<Vec<i32>> {
    let device = tensor.device();
    let data = wait(&device, move || tensor.try_into_data())?;
    data.try_to_vec::<i32>().map_err(|error| Error::model(format!("tokens: {error:?}")))
}

/// Lines of a log, on the host.
#[derive(Default)]
pub(super) struct NewLines {
    /// Number of rows.
    batch: usize,
    /// One row of the batch after the other within a line.
    values: Vec<i32>,
    /// As `values`, one token of the row after the other; empty if they are not logged.
    logprobs: Vec<f32>,
    /// Tokens of a row in a line.
    tokens: usize,
    /// Numbers of a token.
    columns: usize,
}

impl NewLines {
    /// The values of a row, one per line.
    pub(super) fn values(&self, row: usize) -> impl Iterator<Item = i32> {
        self.values.iter().skip(row).step_by(self.batch.max(1)).copied()
    }

    /// The log-probabilities of the first `count` tokens of a row in a line; none if they are not
    /// logged.
    pub(super) fn logprobs(
        &self,
        line: usize,
        row: usize,
        count: usize,
    ) -> impl Iterator<Item = TokenLogprobs> {
        let first = (line * self.batch + row) * self.tokens;
        self.logprobs.chunks_exact(self.columns.max(1)).skip(first).take(count).map(decode)
    }

    /// The tokens of every row if a step logs one token per row.
    pub(super) fn tokens(&self) -> Vec<NewTokens> {
        let tokens = |row| {
            let tokens: Vec<_> = self.values(row).map(|token| TokenId(token as u32)).collect();
            let logprobs = (0..tokens.len()).flat_map(|line| self.logprobs(line, row, 1)).collect();
            NewTokens { tokens, logprobs, calls: Vec::new() }
        };
        (0..self.batch).map(tokens).collect()
    }
}
