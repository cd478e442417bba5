//! A running speculative batch: the model, the drafter, and the tensors that a step reads and
//! writes.

use std::ops::Range;

use burn::tensor::{DType, Int, Tensor};

use super::drafter::{DraftToken, Drafter, DrafterContext};
use super::model::TreeLm;
use super::sequences::Sequences;
use super::verify::{Verifier, matching};
use crate::generation::batch::Batch;
use crate::generation::config::GenerationConfig;
use crate::generation::log::{StepLog, read};
use crate::generation::model::Recordable;
use crate::generation::options::SamplingFeatures;
use crate::generation::processors::{Filters, OwnSampler};
use crate::generation::selection::{filters, sampler_temperature};
use crate::processor::{
    ConstraintProcessor, DraftTree, InPlaceState, InitContext, LogitsProcessor, Position, RowState,
    StepContext,
};
use crate::sampling::Sampler;
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

type FilterState = <Filters as LogitsProcessor>::State;

/// A step reads nothing back, uploads nothing, and writes its state in place.
pub(super) struct SpeculativeSession<'m, M: TreeLm, D> {
    model: &'m M,
    drafter: D,
    cache: M::TreeCache,
    constraint: ConstraintProcessor,
    /// The position before the last token of the sequences.
    state: Position,
    filters: Filters,
    /// The state before the last token of the sequences.
    filter_state: FilterState,
    /// Whether the filters need the tokens of a row one after the other.
    is_sequential: bool,
    verifier: Verifier,
    /// The sampler of the application, in place of the verifier.
    sampler: Option<OwnSampler>,
    sequences: Sequences,
    /// Tokens of the prompts, padding included.
    prompt_length: usize,
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
        if let Some(row) = batch.options.iter().position(|options| options != sampling) {
            return Err(Error::input(format!(
                "row {row} has options of its own, and drafts are verified alike in all rows: set the config's, or use \
                 `generate`"
            )));
        }
        if config.logprobs.is_some() {
            return Err(Error::input("speculative steps give no log-probabilities: use `generate`"));
        }
        let filters = filters(&config.processors, std::slice::from_ref(sampling), kinds, kinds, vocabulary)?;
        let is_sequential = !config.processors.is_empty()
            || kinds.repetition_penalty
            || kinds.output_penalties
            || kinds.min_new_tokens;
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
        // Filters that are not sequential process all nodes as rows, which share the parameters.
        let rows = if is_sequential { batch.len() } else { 1 };
        let init = InitContext {
            prompt: prompt.clone().narrow(0, 0, rows),
            padding: padding.clone().narrow(0, 0, rows),
            vocab_size,
        };
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
            is_sequential,
            verifier,
            sampler: config.sampler.clone(),
            sequences,
            prompt_length: batch.length,
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
        let (logits, filter_states) = self.filter(tree, &tokens, logits);
        let acceptance = match &self.sampler {
            Some(sampler) => matching(tree, drafts, self.sampled(sampler, tree, &tokens, logits)),
            None => self.verifier.verify(tree, drafts, logits),
        };

        self.state.assign(nodes.at(acceptance.last_accepted.clone()));
        if let Some(state) = state_at(filter_states, &acceptance.last_accepted) {
            self.filter_state.assign(state);
        }
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

    /// Filters the logits of every node. Sequential filters also return their state after each
    /// node: a node continues the state of its parent.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, nodes]`
    /// - `logits`: `[batch, nodes, vocab_size]`
    fn filter(
        &self,
        tree: &DraftTree,
        tokens: &Tensor<2, Int>,
        logits: Tensor<3>,
    ) -> (Tensor<3>, Vec<FilterState>) {
        if self.filters.is_identity() {
            return (logits, Vec::new());
        }
        if !self.is_sequential {
            let [batch, nodes, vocab_size] = logits.dims();
            // The result of these filters depends on the logits alone.
            let context = self.context(tree, tokens, 0);
            let rows = logits.reshape([batch * nodes, vocab_size]);
            let (rows, _) = self.filters.process(self.filter_state.clone(), rows, &context);
            return (rows.reshape([batch, nodes, vocab_size]), Vec::new());
        }
        let mut filtered = Vec::with_capacity(tree.len());
        let mut states: Vec<FilterState> = Vec::with_capacity(tree.len());
        for (node, &parent) in tree.parents().iter().enumerate() {
            let before = if node == 0 { &self.filter_state } else { &states[parent] };
            let context = self.context(tree, tokens, node);
            let (logits, state) = self.filters.process(before.clone(), of_node(&logits, node), &context);
            filtered.push(logits);
            states.push(state);
        }
        (Tensor::stack(filtered, 1), states)
    }

    /// The tokens that a sampler chooses after every node, `[batch, nodes]`.
    fn sampled(
        &self,
        sampler: &OwnSampler,
        tree: &DraftTree,
        tokens: &Tensor<2, Int>,
        logits: Tensor<3>,
    ) -> Tensor<2, Int> {
        let sample = |node| {
            let StepContext { step, .. } = self.context(tree, tokens, node);
            sampler.sample(of_node(&logits, node), &step).cast(DType::I32)
        };
        Tensor::stack((0..tree.len()).map(sample).collect(), 1)
    }

    /// The context of the step after a node, as in a loop without drafts.
    fn context(&self, tree: &DraftTree, tokens: &Tensor<2, Int>, node: usize) -> StepContext {
        let depth = tree.depths()[node] as i32 - self.prompt_length as i32;
        StepContext {
            tokens: tokens.clone().narrow(1, node, 1).reshape([-1]),
            step: self.sequences.lengths() + depth,
        }
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
// them. Only the model, the drafter and the application's processors get clones of handles that a
// step writes, and promise to keep none: `speculate_recorded` has refused processors and samplers
// without the promise. All work is on the stream of the caller.
#[allow(unsafe_code)]
unsafe impl<M: TreeLm + Recordable, D: Drafter + Recordable> Recordable for SpeculativeSession<'_, M, D> {}

/// The logits after a node, `[batch, vocab_size]`.
fn of_node(logits: &Tensor<3>, node: usize) -> Tensor<2> {
    let [batch, _, vocab_size] = logits.dims();
    logits.clone().narrow(1, node, 1).reshape([batch, vocab_size])
}

/// The state of each row after one of its nodes, `[batch]`; `None` without states.
fn state_at<S: RowState>(states: Vec<S>, nodes: &Tensor<1, Int>) -> Option<S> {
    let states = states.into_iter().enumerate();
    let merge = |(_, merged): (usize, S), (node, state): (usize, S)| {
        (node, merged.mask_rows(&nodes.clone().equal_elem(node as i32), state))
    };
    states.reduce(merge).map(|(_, state)| state)
}

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
