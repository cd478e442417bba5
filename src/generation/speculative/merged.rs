//! Merges the drafts of two drafters.

use super::drafter::{DraftToken, Drafter, DrafterContext};
use super::seeds::{Use, derived};
use super::sequences::Sequences;
use crate::generation::model::Recordable;
use crate::processor::{DraftTree, Position};
use burn_dfa_tokens::Result;

/// Merges the drafts of two drafters into one tree: the model reads both at once, and accepts the
/// path that it agrees with (merge-based speculation; Miao et al., "SpecInfer", 2024).
///
/// ```
/// use burn_dfa::generation::speculative::{Drafter, MergedDrafters, PromptLookup};
///
/// let merged = MergedDrafters::new(PromptLookup::new(3, 3), PromptLookup::new(2, 1))?;
/// assert_eq!((merged.tree().len(), merged.tree().depth()), (6, 3));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MergedDrafters<A, B> {
    first: A,
    second: B,
    tree: DraftTree,
}

impl<A: Drafter, B: Drafter> MergedDrafters<A, B> {
    /// The drafts of `first` and of `second` from one root. If both propose the same token, the
    /// path of `first` is accepted.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for more than [`DraftTree::MAX`] nodes.
    pub fn new(first: A, second: B) -> Result<Self> {
        let tree = first.tree().beside(&second.tree())?;
        Ok(Self { first, second, tree })
    }
}

// SAFETY: Both drafters make the promise, and the value holds no other tensors.
#[allow(unsafe_code)]
unsafe impl<A: Recordable, B: Recordable> Recordable for MergedDrafters<A, B> {}

impl<A: Drafter, B: Drafter> Drafter for MergedDrafters<A, B> {
    fn tree(&self) -> DraftTree {
        self.tree.clone()
    }

    fn start(&mut self, context: &DrafterContext) -> Result<()> {
        // The model may accept a whole path of the other drafter, which neither drafter reads.
        let unread = context.unread + self.tree.depth();
        let seeds = derived(&context.seeds, Use::SecondDrafter);
        self.first.start(&DrafterContext { unread, ..context.clone() })?;
        self.second.start(&DrafterContext { unread, seeds, ..context.clone() })
    }

    fn draft(&mut self, sequences: &Sequences, state: &Position) -> Vec<DraftToken> {
        let mut drafts = self.first.draft(sequences, state);
        drafts.extend(self.second.draft(sequences, state));
        drafts
    }
}
