//! A smaller model that guesses.

use burn::tensor::activation::softmax;
use burn::tensor::{DType, IndexingUpdateOp, Int, Tensor};

use super::drafter::{DraftToken, Drafter, DrafterContext};
use super::model::TreeLm;
use super::sequences::Sequences;
use super::verify::salted;
use crate::error::{Error, Result};
use crate::processor::{DfaProcessor, DfaState, DraftTree, Persistent};
use crate::sampling::{Greedy, GumbelMax, Sampler, temperature_factor};
use crate::tensor::{TensorTable, ints};
use crate::vocabulary::TokenId;

/// Guesses what a smaller model of the same tokenizer says, token by token.
///
/// Under the constraint (the default) the draft model is masked as the model is, so that no guess is illegal; that
/// costs a mask a guess, and is worth it unless the draft model keeps to the constraint by itself. Where tokens are
/// sampled, guesses are, at the same temperature; where not, they are the likeliest.
///
/// A draft model may speak of a part of the vocabulary only, see [`with_ids`](Self::with_ids).
///
/// ```
/// use burn_dfa::generation::speculative::{DraftModel, Drafter, ForcedTokens, ForcedBytes, TreeLm};
///
/// /// What the constraint forces, then four guesses of a small model.
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
    batch: Option<Running<M::TreeCache>>,
}

/// What a batch needs.
#[derive(Debug)]
struct Running<C> {
    cache: C,
    /// What the cache holds.
    read: Sequences,
    unread: usize,
    /// Moves states on.
    constraint: DfaProcessor,
    /// Masks rows of the draft model, in its own ids.
    mask: Option<DfaProcessor>,
    /// The token of each of the draft model's ids, `[draft width]`, where they differ.
    ids: Option<Tensor<1, Int>>,
    width: usize,
    /// 1 / temperature, and what draws.
    chance: Option<(f32, GumbelMax)>,
    /// Number of draws so far, `[1]`.
    draws: Tensor<1, Int>,
}

impl<'m, M: TreeLm> DraftModel<'m, M> {
    /// A chain of `drafts` guesses of `model`.
    pub fn new(model: &'m M, drafts: usize) -> Self {
        Self { model, drafts, is_masked: true, ids: None, batch: None }
    }

    /// Leaves the draft model unmasked.
    pub fn unmasked(self) -> Self {
        Self { is_masked: false, ..self }
    }

    /// The draft model's id *d* stands for the token `ids[d]`: it reads tokens of the whole vocabulary and speaks of
    /// these only, as the heads of EAGLE-3 do (their `d2t`; Li et al., 2025, arXiv:2503.01840). Its logits may be
    /// wider than `ids`.
    pub fn with_ids(self, ids: impl IntoIterator<Item = TokenId>) -> Self {
        Self { ids: Some(ids.into_iter().collect()), ..self }
    }
}

