//! Reading trees of tokens: [`Llama`] as a [`TreeLm`].
//!
//! As in [`decode`](crate::decode), everything that changes lies on the device. Here every row has a length of its
//! own, since rows accept different numbers of drafts; the keys and values of a tree are written after it, and a
//! node sees the slots of the row and those of its own ancestors.

use burn::tensor::{Bool, DType, Device, IndexingUpdateOp, Int, Tensor, TensorData};
use burn_dfa::generation::speculative::TreeLm;
use burn_dfa::processor::{DraftTree, Persistent};

use crate::decode::LlamaCache;
use crate::model::Llama;
use crate::rope::Rotation;

/// Keys and values of a batch whose rows have lengths of their own. All integers are `i32`.
///
/// Made by [`TreeLm::branch`] of a [`LlamaCache`].
#[derive(Clone, Debug)]
pub struct LlamaTreeCache {
    /// Of each layer, `[batch, kv_heads, capacity, head_dim]`.
    keys: Vec<Tensor<4>>,
    /// Of each layer, `[batch, kv_heads, capacity, head_dim]`.
    values: Vec<Tensor<4>>,
    /// Slots in use, padding included, `[batch]`.
    lengths: Tensor<1, Int>,
    /// Padded positions of each row, `[batch]`.
    padding: Tensor<1, Int>,
    /// `0..capacity`.
    slots: Tensor<1, Int>,
    /// Where the slots of every row and head begin, `[batch * kv_heads]`.
    heads: Tensor<1, Int>,
    /// The shape of the keys of a layer.
    shape: [usize; 4],
    /// What is known of the trees that were read.
    shapes: Vec<(DraftTree, Shape)>,
}

/// A tree on the device.
#[derive(Clone, Debug)]
struct Shape {
    /// `[nodes]`
    depths: Tensor<1, Int>,
    /// `[nodes, nodes]`: 1 in row `a` and column `n` where `a` is `n` or an ancestor of it.
    ancestors: Tensor<2, Int>,
}

impl LlamaTreeCache {
    pub(crate) fn new(
        keys: Vec<Tensor<4>>,
        values: Vec<Tensor<4>>,
        slot: Tensor<1, Int>,
        padding: Tensor<1, Int>,
        slots: Tensor<1, Int>,
    ) -> Self {
        let shape = keys[0].dims();
        let [batch, heads, capacity, _] = shape;
        let lengths = slot.cast(DType::I32).expand([batch]).add_scalar(0);
        let heads = heads_of(batch * heads, capacity, &lengths.device());
        Self {
            keys,
            values,
            lengths,
            padding: padding.cast(DType::I32),
            slots: slots.cast(DType::I32),
            heads,
            shape,
            shapes: Vec::new(),
        }
    }

    /// Number of slots.
    pub fn capacity(&self) -> usize {
        self.shape[2]
    }

    /// Slots in use of each row, `[batch]`.
    pub fn lengths(&self) -> Tensor<1, Int> {
        self.lengths.clone()
    }

    /// A tree on the device, made out of host data when it is first read.
    fn shape_of(&mut self, tree: &DraftTree) -> Shape {
        if let Some((_, shape)) = self.shapes.iter().find(|(known, _)| known == tree) {
            return shape.clone();
        }
        let device = self.lengths.device();
        let shape = Shape { depths: tree.depths_on(&device), ancestors: ancestors(tree, &device) };
        self.shapes.push((tree.clone(), shape.clone()));
        shape
    }

    /// Where slots `[batch, count]` of all heads lie in a buffer of rows `[batch * kv_heads * capacity, head_dim]`.
    fn places(&self, slots: Tensor<2, Int>) -> Tensor<1, Int> {
        let ([batch, count], [_, heads, capacity, _]) = (slots.dims(), self.shape);
        let last = capacity as i32 - 1;
        let all = [batch, heads, count];
        let slots = slots.clamp(0, last).reshape([batch, 1, count]).expand(all);
        (self.heads.clone().reshape([batch, heads, 1]).expand(all) + slots).reshape([-1])
    }

    /// `from[b]`, `from[b] + 1`, …, `[batch, count]`.
    fn run(&self, from: &Tensor<1, Int>, count: usize) -> Tensor<2, Int> {
        let [batch] = from.dims();
        let first = from.clone().reshape([batch, 1]).expand([batch, count]);
        let steps = self.slots.clone().narrow(0, 0, count);
        first + steps.reshape([1, count]).expand([batch, count])
    }

    /// `[batch, 1, nodes, capacity]`, true at the slots that a node must not see.
    fn hidden(&self, shape: &Shape) -> Tensor<4, Bool> {
        let ([batch, _, capacity, _], [nodes]) = (self.shape, shape.depths.dims());
        let all = [batch, capacity];
        let slots = self.slots.clone().reshape([1, capacity]).expand(all);
        let of_row = |values: &Tensor<1, Int>| values.clone().reshape([batch, 1]).expand(all);
        let node = slots.clone() - of_row(&self.lengths);
        let text = node.clone().lower_elem(0).bool_and(slots.greater_equal(of_row(&self.padding)));
        let later = node.clone().lower_elem(0).bool_or(node.clone().greater_equal_elem(nodes as i32));
        let node = node.clamp(0, nodes as i32 - 1).reshape([batch * capacity]);
        let ancestor = shape.ancestors.clone().select(0, node).equal_elem(1);
        let wide = [batch, capacity, nodes];
        let ancestor = ancestor.reshape(wide);
        let tree = ancestor.bool_and(later.bool_not().reshape([batch, capacity, 1]).expand(wide));
        let seen = tree.bool_or(text.reshape([batch, capacity, 1]).expand(wide));
        seen.bool_not().swap_dims(1, 2).reshape([batch, 1, nodes, capacity])
    }
}

