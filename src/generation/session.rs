//! A batch while it is generated: the model, and all that a step reads and writes.

use std::ops::Range;

use burn::tensor::{DType, Device, Tensor};

use super::batch::Batch;
use super::config::GenerationConfig;
use super::log::{LogprobLog, NewLines, StepLog, choose};
use super::model::CausalLm;
use super::options::SamplingKinds;
use super::selection::{BatchSampler, Filters, filters};
use crate::error::Result;
use crate::processor::{Chain, DfaProcessor, InitContext, LogitsProcessor, Persistent, StepContext};
use crate::vocabulary::Vocabulary;

/// Its tensors are the only handles of their buffers, so that [`step`](Self::step) writes all of them in place and can
/// be recorded.
pub(super) struct Session<'m, M: CausalLm> {
    model: &'m M,
    cache: M::Cache,
    chain: Chain<DfaProcessor, Filters>,
    state: <Chain<DfaProcessor, Filters> as LogitsProcessor>::State,
    sampler: BatchSampler,
    /// The options that the rows may use.
    kinds: SamplingKinds,
    context: StepContext,
    /// The tokens of every step.
    log: StepLog,
    /// Their log-probabilities, where they are asked for.
    logprobs: Option<LogprobLog>,
    /// Slots of the cache and of the log.
    slots: usize,
}

impl<'m, M: CausalLm> Session<'m, M> {
    /// Reads the prompts of a checked batch and chooses the first token of every row; the cache has `slots`.
    /// The rows may use options of these `kinds`.
    pub(super) fn start(
        model: &'m M,
        vocabulary: &Vocabulary,
        batch: &Batch,
        config: &GenerationConfig,
        kinds: SamplingKinds,
        slots: usize,
    ) -> Result<Self> {
        let (device, width) = (model.device(), model.vocab_size());
        let filters = filters(&batch.options, kinds, kinds, vocabulary)?;
        let chain = batch.constraint(config, width, &device)?.then(filters);
        let sampler = BatchSampler::new(&batch.options, kinds, &batch.seeds(), width, &device)?;
        let (prompt, padding) = batch.left_padded(&device);
        let state = chain.init(&InitContext { prompt: prompt.clone(), padding: padding.clone(), width });
        let (logits, cache) = model.prefill(prompt, padding, slots);
        chain.first().check(&logits)?;
        let context = before_the_first(batch.len(), width, &device);
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

    /// Reads what some steps chose.
    pub(super) fn read(&self, steps: Range<usize>) -> Result<NewLines> {
        self.log.read_with(self.logprobs.as_ref(), steps)
    }
}

impl<M: CausalLm<Cache: Persistent>> Session<'_, M> {
    /// As [`start`](Self::start), for other requests and in the buffers of this session.
    pub(super) fn restart(&mut self, vocabulary: &Vocabulary, batch: &Batch) -> Result<()> {
        let (device, width) = (self.model.device(), self.model.vocab_size());
        for (row, options) in batch.options.iter().enumerate() {
            self.kinds.admit(row, options)?;
        }
        let filters = filters(&batch.options, self.kinds, self.kinds, vocabulary)?;
        batch.constrain(self.chain.first_mut())?;
        *self.chain.second_mut() = filters;
        self.sampler.reseed(&batch.options, &batch.seeds())?;
        let (prompt, padding) = batch.left_padded(&device);
        let init = InitContext { prompt: prompt.clone(), padding: padding.clone(), width };
        self.state.assign(self.chain.init(&init));
        let (logits, cache) = self.model.prefill(prompt, padding, self.slots);
        self.chain.first().check(&logits)?;
        self.cache.assign(cache);
        let context = before_the_first(batch.len(), width, &device);
        self.context.tokens.assign(context.tokens);
        self.context.step.assign(context.step);
        self.choose(logits);
        Ok(())
    }
}

/// The context of the first step.
fn before_the_first(batch: usize, width: usize, device: &Device) -> StepContext {
    StepContext {
        tokens: Tensor::full([batch], width as i32, (device, DType::I32)),
        step: Tensor::zeros([1], (device, DType::I32)),
    }
}
