//! A running speculative batch: the model, the drafter, and the tensors that a step reads and
//! writes.
//!
//! It is not a `Session` with other parts. Its step reads a tree instead of one token per row, it
//! chooses along every branch, and a row grows by a number of tokens that only the device knows. So
//! `start`, `step` and `read` would all belong to the part, and the two would share three fields.
//! Their common code is `Batch`, `Filters`, `StepLog`, `Stepped` and `TokenStream`.

use std::ops::Range;

use burn::tensor::{DType, Int, Tensor};

use super::chooser::{ReadTree, TreeChoice, TreeChooser};
use super::drafter::{DraftToken, Drafter, DrafterContext};
use super::model::TreeLm;
use super::sequences::Sequences;
use crate::generation::batch::Batch;
use crate::generation::config::GenerationConfig;
use crate::generation::logprobs::encode;
use crate::generation::model::Recordable;
use crate::generation::options::SamplingOptions;
use crate::generation::recorded::Steps;
use crate::generation::row::NewTokens;
use crate::generation::step_log::{StepLog, read};
use crate::in_place::in_place;
use crate::processor::DraftTree;
use crate::vocabulary::TokenId;
use burn_dfa_tokens::{Error, Result};

/// A step reads nothing back, uploads nothing, and writes its state in place.
pub(super) struct SpeculativeSession<'m, M: TreeLm, D> {
    model: &'m M,
    drafter: D,
    cache: M::TreeCache,
    chooser: TreeChooser,
    sequences: Sequences,
    tree: DraftTree,
    /// The path to every node, `[nodes, depth + 1]`.
    paths: Tensor<2, Int>,
    /// The depth of every node, `[nodes]`.
    depths: Tensor<1, Int>,
    /// 0, 1, …, `[2 * batch, 1]`.
    rows: Tensor<2, Int>,
    /// The lengths of the rows after every step, with the log-probabilities of the tokens that the
    /// step appended.
    lengths: StepLog,
    /// Number of steps so far, `[1]`.
    steps: Tensor<1, Int>,
    /// The number of tokens of each row that the host has read, prompt included.
    read: Vec<usize>,
}

impl<'m, M: TreeLm, D: Drafter> SpeculativeSession<'m, M, D> {
    /// Takes the first step: reads the prompts, with the first draft tokens if they are a chain,
    /// and appends to every row. `steps` is the maximum number of logged steps, including the
    /// first.
    pub(super) fn start(
        model: &'m M,
        mut drafter: D,
        batch: &Batch,
        config: &GenerationConfig,
        steps: usize,
    ) -> Result<Self> {
        let (device, vocab_size) = (model.device(), model.vocab_size());
        let tree = drafter.tree();
        let longest = batch.length + batch.steps;
        let (slots, capacity) = (longest + tree.depth() + 1, longest + tree.len());
        if let Some(max) = model.max_positions().filter(|&max| capacity > max) {
            return Err(Error::input(format!(
                "prompts of up to {} tokens, {} new ones and {} drafts exceed the model's {max} positions",
                batch.length,
                batch.steps,
                tree.len() - 1
            )));
        }
        let prompts = batch.prompts(vocab_size, &device);
        let constraint = batch.constraint(config, vocab_size, &device)?;
        let chooser = TreeChooser::new(config, batch, constraint, &prompts)?;
        let (prompt, padding) = (prompts.prompt, prompts.padding);
        drafter.start(&DrafterContext {
            prompt: prompt.clone(),
            padding: padding.clone(),
            slots,
            unread: 2,
            constraint: chooser.constraint(),
            compiled: &batch.constraints,
            rows: &batch.rows,
            vocabulary: batch.vocabulary(),
            tensors: &config.tensors,
            temperatures: batch.options.iter().map(SamplingOptions::sampled).collect(),
            seeds: batch.seeds(),
        })?;
        let sequences = Sequences::new(prompt.clone(), slots);
        let first_tree = if tree.is_chain() { tree.clone() } else { DraftTree::chain(0) };
        let drafts =
            if first_tree.len() > 1 { drafter.draft(&sequences, chooser.start()) } else { Vec::new() };
        let (logits, cache) = if drafts.is_empty() {
            let (logits, cache) = model.prefill(prompt, padding, capacity);
            (logits.unsqueeze_dim::<3>(1), model.branch(cache))
        } else {
            let chain = Tensor::stack(drafts.iter().map(|draft| draft.tokens.clone()).collect(), 1);
            model.prefill_chain(prompt, padding, chain, capacity)
        };
        let [_, _, columns] = logits.dims();
        chooser.constraint().check(&logits.clone().narrow(1, 0, 1).reshape([batch.len(), columns]))?;
        let rows = 2 * batch.len();
        let mut session = Self {
            cache,
            paths: tree.paths(&device),
            depths: tree.depths_on(&device),
            rows: Tensor::arange(0..rows as i64, (&device, DType::I32)).reshape([rows, 1]),
            lengths: StepLog::new(steps, batch.len(), &device)
                .with_logprobs(config.logprobs, tree.depth() + 1),
            steps: Tensor::zeros([1], (&device, DType::I32)),
            model,
            drafter,
            chooser,
            sequences,
            read: vec![batch.length; batch.len()],
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
        let lengths = self.sequences.lengths();
        let read = ReadTree { tree, tokens: tokens.clone(), drafts, lengths };
        let TreeChoice { acceptance, observed } = self.chooser.choose(read, logits);
        let path = self.paths.clone().select(0, acceptance.last_accepted.clone());
        let accepted = self.depths.clone().select(0, acceptance.last_accepted);
        let next = acceptance.next_token.reshape([batch, 1]);
        let steps = self.sequences.steps(self.tree.depth() + 1);
        let new = appended(tokens, path.clone(), next, accepted.clone(), steps);
        let logprobs =
            observed.map(|(top, logits)| encode(self.along(&path, logits), &new.clone().reshape([-1]), top));
        if !tree.is_chain() {
            self.model.compact(path, tree.len(), &mut self.cache);
        }
        self.sequences.append(new, accepted + 1);
        // The model has read all but the last token.
        self.model.truncate(self.sequences.lengths() - 1, &mut self.cache);
        self.lengths.write(&self.steps, self.sequences.lengths(), logprobs);
        in_place(&mut self.steps, |steps| steps + 1);
    }

    /// The logits after every node of a path, `[2 * batch * (depth + 1), vocab_size]`.
    ///
    /// # Shapes
    /// - `path`: `[batch, depth + 1]`
    /// - `logits`: `[2 * batch, nodes, vocab_size]`, of the model, then within the constraint
    fn along(&self, path: &Tensor<2, Int>, logits: Tensor<3>) -> Tensor<2> {
        let [rows, nodes, vocab_size] = logits.dims();
        let indices = Tensor::cat(vec![path.clone(), path.clone()], 0) + self.rows.clone() * nodes as i32;
        logits.reshape([rows * nodes, vocab_size]).select(0, indices.reshape([-1]))
    }

    /// The number of steps so far.
    pub(super) fn steps(&self) -> Result<usize> {
        let steps = read(self.steps.clone())?;
        Ok(steps.first().map_or(0, |&steps| steps.max(0) as usize))
    }
}

impl<M: TreeLm, D: Drafter> Steps for SpeculativeSession<'_, M, D> {
    /// Drafts, verifies, and appends the accepted tokens and the next token.
    fn step(&mut self) {
        let last = self.sequences.last();
        let now = self.chooser.after(last.clone());
        let drafts = self.drafter.draft(&self.sequences, &now);
        let tokens = nodes(last, &drafts);
        let logits = self.model.read(tokens.clone(), &self.tree, &mut self.cache);
        let tree = self.tree.clone();
        self.verify(&tree, tokens, &drafts, logits);
    }

