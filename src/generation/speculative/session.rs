//! A running speculative batch: the model, the drafter, and the tensors that a step reads and
//! writes.

use std::ops::Range;

use burn::tensor::{DType, Int, Tensor};

use super::drafter::{DraftToken, Drafter, DrafterContext};
use super::model::TreeLm;
use super::sequences::Sequences;
use super::verify::Verifier;
use crate::generation::batch::Batch;
use crate::generation::config::GenerationConfig;
use crate::generation::log::{StepLog, read};
use crate::generation::model::Recordable;
use crate::generation::options::SamplingFeatures;
use crate::generation::selection::{Filters, filters, sampler_temperature};
use crate::processor::{
    ConstraintProcessor, DraftTree, InPlaceState, InitContext, LogitsProcessor, Position, StepContext,
};
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{Error, Result};

/// A batch that takes speculative steps, and whose results the host reads every few steps.
pub(super) trait SpeculativeSteps {
    /// Drafts, verifies, and appends the accepted tokens and the next token.
    fn step(&mut self) -> Result<()>;

    /// Reads the tokens of every row so far, row by row, and the lengths of the rows after some of
    /// the steps, step by step.
    fn read(&self, steps: Range<usize>) -> Result<(Vec<i32>, Vec<i32>)>;
}

/// A step reads nothing back, uploads nothing, and writes its state in place.
pub(super) struct SpeculativeSession<'m, M: TreeLm, D> {
    model: &'m M,
    drafter: D,
    cache: M::TreeCache,
    constraint: ConstraintProcessor,
    /// The position before the last token of the sequences.
    state: Position,
    filters: Filters,
    filter_state: <Filters as LogitsProcessor>::State,
    verifier: Verifier,
    sequences: Sequences,
    tree: DraftTree,
    /// The path to every node, `[nodes, depth + 1]`.
    paths: Tensor<2, Int>,
    /// The depth of every node, `[nodes]`.
    depths: Tensor<1, Int>,
    /// The lengths of the rows after every step.
    lengths: StepLog,
    /// Number of steps so far, `[1]`.
    steps: Tensor<1, Int>,
}

impl<'m, M: TreeLm, D: Drafter> SpeculativeSession<'m, M, D> {
    /// Takes the first step: reads the prompts, with the first draft tokens if they are a chain,
    /// and appends to every row. `steps` is the maximum number of logged steps, including the
    /// first.
    pub(super) fn start(
        model: &'m M,
        mut drafter: D,
        vocabulary: &Vocabulary,
        batch: &Batch,
        config: &GenerationConfig,
        steps: usize,
    ) -> Result<Self> {
        let (device, vocab_size) = (model.device(), model.vocab_size());
        let constraint = batch.constraint(config, vocab_size, &device)?;
        let sampling = &config.sampling;
        let kinds = SamplingFeatures::of(sampling);
        if kinds.repetition_penalty || kinds.output_penalties || kinds.min_new_tokens {
            return Err(Error::input(
                "penalties and min_new_tokens depend on the tokens before, which drafts do not share: leave them out, \
                 or use `generate`",
            ));
        }
        if let Some(row) = batch.options.iter().position(|options| options != sampling) {
            return Err(Error::input(format!(
                "row {row} has options of its own, and drafts are verified alike in all rows: set the config's, or use \
                 `generate`"
            )));
        }
        if !config.processors.is_empty() || config.sampler.is_some() {
            return Err(Error::input(
                "processors and samplers of an application read one token after the other, and drafts are verified at once: \
                 leave them out, or use `generate`",
            ));
        }
        if config.logprobs.is_some() {
            return Err(Error::input("speculative steps give no log-probabilities: use `generate`"));
        }
        let filters = filters(&config.processors, std::slice::from_ref(sampling), kinds, kinds, vocabulary)?;
        let verifier = match sampler_temperature(sampling) {
            None => Verifier::greedy(),
            Some(temperature) => Verifier::sampling(&batch.seeds(), vocab_size, temperature, &device)?,
        };
        let tree = drafter.tree();
        let longest = batch.length + batch.steps;
        let (slots, capacity) = (longest + tree.depth() + 1, longest + tree.len());
        if let Some(most) = model.max_positions().filter(|&most| capacity > most) {
            return Err(Error::input(format!(
                "prompts of up to {} tokens, {} new ones and {} drafts exceed the model's {most} positions",
                batch.length,
                batch.steps,
                tree.len() - 1
            )));
        }
        let (prompt, padding) = batch.left_padded(&device);
        drafter.start(&DrafterContext {
            prompt: prompt.clone(),
            padding: padding.clone(),
            slots,
            unread: 2,
            constraint: &constraint,
            tables: &batch.tables,
            rows: &batch.rows,
            vocabulary,
            tensors: &config.tensors,
            temperature: sampling.sampled(),
            seeds: batch.seeds(),
        })?;
        let sequences = Sequences::new(prompt.clone(), slots);
        let init = InitContext { prompt: prompt.clone(), padding: padding.clone(), vocab_size };
        let state = constraint.start();
        let first_tree = if tree.is_chain() { tree.clone() } else { DraftTree::chain(0) };
        let drafts = if first_tree.len() > 1 { drafter.draft(&sequences, &state) } else { Vec::new() };
        let (logits, cache) = if drafts.is_empty() {
            let (logits, cache) = model.prefill(prompt, padding, capacity);
            (logits.unsqueeze_dim::<3>(1), model.branch(cache))
        } else {
            let chain = Tensor::stack(drafts.iter().map(|draft| draft.tokens.clone()).collect(), 1);
            model.prefill_chain(prompt, padding, chain, capacity)
        };
        let [_, _, logit_width] = logits.dims();
        constraint.check(&logits.clone().narrow(1, 0, 1).reshape([batch.len(), logit_width]))?;
        let mut session = Self {
            state,
            cache,
            paths: tree.paths(&device),
            depths: tree.depths_on(&device),
            lengths: StepLog::new(steps, batch.len(), &device),
            steps: Tensor::zeros([1], (&device, DType::I32)),
            model,
            drafter,
            constraint,
            filter_state: filters.init(&init),
            filters,
            verifier,
            sequences,
            tree,
        };
        let none = Tensor::full([batch.len()], vocab_size as i32, (&device, DType::I32));
        let tokens = nodes(none, &drafts);
        session.verify(&first_tree, tokens, &drafts, logits);
        Ok(session)
    }

