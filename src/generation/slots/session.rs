//! A batch whose requests come and go: the model, and all that a step reads and writes.

use std::slice;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use super::model::SlotLm;
use super::prefixes::Prefixes;
use super::prompts::Prompt;
use crate::error::{Error, Result};
use crate::generation::config::GenerationConfig;
use crate::generation::log::{LogprobLog, NewLines, StepLog, choose};
use crate::generation::options::{SamplingKinds, SamplingOptions};
use crate::generation::selection::{BatchSampler, Filters, filters};
use crate::processor::{
    Chain, DfaProcessor, InitContext, LogitsProcessor, Persistent, RowState, StepContext,
};
use crate::table::TokenTable;
use crate::tensor::{Arena, ints};
use crate::vocabulary::{TokenId, Vocabulary};

type Processor = Chain<DfaProcessor, Filters>;

/// As [`Session`](crate::generation::session::Session), its tensors are the only handles of their buffers: a step
/// writes all of them in place, and so does a row that begins or ends.
pub(super) struct SlotSession<'m, M: SlotLm> {
    model: &'m M,
    cache: M::SlotCache,
    /// What the rows of the cache hold; `None`: every prompt is read whole.
    prefixes: Option<Prefixes>,
    chain: Processor,
    state: <Processor as LogitsProcessor>::State,
    sampler: BatchSampler,
    vocabulary: Vocabulary,
    /// The options that rows may use.
    kinds: SamplingKinds,
    /// What each row uses of them; `None`: idle.
    used: Vec<Option<SamplingKinds>>,
    /// Whether a step leaves out what no row uses; a recorded step cannot.
    is_adaptive: bool,
    /// Every row counts its own steps.
    context: StepContext,
    /// Line 0 holds the first token of the rows that began since the last read; the tokens of every step since follow.
    log: StepLog,
    /// The log-probabilities of the same tokens, where they are asked for.
    logprobs: Option<LogprobLog>,
    /// Where the next step writes, `[1]`.
    line: Tensor<1, Int>,
    /// What an idle row is fed.
    idle: i32,
}

impl<'m, M: SlotLm> SlotSession<'m, M> {
    /// All rows idle; at most `steps` steps between two reads.
    pub(super) fn new(
        model: &'m M,
        vocabulary: &Vocabulary,
        [rows, capacity]: [usize; 2],
        config: &GenerationConfig,
        steps: usize,
    ) -> Result<Self> {
        let (device, width) = (model.device(), model.vocab_size());
        let arena = Arena::new(vocabulary, width, &config.tensors, &device)?;
        let kinds = SamplingKinds::of(&config.sampling).or(config.row_options);
        let options = vec![SamplingOptions::default(); rows];
        let chain = DfaProcessor::slots(arena, rows)?.then(filters(&options, kinds, kinds, vocabulary)?);
        let sampler = BatchSampler::new(&options, kinds, &vec![0; rows], width, &device)?;
        let end = vocabulary.eos().first().ok_or_else(|| {
            Error::incompatible_vocabulary("it names no end-of-sequence id, so no row could ever be idle")
        })?;
        let idle = end.0 as i32;
        let full = |shape, value: i32| Tensor::<1, Int>::full(shape, value, (&device, DType::I32));
        let prompt = full([rows], idle).reshape([rows, 1]);
        let state = chain.init(&InitContext { prompt, padding: full([rows], 0), width });
        Ok(Self {
            cache: model.slots(rows, capacity),
            prefixes: config.prefix_cache.then(|| Prefixes::new(rows)),
            context: StepContext { tokens: full([rows], idle), step: full([rows], 0) },
            log: StepLog::new(steps + 1, rows, &device),
            logprobs: config.logprobs.map(|top| LogprobLog::new(steps + 1, rows, top, &device)),
            line: full([1], 1),
            model,
            chain,
            state,
            sampler,
            vocabulary: vocabulary.clone(),
            kinds,
            used: vec![None; rows],
            is_adaptive: true,
            idle,
        })
    }

