//! Keys and values of rows of different lengths, in place on the device.

use burn::tensor::{Bool, DType, Device, IndexingUpdateOp, Int, Tensor, TensorData};

use crate::in_place::{InPlaceState, RowState, in_place};
use crate::processor::DraftTree;
use crate::tensor::runs;

/// The shape of the keys and values of a model.
///
/// ```
/// use burn::tensor::DType;
/// use burn_dfa::generation::KvShape;
///
/// // Two layers with four heads of 16 numbers.
/// let shape = KvShape { layers: 2, kv_heads: 4, head_dim: 16, dtype: DType::F32 };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvShape {
    /// Layers with attention.
    pub layers: usize,
    /// Heads of keys and values in a layer.
    pub kv_heads: usize,
    /// Numbers of a key and of a value.
    pub head_dim: usize,
    /// The float type of the keys and values.
    pub dtype: DType,
}

/// Keys and values of a batch, of a fixed capacity. Each row has its own length.
///
/// A *slot* holds the key and the value of one position. A row begins with its left padding, if it
/// has any, and its length includes the padding. Every method that changes the cache writes into
/// its existing buffers, as a recorded step requires. Integers are `i32`.
///
/// [`Cached`](super::Cached) runs a model with this cache. A model that implements the traits of
/// the loops itself can use it directly:
///
/// ```
/// use burn::tensor::{DType, Device, Tensor};
/// use burn_dfa::generation::{KvCache, KvShape};
///
/// let device = Device::flex();
/// let shape = KvShape { layers: 1, kv_heads: 2, head_dim: 4, dtype: DType::F32 };
/// let mut cache = KvCache::new(&shape, 3, 16, &device);
///
/// // The key and the value of one more token in each row.
/// let [key, value] = [1.0, 2.0].map(|x| Tensor::full([3, 2, 1, 4], x, &device));
/// let indices = cache.indices(cache.next_slots(1));
/// cache.write(0, &indices, [key, value]);
/// cache.grow(1);
/// let [keys, _] = cache.layer(0);
/// assert_eq!(keys.dims(), [3, 2, 16, 4]);
/// assert_eq!(cache.lengths().into_data().try_to_vec::<i32>().unwrap(), [1, 1, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct KvCache {
    /// Per layer, `[rows, kv_heads, capacity, head_dim]`.
    keys: Vec<Tensor<4>>,
    /// Per layer, `[rows, kv_heads, capacity, head_dim]`.
    values: Vec<Tensor<4>>,
    /// Slots in use, padding included, `[rows]`.
    lengths: Tensor<1, Int>,
    /// Padded slots of each row, `[rows]`.
    padding: Tensor<1, Int>,
    /// `0..capacity`.
    slots: Tensor<1, Int>,
    /// Start of each head of each row in a buffer `[rows * kv_heads * capacity, head_dim]`:
    /// `[rows * kv_heads]`.
    heads: Tensor<1, Int>,
    /// The shape of the keys of a layer.
    shape: [usize; 4],
    /// Whether all rows are known to have one length.
    is_aligned: bool,
    /// The trees read so far. Each is uploaded once.
    trees: Vec<(DraftTree, UploadedTree)>,
}

/// A draft tree on the device.
#[derive(Clone, Debug)]
struct UploadedTree {
    /// `[nodes]`
    depths: Tensor<1, Int>,
    /// `[nodes, nodes]`: 1 in row `a` and column `n` if `a` is `n` or an ancestor of `n`.
    ancestors: Tensor<2, Int>,
}

impl KvCache {
    /// A cache of `rows` empty rows of `capacity` slots each.
    pub fn new(shape: &KvShape, rows: usize, capacity: usize, device: &Device) -> Self {
        let KvShape { layers, kv_heads, head_dim, dtype } = *shape;
        let zeros = || Tensor::zeros([rows, kv_heads, capacity, head_dim], (device, dtype));
        let none = || Tensor::zeros([rows], (device, DType::I32));
        let buffers = || (0..layers).map(|_| zeros()).collect();
        Self::of(buffers(), buffers(), none(), none())
    }

