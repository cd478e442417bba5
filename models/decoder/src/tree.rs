//! Reading draft trees: [`Decoder`] as a [`TreeLm`].
//!
//! As in [`decode`](crate::decode), the state is on the device. Every row has its own length, since
//! rows accept different numbers of draft tokens. The keys and values of a tree are written after
//! the slots of its row. A node sees the slots of the row, its ancestors and itself.

use burn::tensor::{Bool, DType, Int, Tensor};
use burn_dfa::generation::KvCache;
use burn_dfa::generation::speculative::TreeLm;
use burn_dfa::processor::DraftTree;

use crate::cache::{Targets, attend, one_pass};
use crate::config::DecoderConfig;
use crate::decode::DecoderCache;
use crate::mask::{PerKind, masks};
use crate::model::Decoder;

/// Keys and values of a batch whose rows have different lengths. All integers are `i32`.
///
/// Made by [`TreeLm::branch`] of a [`DecoderCache`].
///
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
/// let (_, cache) = model.prefill(prompt, Tensor::zeros([1], &device), 16);
///
/// let mut cache = model.branch(cache);
/// let drafts = Tensor::<2, Int>::from_ints([[1, 5]], &device);
/// let logits = model.read(drafts, &DraftTree::chain(1), &mut cache);
/// assert_eq!(logits.dims(), [1, 2, 128]);
/// assert_eq!(cache.lengths().into_data().try_to_vec::<i32>().unwrap(), [5]);
/// ```
#[derive(Clone, Debug)]
pub struct DecoderTreeCache {
    rows: KvCache,
}

impl DecoderTreeCache {
    /// Number of slots.
    pub fn capacity(&self) -> usize {
        self.rows.capacity()
    }

    /// Positions in use of each row, `[batch]`.
    pub fn lengths(&self) -> Tensor<1, Int> {
        self.rows.lengths()
    }

    /// `[batch, 1, nodes, capacity]`, true at the slots hidden from a node of a tree with these
    /// depths, `[batch, nodes]`.
    fn hidden(
        &mut self,
        tree: &DraftTree,
        depths: &Tensor<2, Int>,
        config: &DecoderConfig,
    ) -> PerKind<Tensor<4, Bool>> {
        let hidden = self.rows.hidden_from_tree(tree);
        let shape @ [batch, _, nodes, capacity] = hidden.dims();
        masks(hidden, config.window_among(capacity), || {
            // The slot of a node does not count: its position follows its row by its depth.
            let key = self.rows.chain_slots(tree).reshape([batch, 1, 1, capacity]).expand(shape);
            let depths = depths.clone().reshape([batch, 1, nodes, 1]).expand(shape);
            let lengths = self.rows.lengths().reshape([batch, 1, 1, 1]).expand(shape);
            [depths + lengths, key]
        })
    }
}

impl From<DecoderCache> for DecoderTreeCache {
    fn from(cache: DecoderCache) -> Self {
        Self { rows: cache.into_rows() }
    }
}

impl TreeLm for Decoder {
    type TreeCache = DecoderTreeCache;

    fn branch(&self, cache: DecoderCache) -> DecoderTreeCache {
        cache.into()
    }

    /// Reads the prompt and its draft tokens in one call of the model.
    fn prefill_chain(
        &self,
        prompt: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        drafts: Tensor<2, Int>,
        capacity: usize,
    ) -> (Tensor<3>, DecoderTreeCache) {
        let [_, count] = drafts.dims();
        let tokens = Tensor::cat(vec![prompt.cast(DType::I32), drafts.cast(DType::I32)], 1);
        let (logits, cache) = self.read_prompt(tokens, padding, capacity, count + 1);
        (logits, cache.into())
    }

    /// # Panics
    /// If there is not exactly one token for each row and node.
    fn read(&self, tokens: Tensor<2, Int>, tree: &DraftTree, cache: &mut DecoderTreeCache) -> Tensor<3> {
        let (batch, nodes) = (cache.rows.rows(), tree.len());
        assert_eq!(tokens.dims(), [batch, nodes], "one token for each row and node");
        let mut x = self.embed(tokens);
        let all = [batch, nodes];
        let depths = cache.rows.depths(tree).reshape([1, nodes]).expand(all);
        let first = (cache.rows.lengths() - cache.rows.padding()).clamp_min(0);
        let rotations = self.rotary.at(first.reshape([batch, 1]).expand(all) + depths.clone(), x.dtype());
        let targets = (!(tree.is_chain() && one_pass(&x))).then(|| Targets {
            hidden: cache.hidden(tree, &depths, &self.config),
            places: cache.rows.places(cache.rows.run(&cache.rows.lengths(), nodes)),
        });
        for (index, layer) in self.model.layers.iter().enumerate() {
            x = layer.forward(x, |attention, qkv| {
                attend(&mut cache.rows, index, attention, qkv, &rotations, targets.as_ref())
            });
        }
        cache.rows.grow(nodes);
        self.logits(x)
    }

    fn compact(&self, path: Tensor<2, Int>, nodes: usize, cache: &mut DecoderTreeCache) {
        cache.rows.compact(path, nodes);
    }

    fn truncate(&self, lengths: Tensor<1, Int>, cache: &mut DecoderTreeCache) {
        cache.rows.set_lengths(lengths);
    }
}
