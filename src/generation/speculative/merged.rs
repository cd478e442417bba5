//! Two drafters side by side.

use super::drafter::{DraftToken, Drafter, DrafterContext};
use super::sequences::Sequences;
use super::verify::salted;
use crate::error::Result;
use crate::processor::{DfaState, DraftTree};

/// The guesses of two drafters as one tree: the model reads both at once, and the path that it agrees with goes on.
///
/// ```
/// use burn_dfa::generation::speculative::{Drafter, MergedDrafters, PromptLookup};
///
/// let fork = MergedDrafters::new(PromptLookup::new(3, 3), PromptLookup::new(2, 1))?;
/// assert_eq!((fork.tree().len(), fork.tree().depth()), (6, 3));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MergedDrafters<A, B> {
    first: A,
    second: B,
    tree: DraftTree,
}

impl<A: Drafter, B: Drafter> MergedDrafters<A, B> {
    /// `first`, and `second` beside it. Where both guess the same token, the path of `first` counts.
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

    fn start(&mut self, start: &DrafterContext) -> Result<()> {
        // The path of the other may be the one that went on.
        let unread = start.unread + self.tree.depth();
        self.first.start(&DrafterContext { unread, ..start.clone() })?;
        self.second.start(&DrafterContext { unread, seeds: salted(&start.seeds, 3), ..start.clone() })
    }

    fn draft(&mut self, text: &Sequences, state: &DfaState) -> Vec<DraftToken> {
        let mut guesses = self.first.draft(text, state);
        guesses.extend(self.second.draft(text, state));
        guesses
    }
}
