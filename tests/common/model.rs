//! A model whose logits depend on every token of a row, so a missing or misplaced token changes the
//! output.

use burn::tensor::{DType, Device, IndexingUpdateOp, Int, Tensor, TensorData};
use burn_dfa::generation::speculative::TreeLm;
use burn_dfa::generation::{CausalLm, ContinuousLm, GenerationConfig, Output, Recordable, Request, generate};
use burn_dfa::processor::{DraftTree, InPlaceState, RowState, in_place};
use burn_dfa::{Result, Vocabulary};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// The complete outputs of requests.
pub fn run(
    model: &RandomLm,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
) -> Result<Vec<Output>> {
    generate(model, vocabulary, requests, config)
}

/// Logits from a bank of random rows, chosen by a hash of the text.
pub struct RandomLm {
    rows: Vec<Vec<f32>>,
    /// `[BANK, vocab_size]`
    bank: Tensor<2>,
}

/// Both powers of two.
const BANK: i32 = 64;
const HASHES: i32 = 1 << 16;

/// The hash of the text up to every slot, in rows of individual lengths; written in place, so a
/// step can be recorded.
#[derive(Clone)]
pub struct Hashes {
    /// `[batch, capacity]`
    after: Tensor<2, Int>,
    /// `[batch]`
    lengths: Tensor<1, Int>,
}

impl InPlaceState for Hashes {
    fn assign(&mut self, value: Self) {
        self.after.assign(value.after);
        self.lengths.assign(value.lengths);
    }
}

impl RandomLm {
    pub fn new(vocab_size: usize, seed: u64, dtype: DType, device: &Device) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let row = |_| (0..vocab_size).map(|_| rng.random_range(-4.0..4.0)).collect();
        Self::of((0..BANK).map(row).collect(), dtype, device)
    }

    /// The same logit for every token.
    pub fn constant(value: f32, vocab_size: usize, device: &Device) -> Self {
        Self::of(vec![vec![value; vocab_size]; BANK as usize], DType::F32, device)
    }

    fn of(rows: Vec<Vec<f32>>, dtype: DType, device: &Device) -> Self {
        let values: Vec<f32> = rows.iter().flatten().copied().collect();
        let bank = TensorData::new(values, [rows.len(), rows[0].len()]);
        Self { rows, bank: Tensor::from_data(bank, (device, dtype)) }
    }

    /// A model over the tokens `ids` that mostly agrees with this one.
    pub fn like(&self, ids: impl Iterator<Item = usize> + Clone, noise: f32, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let row = |row: &Vec<f32>, rng: &mut StdRng| {
            ids.clone().map(|id| row[id] + noise * rng.random_range(-1.0..1.0)).collect()
        };
        let rows = self.rows.iter().map(|old| row(old, &mut rng)).collect();
        Self::of(rows, self.bank.dtype(), &self.bank.device())
    }

    /// The logits after a text, on the host.
    pub fn logits_after(&self, text: &[i32]) -> &[f32] {
        let hash = text.iter().fold(0, |hash, token| (hash * 31 + token * 17 + 7) % HASHES);
        &self.rows[(hash % BANK) as usize]
    }

    fn logits(&self, hash: Tensor<1, Int>) -> Tensor<2> {
        self.bank.clone().select(0, hash.bitwise_and_scalar(BANK - 1))
    }
}

fn mix(hash: Tensor<1, Int>, token: Tensor<1, Int>) -> Tensor<1, Int> {
    (hash * 31 + token.cast(DType::I32) * 17 + 7).bitwise_and_scalar(HASHES - 1)
}

/// Column `at` of `[batch, columns]`.
fn column(tensor: &Tensor<2, Int>, at: usize) -> Tensor<1, Int> {
    let [batch, _] = tensor.dims();
    tensor.clone().slice([0..batch, at..at + 1]).reshape([batch])
}