    pub(super) fn model(&self) -> &'m M {
        self.model
    }

    pub(super) fn arena(&self) -> Option<&Arena> {
        self.chain.first().arena()
    }

    pub(super) fn prefixes(&self) -> Option<&Prefixes> {
        self.prefixes.as_ref()
    }

    /// Leaves every option that rows may use in the step, whether one uses it or not.
    pub(super) fn fix(&mut self) -> Result<()> {
        self.is_adaptive = false;
        self.switch(self.kinds)
    }

    /// The options that rows may use.
    pub(super) fn kinds(&self) -> SamplingKinds {
        self.kinds
    }

    /// Notes what a row uses, and leaves out of the steps what none does.
    fn note(&mut self, row: usize, used: Option<SamplingKinds>) -> Result<()> {
        self.used[row] = used;
        if !self.is_adaptive {
            return Ok(());
        }
        self.switch(self.used.iter().flatten().copied().fold(SamplingKinds::NONE, SamplingKinds::or))
    }

    fn switch(&mut self, on: SamplingKinds) -> Result<()> {
        // What the options are is in the states.
        let any = [SamplingOptions::default()];
        *self.chain.second_mut() = filters(&any, self.kinds, on, &self.vocabulary)?;
        self.sampler.switch(on.temperature);
        Ok(())
    }

    /// Feeds the last token of every row to the model and chooses the next ones.
    pub(super) fn step(&mut self) {
        let logits = self.model.step_rows(self.context.tokens.clone(), &mut self.cache);
        let (state, context) = (&mut self.state, &mut self.context);
        let logged = choose(&self.chain, state, context, logits, self.sampler.sampler(), &self.logprobs);
        let StepContext { tokens, step } = context;
        self.log.write(&self.line, tokens.clone());
        if let (Some(log), Some(values)) = (&mut self.logprobs, logged) {
            log.write(&self.line, values);
        }
        step.assign(step.clone() + 1);
        self.line.assign(self.line.clone() + 1);
    }

    /// Loads a constraint into an idle row, which stays idle on the device.
    pub(super) fn seat(&mut self, row: usize, table: Option<&TokenTable>, budget: usize) -> Result<()> {
        self.chain.first_mut().seat(row, table, budget)
    }

    /// Reads prompts into rows, to their ends; gives of each how many tokens were copied, and the logits after it, `[1, width]`.
    pub(super) fn read_whole(&mut self, prompts: &[(usize, Prompt)]) -> Vec<(usize, Tensor<2>)> {
        if self.prefixes.is_some() {
            // One after the other: one may begin as the one before it does.
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

    /// Copies into a row what another one, or the row itself, holds of the beginning of a prompt; gives how many tokens. The
    /// rest is to be [read](Self::read_piece).
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

    /// Reads a piece of a prompt into a row, after the `read` tokens that are there; gives the logits after it.
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

    /// Notes what the steps chose in a row: each of the tokens is fed to the model by the next one.
    pub(super) fn note_chosen(&mut self, row: usize, tokens: &[TokenId]) {
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.append(row, tokens);
        }
    }

    /// Copies nothing of a row: what the model computed there is not to be trusted.
    pub(super) fn forget(&mut self, row: usize) {
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.forget(row);
        }
    }

    /// Begins a row whose prompt was read, with the logits after it: chooses its first token, by itself. The other rows stay
    /// as they are.
    pub(super) fn begin(&mut self, row: usize, prompt: &Prompt, logits: Tensor<2>) -> Result<()> {
        let (device, width) = (self.model.device(), self.model.vocab_size());
        let used = SamplingKinds::of(&prompt.options);
        let filters = filters(slice::from_ref(&prompt.options), self.kinds, used, &self.vocabulary)?;
        let sampler = self.sampler.of_one_row(&prompt.options, prompt.seed)?;
        let chain = self.chain.first().row(row).then(filters);
        chain.first().check(&logits)?;
        let tokens = upload(&prompt.tokens, &device);
        let mut state = chain.init(&InitContext { prompt: tokens, padding: ints(vec![0], &device), width });
        let mut context =
            StepContext { tokens: ints(vec![width as i32], &device), step: ints(vec![0], &device) };
        let logged = choose(&chain, &mut state, &mut context, logits, sampler.sampler(), &self.logprobs);

        self.state.assign_row(row, state);
        self.log.write_row(0, row, context.tokens.clone());
        if let (Some(log), Some(values)) = (&mut self.logprobs, logged) {
            log.write_row(0, row, values);
        }
        self.context.tokens.assign_row(row, context.tokens);
        self.context.step.assign_row(row, ints(vec![1], &device));
        self.sampler.assign_row(row, sampler);
        self.note(row, Some(used))
    }

    /// Makes a row idle, unless it is: its constraint may not have come.
    pub(super) fn vacate(&mut self, row: usize) -> Result<()> {
        if self.chain.first().is_idle(row) {
            return Ok(());
        }
        self.chain.first_mut().vacate(&mut self.state.0, row)?;
        self.context.tokens.assign_row(row, ints(vec![self.idle], &self.model.device()));
        self.note(row, None)
    }

    /// Reads the first tokens of the rows that began since the last read, and what the `steps` steps since chose; begins
    /// the log again.
    pub(super) fn read(&mut self, steps: usize) -> Result<NewLines> {
        let lines = self.log.read_with(self.logprobs.as_ref(), 0..steps + 1);
        self.rewind();
        lines
    }

    /// Begins the log again.
    pub(super) fn rewind(&mut self) {
        self.line.assign(self.line.ones_like());
    }
}

/// A prompt as the model reads it, `[1, length]`.
fn upload(prompt: &[TokenId], device: &Device) -> Tensor<2, Int> {
    let ids: Vec<i32> = prompt.iter().map(|token| token.0 as i32).collect();
    Tensor::from_data(TensorData::new(ids, [1, prompt.len()]), (device, DType::I32))
}
