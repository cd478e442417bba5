//! Admission of requests: their checks, and the defaults of the rows.

use super::config::GenerationConfig;
use super::model::CausalLm;
use super::options::{SamplingFeatures, SamplingOptions};
use super::processors::Processors;
use super::request::Request;
use super::row::Row;
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{CompiledConstraint, Error, Result};

/// Admits requests to batches of a model.
pub(super) struct Admission<'v> {
    pub(super) vocabulary: &'v Vocabulary,
    /// Width of a row of logits.
    vocab_size: usize,
    /// The features that requests may use.
    pub(super) features: SamplingFeatures,
    /// The options of rows whose requests have none.
    sampling: SamplingOptions,
    /// The processors of the application.
    processors: Processors,
    /// The constraint of rows whose requests have none.
    unconstrained: CompiledConstraint,
}

impl<'v> Admission<'v> {
    /// Admission of requests with any options. Checks the configuration, and refuses a model whose
    /// rows of logits are too narrow.
    pub(super) fn new<M: CausalLm>(
        model: &M,
        vocabulary: &'v Vocabulary,
        config: &GenerationConfig,
    ) -> Result<Self> {
        config.check()?;
        let vocab_size = model.vocab_size();
        if vocab_size < vocabulary.len() {
            return Err(Error::incompatible_vocabulary(format!(
                "the model's rows of {vocab_size} logits are narrower than the vocabulary of {} tokens: read the vocabulary from the folder of this model",
                vocabulary.len()
            )));
        }
        Ok(Self {
            vocabulary,
            vocab_size,
            features: SamplingFeatures::ALL,
            sampling: config.sampling.clone(),
            processors: config.processors.clone(),
            unconstrained: CompiledConstraint::unconstrained(vocabulary),
        })
    }

    /// Refuses a processor of the application that cannot process batches of `rows` rows of logits.
    /// `remedy` is the remedy for a processor of other rows.
    pub(super) fn check_rows(&self, rows: usize, remedy: &str) -> Result<()> {
        self.processors.check_shape([rows, self.vocab_size], remedy)
    }

    /// Makes all checks of a request that need no batch.
    pub(super) fn check(&self, row: usize, request: &Request) -> Result<()> {
        let vocab_size = self.vocab_size;
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
            return Err(Error::input(format!(
                "row {row}: stop token {token} of a model of {vocab_size} tokens"
            )));
        }
        if request.constraint.is_some() && request.pending.is_some() {
            return Err(Error::input(format!(
                "row {row}: a constraint and another one that is pending: leave one of them out"
            )));
        }
        if let Some(constraint) = &request.constraint {
            constraint.check_vocabulary(self.vocabulary)?;
        }
        self.features.admit(row, self.options(request))
    }

    /// How the tokens of a request are chosen.
    pub(super) fn options<'a>(&'a self, request: &'a Request) -> &'a SamplingOptions {
        request.sampling.as_ref().unwrap_or(&self.sampling)
    }

    /// The constraint of a request.
    pub(super) fn constraint<'a>(&'a self, request: &'a Request) -> &'a CompiledConstraint {
        request.constraint.as_ref().unwrap_or(&self.unconstrained)
    }

    /// The host's view of a row.
    pub(super) fn row(&self, index: usize, request: &Request) -> Row<'v> {
        Row::new(index, request, self.constraint(request), self.vocabulary)
    }
}
