//! What a model must offer beyond a decode step.

use burn::tensor::{Int, Tensor};

use crate::generation::CausalLm;
use crate::processor::DraftTree;

/// A causal language model that reads a tree of tokens at once, and forgets some of them again.
///
/// Its rows grow by different numbers of tokens, so that each has a length of its own: the number of slots in
/// use, left padding included. As in [`CausalLm`], shapes are constant and nothing is read from the device.
pub trait TreeLm: CausalLm {
    /// The cache of a batch whose rows have lengths of their own.
    type TreeCache;

    /// The cache of a prefill as one of rows with lengths; each is that of the prompts.
    fn branch(&self, cache: Self::Cache) -> Self::TreeCache;

    /// Reads the nodes of a tree, each with the row's tokens and its own ancestors before it, appends all of them
    /// and returns the logits after each.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, nodes]`
    /// - returns logits `[batch, nodes, vocab_size]`
    fn read(&self, tokens: Tensor<2, Int>, tree: &DraftTree, cache: &mut Self::TreeCache) -> Tensor<3>;

    /// Moves the nodes of a path to the front of the last `nodes` tokens; what lies after them has no meaning until
    /// [`truncate`](Self::truncate) drops it. The path of a chain moves nothing.
    ///
    /// # Shapes
    /// - `path`: `[batch, depth]`, node numbers that rise, the last one perhaps repeated
    fn compact(&self, path: Tensor<2, Int>, nodes: usize, cache: &mut Self::TreeCache);

    /// Forgets what lies at or after a length.
    ///
    /// # Shapes
    /// - `lengths`: `[batch]`, none greater than the present one
    fn truncate(&self, lengths: Tensor<1, Int>, cache: &mut Self::TreeCache);
}
