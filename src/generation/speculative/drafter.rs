//! Who guesses.

use burn::tensor::{Int, Tensor};

use super::sequences::Sequences;
use crate::error::Result;
use crate::processor::{DfaProcessor, DfaState, DraftTree};
use crate::table::TokenTable;
use crate::tensor::TensorOptions;
use crate::vocabulary::Vocabulary;

/// What a drafter is told before the first round.
#[derive(Clone, Debug)]
pub struct DrafterContext<'a> {
    /// The prompts, `[batch, length]`, left padded.
    pub prompt: Tensor<2, Int>,
    /// Padded positions of each row, `[batch]`.
    pub padding: Tensor<1, Int>,
    /// Slots of a row of the text.
    pub slots: usize,
    /// The most tokens by which the text has grown at a round beyond those that the drafter guessed and read itself.
    pub unread: usize,
    /// The constraint of every row.
    pub constraint: &'a DfaProcessor,
    /// The tables of the constraint.
    pub tables: &'a [&'a TokenTable],
    /// The table of each row.
    pub rows: &'a [usize],
    /// The model's tokens.
    pub vocabulary: &'a Vocabulary,
    /// How tables lie on the device.
    pub tensors: &'a TensorOptions,
    /// The temperature at which tokens are drawn; `None`: greedily.
    pub temperature: Option<f32>,
    /// A seed for each row.
    pub seeds: Vec<u64>,
}

/// A guess at the token of one node, for every row.
#[derive(Clone, Debug)]
pub struct DraftToken {
    /// `[batch]`, `i32`; any token of the model where a row has no guess.
    pub tokens: Tensor<1, Int>,
    /// The probabilities that the tokens were drawn from, `[batch, width]`, each row of sum 1; `None`: no chance was
    /// involved.
    pub probabilities: Option<Tensor<2>>,
}

/// Guesses the next tokens of every row, in a tree of fixed shape.
///
/// A guess may be wrong or illegal, but is a token of the model. A drafter is told nothing of what became of its
/// guesses: it finds that in the text.
///
/// ```
/// use burn::tensor::{DType, Tensor};
/// use burn_dfa::Result;
/// use burn_dfa::generation::speculative::{Drafter, DraftToken, DrafterContext, Sequences};
/// use burn_dfa::processor::{DfaState, DraftTree};
///
/// /// Guesses that the last token comes again.
/// struct Again;
///
/// impl Drafter for Again {
///     fn tree(&self) -> DraftTree {
///         DraftTree::chain(1)
///     }
///     fn start(&mut self, _: &DrafterContext) -> Result<()> {
///         Ok(())
///     }
///     fn draft(&mut self, text: &Sequences, _: &DfaState) -> Vec<DraftToken> {
///         vec![DraftToken { tokens: text.last(), probabilities: None }]
///     }
/// }
/// ```
pub trait Drafter {
    /// The shape of its guesses.
    fn tree(&self) -> DraftTree;

    /// Begins a batch.
    ///
    /// # Errors
    /// Where the drafter cannot serve the batch.
    fn start(&mut self, start: &DrafterContext) -> Result<()>;

    /// Guesses a token for every node of the tree but the root, which is the last token of the text. `state` is the
    /// constraint's state after it. What changes stays in the buffers that hold it, see
    /// [`Persistent`](crate::processor::Persistent), so that a round can be recorded.
    ///
    /// # Panics
    /// Some drafters panic where no batch was begun.
    fn draft(&mut self, text: &Sequences, state: &DfaState) -> Vec<DraftToken>;
}

/// Guesses nothing.
impl Drafter for () {
    fn tree(&self) -> DraftTree {
        DraftTree::chain(0)
    }

    fn start(&mut self, _start: &DrafterContext) -> Result<()> {
        Ok(())
    }

    fn draft(&mut self, _text: &Sequences, _state: &DfaState) -> Vec<DraftToken> {
        Vec::new()
    }
}

/// Drafters behind pointers.
macro_rules! passes_on {
    ($($pointer:ty),*) => {$(
        impl<D: Drafter + ?Sized> Drafter for $pointer {
            fn tree(&self) -> DraftTree {
                (**self).tree()
            }

            fn start(&mut self, start: &DrafterContext) -> Result<()> {
                (**self).start(start)
            }

            fn draft(&mut self, text: &Sequences, state: &DfaState) -> Vec<DraftToken> {
                (**self).draft(text, state)
            }
        }
    )*};
}

passes_on!(&mut D, Box<D>);
