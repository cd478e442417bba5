//! Models of an application with a cache of keys and values: a [`Transformer`] reads new tokens,
//! and [`Cached`] runs it in every loop.

mod context;
mod kv_cache;

use burn::tensor::{Device, Int, Tensor};

use super::continuous::ContinuousLm;
use super::model::{CausalLm, Recordable};
use super::speculative::TreeLm;
use crate::processor::DraftTree;

pub use context::KvContext;
pub use kv_cache::{KvCache, KvShape};

/// A model whose attention reads a cache of keys and values. [`Cached`] is its [`CausalLm`],
/// [`ContinuousLm`] and [`TreeLm`].
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use burn_dfa::generation::{
///     Cached, GenerationConfig, KvContext, KvShape, Request, Transformer, generate,
/// };
/// use burn_dfa::{TokenId, Vocabulary};
///
/// /// Attends to all tokens so far alike, and says the token that came most often. The field is the
/// /// identity matrix: the value of a token is its row.
/// struct Frequent(Tensor<2>);
///
/// impl Transformer for Frequent {
///     fn device(&self) -> Device {
///         self.0.device()
///     }
///     fn vocab_size(&self) -> usize {
///         4
///     }
///     fn kv_shape(&self) -> KvShape {
///         KvShape { layers: 1, kv_heads: 1, head_dim: 4, dtype: DType::F32 }
///     }
///     fn forward_cached(&self, tokens: Tensor<2, Int>, context: &mut KvContext) -> Tensor<3> {
///         let [rows, count] = tokens.dims();
///         let values =
///             self.0.clone().select(0, tokens.reshape([-1])).reshape([rows, 1, count, 4]);
///         let keys = values.zeros_like();
///         context.attend(0, keys.clone(), keys, values).reshape([rows, count, 4])
///     }
/// }
///
/// let vocabulary = Vocabulary::from_chars("abc".chars())?.pad_to(4)?.with_eos([TokenId(3)])?;
/// let model = Cached(Frequent(Tensor::eye(4, &Device::flex())));
/// let prompts =
///     [vec![0, 1, 1], vec![2]].map(|ids: Vec<u32>| ids.into_iter().map(TokenId).collect());
/// let requests = prompts.map(|prompt| Request::new(prompt, 3));
/// let outputs = generate(&model, &vocabulary, &requests, &GenerationConfig::new())?;
/// assert_eq!((outputs[0].text(), outputs[1].text()), ("bbb".into(), "ccc".into()));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub trait Transformer {
    /// The device of the weights.
    fn device(&self) -> Device;

    /// Width of a row of logits.
    fn vocab_size(&self) -> usize;

    /// The maximum number of positions, if the model has one.
    fn max_positions(&self) -> Option<usize> {
        None
    }

    /// The shape of its keys and values.
    fn kv_shape(&self) -> KvShape;

    /// Reads new tokens of every row; returns the hidden state after each token.
    ///
    /// The context has the positions of the tokens. In each layer, [`KvContext::attend`] or
    /// [`KvContext::extend`] takes their keys and values.
    ///
    /// # Shapes
    /// - `tokens`: `[rows, count]`, `i32`
    /// - returns hidden states `[rows, count, hidden_size]`
    fn forward_cached(&self, tokens: Tensor<2, Int>, context: &mut KvContext) -> Tensor<3>;

    /// Maps hidden states to logits. [`Cached`] passes only the states whose logits it needs: of a
    /// prompt, the state after the last token.
    ///
    /// By default the hidden states are the logits.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, count, hidden_size]`
    /// - returns logits `[rows, count, vocab_size]`
    fn head(&self, hidden: Tensor<3>) -> Tensor<3> {
        hidden
    }
}

/// A [`Transformer`] with a [`KvCache`], for every loop of this library.
///
/// `Cached<M>` can be recorded if `M` is [`Recordable`].
///
/// ```
/// use burn_dfa::generation::{Cached, CausalLm, Transformer};
///
/// fn in_a_loop<M: Transformer>(model: M) -> impl CausalLm {
///     Cached(model)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Cached<M>(pub M);