    /// A cache of existing buffers, which no other tensor shares.
    ///
    /// # Shapes
    /// - `keys`, `values`: per layer, `[rows, kv_heads, capacity, head_dim]`
    /// - `lengths`, `padding`: `[rows]`
    ///
    /// # Panics
    /// Without a layer.
    pub fn of(
        keys: Vec<Tensor<4>>,
        values: Vec<Tensor<4>>,
        lengths: Tensor<1, Int>,
        padding: Tensor<1, Int>,
    ) -> Self {
        let shape @ [rows, kv_heads, capacity, _] = keys[0].dims();
        let options = (&lengths.device(), DType::I32);
        // CUDA aligns the rows of a tensor, and copies it if `write` then sees it as a matrix: a
        // replay would write into the copy. A tensor of one dimension has no gaps.
        let dense = |buffer: Tensor<4>| buffer.reshape([-1]).reshape(shape);
        Self {
            keys: keys.into_iter().map(dense).collect(),
            values: values.into_iter().map(dense).collect(),
            slots: Tensor::arange(0..capacity as i64, options),
            heads: Tensor::arange(0..(rows * kv_heads) as i64, options) * capacity as i32,
            lengths: lengths.cast(DType::I32),
            padding: padding.cast(DType::I32),
            shape,
            is_aligned: false,
            trees: Vec::new(),
        }
    }

    /// The cache of rows that have one length, as the caller promises.
    #[must_use]
    pub fn aligned(self) -> Self {
        Self { is_aligned: true, ..self }
    }

    /// With left padding, `[rows]`, which is copied.
    #[must_use]
    pub fn with_padding(self, padding: Tensor<1, Int>) -> Self {
        Self { padding: padding.cast(DType::I32).add_scalar(0), ..self }
    }

    /// Whether all rows have one length: the cache was [aligned](Self::aligned), and since then
    /// every change has lengthened all rows, or has assigned an aligned cache. A step can then
    /// write one slot of all rows at once.
    pub fn is_aligned(&self) -> bool {
        self.is_aligned
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.shape[0]
    }

    /// Number of slots of a row.
    pub fn capacity(&self) -> usize {
        self.shape[2]
    }

    /// The shape of the keys of a layer, `[rows, kv_heads, capacity, head_dim]`.
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Slots in use of each row, padding included, `[rows]`.
    pub fn lengths(&self) -> Tensor<1, Int> {
        self.lengths.clone()
    }

    /// Padded slots of each row, `[rows]`.
    pub fn padding(&self) -> Tensor<1, Int> {
        self.padding.clone()
    }

    /// `0..capacity`.
    pub fn slots(&self) -> Tensor<1, Int> {
        self.slots.clone()
    }

    /// The keys and the values of a layer, `[rows, kv_heads, capacity, head_dim]` each.
    pub fn layer(&self, layer: usize) -> [Tensor<4>; 2] {
        [self.keys[layer].clone(), self.values[layer].clone()]
    }

    /// The buffers of the keys and the values of a layer, for a model that writes them in its own
    /// kernel.
    pub fn layer_mut(&mut self, layer: usize) -> [&mut Tensor<4>; 2] {
        [&mut self.keys[layer], &mut self.values[layer]]
    }

    /// The keys and the values of all layers.
    pub fn into_layers(self) -> [Vec<Tensor<4>>; 2] {
        [self.keys, self.values]
    }

    /// Sets the lengths, `[rows]`.
    pub fn set_lengths(&mut self, lengths: Tensor<1, Int>) {
        self.is_aligned = false;
        self.lengths.assign(lengths);
    }

    /// Sets the length of one row, at most `capacity - 1`: the last slot is for the next step.
    pub fn set_length(&mut self, row: usize, length: usize) {
        let length = length.min(self.capacity() - 1) as i32;
        self.is_aligned = false;
        self.lengths.assign_row(row, Tensor::full([1], length, (&self.lengths.device(), DType::I32)));
    }

    /// Lengthens every row.
    pub fn grow(&mut self, slots: usize) {
        in_place(&mut self.lengths, |lengths| lengths + slots as i32);
    }

