//! Reading draft trees: [`Decoder`] as a [`TreeLm`].
//!
//! As in [`decode`](crate::decode), the state is on the device. Every row has its own length, since
//! rows accept different numbers of draft tokens. The keys and values of a tree are written after
//! the slots of its row. A node sees the slots of the row, its ancestors and itself.

use burn::tensor::{Bool, DType, Int, Tensor};
use burn_dfa::generation::KvCache;
use burn_dfa::generation::speculative::TreeLm;
use burn_dfa::processor::DraftTree;

use crate::cache::{Targets, WritePositions, one_pass};
use crate::mask::{PerKind, masks};
use crate::model::Decoder;

/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::generation::CausalLm;
/// use burn_dfa::generation::speculative::TreeLm;
/// use burn_dfa::processor::DraftTree;
/// use burn_dfa_decoder::DecoderConfig;
///
/// let device = Device::flex();
/// let model = DecoderConfig::new(128, 32, 64, 2, 4).init(&device);
/// let prompt = Tensor::<2, Int>::from_ints([[3, 1, 4]], &device);
/// let (_, mut cache) = model.prefill(prompt, Tensor::zeros([1], &device), 16);
/// let drafts = Tensor::<2, Int>::from_ints([[1, 5]], &device);
/// let logits = model.read(drafts, &DraftTree::chain(1), &mut cache);
/// assert_eq!(logits.dims(), [1, 2, 128]);
/// assert_eq!(cache.lengths().into_data().try_to_vec::<i32>().unwrap(), [5]);
/// ```
impl TreeLm for Decoder {
    type TreeCache = KvCache;

    fn branch(&self, cache: KvCache) -> KvCache {
        cache
    }

    /// Reads the prompt and its draft tokens in one call of the model.
    fn prefill_chain(
        &self,
        prompt: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        drafts: Tensor<2, Int>,
        capacity: usize,
    ) -> (Tensor<3>, KvCache) {
        let [_, count] = drafts.dims();
        let tokens = Tensor::cat(vec![prompt.cast(DType::I32), drafts.cast(DType::I32)], 1);
        self.read_prompt(tokens, padding, capacity, count + 1)
    }

    /// # Panics
    /// If there is not exactly one token for each row and node.
    fn read(&self, tokens: Tensor<2, Int>, tree: &DraftTree, cache: &mut KvCache) -> Tensor<3> {
        let (batch, nodes) = (cache.rows(), tree.len());
        assert_eq!(tokens.dims(), [batch, nodes], "one token for each row and node");
        let x = self.embed(tokens);
        let all = [batch, nodes];
        let depths = cache.depths(tree).reshape([1, nodes]).expand(all);
        let first = (cache.lengths() - cache.padding()).clamp_min(0);
        let rotations = self.rotary.at(first.reshape([batch, 1]).expand(all) + depths.clone(), x.dtype());
        let targets = (!(tree.is_chain() && one_pass(&x))).then(|| Targets {
            hidden: self.hidden_from_tree(tree, &depths, cache),
            positions: WritePositions::Flat(cache.indices(cache.run(&cache.lengths(), nodes))),
        });
        let logits = self.read_tokens(x, cache, &rotations, targets.as_ref());
        cache.grow(nodes);
        logits
    }

    fn compact(&self, path: Tensor<2, Int>, nodes: usize, cache: &mut KvCache) {
        cache.compact(path, nodes);
    }

    fn truncate(&self, lengths: Tensor<1, Int>, cache: &mut KvCache) {
        cache.set_lengths(lengths);
    }
}

impl Decoder {
    /// `[batch, 1, nodes, capacity]`, true at the slots hidden from a node of a tree with these
    /// depths, `[batch, nodes]`.
    fn hidden_from_tree(
        &self,
        tree: &DraftTree,
        depths: &Tensor<2, Int>,
        cache: &mut KvCache,
    ) -> PerKind<Tensor<4, Bool>> {
        let hidden = cache.hidden_from_tree(tree);
        let shape @ [batch, _, nodes, capacity] = hidden.dims();
        masks(hidden, self.config.window_among(capacity), || {
            // The slot of a node does not count: its position follows its row by its depth.
            let key = cache.chain_slots(tree).reshape([batch, 1, 1, capacity]).expand(shape);
            let depths = depths.clone().reshape([batch, 1, nodes, 1]).expand(shape);
            let lengths = cache.lengths().reshape([batch, 1, 1, 1]).expand(shape);
            [depths + lengths, key]
        })
    }
}
