//! A running batch: the model, and the tensors that a step reads and writes.

use std::ops::Range;

use burn::tensor::{DType, Device, Tensor};

use super::batch::Batch;
use super::config::GenerationConfig;
use super::log::{LogprobLog, NewLines, StepLog, choose};
use super::model::{CausalLm, Recordable};
use super::options::SamplingFeatures;
use super::processors::Filters;
use super::selection::{BatchSampler, filters};
use crate::processor::{Chain, ConstraintProcessor, InPlaceState, InitContext, LogitsProcessor, StepContext};
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::Result;

/// Its tensors are the only handles of their buffers. So [`step`](Self::step) writes all of them in
/// place and can be recorded.
pub(super) struct Session<'m, M: CausalLm> {
    model: &'m M,
    cache: M::Cache,
    chain: Chain<ConstraintProcessor, Filters>,
    state: <Chain<ConstraintProcessor, Filters> as LogitsProcessor>::State,
    sampler: BatchSampler,
    /// The options that the rows may use.
    kinds: SamplingFeatures,
    context: StepContext,
    /// The tokens of every step.
    log: StepLog,
    /// Their log-probabilities, if requested.
    logprobs: Option<LogprobLog>,
    /// Positions of the cache and of the log.
    slots: usize,
}

impl<'m, M: CausalLm> Session<'m, M> {
    /// Reads the prompts of a checked batch and chooses the first token of every row; the cache has
    /// `slots`. The rows may use options of `kinds`.
    pub(super) fn start(
        model: &'m M,
        vocabulary: &Vocabulary,
        batch: &Batch,
        config: &GenerationConfig,
        kinds: SamplingFeatures,
        slots: usize,
    ) -> Result<Self> {
        let (device, vocab_size) = (model.device(), model.vocab_size());
        let filters = filters(&config.processors, &batch.options, kinds, kinds, vocabulary)?;
        let chain = batch.constraint(config, vocab_size, &device)?.then(filters);
        let sampler =
            BatchSampler::new(&config.sampler, &batch.options, kinds, &batch.seeds(), vocab_size, &device)?;
        let (prompt, padding) = batch.left_padded(&device);
        let state = chain.init(&InitContext { prompt: prompt.clone(), padding: padding.clone(), vocab_size });
        let (logits, cache) = model.prefill(prompt, padding, slots);
        chain.first().check(&logits)?;
        let context = before_the_first(batch.len(), vocab_size, &device);
        let log = StepLog::new(slots, batch.len(), &device);
        let logprobs = config.logprobs.map(|top| LogprobLog::new(slots, batch.len(), top, &device));
        let mut session = Self { model, cache, chain, state, sampler, kinds, context, log, logprobs, slots };
        session.choose(logits);
        Ok(session)
    }

    pub(super) fn model(&self) -> &'m M {
        self.model
    }

    /// Feeds the last tokens to the model and chooses the next ones.
    pub(super) fn step(&mut self) {
        let logits = self.model.step(self.context.tokens.clone(), &mut self.cache);
        self.choose(logits);
    }

    /// Chooses a token per row, and counts and logs it.
    fn choose(&mut self, logits: Tensor<2>) {
        let (state, context) = (&mut self.state, &mut self.context);
        let logged = choose(&self.chain, state, context, logits, self.sampler.sampler(), &self.logprobs);
        let StepContext { tokens, step } = context;
        self.log.write(step, tokens.clone());
        if let (Some(log), Some(values)) = (&mut self.logprobs, logged) {
            log.write(step, values);
        }
        step.assign(step.clone() + 1);
    }

    /// Reads the tokens of some steps.
    pub(super) fn read(&self, steps: Range<usize>) -> Result<NewLines> {
        self.log.read_with(self.logprobs.as_ref(), steps)
    }
}

impl<M: CausalLm<Cache: InPlaceState>> Session<'_, M> {
    /// As [`start`](Self::start), for other requests, in the buffers of the session.
    pub(super) fn restart(&mut self, vocabulary: &Vocabulary, batch: &Batch) -> Result<()> {
        let (device, vocab_size) = (self.model.device(), self.model.vocab_size());
        for (row, options) in batch.options.iter().enumerate() {
            self.kinds.admit(row, options)?;
        }
        let processors = self.chain.second().application();
        let filters = filters(processors, &batch.options, self.kinds, self.kinds, vocabulary)?;
        batch.constrain(self.chain.first_mut())?;
        *self.chain.second_mut() = filters;
        self.sampler.reseed(&batch.options, &batch.seeds())?;
        let (prompt, padding) = batch.left_padded(&device);
        let init = InitContext { prompt: prompt.clone(), padding: padding.clone(), vocab_size };
        self.state.assign(self.chain.init(&init));
        let (logits, cache) = self.model.prefill(prompt, padding, self.slots);
        self.chain.first().check(&logits)?;
        self.cache.assign(cache);
        let context = before_the_first(batch.len(), vocab_size, &device);
        self.context.tokens.assign(context.tokens);
        self.context.step.assign(context.step);
        self.choose(logits);
        Ok(())
    }
}

// SAFETY: `start` makes every tensor of the session. Later methods write them in place: states by
// `assign`, logs and sampler by their own methods, constraints by `DeviceConstraint::replace`. The
// built-in filters are replaced and hold no tensors; the application's processors stay, and
// `check_recordable` has refused processors without the promise. Only the model and these
// processors get clones of handles, and promise to keep none. All work is on the stream of the
// caller.
#[allow(unsafe_code)]
unsafe impl<M: CausalLm + Recordable> Recordable for Session<'_, M> {}

/// The context of the first step.
fn before_the_first(batch: usize, vocab_size: usize, device: &Device) -> StepContext {
    StepContext {
        tokens: Tensor::full([batch], vocab_size as i32, (device, DType::I32)),
        step: Tensor::zeros([1], (device, DType::I32)),
    }
}