    /// Lengthens every row by one slot. A full row keeps its last slot for the next step.
    pub fn advance(&mut self) {
        let last = self.capacity() as i32 - 1;
        self.lengths.assign((self.lengths() + 1).clamp_max(last));
    }

    /// `from[b]`, `from[b] + 1`, …, `[rows, count]`.
    pub fn run(&self, from: &Tensor<1, Int>, count: usize) -> Tensor<2, Int> {
        runs(from.clone(), self.slots.clone().narrow(0, 0, count))
    }

    /// The next `count` slots of each row, `[rows, count]`, at most the last slot.
    pub fn next_slots(&self, count: usize) -> Tensor<2, Int> {
        self.run(&self.lengths, count).clamp_max(self.capacity() as i32 - 1)
    }

    /// Indices of slots, `[rows, count]`, of all heads in the flat buffer of a layer,
    /// `[rows * kv_heads * count]`. A slot past the last one is clamped to the last one.
    pub fn indices(&self, slots: Tensor<2, Int>) -> Tensor<1, Int> {
        let ([rows, count], [_, kv_heads, capacity, _]) = (slots.dims(), self.shape);
        let last = capacity as i32 - 1;
        let all = [rows, kv_heads, count];
        let slots = slots.clamp(0, last).reshape([rows, 1, count]).expand(all);
        (self.heads.clone().reshape([rows, kv_heads, 1]).expand(all) + slots).reshape([-1])
    }

    /// Writes the keys and values of new positions into a layer, at [indices](Self::indices).
    ///
    /// # Shapes
    /// - `new`: keys and values, `[rows, kv_heads, count, head_dim]` each
    pub fn write(&mut self, layer: usize, indices: &Tensor<1, Int>, new: [Tensor<4>; 2]) {
        let [.., head_dim] = self.shape;
        for (buffer, new) in self.layer_mut(layer).into_iter().zip(new) {
            write(buffer, indices, new.reshape([-1, head_dim as i32]));
        }
    }

    /// Copies slots from the [indices](Self::indices) `from` to the indices `to`, in all layers.
    pub fn copy(&mut self, from: &Tensor<1, Int>, to: &Tensor<1, Int>) {
        let [.., head_dim] = self.shape;
        for buffer in self.keys.iter_mut().chain(&mut self.values) {
            let slots = buffer.clone().reshape([-1, head_dim as i32]).select(0, from.clone());
            write(buffer, to, slots);
        }
    }

    /// Copies the first `length` slots of a row to another row, in all layers, and sets its length.
    pub fn copy_row(&mut self, from: usize, to: usize, length: usize) {
        if from != to {
            let [_, kv_heads, ..] = self.shape;
            let indices = |row: usize| {
                let heads = self.heads.clone().narrow(0, row * kv_heads, kv_heads);
                self.run(&heads, length).reshape([-1])
            };
            let (from, to) = (indices(from), indices(to));
            self.copy(&from, &to);
        }
        self.set_length(to, length);
    }

    /// Replaces the first slots of one row by keys and values, and sets its length.
    ///
    /// # Shapes
    /// - `keys`, `values`: per layer, `[1, kv_heads, length, head_dim]`
    pub fn fill(&mut self, row: usize, [keys, values]: [Vec<Tensor<4>>; 2]) {
        let [_, kv_heads, _, head_dim] = self.shape;
        let [_, _, length, _] = keys[0].dims();
        let buffers = self.keys.iter_mut().chain(&mut self.values);
        for (buffer, new) in buffers.zip(keys.into_iter().chain(values)) {
            let range = [row..row + 1, 0..kv_heads, 0..length, 0..head_dim];
            in_place(buffer, |buffer| buffer.slice_assign(range, new));
        }
        self.set_length(row, length);
    }

