//! Who proposes draft tokens.

use burn::tensor::{DType, IndexingUpdateOp, Int, Tensor};

use super::sequences::Sequences;
use crate::error::Result;
use crate::processor::{DfaProcessor, DraftTree, Position};
use crate::table::TokenTable;
use crate::tensor::TensorOptions;
use crate::vocabulary::Vocabulary;

/// What a [`Drafter`] is told before the first step of a batch.
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
    /// The prompts, `[batch, length]`, left padded.
    pub prompt: Tensor<2, Int>,
    /// Padded positions of each row, `[batch]`.
    pub padding: Tensor<1, Int>,
    /// The most tokens of a row of the [`Sequences`].
    pub slots: usize,
    /// The most tokens that a step appends beyond the draft tokens that this drafter has proposed and read itself.
    pub unread: usize,
    /// The constraint of every row.
    pub constraint: &'a DfaProcessor,
    /// The tables of the constraint.
    pub tables: &'a [&'a TokenTable],
    /// The table of each row.
    pub rows: &'a [usize],
    /// The model's tokens.
    pub vocabulary: &'a Vocabulary,
    /// The layout of tables on the device.
    pub tensors: &'a TensorOptions,
    /// The temperature at which tokens are sampled; `None`: greedily.
    pub temperature: Option<f32>,
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
    /// `[batch]`, `i32`; any token of the model where there is nothing to propose for a row.
    pub tokens: Tensor<1, Int>,
    /// The probabilities that the tokens were sampled from, `[batch, width]`, each row of sum 1; `None`: they were not
    /// sampled.
    pub probabilities: Option<Tensor<2>>,
}

impl DraftToken {
    /// The probabilities that the tokens were sampled from, `[batch, width]`; 1 for the token itself where they were
    /// not sampled.
    pub(super) fn distribution(&self, width: usize) -> Tensor<2> {
        // Burn's `one_hot` reads its indices back.
        let itself = || {
            let ([batch], options) = (self.tokens.dims(), (&self.tokens.device(), DType::F32));
            let (none, one) = (Tensor::zeros([batch, width], options), Tensor::ones([batch, 1], options));
            none.scatter(1, self.tokens.clone().reshape([batch, 1]), one, IndexingUpdateOp::Add)
        };
        self.probabilities.clone().unwrap_or_else(itself)
    }
}

/// Proposes the next tokens of every row, as a tree of fixed shape.
///
/// A draft token may be wrong or illegal, but is a token of the model. A drafter is not told which of its draft tokens
/// were accepted: it finds out by comparing the sequences with what it proposed.
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
    /// Where the drafter cannot serve the batch.
    fn start(&mut self, context: &DrafterContext) -> Result<()>;

    /// Proposes a token for every node of the tree but the root, which stands for the last token of each row. `state`
    /// is the constraint's state after that token. What changes stays in the buffers that hold it, see
    /// [`Persistent`](crate::processor::Persistent), so that a step can be recorded.
    ///
    /// # Panics
    /// Some drafters panic where no batch was begun.
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
    )*};
}

delegates!(&mut D, Box<D>);