// SAFETY: The tensors of a new cache share no buffers, and its methods write in place. A context
// drops its clones of the cache's tensors when the pass ends. `M` makes the promise for
// `forward_cached` and `head`.
#[allow(unsafe_code)]
unsafe impl<M: Transformer + Recordable> Recordable for Cached<M> {}

impl<M: Transformer> Cached<M> {
    /// Reads `count` tokens after each row, which see at most the first `end` slots; returns the
    /// logits after the last token, `[rows, vocab_size]`.
    fn chain(&self, tokens: Tensor<2, Int>, cache: &mut KvCache, end: usize) -> Tensor<2> {
        let [rows, count] = tokens.dims();
        let hidden = self.0.forward_cached(tokens, &mut KvContext::chain(cache, count, end));
        self.0.head(hidden.narrow(1, count - 1, 1)).reshape([rows, self.vocab_size()])
    }
}

impl<M: Transformer> CausalLm for Cached<M> {
    type Cache = KvCache;

    fn device(&self) -> Device {
        self.0.device()
    }

    fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }

    fn max_positions(&self) -> Option<usize> {
        self.0.max_positions()
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        capacity: usize,
    ) -> (Tensor<2>, KvCache) {
        let [rows, length] = tokens.dims();
        let cache = KvCache::new(&self.0.kv_shape(), rows, capacity, &self.device());
        let mut cache = cache.with_padding(padding);
        let logits = self.chain(tokens, &mut cache, length);
        cache.grow(length);
        (logits, cache)
    }

    fn step(&self, tokens: Tensor<1, Int>, cache: &mut KvCache) -> Tensor<2> {
        let (rows, capacity) = (cache.rows(), cache.capacity());
        let logits = self.chain(tokens.reshape([rows, 1]), cache, capacity);
        cache.advance();
        logits
    }
}

impl<M: Transformer> ContinuousLm for Cached<M> {
    type RowsCache = KvCache;

    fn rows_cache(&self, rows: usize, capacity: usize) -> KvCache {
        KvCache::new(&self.0.kv_shape(), rows, capacity, &self.device())
    }

    fn begin(&self, row: usize, prompt: Tensor<2, Int>, cache: &mut KvCache) -> Tensor<2> {
        let [_, length] = prompt.dims();
        let (logits, read) = self.prefill(prompt, Tensor::zeros([1], &self.device()), length);
        cache.fill(row, read.into_layers());
        logits
    }

    fn reads_in_chunks(&self) -> bool {
        true
    }

    fn extend(&self, row: usize, at: usize, tokens: Tensor<2, Int>, cache: &mut KvCache) -> Tensor<2> {
        let [_, length] = tokens.dims();
        let end = at + length;
        let mut one = cache.row(row, at, end);
        let logits = self.chain(tokens, &mut one, end);
        cache.fill(row, one.into_layers());
        logits
    }

    fn copies_prefixes(&self) -> bool {
        true
    }

    fn copy_prefix(&self, from: usize, to: usize, length: usize, cache: &mut KvCache) {
        cache.copy_row(from, to, length);
    }

    fn step_rows(&self, tokens: Tensor<1, Int>, cache: &mut KvCache) -> Tensor<2> {
        self.step(tokens, cache)
    }
}

impl<M: Transformer> TreeLm for Cached<M> {
    type TreeCache = KvCache;

    fn branch(&self, cache: KvCache) -> KvCache {
        cache
    }

    fn read(&self, tokens: Tensor<2, Int>, tree: &DraftTree, cache: &mut KvCache) -> Tensor<3> {
        let hidden = self.0.forward_cached(tokens, &mut KvContext::tree(cache, tree));
        cache.grow(tree.len());
        self.0.head(hidden)
    }

    fn compact(&self, path: Tensor<2, Int>, nodes: usize, cache: &mut KvCache) {
        cache.compact(path, nodes);
    }

    fn truncate(&self, lengths: Tensor<1, Int>, cache: &mut KvCache) {
        cache.set_lengths(lengths);
    }
}