impl Hashes {
    /// The indices of `slots`, `[batch, count]`, in the flat buffer.
    fn indices(&self, slots: Tensor<2, Int>) -> Tensor<1, Int> {
        let ([batch, count], [_, capacity]) = (slots.dims(), self.after.dims());
        let options = (&slots.device(), DType::I32);
        let rows = Tensor::<1, Int>::arange(0..batch as i64, options) * capacity as i32;
        // A write past the end must fail.
        (slots + rows.reshape([batch, 1]).expand([batch, count])).reshape([-1])
    }

    fn run(first: Tensor<1, Int>, count: usize) -> Tensor<2, Int> {
        let [batch] = first.dims();
        let steps = Tensor::<1, Int>::arange(0..count as i64, (&first.device(), DType::I32));
        first.reshape([batch, 1]).expand([batch, count]) + steps.reshape([1, count]).expand([batch, count])
    }

    fn write(&mut self, slots: Tensor<2, Int>, hashes: Tensor<2, Int>) {
        let [batch, capacity] = self.after.dims();
        let (indices, hashes) = (self.indices(slots), hashes.reshape([-1]));
        in_place(&mut self.after, |after| {
            let flat = after.reshape([batch * capacity]);
            flat.select_assign(0, indices, hashes, IndexingUpdateOp::Assign).reshape([batch, capacity])
        });
    }

    fn last(&self) -> Tensor<1, Int> {
        let [batch, _] = self.after.dims();
        let before = (self.lengths.clone() - 1).clamp_min(0).reshape([batch, 1]);
        // No text has the hash 0.
        let nothing = self.lengths.clone().lower_elem(1);
        self.after.clone().gather(1, before).reshape([batch]).mask_fill(nothing, 0)
    }
}

impl CausalLm for RandomLm {
    type Cache = Hashes;

    fn device(&self) -> Device {
        self.bank.device()
    }

    fn vocab_size(&self) -> usize {
        self.bank.dims()[1]
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        capacity: usize,
    ) -> (Tensor<2>, Hashes) {
        let ([batch, length], device) = (tokens.dims(), self.device());
        let zeros = |count| Tensor::<2, Int>::zeros([batch, count], (&device, DType::I32));
        let mut hashes = Hashes {
            after: zeros(capacity),
            lengths: Tensor::full([batch], length as i32, (&device, DType::I32)),
        };
        let mut hash = zeros(1).reshape([batch]);
        for at in 0..length {
            let padded = padding.clone().cast(DType::I32).greater_elem(at as i32);
            hash = mix(hash, column(&tokens, at)).mask_fill(padded, 0);
            hashes.write(zeros(1) + at as i32, hash.clone().reshape([batch, 1]));
        }
        (self.logits(hash), hashes)
    }

    fn step(&self, tokens: Tensor<1, Int>, cache: &mut Hashes) -> Tensor<2> {
        let [batch] = tokens.dims();
        let logits = self.read(tokens.reshape([batch, 1]), &DraftTree::chain(0), cache);
        logits.reshape([batch, self.vocab_size()])
    }
}

impl TreeLm for RandomLm {
    type TreeCache = Hashes;

    fn branch(&self, cache: Hashes) -> Hashes {
        cache
    }

    fn read(&self, tokens: Tensor<2, Int>, tree: &DraftTree, cache: &mut Hashes) -> Tensor<3> {
        let [batch, nodes] = tokens.dims();
        let mut hashes: Vec<Tensor<1, Int>> = Vec::new();
        for (node, &parent) in tree.parents().iter().enumerate() {
            let before = if node == 0 { cache.last() } else { hashes[parent].clone() };
            hashes.push(mix(before, column(&tokens, node)));
        }
        let hashes = Tensor::<1, Int>::stack::<2>(hashes, 1);
        cache.write(Hashes::run(cache.lengths.clone(), nodes), hashes.clone());
        cache.lengths.assign(cache.lengths.clone() + nodes as i32);
        self.logits(hashes.reshape([batch * nodes])).reshape([batch, nodes, self.vocab_size()])
    }

