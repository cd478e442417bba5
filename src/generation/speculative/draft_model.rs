//! Drafts of a smaller model.

use burn::tensor::{DType, IndexingUpdateOp, Int, Tensor};

use super::drafter::{DraftToken, Drafter, DrafterContext};
use super::model::TreeLm;
use super::seeds::{Use, derived};
use super::sequences::Sequences;
use super::softmax::RowSoftmax;
use crate::generation::model::Recordable;
use crate::in_place::in_place;
use crate::processor::{ConstraintProcessor, DraftTree, InPlaceState, Position, unless_empty};
use crate::sampling::{Greedy, GumbelMax, Sampler};
use crate::tensor::{DeviceConstraint, ints};
use crate::vocabulary::TokenId;
use burn_dfa_tokens::{Error, Result};

/// Proposes a chain of tokens of a smaller model, the *draft model*, token by token.
///
/// By default the constraint masks the draft model as it masks the model, so no draft token is
/// illegal. The masking costs a mask per draft token; it pays off unless the draft model mostly
/// follows the constraint anyway. Draft tokens are sampled at the temperature of their row, or
/// greedily in a greedy row.
///
/// A draft model may have logits for only a part of the vocabulary, see
/// [`with_ids`](Self::with_ids).
///
/// ```
/// use burn_dfa::generation::speculative::{DraftModel, Drafter, ForcedTokens, ForcedBytes, TreeLm};
///
/// /// What the constraint forces, then four draft tokens of a small model.
/// fn drafter(small: &impl TreeLm) -> burn_dfa::Result<impl Drafter> {
///     ForcedTokens::new(4, ForcedBytes::LongestToken).before(DraftModel::new(small, 4))
/// }
/// ```
#[derive(Debug)]
pub struct DraftModel<'m, M: TreeLm> {
    model: &'m M,
    drafts: usize,
    is_masked: bool,
    ids: Option<Vec<TokenId>>,
    batch: Option<DraftBatch<M::TreeCache>>,
}

/// The state of a batch.
#[derive(Debug)]
struct DraftBatch<C> {
    cache: C,
    /// The tokens in the cache.
    read: Sequences,
    /// The maximum number of tokens that a step appends and the draft model has not read.
    unread: usize,
    /// Advances states.
    constraint: ConstraintProcessor,
    /// Masks rows of the draft model, in its own ids.
    mask: Option<ConstraintProcessor>,
    /// The token of each of the draft model's ids, `[draft vocab_size]`, if they differ.
    ids: Option<Tensor<1, Int>>,
    vocab_size: usize,
    /// The distributions of the rows, and the sampler; `None`: all rows are greedy.
    sampling: Option<(RowSoftmax, GumbelMax)>,
    /// Number of draws so far, `[1]`.
    draws: Tensor<1, Int>,
}

impl<'m, M: TreeLm> DraftModel<'m, M> {
    /// A chain of `drafts` draft tokens of `model`.
    pub fn new(model: &'m M, drafts: usize) -> Self {
        Self { model, drafts, is_masked: true, ids: None, batch: None }
    }

    /// Leaves the draft model unmasked.
    pub fn unmasked(self) -> Self {
        Self { is_masked: false, ..self }
    }

    /// Maps logit *d* of the draft model to the token `ids[d]`. The draft model reads tokens of the
    /// whole vocabulary and proposes only `ids`, as the heads of EAGLE-3 do (their `d2t`; Li et
    /// al., 2025, arXiv:2503.01840). Its logits may be wider than `ids`.
    pub fn with_ids(self, ids: impl IntoIterator<Item = TokenId>) -> Self {
        Self { ids: Some(ids.into_iter().collect()), ..self }
    }
}

// SAFETY: `draft` writes the sequences and the number of draws in place. The model makes the
// promise for its cache. The drafts are new tensors.
#[allow(unsafe_code)]
unsafe impl<M: TreeLm + Recordable> Recordable for DraftModel<'_, M> {}

