//! One pass of a model over new tokens, with the cache.

use burn::tensor::activation::softmax;
use burn::tensor::{Bool, Int, Tensor};

use super::kv_cache::KvCache;
use crate::processor::DraftTree;

/// The positions of the new tokens of a pass, and the keys and values that they see;
/// [`Transformer`](super::Transformer) has an example.
#[derive(Debug)]
pub struct KvContext<'a> {
    cache: &'a mut KvCache,
    /// `[rows, count]`
    positions: Tensor<2, Int>,
    /// Indices into the flat buffer of a layer.
    indices: Tensor<1, Int>,
    /// `[rows, 1, count, end]`
    hidden: Tensor<4, Bool>,
    /// The number of slots that the tokens may see.
    end: usize,
    /// The tree of the tokens; `None`: a chain.
    tree: Option<&'a DraftTree>,
}

impl<'a> KvContext<'a> {
    /// `count` tokens after each row, in order. They see at most the first `end` slots.
    pub(super) fn chain(cache: &'a mut KvCache, count: usize, end: usize) -> Self {
        let (rows, slots) = (cache.rows(), cache.next_slots(count));
        let padding = cache.padding().reshape([rows, 1]);
        let shape = [rows, 1, count, end];
        let key = cache.slots().narrow(0, 0, end).reshape([1, 1, 1, end]).expand(shape);
        let query = slots.clone().reshape([rows, 1, count, 1]).expand(shape);
        let padded = key.clone().lower(padding.clone().reshape([rows, 1, 1, 1]).expand(shape));
        // A position sees itself, also in the padding: no row of scores is empty.
        let padded = padded.bool_and(key.clone().not_equal(query.clone()));
        Self {
            positions: (slots.clone() - padding.expand([rows, count])).clamp_min(0),
            indices: cache.indices(slots),
            hidden: key.greater(query).bool_or(padded),
            cache,
            end,
            tree: None,
        }
    }

    /// The nodes of a tree after each row.
    pub(super) fn tree(cache: &'a mut KvCache, tree: &'a DraftTree) -> Self {
        let (rows, nodes, end) = (cache.rows(), tree.len(), cache.capacity());
        let depths = cache.depths(tree).reshape([1, nodes]).expand([rows, nodes]);
        let first = (cache.lengths() - cache.padding()).clamp_min(0);
        let hidden = cache.hidden_from_tree(tree);
        Self {
            positions: first.reshape([rows, 1]).expand([rows, nodes]) + depths,
            indices: cache.indices(cache.next_slots(nodes)),
            hidden,
            cache,
            end,
            tree: Some(tree),
        }
    }

    /// The positions of the tokens in their texts, from 0, `[rows, count]`.
    pub fn positions(&self) -> Tensor<2, Int> {
        self.positions.clone()
    }

    /// `[rows, 1, count, end]`: true where a token must not attend to a slot. Every token sees at
    /// least itself.
    pub fn hidden(&self) -> Tensor<4, Bool> {
        self.hidden.clone()
    }

    /// As [`hidden`](Self::hidden), for a sliding window: every token sees itself and at most the
    /// `window - 1` positions before it. The window counts positions of the text, without padding
    /// and other branches of a draft tree.
    pub fn hidden_within(&mut self, window: usize) -> Tensor<4, Bool> {
        let shape @ [rows, _, count, end] = self.hidden.dims();
        let slots = match self.tree {
            Some(tree) => self.cache.chain_slots(tree),
            None => self.cache.slots().narrow(0, 0, end).reshape([1, end]).expand([rows, end]),
        };
        let padding = self.cache.padding().reshape([rows, 1]).expand([rows, end]);
        // As in `positions`, the padding has position 0.
        let keys = (slots - padding).clamp_min(0).reshape([rows, 1, 1, end]).expand(shape);
        let queries = self.positions.clone().reshape([rows, 1, count, 1]).expand(shape);
        let is_outside = (queries - keys).greater_equal_elem(window.clamp(1, end) as i32);
        self.hidden().bool_or(is_outside)
    }

    /// Writes the keys and values of the tokens into a layer. Returns all keys and values that the
    /// tokens may see, `[rows, kv_heads, end, head_dim]` each.
    ///
    /// # Shapes
    /// - `keys`, `values`: `[rows, kv_heads, count, head_dim]`
    pub fn extend(&mut self, layer: usize, keys: Tensor<4>, values: Tensor<4>) -> [Tensor<4>; 2] {
        self.cache.write(layer, &self.indices, [keys, values]);
        self.cache.layer(layer).map(|buffer| buffer.narrow(2, 0, self.end))
    }

    /// Attends over the cache: writes the keys and values of the tokens into a layer, and returns
    /// softmax(*q* · *k*ᵀ / √`head_dim`) · *v*, `[rows, heads, count, head_dim]`.
    ///
    /// # Shapes
    /// - `queries`: `[rows, heads, count, head_dim]`, with `heads` a multiple of `kv_heads`
    /// - `keys`, `values`: `[rows, kv_heads, count, head_dim]`
    pub fn attend(
        &mut self,
        layer: usize,
        queries: Tensor<4>,
        keys: Tensor<4>,
        values: Tensor<4>,
    ) -> Tensor<4> {
        self.attend_masked(layer, queries, keys, values, self.hidden())
    }

    /// As [`attend`](Self::attend), with another mask, such as
    /// [`hidden_within`](Self::hidden_within): `hidden` is true where a token must not attend to a
    /// slot. Every token must see at least itself.
    ///
    /// ```
    /// use burn::tensor::{Bool, Tensor};
    /// use burn_dfa::generation::KvContext;
    ///
    /// /// Attends in a model whose odd layers have a sliding window. All of them share the mask
    /// /// `context.hidden_within(1024)`.
    /// fn attend(
    ///     context: &mut KvContext,
    ///     layer: usize,
    ///     [q, k, v]: [Tensor<4>; 3],
    ///     window: &Tensor<4, Bool>,
    /// ) -> Tensor<4> {
    ///     if layer % 2 == 0 {
    ///         context.attend(layer, q, k, v)
    ///     } else {
    ///         context.attend_masked(layer, q, k, v, window.clone())
    ///     }
    /// }
    /// ```
    ///
    /// # Shapes
    /// As [`attend`](Self::attend), and
    /// - `hidden`: `[rows, 1, count, end]`
    pub fn attend_masked(
        &mut self,
        layer: usize,
        queries: Tensor<4>,
        keys: Tensor<4>,
        values: Tensor<4>,
        hidden: Tensor<4, Bool>,
    ) -> Tensor<4> {
        let [_, heads, _, head_dim] = queries.dims();
        let [keys, values] = self.extend(layer, keys, values).map(|buffer| repeated(buffer, heads));
        let scores = queries.matmul(keys.transpose()) / (head_dim as f64).sqrt();
        let hidden = hidden.expand(scores.dims());
        softmax(scores.mask_fill(hidden, f32::NEG_INFINITY), 3).matmul(values)
    }
}

/// Each of the heads of a buffer `[rows, kv_heads, slots, head_dim]` for a group of `heads`.
fn repeated(buffer: Tensor<4>, heads: usize) -> Tensor<4> {
    let [rows, kv_heads, slots, head_dim] = buffer.dims();
    if heads == kv_heads {
        return buffer;
    }
    let group = [rows, kv_heads, heads / kv_heads, slots, head_dim];
    buffer.unsqueeze_dim::<5>(2).expand(group).reshape([rows, heads, slots, head_dim])
}
