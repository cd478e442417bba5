//! The choice of tokens in a tree of draft tokens: the constraint, the processors after it, and the
//! verifier or a sampler of the application, with their states on the device.

use burn::tensor::{Int, Tensor};

use super::drafter::DraftToken;
use super::verify::{Acceptance, Verifier, matching, of_node};
use crate::generation::batch::Batch;
use crate::generation::config::GenerationConfig;
use crate::generation::processors::{Filters, OwnSampler};
use crate::generation::selection::{filters, temperatures};
use crate::processor::{
    ConstraintProcessor, DraftTree, InPlaceState, InitContext, LogitsProcessor, Position, RowState,
    StepContext,
};
use crate::sampling::Sampler;
use burn_dfa_tokens::Result;

type FilterState = <Filters as LogitsProcessor>::State;

/// Accepts draft tokens and chooses the token after them, for every row.
///
/// A step writes its tensors in place.
pub(super) struct TreeChooser {
    constraint: ConstraintProcessor,
    /// The position before the last token of the sequences.
    state: Position,
    filters: Filters,
    /// The state before the last token of the sequences.
    filter_state: FilterState,
    /// Whether the filters process one node of every row at a time.
    is_sequential: bool,
    verifier: Verifier,
    /// The sampler of the application, in place of the verifier.
    sampler: Option<OwnSampler>,
    /// Tokens of the prompts, padding included.
    prompt_length: usize,
    /// How many of the likeliest tokens to log; `None`: no log-probabilities.
    logprobs: Option<usize>,
}

/// The nodes of a draft tree after the last token of every row.
pub(super) struct ReadTree<'a> {
    pub(super) tree: &'a DraftTree,
    /// `[batch, nodes]`
    pub(super) tokens: Tensor<2, Int>,
    pub(super) drafts: &'a [DraftToken],
    /// The lengths of the rows before the nodes, the last token included: `[batch]`.
    pub(super) lengths: Tensor<1, Int>,
}

/// What the rows choose in a tree.
pub(super) struct TreeChoice {
    pub(super) acceptance: Acceptance,
    /// How many of the likeliest tokens to log, with the logits of the model, then the logits
    /// within the constraint, `[2 * batch, nodes, vocab_size]`.
    pub(super) observed: Option<(usize, Tensor<3>)>,
}

impl TreeChooser {
    /// A chooser before the first token of a batch.
    pub(super) fn new(
        config: &GenerationConfig,
        batch: &Batch,
        constraint: ConstraintProcessor,
        prompts: &InitContext,
    ) -> Result<Self> {
        let (kinds, device) = (batch.kinds(), prompts.device());
        let rows_differ = batch.options.iter().any(|options| *options != batch.options[0]);
        let is_sequential = rows_differ
            || !config.processors.is_empty()
            || kinds.repetition_penalty
            || kinds.output_penalties
            || kinds.min_new_tokens;
        // Filters that are not sequential process all nodes as rows, which share the options.
        let rows = if is_sequential { batch.len() } else { 1 };
        let filters = filters(&config.processors, &batch.options[..rows], kinds, kinds, batch.vocabulary())?;
        let init = InitContext {
            prompt: prompts.prompt.clone().narrow(0, 0, rows),
            padding: prompts.padding.clone().narrow(0, 0, rows),
            vocab_size: prompts.vocab_size,
        };
        let temperatures = temperatures(&batch.options);
        let verifier = match kinds.temperature {
            false => Verifier::greedy(),
            true => Verifier::sampling(&batch.seeds(), prompts.vocab_size, &temperatures, &device)?,
        };
        Ok(Self {
            state: constraint.start(),
            constraint,
            filter_state: filters.init(&init),
            filters,
            is_sequential,
            verifier,
            sampler: config.sampler.clone(),
            prompt_length: batch.length,
            logprobs: config.logprobs,
        })
    }

    pub(super) fn constraint(&self) -> &ConstraintProcessor {
        &self.constraint
    }

    /// The position before the first token.
    pub(super) fn start(&self) -> &Position {
        &self.state
    }