    /// Verifies draft tokens that the model has read; appends the accepted tokens and the next
    /// token.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, nodes]`
    /// - `logits`: `[batch, nodes, vocab_size]`
    fn verify(&mut self, tree: &DraftTree, tokens: Tensor<2, Int>, drafts: &[DraftToken], logits: Tensor<3>) {
        let [batch, _] = tokens.dims();
        let (logits, nodes) = self.constraint.mask_tree(&self.state, tree, tokens.clone(), logits);
        let logits = self.filter(logits);
        let acceptance = self.verifier.verify(tree, drafts, logits);

        self.state.assign(nodes.at(acceptance.last_accepted.clone()));
        let path = self.paths.clone().select(0, acceptance.last_accepted.clone());
        let accepted = self.depths.clone().select(0, acceptance.last_accepted);
        let next = acceptance.next_token.reshape([batch, 1]);
        let places = self.sequences.steps(self.tree.depth() + 1);
        let new = appended(tokens, path.clone(), next, accepted.clone(), places);
        if !tree.is_chain() {
            self.model.compact(path, tree.len(), &mut self.cache);
        }
        self.sequences.append(new, accepted + 1);
        // The model has read all but the last token.
        self.model.truncate(self.sequences.lengths() - 1, &mut self.cache);
        self.lengths.write(&self.steps, self.sequences.lengths());
        self.steps.inplace(|steps| steps + 1);
    }

    /// Filters the logits of every node, `[batch, nodes, vocab_size]`.
    fn filter(&self, logits: Tensor<3>) -> Tensor<3> {
        if self.filters.is_identity() {
            return logits;
        }
        let [batch, nodes, vocab_size] = logits.dims();
        // The result of these filters depends on nothing else.
        let context = StepContext { tokens: self.sequences.last(), step: self.steps.clone() };
        let rows = logits.reshape([batch * nodes, vocab_size]);
        self.filters.process(self.filter_state.clone(), rows, &context).0.reshape([batch, nodes, vocab_size])
    }

    /// A step as [`SpeculativeSteps::step`].
    pub(super) fn take_step(&mut self) {
        let last = self.sequences.last();
        let now = self.constraint.advance(self.state.clone(), last.clone());
        let drafts = self.drafter.draft(&self.sequences, &now);
        let tokens = nodes(last, &drafts);
        let logits = self.model.read(tokens.clone(), &self.tree, &mut self.cache);
        let tree = self.tree.clone();
        self.verify(&tree, tokens, &drafts, logits);
    }

    /// The number of steps so far.
    pub(super) fn steps(&self) -> Result<usize> {
        let steps = read(self.steps.clone())?;
        Ok(steps.first().map_or(0, |&steps| steps.max(0) as usize))
    }
}

impl<M: TreeLm, D: Drafter> SpeculativeSteps for SpeculativeSession<'_, M, D> {
    fn step(&mut self) -> Result<()> {
        self.take_step();
        Ok(())
    }

    fn read(&self, steps: Range<usize>) -> Result<(Vec<i32>, Vec<i32>)> {
        Ok((read(self.sequences.tokens())?, self.lengths.read(steps)?))
    }
}

// SAFETY: `start` makes every tensor of the session. A step writes them in place, or only reads
// them. Only the model and the drafter get clones of handles that a step writes, and promise to
// keep none. All work is on the stream of the caller.
#[allow(unsafe_code)]
unsafe impl<M: TreeLm + Recordable, D: Drafter + Recordable> Recordable for SpeculativeSession<'_, M, D> {}

/// The tokens of all nodes, `[batch, nodes]`: the last token of every row, and its draft tokens.
fn nodes(last: Tensor<1, Int>, drafts: &[DraftToken]) -> Tensor<2, Int> {
    let drafts = drafts.iter().map(|draft| draft.tokens.clone());
    Tensor::stack(std::iter::once(last).chain(drafts).collect(), 1)
}

/// The first `accepted` draft tokens along a path, then `next` up to the end, `[batch, depth + 1]`.
///
/// # Shapes
/// - `tokens`: `[batch, nodes]`
/// - `path`: `[batch, depth + 1]`
/// - `next`: `[batch, 1]`
/// - `accepted`: `[batch]`
/// - `places`: 0, 1, …, `[depth + 1]`
fn appended(
    tokens: Tensor<2, Int>,
    path: Tensor<2, Int>,
    next: Tensor<2, Int>,
    accepted: Tensor<1, Int>,
    places: Tensor<1, Int>,
) -> Tensor<2, Int> {
    let [batch, columns] = path.dims();
    if columns == 1 {
        return next;
    }
    let drafts = tokens.gather(1, path).slice([0..batch, 1..columns]);
    let places = places.reshape([1, columns]).expand([batch, columns]);
    let over = places.greater_equal(accepted.reshape([batch, 1]).expand([batch, columns]));
    Tensor::cat(vec![drafts, next.clone()], 1).mask_where(over, next.expand([batch, columns]))
}
