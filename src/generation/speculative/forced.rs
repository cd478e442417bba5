//! Guesses out of the constraint.

use burn::tensor::{DType, Int, Tensor};

use super::drafter::{DraftToken, Drafter, DrafterContext};
use super::sequences::Sequences;
use crate::error::{Error, Result};
use crate::processor::{DfaProcessor, DfaState, DraftTree};
use crate::table::StateId;
use crate::tensor::ints;

/// What is guessed where the constraint leaves no choice of bytes, but one of tokens: `{"`, or `{` and `"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ForcedBytes {
    /// The longest token, which is what most tokenizers write.
    #[default]
    LongestToken,
    /// Nothing: the choice is the model's. Only a token without alternative is guessed.
    ModelsChoice,
}

/// Guesses what the constraint leaves no choice about (jump-forward), then what another drafter says.
///
/// It costs one lookup a token and is hardly ever wrong: never with [`ForcedBytes::ModelsChoice`], and with
/// [`ForcedBytes::LongestToken`] where the model spells the forced bytes in another way. Source for the idea: Zheng
/// et al., "SGLang" (arXiv:2312.07104).
///
/// ```
/// use burn_dfa::generation::speculative::{Drafter, ForcedTokens, ForcedBytes, PromptLookup};
///
/// let alone = ForcedTokens::new(4, ForcedBytes::LongestToken);
/// assert_eq!(alone.tree().depth(), 4);
/// let in_front = alone.before(PromptLookup::new(3, 2))?;
/// assert_eq!(in_front.tree().depth(), 7);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ForcedTokens<D = ()> {
    run: usize,
    bytes: ForcedBytes,
    rest: D,
    batch: Option<Running>,
}

#[derive(Clone, Debug)]
struct Running {
    /// The forced token of every state, −1 where there is none: `[states]`.
    token: Tensor<1, Int>,
    constraint: DfaProcessor,
}

impl ForcedTokens {
    /// Up to `run` forced tokens.
    pub fn new(run: usize, bytes: ForcedBytes) -> Self {
        Self { run, bytes, rest: (), batch: None }
    }

    /// The forced tokens, and after them the guesses of `rest`.
    ///
    /// # Errors
    /// [`Error::is_input`] where `rest` guesses other than a chain.
    pub fn before<D: Drafter>(self, rest: D) -> Result<ForcedTokens<D>> {
        if !rest.tree().is_chain() {
            return Err(Error::input("forced tokens stand before a chain of guesses, not before a tree"));
        }
        Ok(ForcedTokens { run: self.run, bytes: self.bytes, rest, batch: None })
    }
}

impl<D: Drafter> Drafter for ForcedTokens<D> {
    fn tree(&self) -> DraftTree {
        DraftTree::chain(self.run + self.rest.tree().depth())
    }

    fn start(&mut self, start: &DrafterContext) -> Result<()> {
        let table = start.constraint.table();
        let mut token = vec![-1; table.state_count()];
        for (index, own) in start.tables.iter().enumerate() {
            own.check_vocabulary(start.vocabulary)?;
            // A table that starts in a reserved state has no states of its own.
            let Some(shift) = table.start(index).0.checked_sub(own.start().0) else {
                continue;
            };
            let longest = self.bytes == ForcedBytes::LongestToken;
            for (state, forced) in own.forced(start.vocabulary, longest).into_iter().enumerate() {
                if let Some(forced) = forced.filter(|_| state >= StateId::RESERVED as usize) {
                    token[state + shift as usize] = forced.0 as i32;
                }
            }
        }
        let token = ints(token, table.device());
        self.batch = Some(Running { token, constraint: start.constraint.clone() });
        // The rest reads the run as a part of the text.
        self.rest.start(&DrafterContext { unread: start.unread + self.run, ..start.clone() })
    }

    /// # Panics
    /// Where no batch was begun.
    fn draft(&mut self, text: &Sequences, state: &DfaState) -> Vec<DraftToken> {
        let Running { token, constraint } =
            self.batch.as_ref().expect("`Drafter::start` comes before `draft`");
        if self.run == 0 {
            return self.rest.draft(text, state);
        }
        let (mut state, none) = (state.clone(), constraint.table().no_token() as i32);
        let [batch] = text.lengths().dims();
        let mut tokens: Vec<Tensor<1, Int>> = Vec::new();
        let mut count = text.lengths().zeros_like();
        for _ in 0..self.run {
            let forced = token.clone().select(0, state.states());
            let over = forced.clone().lower_elem(0);
            count = count + over.clone().bool_not().int().cast(DType::I32);
            state = constraint.advance(state, forced.clone().mask_fill(over, none));
            tokens.push(forced.clamp_min(0));
        }
        let rest = self.rest.tree().depth();
        if rest == 0 {
            return tokens.into_iter().map(|tokens| DraftToken { tokens, probabilities: None }).collect();
        }
        let mut longer = text.clone();
        longer.append(Tensor::stack(tokens.clone(), 1), count.clone());
        let guesses = self.rest.draft(&longer, &state);

        // Token `at` is the run's while it lasts, then the rest's; at last the rest's last token again.
        let last = guesses.len() as i32 - 1;
        let width = constraint.table().width();
        let all: Vec<_> =
            tokens.into_iter().chain(guesses.iter().map(|guess| guess.tokens.clone())).collect();
        let all = Tensor::<1, Int>::stack::<2>(all, 1);
        let drawn = guesses.iter().any(|guess| guess.probabilities.is_some());
        let drawn = drawn
            .then(|| Tensor::stack::<3>(guesses.iter().map(|guess| guess.distribution(width)).collect(), 1));
        (0..self.run + rest)
            .map(|at| {
                let beyond = count.clone() * -1 + at as i32;
                let of_run = beyond.clone().lower_elem(0);
                let of_rest = beyond.clone().clamp(0, last);
                let place = (of_rest.clone() + self.run as i32).mask_fill(of_run.clone(), at as i32);
                let tokens = all.clone().gather(1, place.reshape([batch, 1])).reshape([batch]);
                let certain = of_run.bool_or(beyond.greater_elem(last));
                let probabilities = drawn.clone().map(|drawn| {
                    let place = of_rest.reshape([batch, 1, 1]).expand([batch, 1, width]);
                    let drawn = drawn.gather(1, place).reshape([batch, width]);
                    let itself =
                        DraftToken { tokens: tokens.clone(), probabilities: None }.distribution(width);
                    drawn.mask_where(certain.reshape([batch, 1]).expand([batch, width]), itself)
                });
                DraftToken { tokens, probabilities }
            })
            .collect()
    }
}
