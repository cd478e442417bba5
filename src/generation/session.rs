//! A running batch: the model, and the tensors that a step reads and writes.

use std::ops::Range;

use burn::tensor::{Int, Tensor};

use super::batch::Batch;
use super::chooser::Chooser;
use super::config::GenerationConfig;
use super::model::{CausalLm, Recordable};
use super::options::SamplingFeatures;
use super::recorded::Steps;
use super::row::NewTokens;
use super::step_log::StepLog;
use crate::processor::InPlaceState;
use burn_dfa_tokens::Result;

/// How the rows of a batch begin. It holds no tensors.
pub(super) trait Rows<M> {
    /// The cache of the model.
    type Cache;

    /// Feeds one token to every row, and returns the next logits.
    fn feed(model: &M, tokens: Tensor<1, Int>, cache: &mut Self::Cache) -> Tensor<2>;
}

/// Rows that begin together, left padded, and share the number of the step.
pub(super) struct AlignedRows {
    /// Positions of the cache and of the log.
    slots: usize,
}

impl<M: CausalLm> Rows<M> for AlignedRows {
    type Cache = M::Cache;

    fn feed(model: &M, tokens: Tensor<1, Int>, cache: &mut M::Cache) -> Tensor<2> {
        model.step(tokens, cache)
    }
}

/// Its tensors are the only handles of their buffers: a [`step`](Steps::step), a beginning row and
/// an ending row write all of them in place. So a step can be recorded.
pub(super) struct Session<'m, M, R: Rows<M>> {
    pub(super) model: &'m M,
    pub(super) cache: R::Cache,
    pub(super) chooser: Chooser,
    /// The tokens of every step.
    pub(super) log: StepLog,
    pub(super) rows: R,
}

impl<'m, M: CausalLm> Session<'m, M, AlignedRows> {
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
        let mut session = Self { model, cache, chooser, log, rows: AlignedRows { slots } };
        session.choose(logits);
        Ok(session)
    }
}

impl<'m, M, R: Rows<M>> Session<'m, M, R> {
    pub(super) fn model(&self) -> &'m M {
        self.model
    }

    /// Chooses a token per row, and logs and counts it.
    fn choose(&mut self, logits: Tensor<2>) {
        let logprobs = self.chooser.choose(logits);
        self.log.write(self.chooser.step(), self.chooser.tokens(), logprobs);
        self.chooser.count();
        self.log.next_line();
    }
}

impl<M, R: Rows<M>> Steps for Session<'_, M, R> {
    fn step(&mut self) {
        let logits = R::feed(self.model, self.chooser.tokens(), &mut self.cache);
        self.choose(logits);
    }

    /// Step 0 is the first token of every row that began since the last read.
    fn read(&mut self, steps: Range<usize>) -> Result<Vec<NewTokens>> {
        let lines = self.log.read(steps);
        self.log.rewind();
        Ok(lines?.tokens())
    }
}

impl<M: CausalLm<Cache: InPlaceState>> Session<'_, M, AlignedRows> {
    /// As [`start`](Self::start), for other requests, in the buffers of the session.
    pub(super) fn restart(&mut self, batch: &Batch) -> Result<()> {
        let prompts = batch.prompts(self.model.vocab_size(), &self.model.device());
        let (options, seeds) = (&batch.options, batch.seeds());
        self.chooser.restart(|constraint| batch.constrain(constraint), options, &seeds, &prompts)?;
        let (logits, cache) = self.model.prefill(prompts.prompt, prompts.padding, self.rows.slots);
        self.chooser.constraint().check(&logits)?;
        self.cache.assign(cache);
        self.choose(logits);
        Ok(())
    }
}

// SAFETY: `start` or `new` makes every tensor of the session. The pool of mask rows is one of them:
// `start` takes the first step, which makes it, and before a recording `fix` makes it without a
// step. Later methods write the tensors in place: states by `assign`, logs and sampler by their own
// methods, constraints by `DeviceConstraint::replace` and by `Arena::admit`. The latter can,
// because `begin` drops the only clone of its device constraint, in the processor of a beginning
// row, before it returns. A beginning row uses the pool of the batch. Kernels write to the buffer
// of the pool, although it has several handles, and `MaskRows` never replaces it. The built-in
// filters are replaced and hold no tensors; the application's processors and its sampler stay, and
// `Stepped::record` takes the proof that all have made the promise. Only the model, these
// processors and this sampler get clones of handles, and promise to keep none. All work is on the
// stream of the caller.
#[allow(unsafe_code)]
unsafe impl<M: Recordable, R: Rows<M>> Recordable for Session<'_, M, R> {}
