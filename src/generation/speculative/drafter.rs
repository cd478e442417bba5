//! The trait of drafters, which propose draft tokens.

use burn::tensor::{DType, IndexingUpdateOp, Int, Tensor};

use super::sequences::Sequences;
use crate::generation::model::Recordable;
use crate::processor::{ConstraintProcessor, DraftTree, Position};
use crate::tensor::TensorOptions;
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{CompiledConstraint, Result};

/// The input of a [`Drafter`] before the first step of a batch.
///
/// ```
/// use burn_dfa::generation::speculative::DrafterContext;
///
/// /// The cache that a draft model needs, in tokens: a row, and a chain of draft tokens after it.
/// fn capacity(context: &DrafterContext, drafts: usize) -> usize {
///     context.slots + drafts
/// }
/// ```
#[derive(Clone, Debug)]
pub struct DrafterContext<'a> {
    /// The prompts, `[batch, length]`, `i32`, left padded.
    pub prompt: Tensor<2, Int>,
    /// Padded positions of each row, `[batch]`, `i32`.
    pub padding: Tensor<1, Int>,
    /// The maximum number of tokens in a row of the [`Sequences`].
    pub slots: usize,
    /// The maximum number of tokens appended by a step, beyond the draft tokens that this drafter
    /// has proposed and read.
    pub unread: usize,
    /// The constraint of every row.
    pub constraint: &'a ConstraintProcessor,
    /// The compiled constraints of `constraint`.
    pub compiled: &'a [&'a CompiledConstraint],
    /// The index into `compiled` of each row.
    pub rows: &'a [usize],
    /// The model's tokens.
    pub vocabulary: &'a Vocabulary,
    /// The operations, capacity and size limits of constraints on the device.
    pub tensors: &'a TensorOptions,
    /// The temperature at which the tokens of each row are sampled; `None`: greedily.
    pub temperatures: Vec<Option<f32>>,
    /// A seed for each row.
    pub seeds: Vec<u64>,
}

/// The draft token of one node of a draft tree, for every row of the batch.
///
/// [`Drafter`] and [`Verifier`](super::Verifier) have examples.
///
/// ```
/// use burn::tensor::{DType, Device, Tensor};
/// use burn_dfa::generation::speculative::DraftToken;
///
/// // Token 3 for both rows, from a drafter that does not sample.
/// let tokens = Tensor::from_data([3, 3], (&Device::flex(), DType::I32));
/// let draft = DraftToken { tokens, probabilities: None };
/// assert_eq!(draft.tokens.dims(), [2]);
/// ```
#[derive(Clone, Debug)]
pub struct DraftToken {
    /// `[batch]`, `i32`; any token of the model for a row without a proposal.
    pub tokens: Tensor<1, Int>,
    /// The distributions from which the tokens were sampled, `[batch, vocab_size]`, each row of sum
    /// 1; `None`: not sampled.
    pub probabilities: Option<Tensor<2>>,
}

impl DraftToken {
    /// The distributions from which the tokens were sampled, `[batch, vocab_size]`; without
    /// sampling, probability 1 for the token.
    pub(super) fn distribution(&self, vocab_size: usize) -> Tensor<2> {
        // Burn's `one_hot` reads its indices back.
        let itself = || {
            let ([batch], options) = (self.tokens.dims(), (&self.tokens.device(), DType::F32));
            let (none, one) =
                (Tensor::zeros([batch, vocab_size], options), Tensor::ones([batch, 1], options));
            none.scatter(1, self.tokens.clone().reshape([batch, 1]), one, IndexingUpdateOp::Add)
        };
        self.probabilities.clone().unwrap_or_else(itself)
    }
}

/// Proposes the next tokens of every row, as a tree of fixed shape.
///
/// A draft token may be wrong or illegal, but must be a token of the model. A drafter finds its
/// accepted draft tokens by comparing the sequences with its proposals.
///
/// ```
/// use burn::tensor::{DType, Tensor};
/// use burn_dfa::Result;
/// use burn_dfa::generation::speculative::{DraftToken, Drafter, DrafterContext, Sequences};
/// use burn_dfa::processor::{Position, DraftTree};
///
/// /// Proposes the last token again.
/// struct Again;
///
/// impl Drafter for Again {
///     fn tree(&self) -> DraftTree {
///         DraftTree::chain(1)
///     }
///     fn start(&mut self, _: &DrafterContext) -> Result<()> {
///         Ok(())
///     }
///     fn draft(&mut self, sequences: &Sequences, _: &Position) -> Vec<DraftToken> {
///         vec![DraftToken { tokens: sequences.last(), probabilities: None }]
///     }
/// }
/// ```
pub trait Drafter {
    /// The shape of its drafts.
    fn tree(&self) -> DraftTree;

    /// Begins a batch.
    ///
    /// # Errors
    /// If the drafter cannot serve the batch.
    fn start(&mut self, context: &DrafterContext) -> Result<()>;

    /// Proposes a token for every node of the tree but the root, which stands for the last token of
    /// each row. `state` is the constraint's state after the last token. For a recorded step, the
    /// drafter must write its changes into its existing buffers, as
    /// [`Recordable`](crate::generation::Recordable) promises.
    ///
    /// # Panics
    /// Some drafters panic if no batch was begun.
    fn draft(&mut self, sequences: &Sequences, state: &Position) -> Vec<DraftToken>;
}

/// Proposes nothing.
impl Drafter for () {
    fn tree(&self) -> DraftTree {
        DraftTree::chain(0)
    }

    fn start(&mut self, _context: &DrafterContext) -> Result<()> {
        Ok(())
    }

    fn draft(&mut self, _sequences: &Sequences, _state: &Position) -> Vec<DraftToken> {
        Vec::new()
    }
}

// SAFETY: It has no tensors.
#[allow(unsafe_code)]
unsafe impl Recordable for () {}

/// Drafters behind pointers.
macro_rules! delegates {
    ($($pointer:ty),*) => {$(
        impl<D: Drafter + ?Sized> Drafter for $pointer {
            fn tree(&self) -> DraftTree {
                (**self).tree()
            }

            fn start(&mut self, context: &DrafterContext) -> Result<()> {
                (**self).start(context)
            }

            fn draft(&mut self, sequences: &Sequences, state: &Position) -> Vec<DraftToken> {
                (**self).draft(sequences, state)
            }
        }

        // SAFETY: The drafter makes the promise.
        #[allow(unsafe_code)]
        unsafe impl<D: Drafter + Recordable + ?Sized> Recordable for $pointer {}
    )*};
}

delegates!(&mut D, Box<D>);