    /// Writes keys and values of one row of a layer from slot `at` on. Returns the keys and values
    /// of the row up to the new end, `[1, kv_heads, at + length, head_dim]` each.
    ///
    /// # Shapes
    /// - `new`: keys and values, `[1, kv_heads, length, head_dim]` each
    pub fn extend_row(
        &mut self,
        layer: usize,
        row: usize,
        at: usize,
        [keys, values]: [Tensor<4>; 2],
    ) -> [Tensor<4>; 2] {
        let [_, kv_heads, _, head_dim] = self.shape;
        let end = at + keys.dims()[2];
        let [key_buffer, value_buffer] = self.layer_mut(layer);
        [(key_buffer, keys), (value_buffer, values)].map(|(buffer, new)| {
            in_place(buffer, |buffer| {
                buffer.slice_assign([row..row + 1, 0..kv_heads, at..end, 0..head_dim], new)
            });
            buffer.clone().slice([row..row + 1, 0..kv_heads, 0..end, 0..head_dim])
        })
    }

    /// A copy of the first `capacity` slots of one row, with `length` slots in use.
    pub fn row(&self, row: usize, length: usize, capacity: usize) -> Self {
        let [_, kv_heads, _, head_dim] = self.shape;
        let of_row = |buffer: &Tensor<4>| {
            buffer.clone().slice([row..row + 1, 0..kv_heads, 0..capacity, 0..head_dim]).add_scalar(0)
        };
        let copies = |buffers: &[Tensor<4>]| buffers.iter().map(of_row).collect();
        let options = (&self.lengths.device(), DType::I32);
        let (lengths, padding) = (Tensor::full([1], length as i32, options), Tensor::zeros([1], options));
        Self::of(copies(&self.keys), copies(&self.values), lengths, padding)
    }

    /// Moves the nodes of a path to the front of the last `nodes` slots, as
    /// [`TreeLm::compact`](crate::generation::speculative::TreeLm::compact) does.
    ///
    /// # Shapes
    /// - `path`: `[rows, depth]`
    pub fn compact(&mut self, path: Tensor<2, Int>, nodes: usize) {
        let [rows, count] = path.dims();
        let first = self.lengths() - nodes as i32;
        let from = self.indices(first.clone().reshape([rows, 1]).expand([rows, count]) + path);
        let to = self.indices(self.run(&first, count));
        self.copy(&from, &to);
    }

    /// The depth of every node of a tree, `[nodes]`.
    pub fn depths(&mut self, tree: &DraftTree) -> Tensor<1, Int> {
        self.upload(tree).depths
    }

    /// `[rows, 1, nodes, capacity]`: true at the slots hidden from a node of a tree whose keys
    /// follow each row. A node sees its row after the padding, its ancestors and itself.
    pub fn hidden_from_tree(&mut self, tree: &DraftTree) -> Tensor<4, Bool> {
        let UploadedTree { ancestors, .. } = self.upload(tree);
        let ([rows, _, capacity, _], nodes) = (self.shape, tree.len());
        let [slots, node] = self.slots_and_nodes();
        let before = node.clone().lower_elem(0);
        let padding = self.padding().reshape([rows, 1]).expand([rows, capacity]);
        let earlier = before.clone().bool_and(slots.greater_equal(padding));
        let outside = before.bool_or(node.clone().greater_equal_elem(nodes as i32));
        let node = node.clamp(0, nodes as i32 - 1).reshape([rows * capacity]);
        let wide = [rows, capacity, nodes];
        let ancestor = ancestors.select(0, node).equal_elem(1).reshape(wide);
        let within = ancestor.bool_and(outside.bool_not().reshape([rows, capacity, 1]).expand(wide));
        let seen = within.bool_or(earlier.reshape([rows, capacity, 1]).expand(wide));
        seen.bool_not().swap_dims(1, 2).reshape([rows, 1, nodes, capacity])
    }

    /// The slot of every key if the path to its node were a chain, `[rows, capacity]`: the length
    /// of the row plus the depth of the node. A sliding window counts these slots.
    pub fn chain_slots(&mut self, tree: &DraftTree) -> Tensor<2, Int> {
        let (all @ [rows, capacity], last) = ([self.rows(), self.capacity()], tree.len() as i32 - 1);
        let [slots, node] = self.slots_and_nodes();
        let before = node.clone().lower_elem(0);
        let depths = self.depths(tree).select(0, node.clamp(0, last).reshape([rows * capacity]));
        let lengths = self.lengths().reshape([rows, 1]).expand(all);
        (depths.reshape(all) + lengths).mask_where(before, slots)
    }

