//! Reading draft trees: [`Decoder`] as a [`TreeLm`].
//!
//! As in [`decode`](crate::decode), the state is on the device. Every row has its own length, since
//! rows accept different numbers of draft tokens. The keys and values of a tree are written after
//! the slots of its row. A node sees the slots of the row, its ancestors and itself.

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use burn_dfa::generation::speculative::TreeLm;
use burn_dfa::processor::DraftTree;

use crate::cache::{RowCache, Targets, one_pass};
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
    rows: RowCache,
    /// The trees read so far. Each is uploaded once.
    trees: Vec<(DraftTree, UploadedTree)>,
}

/// A tree on the device.
#[derive(Clone, Debug)]
struct UploadedTree {
    /// `[nodes]`
    depths: Tensor<1, Int>,
    /// `[nodes, nodes]`: 1 in row `a` and column `n` if `a` is `n` or an ancestor of `n`.
    ancestors: Tensor<2, Int>,
}

impl DecoderTreeCache {
    /// Number of slots.
    pub fn capacity(&self) -> usize {
        self.rows.shape()[2]
    }

    /// Positions in use of each row, `[batch]`.
    pub fn lengths(&self) -> Tensor<1, Int> {
        self.rows.lengths()
    }

    /// A tree on the device, uploaded when it is first read.
    fn upload(&mut self, tree: &DraftTree) -> UploadedTree {
        if let Some((_, uploaded)) = self.trees.iter().find(|(known, _)| known == tree) {
            return uploaded.clone();
        }
        let device = self.rows.lengths().device();
        let uploaded = UploadedTree { depths: tree.depths_on(&device), ancestors: ancestors(tree, &device) };
        self.trees.push((tree.clone(), uploaded.clone()));
        uploaded
    }

    /// `[batch, 1, nodes, capacity]`, true at the slots hidden from a node.
    fn hidden(&self, tree: &UploadedTree, config: &DecoderConfig) -> PerKind<Tensor<4, Bool>> {
        let ([batch, _, capacity, _], [nodes]) = (self.rows.shape(), tree.depths.dims());
        let all = [batch, capacity];
        let slots = self.rows.slots().reshape([1, capacity]).expand(all);
        let of_row = |values: Tensor<1, Int>| values.reshape([batch, 1]).expand(all);
        let node = slots.clone() - of_row(self.rows.lengths());
        let before = node.clone().lower_elem(0);
        let earlier = before.clone().bool_and(slots.clone().greater_equal(of_row(self.rows.padding())));
        let outside = before.clone().bool_or(node.clone().greater_equal_elem(nodes as i32));
        let node = node.clamp(0, nodes as i32 - 1).reshape([batch * capacity]);
        let ancestor = tree.ancestors.clone().select(0, node.clone()).equal_elem(1);
        let wide = [batch, capacity, nodes];
        let ancestor = ancestor.reshape(wide);
        let within = ancestor.bool_and(outside.bool_not().reshape([batch, capacity, 1]).expand(wide));
        let seen = within.bool_or(earlier.reshape([batch, capacity, 1]).expand(wide));
        let shape = [batch, 1, nodes, capacity];
        let hidden = seen.bool_not().swap_dims(1, 2).reshape(shape);
        masks(hidden, config.window_among(capacity), || {
            // A node's position follows its row by the depth of the node, regardless of the node's
            // slot.
            let of_node = tree.depths.clone().select(0, node).reshape(all) + of_row(self.rows.lengths());
            let key = of_node.mask_where(before, slots).reshape([batch, 1, 1, capacity]).expand(shape);
            let depths = tree.depths.clone().reshape([1, 1, nodes, 1]).expand(shape);
            let lengths = self.rows.lengths().reshape([batch, 1, 1, 1]).expand(shape);
            [depths + lengths, key]
        })
    }
}

impl From<DecoderCache> for DecoderTreeCache {
    fn from(cache: DecoderCache) -> Self {
        Self { rows: cache.into_rows(), trees: Vec::new() }
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
        let ([batch, ..], nodes) = (cache.rows.shape(), tree.len());
        assert_eq!(tokens.dims(), [batch, nodes], "one token for each row and node");
        let mut x = self.embed(tokens);
        let all = [batch, nodes];
        let uploaded = cache.upload(tree);
        let depths = uploaded.depths.clone().reshape([1, nodes]).expand(all);
        let first = (cache.rows.lengths() - cache.rows.padding()).clamp_min(0);
        let rotations = self.rotary.at(first.reshape([batch, 1]).expand(all) + depths, x.dtype());
        let targets = (!(tree.is_chain() && one_pass(&x))).then(|| Targets {
            hidden: cache.hidden(&uploaded, &self.config),
            places: cache.rows.places(cache.rows.run(&cache.rows.lengths(), nodes)),
        });
        for (index, layer) in self.model.layers.iter().enumerate() {
            x = layer.forward(x, |attention, qkv| {
                cache.rows.attend(index, attention, qkv, &rotations, targets.as_ref())
            });
        }
        cache.rows.grow(nodes);
        self.logits(x)
    }

    fn compact(&self, path: Tensor<2, Int>, nodes: usize, cache: &mut DecoderTreeCache) {
        let [batch, count] = path.dims();
        let first = cache.rows.lengths() - nodes as i32;
        let from = cache.rows.places(first.clone().reshape([batch, 1]).expand([batch, count]) + path);
        let to = cache.rows.places(cache.rows.run(&first, count));
        cache.rows.copy(&from, &to);
    }

    fn truncate(&self, lengths: Tensor<1, Int>, cache: &mut DecoderTreeCache) {
        cache.rows.set_lengths(lengths);
    }
}

/// `[nodes, nodes]`: 1 in row `a` and column `n` if `a` is `n` or an ancestor of `n`.
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
