//! A batch whose requests come and go: the model, and all that a step reads and writes.

use burn::tensor::{DType, Int, Tensor, TensorData};

use super::model::SlotLm;
use crate::error::{Error, Result};
use crate::generation::config::GenerationConfig;
use crate::generation::log::StepLog;
use crate::generation::request::Request;
use crate::generation::selection::{BatchSampler, Filters, filters};
use crate::processor::{
    Chain, DfaProcessor, InitContext, LogitsProcessor, Persistent, RowState, StepContext,
};
use crate::tensor::{Arena, ints};
use crate::vocabulary::Vocabulary;

type Processor = Chain<DfaProcessor, Filters>;

/// As [`Session`](crate::generation::session::Session), its tensors are the only handles of their buffers: a step
/// writes all of them in place, and so does a row that begins or ends.
pub(super) struct SlotSession<'m, M: SlotLm> {
    model: &'m M,
    cache: M::SlotCache,
    chain: Processor,
    state: <Processor as LogitsProcessor>::State,
    sampler: BatchSampler,
    /// Every row counts its own steps.
    context: StepContext,
    /// Line 0 holds the first token of the rows that began since the last read; the tokens of every step since follow.
    log: StepLog,
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
        let chain = DfaProcessor::slots(arena, rows)?.then(filters(config, vocabulary)?);
        let sampler = BatchSampler::new(config, &vec![0; rows], width, &device)?;
        let end = vocabulary.eos().first().ok_or_else(|| {
            Error::incompatible_vocabulary("it names no end-of-sequence id, so no row could ever be idle")
        })?;
        let idle = end.0 as i32;
        let full = |shape, value: i32| Tensor::<1, Int>::full(shape, value, (&device, DType::I32));
        let prompt = full([rows], idle).reshape([rows, 1]);
        let state = chain.init(&InitContext { prompt, padding: full([rows], 0), width });
        Ok(Self {
            cache: model.slots(rows, capacity),
            context: StepContext { tokens: full([rows], idle), step: full([rows], 0) },
            log: StepLog::new(steps + 1, rows, &device),
            line: full([1], 1),
            model,
            chain,
            state,
            sampler,
            idle,
        })
    }

    pub(super) fn model(&self) -> &'m M {
        self.model
    }

    pub(super) fn arena(&self) -> Option<&Arena> {
        self.chain.first().arena()
    }

    /// Feeds the last token of every row to the model and chooses the next ones.
    pub(super) fn step(&mut self) {
        let logits = self.model.step_rows(self.context.tokens.clone(), &mut self.cache);
        self.chain.choose(&mut self.state, &mut self.context, logits, self.sampler.sampler());
        let StepContext { tokens, step } = &mut self.context;
        self.log.write(&self.line, tokens.clone());
        step.assign(step.clone() + 1);
        self.line.assign(self.line.clone() + 1);
    }

    /// Reads a prompt into an idle row and chooses its first token, by itself: the other rows stay as they are.
    pub(super) fn admit(&mut self, row: usize, request: &Request) -> Result<()> {
        let (device, width) = (self.model.device(), self.model.vocab_size());
        self.chain.first_mut().seat(row, request.table, request.max_new_tokens)?;
        let prompt: Vec<i32> = request.prompt.iter().map(|token| token.0 as i32).collect();
        let prompt = TensorData::new(prompt, [1, request.prompt.len()]);
        let prompt = Tensor::<2, Int>::from_data(prompt, (&device, DType::I32));
        let logits = self.model.begin(row, prompt.clone(), &mut self.cache);

        let chain = self.chain.first().row(row).then(self.chain.second().clone());
        if let Err(error) = chain.first().check(&logits) {
            self.vacate(row)?;
            return Err(error);
        }
        let mut state = chain.init(&InitContext { prompt, padding: ints(vec![0], &device), width });
        let mut context =
            StepContext { tokens: ints(vec![width as i32], &device), step: ints(vec![0], &device) };
        chain.choose(&mut state, &mut context, logits, self.sampler.of_one_row(request.seed).sampler());

        self.state.assign_row(row, state);
        self.log.write_row(0, row, context.tokens.clone());
        self.context.tokens.assign_row(row, context.tokens);
        self.context.step.assign_row(row, ints(vec![1], &device));
        self.sampler.reseed_row(row, request.seed);
        Ok(())
    }

    /// Makes a row idle.
    pub(super) fn vacate(&mut self, row: usize) -> Result<()> {
        self.chain.first_mut().vacate(&mut self.state.0, row)?;
        self.context.tokens.assign_row(row, ints(vec![self.idle], &self.model.device()));
        Ok(())
    }

    /// Reads the first tokens of the rows that began since the last read, and the tokens of the `steps` steps since,
    /// one row of the batch after the other within a step; begins the log again.
    pub(super) fn read(&mut self, steps: usize) -> Result<Vec<i32>> {
        let tokens = self.log.read(0..steps + 1);
        self.rewind();
        tokens
    }

    /// Begins the log again.
    pub(super) fn rewind(&mut self) {
        self.line.assign(self.line.ones_like());
    }
}
