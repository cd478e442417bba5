//! A running continuous batch: the model, and the tensors that a step reads and writes.

use std::ops::Range;

use burn::tensor::{DType, Int, Tensor};

use super::model::ContinuousLm;
use super::prefixes::Prefixes;
use super::prompt::{Prompt, upload};
use crate::generation::chooser::Chooser;
use crate::generation::config::GenerationConfig;
use crate::generation::log::StepLog;
use crate::generation::model::Recordable;
use crate::generation::options::{SamplingFeatures, SamplingOptions};
use crate::generation::recorded::Steps;
use crate::generation::row::NewTokens;
use crate::processor::{ConstraintProcessor, InPlaceState, InitContext};
use crate::tensor::{Arena, ints};
use crate::vocabulary::{TokenId, Vocabulary};
use burn_dfa_tokens::{CompiledConstraint, Error, Result};

/// As in [`Session`](crate::generation::session::Session), its tensors are the only handles of
/// their buffers: a step, a beginning row and an ending row write all of them in place.
pub(super) struct ContinuousSession<'m, M: ContinuousLm> {
    model: &'m M,
    cache: M::SlotCache,
    /// The tokens in the rows of the cache; `None`: every prompt is read whole.
    prefixes: Option<Prefixes>,
    /// Every row counts its own steps.
    chooser: Chooser,
    /// The features used by each row; `None`: idle.
    used: Vec<Option<SamplingFeatures>>,
    /// Whether a step skips unused features; a recorded step cannot.
    is_adaptive: bool,
    /// Line 0 holds the first token of each row that began since the last read; the tokens of every
    /// later step follow.
    log: StepLog,
    /// The line that the next step writes, `[1]`.
    line: Tensor<1, Int>,
    /// The token fed to idle rows.
    idle: i32,
}

impl<'m, M: ContinuousLm> ContinuousSession<'m, M> {
    /// A session of idle rows, which may use features of `kinds`, with at most `steps` steps between
    /// two reads.
    pub(super) fn new(
        model: &'m M,
        vocabulary: &Vocabulary,
        [rows, capacity]: [usize; 2],
        config: &GenerationConfig,
        kinds: SamplingFeatures,
        steps: usize,
    ) -> Result<Self> {
        let (device, vocab_size) = (model.device(), model.vocab_size());
        let arena = Arena::new(vocabulary, vocab_size, &config.tensors, &device)?;
        let constraint = ConstraintProcessor::continuous(arena, rows)?;
        let end = vocabulary.eos().first().ok_or_else(|| {
            Error::incompatible_vocabulary("it names no end-of-sequence id, so no row could ever be idle")
        })?;
        let idle = end.0 as i32;
        let options = vec![SamplingOptions::default(); rows];
        let prompts = InitContext {
            prompt: Tensor::full([rows, 1], idle, (&device, DType::I32)),
            padding: Tensor::zeros([rows], (&device, DType::I32)),
            vocab_size,
        };
        let chooser =
            Chooser::new(config, vocabulary, kinds, constraint, &options, &vec![0; rows], &prompts)?;
        Ok(Self {
            cache: model.slots(rows, capacity),
            prefixes: config.prefix_cache.then(|| Prefixes::new(rows)),
            chooser: chooser.count_rows(idle),
            log: StepLog::new(steps + 1, rows, &device).with_logprobs(config.logprobs, 1),
            line: Tensor::ones([1], (&device, DType::I32)),
            model,
            used: vec![None; rows],
            is_adaptive: true,
            idle,
        })
    }

