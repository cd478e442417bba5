//! The session of a continuous batch: its rows begin and end independently.

use burn::tensor::{DType, Int, Tensor};

use super::model::ContinuousLm;
use super::prefixes::Prefixes;
use super::prompt::{Prompt, upload};
use crate::generation::chooser::Chooser;
use crate::generation::config::GenerationConfig;
use crate::generation::options::{SamplingFeatures, SamplingOptions};
use crate::generation::session::{Rows, Session};
use crate::generation::step_log::StepLog;
use crate::processor::{ConstraintProcessor, InitContext};
use crate::tensor::{Arena, ints};
use crate::vocabulary::{TokenId, Vocabulary};
use burn_dfa_tokens::{CompiledConstraint, Error, Result};

/// A session whose rows begin and end independently. Line 0 of its log holds the first token of
/// each row that began since the last read; the tokens of every later step follow.
pub(super) type ContinuousSession<'m, M> = Session<'m, M, IndependentRows>;

/// Rows that begin and end independently, and count their own steps.
pub(super) struct IndependentRows {
    /// The tokens in the rows of the cache; `None`: every prompt is read whole.
    prefixes: Option<Prefixes>,
    /// The features used by each row; `None`: idle.
    used: Vec<Option<SamplingFeatures>>,
    /// Whether a step skips unused features; a recorded step cannot.
    is_adaptive: bool,
    /// The token fed to idle rows.
    idle: i32,
}

impl<M: ContinuousLm> Rows<M> for IndependentRows {
    type Cache = M::RowsCache;

    fn feed(model: &M, tokens: Tensor<1, Int>, cache: &mut M::RowsCache) -> Tensor<2> {
        model.step_rows(tokens, cache)
    }
}