    fn compact(&self, path: Tensor<2, Int>, nodes: usize, cache: &mut Hashes) {
        let ([batch, count], first) = (path.dims(), cache.lengths.clone() - nodes as i32);
        let source = first.clone().reshape([batch, 1]).expand([batch, count]) + path;
        let moved = cache.after.clone().gather(1, source);
        cache.write(Hashes::run(first, count), moved);
    }

    fn truncate(&self, lengths: Tensor<1, Int>, cache: &mut Hashes) {
        cache.lengths.assign(lengths);
    }
}

// SAFETY: The tensors of a new cache share no buffers, and every method writes them in place. The
// model keeps no tensors.
#[allow(unsafe_code)]
unsafe impl Recordable for RandomLm {}

/// The hash of the text of each row up to every slot. As in a cache of keys and values, a row may
/// begin with a prefix of another row, and a long-idle row writes its last slot.
#[derive(Clone)]
pub struct SlotHashes(Hashes);

impl SlotHashes {
    /// The hash of the first `length` tokens of a row, `[1]`; 0 for none.
    fn after(&self, row: usize, length: usize) -> Tensor<1, Int> {
        match length {
            0 => Tensor::zeros([1], (&self.0.after.device(), DType::I32)),
            _ => self.0.after.clone().slice([row..row + 1, length - 1..length]).reshape([1]),
        }
    }

    /// Writes the hashes of a row from slot `at` on, and its length.
    fn write(&mut self, row: usize, at: usize, hashes: Vec<Tensor<1, Int>>) {
        let end = at + hashes.len();
        if at < end {
            let hashes = Tensor::cat(hashes, 0).reshape([1, end - at]);
            in_place(&mut self.0.after, |after| after.slice_assign([row..row + 1, at..end], hashes));
        }
        let [_, capacity] = self.0.after.dims();
        let length = end.min(capacity - 1) as i32;
        let length = Tensor::full([1], length, (&self.0.after.device(), DType::I32));
        self.0.lengths.assign_row(row, length);
    }
}

impl ContinuousLm for RandomLm {
    type RowsCache = SlotHashes;

    fn rows_cache(&self, rows: usize, capacity: usize) -> SlotHashes {
        let options = (&self.device(), DType::I32);
        SlotHashes(Hashes {
            after: Tensor::zeros([rows, capacity], options),
            lengths: Tensor::zeros([rows], options),
        })
    }

    fn begin(&self, row: usize, prompt: Tensor<2, Int>, cache: &mut SlotHashes) -> Tensor<2> {
        self.extend(row, 0, prompt, cache)
    }

    fn reads_in_chunks(&self) -> bool {
        true
    }

    fn extend(&self, row: usize, at: usize, tokens: Tensor<2, Int>, cache: &mut SlotHashes) -> Tensor<2> {
        let mut hash = cache.after(row, at);
        let mut hashes = Vec::new();
        for index in 0..tokens.dims()[1] {
            hash = mix(hash, column(&tokens, index));
            hashes.push(hash.clone());
        }
        cache.write(row, at, hashes);
        self.logits(hash)
    }

    fn copies_prefixes(&self) -> bool {
        true
    }

    fn copy_prefix(&self, from: usize, to: usize, length: usize, cache: &mut SlotHashes) {
        let hashes = (1..=length).map(|length| cache.after(from, length)).collect();
        cache.write(to, 0, hashes);
    }

    fn step_rows(&self, tokens: Tensor<1, Int>, cache: &mut SlotHashes) -> Tensor<2> {
        let ([rows], [_, capacity]) = (tokens.dims(), cache.0.after.dims());
        let hashes = mix(cache.0.last(), tokens);
        cache.0.write(cache.0.lengths.clone().reshape([rows, 1]), hashes.clone().reshape([rows, 1]));
        let next = (cache.0.lengths.clone() + 1).clamp_max(capacity as i32 - 1);
        cache.0.lengths.assign(next);
        self.logits(hashes)
    }
}
