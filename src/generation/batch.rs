//! Requests that begin together, and their data for the device.

use burn::tensor::{DType, Device, Tensor, TensorData};

use super::admission::Admission;
use super::config::GenerationConfig;
use super::model::CausalLm;
use super::options::{SamplingFeatures, SamplingOptions};
use super::request::Request;
use super::row::Row;
use crate::processor::{ConstraintProcessor, InitContext};
use crate::tensor::DeviceConstraint;
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{CompiledConstraint, Error, Result};

/// Requests that fit a model and its vocabulary.
pub(super) struct Batch<'a, 'v> {
    admission: &'a Admission<'v>,
    requests: &'a [Request],
    /// How the tokens of each row are chosen.
    pub(super) options: Vec<SamplingOptions>,
    /// Every distinct compiled constraint once.
    pub(super) constraints: Vec<&'a CompiledConstraint>,
    /// The index into `constraints` of each row.
    pub(super) rows: Vec<usize>,
    /// Tokens of the longest prompt.
    pub(super) length: usize,
    /// Tokens to generate, at most.
    pub(super) steps: usize,
}

impl<'a, 'v> Batch<'a, 'v> {
    /// Makes all checks that need no device.
    pub(super) fn new<M: CausalLm>(
        model: &M,
        admission: &'a Admission<'v>,
        requests: &'a [Request],
    ) -> Result<Self> {
        if requests.is_empty() {
            return Err(Error::input("a batch needs at least one request"));
        }
        admission.check_rows(requests.len(), "make it for the rows and the logits of this batch")?;
        let mut constraints: Vec<&CompiledConstraint> = Vec::new();
        let mut rows = Vec::with_capacity(requests.len());
        for (row, request) in requests.iter().enumerate() {
            admission.check(row, request)?;
            if request.pending.is_some() {
                return Err(Error::input(format!(
                    "row {row}: its constraint is pending, which only `ContinuousBatch` accepts: wait for it first, by `PendingConstraint::wait`"
                )));
            }
            let constraint = admission.constraint(request);
            let known = constraints.iter().position(|other| other.is(constraint));
            rows.push(known.unwrap_or(constraints.len()));
            if known.is_none() {
                constraints.push(constraint);
            }
        }
        let options = requests.iter().map(|request| admission.options(request).clone()).collect();
        let steps = requests.iter().map(|request| request.max_new_tokens).max().unwrap_or(0);
        let length = requests.iter().map(|request| request.prompt.len()).max().unwrap_or(0);
        if let Some(max) = model.max_positions()
            && length.saturating_add(steps) > max
        {
            return Err(Error::input(format!(
                "prompts of up to {length} tokens and {steps} new ones exceed the model's {max} positions"
            )));
        }
        Ok(Self { admission, requests, options, constraints, rows, length, steps })
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn vocabulary(&self) -> &'v Vocabulary {
        self.admission.vocabulary
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
        let device_constraint =
            DeviceConstraint::new(&self.constraints, vocab_size, &config.tensors, device)?;
        ConstraintProcessor::new(device_constraint, &self.rows)?.with_budgets(&self.budgets())
    }

    /// Replaces the constraints of `processor`.
    pub(super) fn constrain(&self, processor: &mut ConstraintProcessor) -> Result<()> {
        processor.replace(&self.constraints, &self.rows, &self.budgets())
    }

    fn budgets(&self) -> Vec<usize> {
        self.requests.iter().map(|request| request.max_new_tokens).collect()
    }

    /// The seed of each row.
    pub(super) fn seeds(&self) -> Vec<u64> {
        self.requests.iter().map(|request| request.seed).collect()
    }

    /// The host's view of the rows.
    pub(super) fn host_rows(&self) -> Vec<Row<'v>> {
        let requests = self.requests.iter().enumerate();
        requests.map(|(row, request)| self.admission.row(row, request)).collect()
    }

    /// The prompts, left padded.
    pub(super) fn prompts(&self, vocab_size: usize, device: &Device) -> InitContext {
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
        InitContext {
            prompt: Tensor::from_data(tokens, (device, DType::I32)),
            padding: Tensor::from_data(padding, (device, DType::I32)),
            vocab_size,
        }
    }
}