impl<'m, M: ContinuousLm> ContinuousSession<'m, M> {
    /// A session of idle rows, which may use features of `kinds`, with at most `steps` steps
    /// between two reads.
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
            cache: model.rows_cache(rows, capacity),
            chooser: chooser.count_rows(idle),
            log: StepLog::new(steps + 1, rows, &device).with_logprobs(config.logprobs, 1).restarting(),
            model,
            rows: IndependentRows {
                prefixes: config.prefix_cache.then(|| Prefixes::new(rows)),
                used: vec![None; rows],
                is_adaptive: true,
                idle,
            },
        })
    }

    /// The arena. It must not be cloned: with a clone, the next admission would write to buffers
    /// that a recorded step does not read.
    pub(super) fn arena(&self) -> &Arena {
        self.chooser.constraint().arena().expect("its rows come and go")
    }

    pub(super) fn prefixes(&self) -> Option<&Prefixes> {
        self.rows.prefixes.as_ref()
    }

    /// Prepares a recording: makes the pool of mask rows, and makes every step apply all features
    /// that rows may use, even if no row uses them.
    pub(super) fn fix(&mut self) -> Result<()> {
        self.chooser.constraint().make_pool(self.chooser.position());
        self.rows.is_adaptive = false;
        self.chooser.switch(self.chooser.kinds())
    }

    /// Notes the features of a row, and skips unused features in the steps.
    fn note(&mut self, row: usize, used: Option<SamplingFeatures>) -> Result<()> {
        self.rows.used[row] = used;
        if !self.rows.is_adaptive {
            return Ok(());
        }
        let used = self.rows.used.iter().flatten().copied();
        self.chooser.switch(used.fold(SamplingFeatures::NONE, SamplingFeatures::or))
    }

    /// Loads a constraint into an idle row, which stays idle on the device.
    pub(super) fn seat(
        &mut self,
        row: usize,
        constraint: Option<&CompiledConstraint>,
        budget: usize,
    ) -> Result<()> {
        self.chooser.constraint_mut().seat(row, constraint, budget)
    }

    /// Reads whole prompts into rows; returns for each the number of copied tokens, and the logits
    /// after it, `[1, vocab_size]`.
    pub(super) fn read_whole(&mut self, prompts: &[(usize, Prompt)]) -> Vec<(usize, Tensor<2>)> {
        if self.rows.prefixes.is_some() {
            // One after the other, because a prompt may share a prefix with the one before.
            let read = |(row, prompt): &(usize, Prompt)| {
                let copied = self.copy_prefix(*row, prompt);
                (copied, self.read_chunk(*row, copied, &prompt.tokens[copied..]))
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
    /// length. The caller [reads](Self::read_chunk) the rest.
    pub(super) fn copy_prefix(&mut self, row: usize, prompt: &Prompt) -> usize {
        let Some(prefixes) = &mut self.rows.prefixes else { return 0 };
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
    pub(super) fn read_chunk(&mut self, row: usize, read: usize, chunk: &[TokenId]) -> Tensor<2> {
        if let Some(prefixes) = &mut self.rows.prefixes {
            prefixes.read(row, chunk);
        }
        let chunk = upload(chunk, &self.model.device());
        match read {
            0 => self.model.begin(row, chunk, &mut self.cache),
            read => self.model.extend(row, read, chunk, &mut self.cache),
        }
    }

    /// Notes the tokens chosen in a row. Each step feeds the token of the previous step to the
    /// model.
    pub(super) fn note_chosen(&mut self, row: usize, tokens: &[TokenId]) {
        if let Some(prefixes) = &mut self.rows.prefixes {
            prefixes.append(row, tokens);
        }
    }

    /// Excludes a row from prefix copies, because its computed values cannot be trusted.
    pub(super) fn forget(&mut self, row: usize) {
        if let Some(prefixes) = &mut self.rows.prefixes {
            prefixes.forget(row);
        }
    }

    /// Begins a row with the logits after its prompt: chooses the first token of this row alone,
    /// with the mask rows of the batch. The other rows do not change.
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
        self.chooser.release(row, ints(vec![self.rows.idle], &self.model.device()))?;
        self.note(row, None)
    }
}

#[cfg(all(test, feature = "wgpu", not(feature = "vulkan")))]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::generation::model::CausalLm;
    use crate::generation::recorded::Steps;
    use crate::generation::request::Request;
    use crate::tensor::mask_rows::tests::on_a_device::{uses, wgpu};
    use crate::{Capacity, Constraint, Limits, TensorOptions};

    /// A model to which every token is equally likely.
    struct Flat {
        device: Device,
        vocab_size: usize,
    }

    impl Flat {
        fn logits(&self, rows: usize) -> Tensor<2> {
            Tensor::zeros([rows, self.vocab_size], (&self.device, DType::F32))
        }
    }

    impl CausalLm for Flat {
        type Cache = ();

        fn device(&self) -> Device {
            self.device.clone()
        }

        fn vocab_size(&self) -> usize {
            self.vocab_size
        }

        fn prefill(&self, tokens: Tensor<2, Int>, _: Tensor<1, Int>, _: usize) -> (Tensor<2>, ()) {
            (self.logits(tokens.dims()[0]), ())
        }

        fn step(&self, tokens: Tensor<1, Int>, (): &mut ()) -> Tensor<2> {
            self.logits(tokens.dims()[0])
        }
    }

    impl ContinuousLm for Flat {
        type RowsCache = ();

        fn rows_cache(&self, _: usize, _: usize) {}

        fn begin(&self, _: usize, _: Tensor<2, Int>, (): &mut ()) -> Tensor<2> {
            self.logits(1)
        }

        fn step_rows(&self, tokens: Tensor<1, Int>, (): &mut ()) -> Tensor<2> {
            self.logits(tokens.dims()[0])
        }
    }

    /// The clock of each pool of the batch, and the time of the last use of each filled slot.
    fn uses_in(session: &ContinuousSession<'_, Flat>) -> Vec<(i32, Vec<i32>)> {
        uses(&session.chooser.position().rows)
    }

    #[test]
    fn the_first_token_of_a_request_reads_the_mask_rows_of_the_batch() {
        let Some(device) = wgpu() else { return };
        let vocabulary = burn_dfa_testing::words::vocabulary_of(&[]);
        let constraint = Constraint::regex("[ab]{9}").unwrap();
        let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap();
        let capacity = Capacity::new().with_constraints(1).with_states(64).with_classes(300);
        let config = GenerationConfig::new().with_tensors(TensorOptions::new().with_capacity(capacity));
        let model = Flat { device, vocab_size: vocabulary.len() };
        let (shape, kinds) = ([3, 32], SamplingFeatures::NONE);
        let mut session = ContinuousSession::new(&model, &vocabulary, shape, &config, kinds, 4).unwrap();
        session.fix().unwrap();
        // The pool exists before the first step, and no other pool is made.
        let none: Vec<i32> = Vec::new();
        assert_eq!(uses_in(&session), [(0, none)]);
        let prompt = Prompt::new(&Request::new(vec![TokenId(97)], 20), &SamplingOptions::default());
        // The first request fills the slot of the start state, and the second reads it.
        for (row, time) in [(0, 1), (1, 2)] {
            session.seat(row, Some(&compiled), 20).unwrap();
            session.begin(row, &prompt, model.logits(1)).unwrap();
            assert_eq!(uses_in(&session), [(time, vec![time])]);
        }
        // A step fills the slots of other states, and the third request still reads the first slot.
        session.step();
        let before = uses_in(&session);
        session.seat(2, Some(&compiled), 20).unwrap();
        session.begin(2, &prompt, model.logits(1)).unwrap();
        let after = uses_in(&session);
        assert_eq!((before.len(), before[0].0), (1, 3));
        assert_eq!((after.len(), after[0].0), (1, 4));
        assert_eq!(after[0].1.len(), before[0].1.len());
        assert_eq!(after[0].1.iter().filter(|&&time| time == 4).count(), 1);
    }
}
