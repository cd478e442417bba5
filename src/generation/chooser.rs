//! The choice of tokens in a batch: the constraint, the processors after it, and the sampler, with
//! their states on the device.

use std::slice;

use burn::tensor::{DType, Int, Tensor};

use super::config::GenerationConfig;
use super::logprobs::encode;
use super::options::{SamplingFeatures, SamplingOptions};
use super::processors::Filters;
use super::selection::{BatchSampler, filters};
use crate::processor::{
    Chain, ConstraintProcessor, InPlaceState, InitContext, LogitsProcessor, Position, RowState, StepContext,
};
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::Result;

type Processor = Chain<ConstraintProcessor, Filters>;

/// Chooses a token per row.
///
/// Its tensors are the only handles of their buffers, and every method writes them in place, so a
/// step can be recorded. Only the pool of mask rows has further handles: kernels write to its
/// buffer.
pub(super) struct Chooser {
    chain: Processor,
    state: <Processor as LogitsProcessor>::State,
    sampler: BatchSampler,
    vocabulary: Vocabulary,
    /// The features that rows may use.
    kinds: SamplingFeatures,
    /// How many of the likeliest tokens to log; `None`: no log-probabilities.
    logprobs: Option<usize>,
    context: StepContext,
}

impl Chooser {
    /// A chooser before the first token of a batch, whose rows may use features of `kinds`.
    pub(super) fn new(
        config: &GenerationConfig,
        vocabulary: &Vocabulary,
        kinds: SamplingFeatures,
        constraint: ConstraintProcessor,
        options: &[SamplingOptions],
        seeds: &[u64],
        prompts: &InitContext,
    ) -> Result<Self> {
        let filters = filters(&config.processors, options, kinds, kinds, vocabulary)?;
        let (vocab_size, device) = (prompts.vocab_size, prompts.device());
        let sampler = BatchSampler::new(&config.sampler, options, kinds, seeds, vocab_size, &device)?;
        let chain = constraint.then(filters);
        Ok(Self {
            state: chain.init(prompts),
            chain,
            sampler,
            vocabulary: vocabulary.clone(),
            kinds,
            logprobs: config.logprobs,
            context: before_the_first(prompts),
        })
    }

    /// The last token of every row, `[batch]`.
    pub(super) fn tokens(&self) -> Tensor<1, Int> {
        self.context.tokens.clone()
    }

    /// The number of tokens chosen so far, `[1]`, or `[batch]` with
    /// [`count_rows`](Self::count_rows).
    pub(super) fn step(&self) -> &Tensor<1, Int> {
        &self.context.step
    }

    /// The features that rows may use.
    pub(super) fn kinds(&self) -> SamplingFeatures {
        self.kinds
    }

    /// The position of every row in its constraint.
    pub(super) fn position(&self) -> &Position {
        &self.state.0
    }

    pub(super) fn constraint(&self) -> &ConstraintProcessor {
        self.chain.first()
    }

    pub(super) fn constraint_mut(&mut self) -> &mut ConstraintProcessor {
        self.chain.first_mut()
    }

    /// Chooses a token per row; returns its [encoded](encode) log-probabilities, if requested.
    pub(super) fn choose(&mut self, logits: Tensor<2>) -> Option<Tensor<2>> {
        let (state, context, sampler) = (&mut self.state, &mut self.context, self.sampler.sampler());
        let Some(top) = self.logprobs else {
            self.chain.sample_step(state, context, logits, sampler);
            return None;
        };
        let masked = self.chain.choose_observed(state, context, logits.clone(), sampler);
        Some(encode(Tensor::cat(vec![logits, masked], 0), &self.context.tokens, top))
    }

    /// Counts the chosen tokens.
    pub(super) fn count(&mut self) {
        self.context.step.assign(self.context.step.clone() + 1);
    }

    /// Begins other rows, which use features of [`kinds`](Self::kinds). `constrain` replaces the
    /// constraints.
    pub(super) fn restart(
        &mut self,
        constrain: impl FnOnce(&mut ConstraintProcessor) -> Result<()>,
        options: &[SamplingOptions],
        seeds: &[u64],
        prompts: &InitContext,
    ) -> Result<()> {
        let filters = self.filters(options, self.kinds)?;
        constrain(self.chain.first_mut())?;
        *self.chain.second_mut() = filters;
        self.sampler.reseed(options, seeds)?;
        self.state.assign(self.chain.init(prompts));
        let StepContext { tokens, step } = before_the_first(prompts);
        self.context.tokens.assign(tokens);
        self.context.step.assign(step);
        Ok(())
    }

    /// Lets every row count its own tokens, and begins with `token` as their last tokens.
    pub(super) fn count_rows(mut self, token: i32) -> Self {
        let (shape, device) = (self.context.tokens.shape(), self.context.tokens.device());
        self.context = StepContext {
            tokens: Tensor::full(shape.clone(), token, (&device, DType::I32)),
            step: Tensor::zeros(shape, (&device, DType::I32)),
        };
        self
    }

    /// A chooser of one row alone, before its first token. It shares the buffers of the
    /// constraints, so no constraint may be loaded while it exists. It reads and writes the mask
    /// rows of the batch.
    pub(super) fn one(
        &self,
        row: usize,
        options: &SamplingOptions,
        seed: u64,
        prompt: &InitContext,
    ) -> Result<Self> {
        let filters = self.filters(slice::from_ref(options), SamplingFeatures::of(options))?;
        let chain = self.chain.first().row(row).then(filters);
        let [batch] = self.context.tokens.dims();
        let (position, filters) = chain.init(prompt);
        Ok(Self {
            state: (position.with_rows(self.position().rows.clone()), filters),
            chain,
            sampler: self.sampler.of_one_row(row, batch, options, seed)?,
            vocabulary: self.vocabulary.clone(),
            context: before_the_first(prompt),
            ..*self
        })
    }

    /// Overwrites a row with a chooser of [one](Self::one) row.
    pub(super) fn assign_row(&mut self, row: usize, one: Self) {
        self.state.assign_row(row, one.state);
        self.context.tokens.assign_row(row, one.context.tokens);
        self.context.step.assign_row(row, one.context.step);
        self.sampler.assign_row(row, one.sampler);
    }

    /// Ends a row, which is fed `token` from now on.
    pub(super) fn release(&mut self, row: usize, token: Tensor<1, Int>) -> Result<()> {
        self.chain.first_mut().release(&mut self.state.0, row)?;
        self.context.tokens.assign_row(row, token);
        Ok(())
    }

    /// Applies only the features `on` from now on.
    pub(super) fn switch(&mut self, on: SamplingFeatures) -> Result<()> {
        // The states hold the actual options.
        *self.chain.second_mut() = self.filters(&[SamplingOptions::default()], on)?;
        self.sampler.switch(on.temperature);
        Ok(())
    }

    fn filters(&self, options: &[SamplingOptions], on: SamplingFeatures) -> Result<Filters> {
        filters(self.chain.second().application(), options, self.kinds, on, &self.vocabulary)
    }
}

/// The context of the first step.
fn before_the_first(prompts: &InitContext) -> StepContext {
    let (batch, options) = (prompts.batch(), (&prompts.device(), DType::I32));
    StepContext {
        tokens: Tensor::full([batch], prompts.vocab_size as i32, options),
        step: Tensor::zeros([1], options),
    }
}