impl TreeLm for Llama {
    type TreeCache = LlamaTreeCache;

    fn branch(&self, cache: LlamaCache) -> LlamaTreeCache {
        cache.into_tree()
    }

    /// In one call, as long as a prompt would be with its guesses.
    fn prefill_chain(
        &self,
        prompt: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        drafts: Tensor<2, Int>,
        capacity: usize,
    ) -> (Tensor<3>, LlamaTreeCache) {
        let [_, count] = drafts.dims();
        let tokens = Tensor::cat(vec![prompt.cast(DType::I32), drafts.cast(DType::I32)], 1);
        let (logits, cache) = self.read_prompt(tokens, padding, capacity, count + 1);
        (logits, cache.into_tree())
    }

    /// # Panics
    /// If the tokens are not one for each row and node.
    fn read(&self, tokens: Tensor<2, Int>, tree: &DraftTree, cache: &mut LlamaTreeCache) -> Tensor<3> {
        let ([batch, kv_heads, _, head_dim], nodes) = (cache.shape, tree.len());
        assert_eq!(tokens.dims(), [batch, nodes], "one token for each row and node");
        let mut x = self.model.embed_tokens.forward(tokens);
        let all = [batch, nodes];
        let shape = cache.shape_of(tree);
        let depths = shape.depths.clone().reshape([1, nodes]).expand(all);
        let first = (cache.lengths.clone() - cache.padding.clone()).clamp_min(0);
        let rotation = self.rotary.at(first.reshape([batch, 1]).expand(all) + depths, x.dtype());
        #[cfg(feature = "flex")]
        let is_short = tree.is_chain() && crate::flex::attends_chains(&x);
        #[cfg(not(feature = "flex"))]
        let is_short = false;
        let whole =
            (!is_short).then(|| (cache.hidden(&shape), cache.places(cache.run(&cache.lengths, nodes))));
        let rows = [batch * kv_heads * nodes, head_dim];
        for (index, layer) in self.model.layers.iter().enumerate() {
            x = layer.forward(x, |attention, qkv| {
                let (keys, values) = (&mut cache.keys[index], &mut cache.values[index]);
                let Some((hidden, places)) = &whole else {
                    return short(qkv, &rotation, [&cache.lengths, &cache.padding], [keys, values]);
                };
                let [q, k, v] = attention.split(qkv, &rotation);
                write(keys, places, k.reshape(rows));
                write(values, places, v.reshape(rows));
                attention.mix([q, keys.clone(), values.clone()], hidden.clone())
            });
        }
        cache.lengths.inplace(|lengths| lengths + nodes as i32);
        self.logits(x)
    }

    fn compact(&self, path: Tensor<2, Int>, nodes: usize, cache: &mut LlamaTreeCache) {
        let [batch, count] = path.dims();
        let first = cache.lengths.clone() - nodes as i32;
        let source = cache.places(first.clone().reshape([batch, 1]).expand([batch, count]) + path);
        let target = cache.places(cache.run(&first, count));
        let [.., head_dim] = cache.shape;
        for buffer in cache.keys.iter_mut().chain(&mut cache.values) {
            let rows = buffer.clone().reshape([-1, head_dim as i32]).select(0, source.clone());
            write(buffer, &target, rows);
        }
    }

    fn truncate(&self, lengths: Tensor<1, Int>, cache: &mut LlamaTreeCache) {
        cache.lengths.assign(lengths);
    }
}

/// Attention of a chain in one pass, on Flex.
#[cfg(feature = "flex")]
fn short(
    qkv: [Tensor<3>; 3],
    rotation: &Rotation,
    [lengths, padding]: [&Tensor<1, Int>; 2],
    cache: [&mut Tensor<4>; 2],
) -> Tensor<3> {
    crate::flex::attend_chain(qkv.each_ref(), rotation, lengths, padding, cache)
}

#[cfg(not(feature = "flex"))]
fn short(_: [Tensor<3>; 3], _: &Rotation, _: [&Tensor<1, Int>; 2], _: [&mut Tensor<4>; 2]) -> Tensor<3> {
    unreachable!("Flex alone has the short way")
}

/// `[nodes, nodes]`: 1 in row `a` and column `n` where `a` is `n` or an ancestor of it.
fn ancestors(tree: &DraftTree, device: &Device) -> Tensor<2, Int> {
    let nodes = tree.len();
    let mut entries = vec![0i32; nodes * nodes];
    for node in 0..nodes {
        for ancestor in tree.path(node) {
            entries[ancestor * nodes + node] = 1;
        }
    }
    Tensor::from_data(TensorData::new(entries, [nodes, nodes]), (device, DType::I32))
}

/// Where the slots of `heads` heads begin in a buffer of rows `[heads * capacity, head_dim]`.
pub(crate) fn heads_of(heads: usize, capacity: usize, device: &Device) -> Tensor<1, Int> {
    Tensor::arange(0..heads as i64, (device, DType::I32)) * capacity as i32
}

/// Writes rows `[places, head_dim]` into a buffer, in place.
pub(crate) fn write(buffer: &mut Tensor<4>, places: &Tensor<1, Int>, rows: Tensor<2>) {
    let shape = buffer.dims();
    buffer.inplace(|buffer| {
        let flat = buffer.reshape([shape[0] * shape[1] * shape[2], shape[3]]);
        flat.select_assign(0, places.clone(), rows, IndexingUpdateOp::Assign).reshape(shape)
    });
}
