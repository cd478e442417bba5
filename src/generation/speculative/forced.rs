//! Draft tokens forced by the constraint.

use burn::tensor::{DType, Int, Tensor};

use super::drafter::{DraftToken, Drafter, DrafterContext};
use super::sequences::Sequences;
use crate::generation::model::Recordable;
use crate::processor::{ConstraintProcessor, DraftTree, Position};
use crate::tensor::ints;
use burn_dfa_tokens::{Error, Result, StateId};

/// The proposal if the constraint forces the bytes, but not the tokens: `{"`, or `{` and `"`.
///
/// [`ForcedTokens`] has an example.
///
/// ```
/// use burn_dfa::generation::speculative::{ForcedBytes, ForcedTokens};
///
/// assert_eq!(ForcedBytes::default(), ForcedBytes::LongestToken);
/// let never_rejected = ForcedTokens::new(4, ForcedBytes::ModelsChoice);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ForcedBytes {
    /// The longest token of only forced bytes, as most tokenizers would write it.
    #[default]
    LongestToken,
    /// No proposal, because the choice is the model's: only a token without alternative is
    /// proposed.
    ModelsChoice,
}

/// Proposes the tokens forced by the constraint (jump-forward decoding; Zheng et al., "SGLang",
/// arXiv:2312.07104), followed by the proposals of another drafter.
///
/// A forced token costs one lookup. With [`ForcedBytes::ModelsChoice`] it is never rejected; with
/// [`ForcedBytes::LongestToken`] it is rejected if the model splits the forced bytes into other
/// tokens.
///
/// ```
/// use burn_dfa::generation::speculative::{Drafter, ForcedBytes, ForcedTokens, PromptLookup};
///
/// let alone = ForcedTokens::new(4, ForcedBytes::LongestToken);
/// assert_eq!(alone.tree().depth(), 4);
/// let in_front = alone.before(PromptLookup::new(3, 2))?;
/// assert_eq!(in_front.tree().depth(), 7);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ForcedTokens<D = ()> {
    max_tokens: usize,
    bytes: ForcedBytes,
    rest: D,
    batch: Option<ForcedBatch>,
}

/// The state of a batch.
#[derive(Clone, Debug)]
struct ForcedBatch {
    /// The forced token of every state, or −1: `[states]`.
    token: Tensor<1, Int>,
    constraint: ConstraintProcessor,
}

impl ForcedTokens {
    /// Up to `max_tokens` forced tokens.
    pub fn new(max_tokens: usize, bytes: ForcedBytes) -> Self {
        Self { max_tokens, bytes, rest: (), batch: None }
    }

    /// The forced tokens, followed by the draft tokens of `rest`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if `rest` does not propose a chain.
    pub fn before<D: Drafter>(self, rest: D) -> Result<ForcedTokens<D>> {
        if !rest.tree().is_chain() {
            return Err(Error::input(
                "forced tokens stand before a chain of draft tokens, not before a tree",
            ));
        }
        Ok(ForcedTokens { max_tokens: self.max_tokens, bytes: self.bytes, rest, batch: None })
    }
}

// SAFETY: `draft` only reads the tensors of `start`, the drafts are new tensors, and `rest` makes
// the promise.
#[allow(unsafe_code)]
unsafe impl<D: Recordable> Recordable for ForcedTokens<D> {}

impl<D: Drafter> Drafter for ForcedTokens<D> {
    fn tree(&self) -> DraftTree {
        DraftTree::chain(self.max_tokens + self.rest.tree().depth())
    }

