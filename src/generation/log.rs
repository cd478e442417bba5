//! Logs on the device, which the host reads every few steps.

use std::ops::Range;

use burn::backend::ExecutionError;
use burn::tensor::{DType, Device, IndexingUpdateOp, Int, Tensor, TensorData, Transaction};

use super::logprobs::{Logprobs, TokenLogprobs};
use super::row::NewTokens;
use crate::processor::{Chain, LogitsProcessor, StepContext};
use crate::sampling::Sampler;
use crate::vocabulary::TokenId;
use burn_dfa_tokens::{Error, Result};

/// One integer per row and step, written on the device and read by the host every few steps.
pub(super) struct StepLog {
    /// `[lines, batch]`: a line per step.
    lines: Tensor<2, Int>,
}

impl StepLog {
    /// A log of `lines` steps of `batch` rows.
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

    /// Reads some lines, with the log-probabilities of the same tokens if they are logged; all at
    /// once.
    pub(super) fn read_with(&self, logprobs: Option<&LogprobLog>, lines: Range<usize>) -> Result<NewLines> {
        let Some(logprobs) = logprobs else {
            return Ok(NewLines { tokens: self.read(lines)?, logprobs: None });
        };
        let [_, batch] = self.lines.dims();
        let tokens = self.lines.clone().slice([lines.clone(), 0..batch]);
        let values = logprobs.lines.clone().slice([lines, 0..batch, 0..logprobs.columns()]);
        let device = tokens.device();
        let read = move || Transaction::default().register(tokens).register(values).try_execute();
        let read = wait(&device, read)?;
        let [tokens, values] = <[TensorData; 2]>::try_from(read)
            .map_err(|read| Error::model(format!("tokens: {} tensors were read for 2", read.len())))?;
        let unreadable = |error| Error::model(format!("tokens: {error:?}"));
        Ok(NewLines {
            tokens: tokens.convert::<i32>().try_to_vec::<i32>().map_err(unreadable)?,
            logprobs: Some(LogprobLines {
                values: values.convert::<f32>().try_to_vec::<f32>().map_err(unreadable)?,
                top: logprobs.top,
            }),
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

/// Lines of the log, on the host: one row of the batch after the other within a line.
#[derive(Default)]
pub(super) struct NewLines {
    tokens: Vec<i32>,
    logprobs: Option<LogprobLines>,
}

struct LogprobLines {
    values: Vec<f32>,
    top: usize,
}

impl NewLines {
    /// The tokens of one of `batch` rows, and their log-probabilities if they were logged.
    pub(super) fn of_row(&self, row: usize, batch: usize) -> NewTokens {
        let tokens = self.tokens.iter().skip(row).step_by(batch);
        let tokens = tokens.map(|&token| TokenId(token as u32)).collect();
        let Some(LogprobLines { values, top }) = &self.logprobs else {
            return NewTokens { tokens, logprobs: Vec::new() };
        };
        let columns = values.chunks_exact(columns(*top)).skip(row).step_by(batch);
        let of_token = |values: &[f32]| {
            let (model, constrained) = values.split_at(values.len() / 2);
            TokenLogprobs { model: logprobs(model), constrained: logprobs(constrained) }
        };
        NewTokens { tokens, logprobs: columns.map(of_token).collect() }
    }
}

/// Splits the log-probability of the chosen token, the log-probabilities of the likeliest tokens,
/// and their ids.
fn logprobs(values: &[f32]) -> Logprobs {
    let (chosen, rest) = values.split_first().expect("the chosen token comes first");
    let (top, ids) = rest.split_at(rest.len() / 2);
    let top = top.iter().zip(ids).filter(|(logprob, _)| **logprob > MASKED / 2.0);
    Logprobs { chosen: *chosen, top: top.map(|(&logprob, &id)| (TokenId(id as u32), logprob)).collect() }
}

/// Two distributions: the chosen token, and the likeliest with their ids.
const fn columns(top: usize) -> usize {
    2 * (1 + 2 * top)
}

/// The log-probabilities of the chosen and the likeliest tokens per row and step, parallel to a
/// [`StepLog`].
pub(super) struct LogprobLog {
    /// `[lines, batch, columns]`, `f32`, which holds token ids up to 2²⁴ exactly.
    lines: Tensor<3>,
    top: usize,
}

impl LogprobLog {
    /// A log of `lines` steps of `batch` rows, with the `top` likeliest tokens of each.
    pub(super) fn new(lines: usize, batch: usize, top: usize, device: &Device) -> Self {
        Self { lines: Tensor::zeros([lines, batch, columns(top)], (device, DType::F32)), top }
    }

    fn columns(&self) -> usize {
        columns(self.top)
    }

    /// The log entry of one step, `[batch, columns]`.
    ///
    /// # Shapes
    /// - `logits`, `masked`: `[batch, vocab_size]`, of the model and within the constraint
    /// - `chosen`: `[batch]`
    fn of_step(&self, logits: Tensor<2>, masked: Tensor<2>, chosen: &Tensor<1, Int>) -> Tensor<2> {
        // Both in one pass: of two gathers by the same ids, Burn's fusion on WGPU gets the second
        // wrong.
        let [batch, _] = logits.dims();
        let logits = Tensor::cat(vec![logits, masked], 0);
        let chosen = Tensor::cat(vec![chosen.clone(), chosen.clone()], 0);
        let both = Tensor::cat(distribution(logits, &chosen, self.top), 1);
        let [model, constrained] = [0..batch, batch..2 * batch].map(|rows| both.clone().slice([rows]));
        Tensor::cat(vec![model, constrained], 1)
    }

    /// Writes the log entry of a step, `[batch, columns]`, at a line, `[1]`; in place.
    pub(super) fn write(&mut self, line: &Tensor<1, Int>, values: Tensor<2>) {
        let (line, values) = (line.clone(), values.unsqueeze::<3>());
        self.lines.inplace(|lines| lines.select_assign(0, line, values, IndexingUpdateOp::Assign));
    }

    /// Writes the log entry of one row, `[1, columns]`, at a line; in place.
    pub(super) fn write_row(&mut self, line: usize, row: usize, values: Tensor<2>) {
        let (values, columns) = (values.unsqueeze::<3>(), self.columns());
        let place = [line..line + 1, row..row + 1, 0..columns];
        self.lines.inplace(|lines| lines.slice_assign(place, values));
    }
}

/// Stands for −∞.
const MASKED: f32 = -1e30;

/// Chooses a token per row; returns the log entry of its log-probabilities if they are logged.
pub(super) fn choose<A: LogitsProcessor, B: LogitsProcessor>(
    chain: &Chain<A, B>,
    state: &mut (A::State, B::State),
    context: &mut StepContext,
    logits: Tensor<2>,
    sampler: &dyn Sampler,
    log: &Option<LogprobLog>,
) -> Option<Tensor<2>> {
    let Some(log) = log else {
        chain.sample_step(state, context, logits, sampler);
        return None;
    };
    let masked = chain.choose_observed(state, context, logits.clone(), sampler);
    Some(log.of_step(logits, masked, &context.tokens))
}

/// The log-probability of the chosen token, `[batch, 1]`, the log-probabilities of the likeliest
/// tokens and their ids, `[batch, top]` each.
fn distribution(logits: Tensor<2>, chosen: &Tensor<1, Int>, top: usize) -> Vec<Tensor<2>> {
    // Finite throughout: a top-k on WGPU gives the least finite number for −∞.
    let ([batch, vocab_size], logits) = (logits.dims(), logits.cast(DType::F32).clamp_min(MASKED));
    let greatest = logits.clone().max_dim(1);
    let total = (logits.clone() - greatest.clone()).exp().sum_dim(1).log() + greatest;
    let of_chosen = logits.clone().gather(1, chosen.clone().reshape([batch, 1])) - total.clone();
    let mut parts = vec![of_chosen];
    if top > 0 {
        let (values, ids) = logits.topk_with_indices(top.min(vocab_size), 1);
        let missing = top.saturating_sub(vocab_size);
        parts.push(pad(values - total, missing, MASKED));
        parts.push(pad(ids.float().cast(DType::F32), missing, 0.0));
    }
    parts
}

/// Appends columns if the vocabulary has fewer tokens than requested.
fn pad(values: Tensor<2>, columns: usize, value: f32) -> Tensor<2> {
    if columns == 0 {
        return values;
    }
    let batch = values.dims()[0];
    let more = Tensor::full([batch, columns], value, (&values.device(), DType::F32));
    Tensor::cat(vec![values, more], 1)
}
