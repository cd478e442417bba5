//! A running batch: the model, and the tensors that a step reads and writes.

use std::ops::Range;

use burn::tensor::Tensor;

use super::batch::Batch;
use super::chooser::Chooser;
use super::config::GenerationConfig;
use super::log::StepLog;
use super::model::{CausalLm, Recordable};
use super::options::SamplingFeatures;
use super::recorded::Steps;
use super::row::NewTokens;
use crate::processor::InPlaceState;
use burn_dfa_tokens::Result;

/// Its tensors are the only handles of their buffers. So [`step`](Steps::step) writes all of them in
/// place and can be recorded.
pub(super) struct Session<'m, M: CausalLm> {
    model: &'m M,
    cache: M::Cache,
    chooser: Chooser,
    /// The tokens of every step.
    log: StepLog,
    /// Positions of the cache and of the log.
    slots: usize,
}

impl<'m, M: CausalLm> Session<'m, M> {
    /// Reads the prompts of a checked batch and chooses the first token of every row; the cache has
    /// `slots`. The rows may use options of `kinds`.
    pub(super) fn start(
        model: &'m M,
        batch: &Batch,
        config: &GenerationConfig,
        kinds: SamplingFeatures,
        slots: usize,
    ) -> Result<Self> {
        let (device, vocab_size) = (model.device(), model.vocab_size());
        let prompts = batch.prompts(vocab_size, &device);
        let constraint = batch.constraint(config, vocab_size, &device)?;
        let (options, seeds) = (&batch.options, batch.seeds());
        let chooser = Chooser::new(config, batch.vocabulary(), kinds, constraint, options, &seeds, &prompts)?;
        let (logits, cache) = model.prefill(prompts.prompt, prompts.padding, slots);
        chooser.constraint().check(&logits)?;
        let log = StepLog::new(slots, batch.len(), &device).with_logprobs(config.logprobs, 1);
        let mut session = Self { model, cache, chooser, log, slots };
        session.choose(logits);
        Ok(session)
    }

    pub(super) fn model(&self) -> &'m M {
        self.model
    }

    /// Chooses a token per row, and logs and counts it.
    fn choose(&mut self, logits: Tensor<2>) {
        let logprobs = self.chooser.choose(logits);
        self.log.write(self.chooser.step(), self.chooser.tokens(), logprobs);
        self.chooser.count();
    }
}

impl<M: CausalLm> Steps for Session<'_, M> {
    fn step(&mut self) {
        let logits = self.model.step(self.chooser.tokens(), &mut self.cache);
        self.choose(logits);
    }

    fn read(&mut self, steps: Range<usize>) -> Result<Vec<NewTokens>> {
        Ok(self.log.read(steps)?.tokens())
    }
}

impl<M: CausalLm<Cache: InPlaceState>> Session<'_, M> {
    /// As [`start`](Self::start), for other requests, in the buffers of the session.
    pub(super) fn restart(&mut self, batch: &Batch) -> Result<()> {
        let prompts = batch.prompts(self.model.vocab_size(), &self.model.device());
        let (options, seeds) = (&batch.options, batch.seeds());
        self.chooser.restart(|constraint| batch.constrain(constraint), options, &seeds, &prompts)?;
        let (logits, cache) = self.model.prefill(prompts.prompt, prompts.padding, self.slots);
        self.chooser.constraint().check(&logits)?;
        self.cache.assign(cache);
        self.choose(logits);
        Ok(())
    }
}

// SAFETY: `start` makes every tensor of the session. Later methods write them in place: states by
// `assign`, logs and sampler by their own methods, constraints by `DeviceConstraint::replace`. The
// built-in filters are replaced and hold no tensors; the application's processors and its sampler
// stay, and `Stepped::record` takes the proof that all have made the promise. Only the model, these
// processors and this sampler get clones of handles, and promise to keep none. All work is on the
// stream of the caller.
#[allow(unsafe_code)]
unsafe impl<M: CausalLm + Recordable> Recordable for Session<'_, M> {}
