//! Two drafters side by side.

use super::drafter::{DraftToken, Drafter, DrafterContext};
use super::seeds::{Use, derived};
use super::sequences::Sequences;
use crate::error::Result;
use crate::processor::{DraftTree, Position};

/// The drafts of two drafters, merged into one tree: the model reads both at once, and accepts the path that it agrees
/// with (merge-based speculation; Miao et al., "SpecInfer", 2024).
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
    /// The drafts of `first`, and those of `second` beside them. Where both propose the same token, the path of
    /// `first` is accepted.
    ///
    /// # Errors
    /// [`Error::is_input`](crate::Error::is_input) for more than [`DraftTree::MOST`] nodes.
    pub fn new(first: A, second: B) -> Result<Self> {
        let tree = first.tree().beside(&second.tree())?;
        Ok(Self { first, second, tree })
    }
}

impl<A: Drafter, B: Drafter> Drafter for MergedDrafters<A, B> {
    fn tree(&self) -> DraftTree {
        self.tree.clone()
    }

    fn start(&mut self, context: &DrafterContext) -> Result<()> {
        // A whole path of the other drafter may be accepted, and neither reads the other's.
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
