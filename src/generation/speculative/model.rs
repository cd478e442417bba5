//! The trait of a model for speculative decoding.

use burn::tensor::{Int, Tensor};

use crate::generation::model::CausalLm;
use crate::processor::DraftTree;

/// A causal language model that reads a tree of tokens at once, and can discard some of them.
///
/// Its rows grow by different numbers of tokens, so each row has its own length: the number of
/// slots in use, left padding included. As in [`CausalLm`], shapes are constant and nothing is read
/// from the device. For a recorded step, the cache must stay in the same buffers, as
/// [`Recordable`](crate::generation::Recordable) promises.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::generation::speculative::{ForcedTokens, ForcedBytes, TreeLm, speculate};
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Request};
/// use burn_dfa::processor::DraftTree;
/// use burn_dfa::{Constraint, Limits, TokenId, CompiledConstraint, Vocabulary};
///
/// /// Always says the token after the last one, up to the end: there is nothing to remember. The
/// /// field is the identity matrix.
/// struct Counting(Tensor<2>);
///
/// impl CausalLm for Counting {
///     type Cache = ();
///     fn device(&self) -> Device {
///         self.0.device()
///     }
///     fn vocab_size(&self) -> usize {
///         3
///     }
///     fn prefill(&self, tokens: Tensor<2, Int>, _: Tensor<1, Int>, _: usize) -> (Tensor<2>, ()) {
///         let [batch, length] = tokens.dims();
///         (self.step(tokens.slice([0..batch, length - 1..length]).reshape([batch]), &mut ()), ())
///     }
///     fn step(&self, tokens: Tensor<1, Int>, (): &mut ()) -> Tensor<2> {
///         self.0.clone().select(0, (tokens + 1).clamp_max(2))
///     }
/// }
///
/// impl TreeLm for Counting {
///     type TreeCache = ();
///     fn branch(&self, (): ()) {}
///     fn read(&self, tokens: Tensor<2, Int>, _: &DraftTree, (): &mut ()) -> Tensor<3> {
///         let [batch, nodes] = tokens.dims();
///         self.step(tokens.reshape([batch * nodes]), &mut ()).reshape([batch, nodes, 3])
///     }
///     fn compact(&self, _: Tensor<2, Int>, _: usize, (): &mut ()) {}
///     fn truncate(&self, _: Tensor<1, Int>, (): &mut ()) {}
/// }
///
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let compiled =
///     CompiledConstraint::compile(&Constraint::regex("bbb")?, &vocabulary, &Limits::default())?;
/// let requests = [Request::new(vec![TokenId(0)], 8).with_constraint(&compiled)];
/// let drafter = ForcedTokens::new(3, ForcedBytes::ModelsChoice);
/// let model = Counting(Tensor::eye(3, &Device::flex()));
/// let rows = speculate(&model, &vocabulary, &requests, &GenerationConfig::new(), drafter)?;
/// assert_eq!(rows[0].output.text(), "bbb");
/// assert_eq!(rows[0].calls, 1); // the prompt with `bbb`, and the end
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub trait TreeLm: CausalLm {
    /// The cache of a batch whose rows have individual lengths.
    type TreeCache;

    /// Converts the cache of a prefill to a cache with a length per row, initially the length of
    /// the prompts.
    fn branch(&self, cache: Self::Cache) -> Self::TreeCache;

    /// Reads prompts as [`prefill`](CausalLm::prefill) does, followed by a chain of draft tokens;
    /// returns the logits after each prompt and each draft token. The default makes two calls, one
    /// after the other.
    ///
    /// # Shapes
    /// - `prompt`: `[batch, length]`; `padding`: `[batch]`
    /// - `drafts`: `[batch, count]`, at least one
    /// - returns logits `[batch, count + 1, vocab_size]`
    fn prefill_chain(
        &self,
        prompt: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        drafts: Tensor<2, Int>,
        capacity: usize,
    ) -> (Tensor<3>, Self::TreeCache) {
        let [_, count] = drafts.dims();
        let (logits, cache) = self.prefill(prompt, padding, capacity);
        let mut cache = self.branch(cache);
        let more = self.read(drafts, &DraftTree::chain(count - 1), &mut cache);
        (Tensor::cat(vec![logits.unsqueeze_dim::<3>(1), more], 1), cache)
    }

    /// Reads the nodes of a tree, each with the row's tokens and its ancestors as context, appends
    /// all nodes and returns the logits after each.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, nodes]`
    /// - returns logits `[batch, nodes, vocab_size]`
    fn read(&self, tokens: Tensor<2, Int>, tree: &DraftTree, cache: &mut Self::TreeCache) -> Tensor<3>;

    /// Moves the nodes of a path to the front of the last `nodes` tokens. The tokens after the path
    /// have no meaning until [`truncate`](Self::truncate) drops them. The path of a chain moves
    /// nothing.
    ///
    /// # Shapes
    /// - `path`: `[batch, depth]`, node numbers that rise, the last one perhaps repeated
    fn compact(&self, path: Tensor<2, Int>, nodes: usize, cache: &mut Self::TreeCache);

    /// Drops the tokens at and after a length.
    ///
    /// # Shapes
    /// - `lengths`: `[batch]`, none greater than the current length
    fn truncate(&self, lengths: Tensor<1, Int>, cache: &mut Self::TreeCache);
}