impl<M: TreeLm> Drafter for DraftModel<'_, M> {
    fn tree(&self) -> DraftTree {
        DraftTree::chain(self.drafts)
    }

    /// # Errors
    /// - [`Error::is_input`]: the text and the guesses exceed the positions of the draft model, or its vocabulary is
    ///   not the model's and no ids are given, or ids are not tokens of the model;
    /// - as [`TensorTable::new`] for the tables in the draft model's ids.
    fn start(&mut self, start: &DrafterContext) -> Result<()> {
        let (device, own) = (self.model.device(), self.model.vocab_size());
        let width = start.constraint.table().width();
        let capacity = start.slots + start.unread + self.drafts;
        if let Some(most) = self.model.max_positions().filter(|&most| capacity > most) {
            return Err(Error::input(format!(
                "texts of {} tokens and their drafts exceed the draft model's {most} positions",
                start.slots
            )));
        }
        let (mut mask, mut ids) = (None, None);
        if let Some(given) = &self.ids {
            if given.is_empty() || given.len() > own {
                return Err(Error::input(format!("{} ids for {own} logits of a draft model", given.len())));
            }
            let tables = start.tables.iter().map(|table| table.prune(start.vocabulary, given));
            let tables = tables.collect::<Result<Vec<_>>>()?;
            let tables = tables.iter().collect::<Vec<_>>();
            let table = TensorTable::new(&tables, own, start.tensors, &device)?;
            mask = Some(DfaProcessor::new(table, start.rows)?);
            // Logits past the ids are masked, or refused as what they then stand for.
            let mut tokens = given.iter().map(|id| id.0 as i32).collect::<Vec<_>>();
            tokens.resize(own, given[0].0 as i32);
            ids = Some(ints(tokens, &device));
        } else if own != width {
            return Err(Error::input(format!(
                "a draft model of {own} logits for a model of {width}: name its tokens with `DraftModel::with_ids`"
            )));
        }
        let [_, length] = start.prompt.dims();
        let (_, cache) =
            self.model.prefill(start.prompt.clone(), start.padding.clone(), capacity.max(length));
        let chance = match start.temperature {
            None => None,
            Some(temperature) => {
                let draw = GumbelMax::new(&salted(&start.seeds, 4), own, &device)?;
                Some((temperature_factor(temperature)?, draw))
            }
        };
        self.batch = Some(Running {
            cache: self.model.branch(cache),
            read: Sequences::new(start.prompt.clone(), start.slots),
            unread: start.unread.clamp(1, start.slots),
            constraint: start.constraint.clone(),
            mask: self.is_masked.then(|| mask.unwrap_or_else(|| start.constraint.clone())),
            ids,
            width,
            chance,
            draws: Tensor::zeros([1], (&device, DType::I32)),
        });
        Ok(())
    }

    /// # Panics
    /// Where no batch was begun.
    fn draft(&mut self, text: &Sequences, state: &DfaState) -> Vec<DraftToken> {
        if self.drafts == 0 {
            return Vec::new();
        }
        let batch = self.batch.as_mut().expect("`Drafter::start` comes before `draft`");
        let mut logits = batch.catch_up(self.model, text);
        let (mut state, mut guesses) = (state.clone(), Vec::with_capacity(self.drafts));
        loop {
            let guess = batch.choose(logits, &state);
            guesses.push(guess.clone());
            if guesses.len() == self.drafts {
                return guesses;
            }
            if batch.mask.is_some() {
                state = batch.constraint.advance(state, guess.tokens.clone());
            }
            let rows = guess.tokens.dims()[0];
            let tokens = guess.tokens.reshape([rows, 1]);
            let read = self.model.read(tokens.clone(), &DraftTree::chain(0), &mut batch.cache);
            logits = read.reshape([rows, self.model.vocab_size()]);
            batch.read.append(tokens.clone(), tokens.reshape([rows]).ones_like());
        }
    }
}

impl<C> Running<C> {
    /// Reads what the text has beyond what was read of it, and returns the logits after its last token,
    /// `[batch, draft width]`.
    fn catch_up<M: TreeLm<TreeCache = C>>(&mut self, model: &M, text: &Sequences) -> Tensor<2> {
        let common = self.read.common(text);
        model.truncate(common.clone(), &mut self.cache);
        let tokens = text.window(common.clone(), self.unread);
        let logits = model.read(tokens, &DraftTree::chain(self.unread - 1), &mut self.cache);
        model.truncate(text.lengths(), &mut self.cache);
        self.read.assign(text.clone());
        let [batch, _, own] = logits.dims();
        let last = (text.lengths() - common - 1).clamp(0, self.unread as i32 - 1);
        logits.gather(1, last.reshape([batch, 1, 1]).expand([batch, 1, own])).reshape([batch, own])
    }

    /// Chooses from logits `[batch, draft width]`.
    fn choose(&mut self, logits: Tensor<2>, state: &DfaState) -> DraftToken {
        let logits = match &self.mask {
            None => logits,
            Some(mask) => {
                let masked = mask.mask(state, logits.clone());
                // A part of the vocabulary may have nothing legal to say.
                let empty = masked.clone().equal_elem(f32::NEG_INFINITY).all_dim(1);
                masked.mask_where(empty.expand(logits.dims()), logits)
            }
        };
        let (tokens, probabilities) = match &self.chance {
            None => (Greedy.sample(logits, &self.draws), None),
            Some((factor, draw)) => {
                let logits = logits.cast(DType::F32) * *factor;
                let tokens = draw.sample(logits.clone(), &self.draws);
                self.draws.inplace(|draws| draws + 1);
                (tokens, Some(softmax(logits, 1)))
            }
        };
        let Some(ids) = &self.ids else {
            return DraftToken { tokens, probabilities };
        };
        let spread = |chances: Tensor<2>| {
            let [batch, _] = chances.dims();
            let none = Tensor::zeros([batch, self.width], (&chances.device(), DType::F32));
            none.select_assign(1, ids.clone(), chances, IndexingUpdateOp::Add)
        };
        DraftToken { tokens: ids.clone().select(0, tokens), probabilities: probabilities.map(spread) }
    }
}