    fn read(&mut self, steps: Range<usize>) -> Result<Vec<NewTokens>> {
        let (tokens, lines) = (read(self.sequences.tokens())?, self.lengths.read(steps)?);
        let rows = tokens.chunks_exact(tokens.len() / self.read.len()).zip(&mut self.read);
        let new = |(row, (tokens, read)): (usize, (&[i32], &mut usize))| -> Result<NewTokens> {
            let (mut new, start) = (NewTokens::default(), *read);
            for (line, length) in lines.values(row).map(|length| length as usize).enumerate() {
                let appended = tokens.get(*read..length).ok_or_else(|| {
                    Error::model(format!("a row of {read} tokens has a length of {length} next"))
                })?;
                new.tokens.extend(appended.iter().map(|&id| TokenId(id as u32)));
                new.logprobs.extend(lines.logprobs(line, row, appended.len()));
                new.calls.push(length - start);
                *read = length;
            }
            Ok(new)
        };
        rows.enumerate().map(new).collect()
    }
}

// SAFETY: `start` makes every tensor of the session, and takes the first step, which makes the pool
// of mask rows. A step writes the tensors in place, or only reads them. A drafter may mask with its
// own constraints: their pool is made by its first draft, in `start` or in the warm-up of the
// recording. The position of the session holds all pools, and `MaskRows` never replaces one. Only
// the model, the drafter, the application's processors and its sampler get clones of handles that a
// step writes, and promise to keep none: `Stepped::record` takes the proof for processors and
// samplers. All work is on the stream of the caller.
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
/// - `steps`: 0, 1, …, `[depth + 1]`
fn appended(
    tokens: Tensor<2, Int>,
    path: Tensor<2, Int>,
    next: Tensor<2, Int>,
    accepted: Tensor<1, Int>,
    steps: Tensor<1, Int>,
) -> Tensor<2, Int> {
    let [batch, columns] = path.dims();
    if columns == 1 {
        return next;
    }
    let drafts = tokens.gather(1, path).slice([0..batch, 1..columns]);
    let steps = steps.reshape([1, columns]).expand([batch, columns]);
    let over = steps.greater_equal(accepted.reshape([batch, 1]).expand([batch, columns]));
    Tensor::cat(vec![drafts, next.clone()], 1).mask_where(over, next.expand([batch, columns]))
}
