//! Checked requests, and their data for the device.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::config::GenerationConfig;
use super::model::CausalLm;
use super::options::{SamplingFeatures, SamplingOptions};
use super::request::Request;
use super::row::Row;
use crate::processor::ConstraintProcessor;
use crate::tensor::DeviceConstraint;
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{CompiledConstraint, Error, Result};

/// Requests that fit a model and its vocabulary.
pub(super) struct Batch<'a> {
    requests: &'a [Request],
    unconstrained: &'a CompiledConstraint,
    /// How the tokens of each row are chosen.
    pub(super) options: Vec<SamplingOptions>,
    /// Every distinct compiled constraint once.
    pub(super) tables: Vec<&'a CompiledConstraint>,
    /// The index into `tables` of each row.
    pub(super) rows: Vec<usize>,
    /// Tokens of the longest prompt.
    pub(super) length: usize,
    /// Tokens to generate, at most.
    pub(super) steps: usize,
}

/// Refuses a model whose rows of logits are too narrow.
pub(super) fn check_model<M: CausalLm>(model: &M, vocabulary: &Vocabulary) -> Result<()> {
    let vocab_size = model.vocab_size();
    if vocab_size < vocabulary.len() {
        return Err(Error::incompatible_vocabulary(format!(
            "the model's rows of {vocab_size} logits are narrower than the vocabulary of {} tokens: read the vocabulary from the folder of this model",
            vocabulary.len()
        )));
    }
    Ok(())
}

/// Refuses a request that no batch of a model of `vocab_size` logits can take.
pub(super) fn check_request(
    row: usize,
    request: &Request,
    vocab_size: usize,
    vocabulary: &Vocabulary,
) -> Result<()> {
    if request.prompt.is_empty() {
        return Err(Error::input(format!(
            "row {row}: the prompt has no token; begin with the model's first token"
        )));
    }
    if request.max_new_tokens == 0 {
        return Err(Error::input(format!("row {row}: max_new_tokens of 0 leaves nothing to generate")));
    }
    if let Some(token) = request.prompt.iter().find(|token| token.index() >= vocab_size) {
        return Err(Error::input(format!(
            "row {row}: prompt token {token} of a model of {vocab_size} tokens"
        )));
    }
    if request.stop.iter().any(String::is_empty) {
        return Err(Error::input(format!(
            "row {row}: a stop string without a letter would end every output"
        )));
    }
    if let Some(token) = request.stop_tokens.iter().find(|token| token.index() >= vocab_size) {
        return Err(Error::input(format!("row {row}: stop token {token} of a model of {vocab_size} tokens")));
    }
    if request.constraint.is_some() && request.pending.is_some() {
        return Err(Error::input(format!(
            "row {row}: a constraint and another one that is pending: leave one of them out"
        )));
    }
    request.constraint.as_ref().map_or(Ok(()), |constraint| constraint.check_vocabulary(vocabulary))
}

impl<'a> Batch<'a> {
    /// Makes all checks that need no device. Rows without options use `sampling`, rows without a
    /// constraint follow `unconstrained`.
    pub(super) fn new<M: CausalLm>(
        model: &M,
        vocabulary: &Vocabulary,
        requests: &'a [Request],
        sampling: &SamplingOptions,
        unconstrained: &'a CompiledConstraint,
    ) -> Result<Self> {
        check_model(model, vocabulary)?;
        if requests.is_empty() {
            return Err(Error::input("a batch needs at least one request"));
        }
        let mut tables: Vec<&CompiledConstraint> = Vec::new();
        let mut rows = Vec::with_capacity(requests.len());
        let mut options = Vec::with_capacity(requests.len());
        for (row, request) in requests.iter().enumerate() {
            check_request(row, request, model.vocab_size(), vocabulary)?;
            if request.pending.is_some() {
                return Err(Error::input(format!(
                    "row {row}: its constraint is pending, which only `ContinuousBatch` accepts: wait for it first, by `PendingConstraint::wait`"
                )));
            }
            let sampling = request.sampling.as_ref().unwrap_or(sampling);
            SamplingFeatures::ALL.admit(row, sampling)?;
            options.push(sampling.clone());
            let table = request.constraint.as_ref().unwrap_or(unconstrained);
            let known = tables.iter().position(|other| other.is(table));
            rows.push(known.unwrap_or(tables.len()));
            if known.is_none() {
                tables.push(table);
            }
        }
        let steps = requests.iter().map(|request| request.max_new_tokens).max().unwrap_or(0);
        let length = requests.iter().map(|request| request.prompt.len()).max().unwrap_or(0);
        if let Some(most) = model.max_positions()
            && length.saturating_add(steps) > most
        {
            return Err(Error::input(format!(
                "prompts of up to {length} tokens and {steps} new ones exceed the model's {most} positions"
            )));
        }
        Ok(Self { requests, unconstrained, options, tables, rows, length, steps })
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// The sampling features that the rows use.
    pub(super) fn kinds(&self) -> SamplingFeatures {
        self.options.iter().map(SamplingFeatures::of).fold(SamplingFeatures::NONE, SamplingFeatures::or)
    }

    /// The constraints as a processor of their own.
    pub(super) fn constraint(
        &self,
        config: &GenerationConfig,
        vocab_size: usize,
        device: &Device,
    ) -> Result<ConstraintProcessor> {
        let table = DeviceConstraint::new(&self.tables, vocab_size, &config.tensors, device)?;
        ConstraintProcessor::new(table, &self.rows)?.with_budgets(&self.budgets())
    }

    /// Replaces the constraints of `processor`.
    pub(super) fn constrain(&self, processor: &mut ConstraintProcessor) -> Result<()> {
        processor.replace(&self.tables, &self.rows, &self.budgets())
    }

    fn budgets(&self) -> Vec<usize> {
        self.requests.iter().map(|request| request.max_new_tokens).collect()
    }

    /// The seed of each row.
    pub(super) fn seeds(&self) -> Vec<u64> {
        self.requests.iter().map(|request| request.seed).collect()
    }

    /// The host's view of the rows.
    pub(super) fn rows<'v>(&self, vocabulary: &'v Vocabulary) -> Vec<Row<'v>> {
        self.requests.iter().map(|request| Row::new(request, vocabulary, self.unconstrained)).collect()
    }

    /// The prompts, `[batch, length]`, and the padding of each, `[batch]`.
    pub(super) fn left_padded(&self, device: &Device) -> (Tensor<2, Int>, Tensor<1, Int>) {
        let (batch, length) = (self.len(), self.length);
        let mut tokens: Vec<i32> = Vec::with_capacity(batch * length);
        let mut padding: Vec<i32> = Vec::with_capacity(batch);
        for request in self.requests {
            let pad = length - request.prompt.len();
            padding.push(pad as i32);
            tokens.extend(std::iter::repeat_n(0, pad));
            tokens.extend(request.prompt.iter().map(|token| token.0 as i32));
        }
        let tokens = TensorData::new(tokens, [batch, length]);
        let padding = TensorData::new(padding, [batch]);
        (Tensor::from_data(tokens, device), Tensor::from_data(padding, device))
    }
}