    fn start(&mut self, context: &DrafterContext) -> Result<()> {
        let device_constraint = context.constraint.device_constraint();
        let mut token = vec![-1; device_constraint.state_count()];
        for (index, own) in context.compiled.iter().enumerate() {
            own.check_vocabulary(context.vocabulary)?;
            // A constraint that starts in a reserved state has no other states.
            let Some(shift) = device_constraint.start(index).0.checked_sub(own.start().0) else {
                continue;
            };
            let longest = self.bytes == ForcedBytes::LongestToken;
            for (state, forced) in own.forced(context.vocabulary, longest).into_iter().enumerate() {
                if let Some(forced) = forced.filter(|_| state >= StateId::RESERVED as usize) {
                    token[state + shift as usize] = forced.0 as i32;
                }
            }
        }
        let token = ints(token, device_constraint.device());
        self.batch = Some(ForcedBatch { token, constraint: context.constraint.clone() });
        // `rest` reads forced tokens as if they were accepted already.
        let unread = context.unread + self.max_tokens;
        self.rest.start(&DrafterContext { unread, ..context.clone() })
    }

    /// # Panics
    /// If no batch was begun.
    fn draft(&mut self, sequences: &Sequences, state: &Position) -> Vec<DraftToken> {
        let ForcedBatch { token, constraint } =
            self.batch.as_ref().expect("`Drafter::start` comes before `draft`");
        if self.max_tokens == 0 {
            return self.rest.draft(sequences, state);
        }
        let (mut state, none) = (state.clone(), constraint.device_constraint().no_token() as i32);
        let mut tokens: Vec<Tensor<1, Int>> = Vec::new();
        let mut count = sequences.lengths().zeros_like();
        for _ in 0..self.max_tokens {
            let forced = token.clone().select(0, state.states());
            let over = forced.clone().lower_elem(0);
            count = count + over.clone().bool_not().int().cast(DType::I32);
            state = constraint.advance(state, forced.clone().mask_fill(over, none));
            tokens.push(forced.clamp_min(0));
        }
        if self.rest.tree().depth() == 0 {
            return tokens.into_iter().map(|tokens| DraftToken { tokens, probabilities: None }).collect();
        }
        let mut longer = sequences.clone();
        longer.append(Tensor::stack(tokens.clone(), 1), count.clone());
        let rest = self.rest.draft(&longer, &state);
        joined(tokens, &rest, count, constraint.device_constraint().vocab_size())
    }
}

/// The first `count` forced tokens, then the tokens of `rest`; the last token fills the remaining
/// nodes.
///
/// # Shapes
/// - `forced`: `[batch]` each
/// - `count`: `[batch]`
fn joined(
    forced: Vec<Tensor<1, Int>>,
    rest: &[DraftToken],
    count: Tensor<1, Int>,
    vocab_size: usize,
) -> Vec<DraftToken> {
    let ([batch], max_forced, last) = (count.dims(), forced.len(), rest.len() as i32 - 1);
    let all: Vec<_> = forced.into_iter().chain(rest.iter().map(|draft| draft.tokens.clone())).collect();
    let all = Tensor::<1, Int>::stack::<2>(all, 1);
    let sampled = rest.iter().any(|draft| draft.probabilities.is_some());
    let distributions = || rest.iter().map(|draft| draft.distribution(vocab_size)).collect();
    let distributions = sampled.then(|| Tensor::stack::<3>(distributions(), 1));
    (0..max_forced + rest.len())
        .map(|at| {
            let beyond = count.clone() * -1 + at as i32;
            let is_forced = beyond.clone().lower_elem(0);
            let of_rest = beyond.clone().clamp(0, last);
            let index = (of_rest.clone() + max_forced as i32).mask_fill(is_forced.clone(), at as i32);
            let tokens = all.clone().gather(1, index.reshape([batch, 1])).reshape([batch]);
            let certain = is_forced.bool_or(beyond.greater_elem(last));
            let probabilities = distributions.clone().map(|distributions| {
                let index = of_rest.reshape([batch, 1, 1]).expand([batch, 1, vocab_size]);
                let sampled = distributions.gather(1, index).reshape([batch, vocab_size]);
                let itself =
                    DraftToken { tokens: tokens.clone(), probabilities: None }.distribution(vocab_size);
                sampled.mask_where(certain.reshape([batch, 1]).expand([batch, vocab_size]), itself)
            });
            DraftToken { tokens, probabilities }
        })
        .collect()
}