    /// Every slot, and the number of the node in it if a tree follows each row, `[rows, capacity]`
    /// each. The number is below 0 in the slots before.
    fn slots_and_nodes(&self) -> [Tensor<2, Int>; 2] {
        let all @ [rows, capacity] = [self.rows(), self.capacity()];
        let slots = self.slots.clone().reshape([1, capacity]).expand(all);
        let node = slots.clone() - self.lengths().reshape([rows, 1]).expand(all);
        [slots, node]
    }

    /// A tree on the device, uploaded when it is first read.
    fn upload(&mut self, tree: &DraftTree) -> UploadedTree {
        if let Some((_, uploaded)) = self.trees.iter().find(|(known, _)| known == tree) {
            return uploaded.clone();
        }
        let device = self.lengths.device();
        let uploaded = UploadedTree { depths: tree.depths_on(&device), ancestors: ancestors(tree, &device) };
        self.trees.push((tree.clone(), uploaded.clone()));
        uploaded
    }
}

/// The slots in use of all rows are replaced. The shapes must be equal.
///
/// [`is_aligned`](KvCache::is_aligned) stays, because a recorded step has already decided how it
/// writes.
impl InPlaceState for KvCache {
    /// # Panics
    /// If the shapes differ, or if `self` is aligned and `new` is not.
    fn assign(&mut self, new: Self) {
        assert_eq!(self.shape, new.shape, "caches of one shape");
        assert!(
            new.is_aligned || !self.is_aligned,
            "an aligned cache takes only aligned ones: a recorded step writes one slot of all rows"
        );
        self.keys.iter_mut().zip(new.keys).for_each(|(keys, new)| keys.assign(new));
        self.values.iter_mut().zip(new.values).for_each(|(values, new)| values.assign(new));
        self.lengths.assign(new.lengths);
        self.padding.assign(new.padding);
    }
}

/// Writes `new` `[indices, head_dim]` into a buffer, in place.
fn write(buffer: &mut Tensor<4>, indices: &Tensor<1, Int>, new: Tensor<2>) {
    let shape = buffer.dims();
    in_place(buffer, |buffer| {
        let flat = buffer.reshape([shape[0] * shape[1] * shape[2], shape[3]]);
        flat.select_assign(0, indices.clone(), new, IndexingUpdateOp::Assign).reshape(shape)
    });
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of two empty rows.
    fn cache() -> KvCache {
        let shape = KvShape { layers: 1, kv_heads: 1, head_dim: 2, dtype: DType::F32 };
        KvCache::new(&shape, 2, 4, &Device::default())
    }

    fn lengths(cache: &KvCache) -> Vec<i32> {
        cache.lengths().into_data().try_to_vec::<i32>().unwrap()
    }

    /// A cache of rows of different lengths.
    fn uneven() -> KvCache {
        let mut uneven = cache().aligned();
        uneven.set_length(1, 2);
        uneven
    }

    #[test]
    fn an_assigned_cache_is_aligned_only_if_its_rows_have_one_length() {
        let mut longer = cache().aligned();
        longer.grow(3);
        for (mut cache, new, is_aligned, expected) in [
            (cache().aligned(), longer.clone(), true, [3, 3]),
            (cache(), longer.clone(), false, [3, 3]),
            (cache(), uneven(), false, [0, 2]),
            (uneven(), longer, false, [3, 3]),
        ] {
            cache.assign(new);
            assert_eq!((cache.is_aligned(), lengths(&cache)), (is_aligned, expected.to_vec()));
        }
    }

    #[test]
    #[should_panic(expected = "an aligned cache takes only aligned ones")]
    fn an_aligned_cache_refuses_rows_of_different_lengths() {
        cache().aligned().assign(uneven());
    }
}