    pub(super) fn model(&self) -> &'m M {
        self.model
    }

    /// The arena. It must not be cloned: with a clone, the next `load` would write to buffers that
    /// a recorded step does not read.
    pub(super) fn arena(&self) -> &Arena {
        self.chooser.constraint().arena().expect("its rows come and go")
    }

    pub(super) fn prefixes(&self) -> Option<&Prefixes> {
        self.prefixes.as_ref()
    }

    /// Makes every step apply all features that rows may use, even if no row uses them.
    pub(super) fn fix(&mut self) -> Result<()> {
        self.is_adaptive = false;
        self.chooser.switch(self.chooser.kinds())
    }

    /// Notes the features of a row, and skips unused features in the steps.
    fn note(&mut self, row: usize, used: Option<SamplingFeatures>) -> Result<()> {
        self.used[row] = used;
        if !self.is_adaptive {
            return Ok(());
        }
        let used = self.used.iter().flatten().copied();
        self.chooser.switch(used.fold(SamplingFeatures::NONE, SamplingFeatures::or))
    }

    /// Loads a constraint into an idle row, which stays idle on the device.
    pub(super) fn seat(
        &mut self,
        row: usize,
        table: Option<&CompiledConstraint>,
        budget: usize,
    ) -> Result<()> {
        self.chooser.constraint_mut().seat(row, table, budget)
    }

    /// Reads whole prompts into rows; returns for each the number of copied tokens, and the logits
    /// after it, `[1, vocab_size]`.
    pub(super) fn read_whole(&mut self, prompts: &[(usize, Prompt)]) -> Vec<(usize, Tensor<2>)> {
        if self.prefixes.is_some() {
            // One after the other, because a prompt may share a prefix with the one before.
            let read = |(row, prompt): &(usize, Prompt)| {
                let copied = self.copy_prefix(*row, prompt);
                (copied, self.read_piece(*row, copied, &prompt.tokens[copied..]))
            };
            return prompts.iter().map(read).collect();
        }
        if prompts.is_empty() {
            return Vec::new();
        }
        let device = self.model.device();
        let prompts = prompts.iter().map(|(row, prompt)| (*row, upload(&prompt.tokens, &device))).collect();
        self.model.begin_all(prompts, &mut self.cache).into_iter().map(|logits| (0, logits)).collect()
    }

    /// Copies a prefix of a prompt into a row, from another row or from the row itself; returns its
    /// length. The caller [reads](Self::read_piece) the rest.
    pub(super) fn copy_prefix(&mut self, row: usize, prompt: &Prompt) -> usize {
        let Some(prefixes) = &mut self.prefixes else { return 0 };
        let salt = prompt.salt.as_deref();
        let (from, length) = prefixes.find(row, &prompt.tokens, salt).unwrap_or((row, 0));
        if length > 0 {
            self.model.copy_prefix(from, row, length, &mut self.cache);
        }
        prefixes.begin(row, from, length, salt);
        length
    }

    /// Reads a chunk of a prompt into a row, after its first `read` tokens; returns the logits
    /// after the chunk.
    pub(super) fn read_piece(&mut self, row: usize, read: usize, piece: &[TokenId]) -> Tensor<2> {
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.read(row, piece);
        }
        let piece = upload(piece, &self.model.device());
        match read {
            0 => self.model.begin(row, piece, &mut self.cache),
            read => self.model.extend(row, read, piece, &mut self.cache),
        }
    }

    /// Notes the tokens chosen in a row. Each step feeds the token of the previous step to the
    /// model.
    pub(super) fn note_chosen(&mut self, row: usize, tokens: &[TokenId]) {
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.append(row, tokens);
        }
    }

    /// Excludes a row from prefix copies, because its computed values cannot be trusted.
    pub(super) fn forget(&mut self, row: usize) {
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.forget(row);
        }
    }

    /// Begins a row with the logits after its prompt: chooses the first token of this row alone.
    /// The other rows do not change.
    pub(super) fn begin(&mut self, row: usize, prompt: &Prompt, logits: Tensor<2>) -> Result<()> {
        let init = prompt.init(self.model.vocab_size(), &self.model.device());
        let mut one = self.chooser.one(row, &prompt.options, prompt.seed, &init)?;
        one.constraint().check(&logits)?;
        let logprobs = one.choose(logits);
        self.log.write_row(0, row, one.tokens(), logprobs);
        one.count();
        self.chooser.assign_row(row, one);
        self.note(row, Some(SamplingFeatures::of(&prompt.options)))
    }

    /// Makes a row idle. The row is already idle if its constraint was still pending.
    pub(super) fn release(&mut self, row: usize) -> Result<()> {
        if self.chooser.constraint().is_idle(row) {
            return Ok(());
        }
        self.chooser.release(row, ints(vec![self.idle], &self.model.device()))?;
        self.note(row, None)
    }

    /// Restarts the log.
    pub(super) fn rewind(&mut self) {
        self.line.assign(self.line.ones_like());
    }
}

impl<M: ContinuousLm> Steps for ContinuousSession<'_, M> {
    fn step(&mut self) {
        let logits = self.model.step_rows(self.chooser.tokens(), &mut self.cache);
        let logprobs = self.chooser.choose(logits);
        self.log.write(&self.line, self.chooser.tokens(), logprobs);
        self.chooser.count();
        self.line.assign(self.line.clone() + 1);
    }

    /// Step 0 stands for the first tokens of rows that began since the last read. Restarts the log.
    fn read(&mut self, steps: Range<usize>) -> Result<Vec<NewTokens>> {
        let lines = self.log.read(steps);
        self.rewind();
        Ok(lines?.tokens())
    }
}

// SAFETY: As for `Session`. `Arena::admit` writes in place, because `begin` drops the only clone of
// its device constraint, in the processor of a beginning row, before it returns.
#[allow(unsafe_code)]
unsafe impl<M: ContinuousLm + Recordable> Recordable for ContinuousSession<'_, M> {}