impl<M: TreeLm> Drafter for DraftModel<'_, M> {
    fn tree(&self) -> DraftTree {
        DraftTree::chain(self.drafts)
    }

    /// # Errors
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): sequences and draft tokens exceed the
    ///   positions of the draft model, or its vocabulary is not the model's and no ids are given,
    ///   or ids are not tokens of the model;
    /// - as [`DeviceConstraint::new`] for the constraints in the draft model's ids.
    fn start(&mut self, context: &DrafterContext) -> Result<()> {
        let (device, own) = (self.model.device(), self.model.vocab_size());
        let vocab_size = context.constraint.device_constraint().vocab_size();
        let capacity = context.slots + context.unread + self.drafts;
        if let Some(max) = self.model.max_positions().filter(|&max| capacity > max) {
            return Err(Error::input(format!(
                "texts of {} tokens and their drafts exceed the draft model's {max} positions",
                context.slots
            )));
        }
        let (mut mask, mut ids) = (None, None);
        if let Some(given) = &self.ids {
            if given.is_empty() || given.len() > own {
                return Err(Error::input(format!("{} ids for {own} logits of a draft model", given.len())));
            }
            let pruned = context.compiled.iter().map(|compiled| compiled.prune(context.vocabulary, given));
            let pruned = pruned.collect::<Result<Vec<_>>>()?;
            let pruned = pruned.iter().collect::<Vec<_>>();
            let device_constraint = DeviceConstraint::new(&pruned, own, context.tensors, &device)?;
            mask = Some(ConstraintProcessor::new(device_constraint, context.rows)?);
            // Logits past the ids are masked; without a mask they propose the first id, which is
            // then verified.
            let mut tokens = given.iter().map(|id| id.0 as i32).collect::<Vec<_>>();
            tokens.resize(own, given[0].0 as i32);
            ids = Some(ints(tokens, &device));
        } else if own != vocab_size {
            return Err(Error::input(format!(
                "a draft model of {own} logits for a model of {vocab_size}: name its tokens with `DraftModel::with_ids`"
            )));
        }
        let [_, length] = context.prompt.dims();
        let (_, cache) =
            self.model.prefill(context.prompt.clone(), context.padding.clone(), capacity.max(length));
        let temperatures = &context.temperatures;
        let sampling = match temperatures.iter().any(Option::is_some) {
            false => None,
            true => {
                let sampler = GumbelMax::new(&derived(&context.seeds, Use::DraftModel), own, &device)?;
                let sampler = sampler.with_temperatures(temperatures)?;
                Some((RowSoftmax::new(temperatures, &device)?, sampler))
            }
        };
        self.batch = Some(DraftBatch {
            cache: self.model.branch(cache),
            read: Sequences::new(context.prompt.clone(), context.slots),
            unread: context.unread.clamp(1, context.slots),
            constraint: context.constraint.clone(),
            mask: self.is_masked.then(|| mask.unwrap_or_else(|| context.constraint.clone())),
            ids,
            vocab_size,
            sampling,
            draws: Tensor::zeros([1], (&device, DType::I32)),
        });
        Ok(())
    }

    /// # Panics
    /// If no batch was begun.
    fn draft(&mut self, sequences: &Sequences, state: &Position) -> Vec<DraftToken> {
        if self.drafts == 0 {
            return Vec::new();
        }
        let batch = self.batch.as_mut().expect("`Drafter::start` comes before `draft`");
        let mut logits = batch.catch_up(self.model, sequences);
        let (mut state, mut drafts) = (state.clone(), Vec::with_capacity(self.drafts));
        loop {
            let draft = batch.choose(logits, &state);
            drafts.push(draft.clone());
            if drafts.len() == self.drafts {
                return drafts;
            }
            if batch.mask.is_some() {
                state = batch.constraint.advance(state, draft.tokens.clone());
            }
            let rows = draft.tokens.dims()[0];
            let tokens = draft.tokens.reshape([rows, 1]);
            let read = self.model.read(tokens.clone(), &DraftTree::chain(0), &mut batch.cache);
            logits = read.reshape([rows, self.model.vocab_size()]);
            batch.read.append(tokens.clone(), tokens.reshape([rows]).ones_like());
        }
    }
}

impl<C> DraftBatch<C> {
    /// Reads the tokens that the draft model has not read yet, and returns the logits after the
    /// last one, `[batch, draft vocab_size]`.
    fn catch_up<M: TreeLm<TreeCache = C>>(&mut self, model: &M, sequences: &Sequences) -> Tensor<2> {
        let common = self.read.common(sequences);
        model.truncate(common.clone(), &mut self.cache);
        let tokens = sequences.window(common.clone(), self.unread);
        let logits = model.read(tokens, &DraftTree::chain(self.unread - 1), &mut self.cache);
        model.truncate(sequences.lengths(), &mut self.cache);
        self.read.assign(sequences.clone());
        let [batch, _, own] = logits.dims();
        let last = (sequences.lengths() - common - 1).clamp(0, self.unread as i32 - 1);
        logits.gather(1, last.reshape([batch, 1, 1]).expand([batch, 1, own])).reshape([batch, own])
    }

    /// Chooses from logits `[batch, draft vocab_size]`.
    fn choose(&mut self, logits: Tensor<2>, state: &Position) -> DraftToken {
        let logits = match &self.mask {
            None => logits,
            Some(mask) => {
                // In a partial vocabulary, it is possible that no token is legal.
                unless_empty(mask.mask(state, logits.clone()), logits)
            }
        };
        let (tokens, probabilities) = match &self.sampling {
            None => (Greedy.sample(logits, &self.draws), None),
            Some((softmax, sampler)) => {
                let [batch, own] = logits.dims();
                let tokens = sampler.sample(logits.clone(), &self.draws);
                in_place(&mut self.draws, |draws| draws + 1);
                (tokens, Some(softmax.of(logits.reshape([batch, 1, own])).reshape([batch, own])))
            }
        };
        let Some(ids) = &self.ids else {
            return DraftToken { tokens, probabilities };
        };
        let spread = |chances: Tensor<2>| {
            let [batch, _] = chances.dims();
            let none = Tensor::zeros([batch, self.vocab_size], (&chances.device(), DType::F32));
            none.select_assign(1, ids.clone(), chances, IndexingUpdateOp::Add)
        };
        DraftToken { tokens: ids.clone().select(0, tokens), probabilities: probabilities.map(spread) }
    }
}