    /// The position after the last token of every row.
    pub(super) fn after(&self, last: Tensor<1, Int>) -> Position {
        self.constraint.advance(self.state.clone(), last)
    }

    /// Accepts a path of the nodes, and chooses the next token.
    ///
    /// # Shapes
    /// - `logits`: `[batch, nodes, vocab_size]`
    pub(super) fn choose(&mut self, read: ReadTree, logits: Tensor<3>) -> TreeChoice {
        let ReadTree { tree, ref tokens, drafts, .. } = read;
        let unmasked = self.logprobs.map(|top| (top, logits.clone()));
        let (masked, nodes) = self.constraint.mask_tree(&self.state, tree, tokens.clone(), logits);
        let observed = unmasked.map(|(top, logits)| (top, Tensor::cat(vec![logits, masked.clone()], 0)));
        let (logits, filter_states) = self.filter(&read, masked);
        let acceptance = match &self.sampler {
            Some(sampler) => matching(tree, drafts, self.sampled(sampler, &read, logits)),
            None => self.verifier.verify(tree, drafts, logits),
        };
        self.state.assign(nodes.at(acceptance.last_accepted.clone()));
        if let Some(state) = state_at(filter_states, &acceptance.last_accepted) {
            self.filter_state.assign(state);
        }
        TreeChoice { acceptance, observed }
    }

    /// Filters the logits of every node. Sequential filters also return their state after each
    /// node: a node continues the state of its parent.
    ///
    /// # Shapes
    /// - `logits`: `[batch, nodes, vocab_size]`
    fn filter(&self, read: &ReadTree, logits: Tensor<3>) -> (Tensor<3>, Vec<FilterState>) {
        if self.filters.is_identity() {
            return (logits, Vec::new());
        }
        if !self.is_sequential {
            let [batch, nodes, vocab_size] = logits.dims();
            // The result of these filters depends on the logits alone.
            let context = self.context(read, 0);
            let rows = logits.reshape([batch * nodes, vocab_size]);
            let (rows, _) = self.filters.process(self.filter_state.clone(), rows, &context);
            return (rows.reshape([batch, nodes, vocab_size]), Vec::new());
        }
        let mut filtered = Vec::with_capacity(read.tree.len());
        let mut states: Vec<FilterState> = Vec::with_capacity(read.tree.len());
        for (node, &parent) in read.tree.parents().iter().enumerate() {
            let before = if node == 0 { &self.filter_state } else { &states[parent] };
            let context = self.context(read, node);
            let (logits, state) = self.filters.process(before.clone(), of_node(&logits, node), &context);
            filtered.push(logits);
            states.push(state);
        }
        (Tensor::stack(filtered, 1), states)
    }

    /// The tokens that a sampler chooses after every node, `[batch, nodes]`.
    fn sampled(&self, sampler: &OwnSampler, read: &ReadTree, logits: Tensor<3>) -> Tensor<2, Int> {
        let sample = |node| {
            let StepContext { step, .. } = self.context(read, node);
            sampler.sample(of_node(&logits, node), &step)
        };
        Tensor::stack((0..read.tree.len()).map(sample).collect(), 1)
    }

    /// The context of the step after a node, as in a loop without drafts.
    fn context(&self, read: &ReadTree, node: usize) -> StepContext {
        let depth = read.tree.depths()[node] as i32 - self.prompt_length as i32;
        StepContext {
            tokens: read.tokens.clone().narrow(1, node, 1).reshape([-1]),
            step: read.lengths.clone() + depth,
        }
    }
}

/// The state of each row after one of its nodes, `[batch]`; `None` without states.
fn state_at<S: RowState>(states: Vec<S>, nodes: &Tensor<1, Int>) -> Option<S> {
    let states = states.into_iter().enumerate();
    let merge = |(_, merged): (usize, S), (node, state): (usize, S)| {
        (node, merged.mask_rows(&nodes.clone().equal_elem(node as i32), state))
    };
    states.reduce(merge).map(|(_, state)| state)
}
