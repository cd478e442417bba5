//! A model without a cache: [`Recompute`] reads all tokens again at each step.

use std::fmt;

use burn::tensor::{DType, Device, Int, Tensor};

use super::continuous::ContinuousLm;
use super::model::CausalLm;
use super::speculative::{Sequences, TreeLm};
use crate::in_place::{InPlaceState, RowState, in_place};
use crate::processor::DraftTree;

/// A function from tokens to logits as a model: correct at once, and slow, because every step reads
/// all tokens again.
///
/// The function maps tokens `[rows, length]` to the logits after each token,
/// `[rows, length, vocab_size]`. It must be causal: the logits after a token depend on no later
/// token. It needs neither padding nor a mask, because shorter rows are padded at their end.
///
/// [`Cached`](super::Cached) makes the same model fast.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::generation::{GenerationConfig, Recompute, Request, generate};
/// use burn_dfa::{Compile, Constraint, TokenId, Vocabulary};
///
/// let vocabulary = Vocabulary::from_chars("abc".chars())?.pad_to(4)?.with_eos([TokenId(3)])?;
/// // Says the token after the last one.
/// let next = |tokens: Tensor<2, Int>| (tokens + 1).clamp_max(3).one_hot::<3>(4).float();
/// let model = Recompute::new(&Device::flex(), next);
///
/// let constraint = Constraint::regex("b*c{2,}")?.compile(&vocabulary)?;
/// let request = Request::new(vec![TokenId(0)], 8).with_constraint(&constraint);
/// let outputs = generate(&model, &vocabulary, &[request], &GenerationConfig::new())?;
/// assert_eq!(outputs[0].text(), "bcc");
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub struct Recompute<F> {
    forward: F,
    device: Device,
    vocab_size: usize,
}

/// The cache of [`Recompute`]: the tokens of all rows, each from slot 0 on.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::generation::{CausalLm, Recompute, TextCache};
///
/// let device = Device::flex();
/// let model = Recompute::new(&device, |tokens: Tensor<2, Int>| tokens.one_hot::<3>(4).float());
/// let prompt = Tensor::from_ints([[1, 2]], &device);
/// let (_, cache): (_, TextCache) = model.prefill(prompt, Tensor::zeros([1], &device), 8);
/// ```
#[derive(Clone, Debug)]
pub struct TextCache {
    /// Without padding.
    sequences: Sequences,
    /// Padding that the caller counts as tokens, `[rows]`, `i32`
    padding: Tensor<1, Int>,
    /// No row has more tokens.
    longest: usize,
}

impl<F: Fn(Tensor<2, Int>) -> Tensor<3>> Recompute<F> {
    /// The model of a function. Calls the function once, for the width of the logits.
    ///
    /// # Panics
    /// If the function panics on the token 0.
    pub fn new(device: &Device, forward: F) -> Self {
        let [_, _, vocab_size] = forward(Tensor::zeros([1, 1], (device, DType::I32))).dims();
        Self { forward, device: device.clone(), vocab_size }
    }

    /// The logits after some tokens of each row, `[rows, count, vocab_size]`.
    ///
    /// # Shapes
    /// - `tokens`: `[rows, length]`
    /// - `slots`: `[rows, count]`
    fn logits_at(&self, tokens: Tensor<2, Int>, slots: Tensor<2, Int>) -> Tensor<3> {
        let [rows, count] = slots.dims();
        let slots = slots.reshape([rows, count, 1]).expand([rows, count, self.vocab_size]);
        (self.forward)(tokens).gather(1, slots)
    }

    /// The logits after the last of the tokens of one row, `[1, vocab_size]`.
    fn after(&self, tokens: Tensor<2, Int>) -> Tensor<2> {
        let [_, length] = tokens.dims();
        (self.forward)(tokens).narrow(1, length - 1, 1).reshape([1, self.vocab_size])
    }

    /// The logits after the last token of each row, `[rows, vocab_size]`.
    fn next(&self, cache: &TextCache) -> Tensor<2> {
        let (tokens, lengths) = (cache.sequences.tokens(), cache.sequences.lengths());
        let [rows] = lengths.dims();
        let slots = (lengths - 1).clamp_min(0).reshape([rows, 1]);
        let logits = self.logits_at(tokens.narrow(1, 0, cache.longest), slots);
        logits.reshape([rows, self.vocab_size])
    }
}

impl TextCache {
    fn new(rows: usize, capacity: usize, device: &Device) -> Self {
        Self {
            sequences: Sequences::empty(rows, capacity, device),
            padding: Tensor::zeros([rows], (device, DType::I32)),
            longest: 1,
        }
    }

    fn capacity(&self) -> usize {
        self.sequences.tokens.dims()[1]
    }

    /// Sets the lengths of rows that are up to `tokens` longer than before.
    fn lengthen(&mut self, lengths: Tensor<1, Int>, tokens: usize) {
        self.sequences.lengths.assign(lengths);
        self.longest = (self.longest + tokens).min(self.capacity());
    }

    /// Sets the first tokens of a row, from slot `at` on.
    fn set_row(&mut self, row: usize, at: usize, tokens: Tensor<2, Int>) {
        let (end, tokens) = (at + tokens.dims()[1], tokens.cast(DType::I32));
        let length = end.min(self.capacity() - 1);
        let length = Tensor::full([1], length as i32, (&tokens.device(), DType::I32));
        in_place(&mut self.sequences.tokens, |buffer| buffer.slice_assign([row..row + 1, at..end], tokens));
        self.sequences.lengths.assign_row(row, length);
        self.longest = self.longest.max(end);
    }

    /// The first tokens of a row, `[1, length]`.
    fn row(&self, row: usize, length: usize) -> Tensor<2, Int> {
        self.sequences.tokens().slice([row..row + 1, 0..length])
    }
}

impl InPlaceState for TextCache {
    fn assign(&mut self, new: Self) {
        self.sequences.assign(new.sequences);
        self.padding.assign(new.padding);
        self.longest = new.longest;
    }
}

impl<F: Fn(Tensor<2, Int>) -> Tensor<3>> CausalLm for Recompute<F> {
    type Cache = TextCache;

    fn device(&self) -> Device {
        self.device.clone()
    }

    fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        capacity: usize,
    ) -> (Tensor<2>, TextCache) {
        let [rows, length] = tokens.dims();
        let mut cache = TextCache::new(rows, capacity, &self.device);
        cache.padding = padding.cast(DType::I32).add_scalar(0);
        cache.sequences.lengths = cache.padding.clone() * -1 + length as i32;
        cache.longest = length;
        // Moves the padding to the end of each row.
        let from = cache.sequences.run(cache.padding.clone(), length).clamp_max(length as i32 - 1);
        let tokens = tokens.cast(DType::I32).gather(1, from);
        cache.sequences.write(cache.padding.zeros_like(), tokens);
        (self.next(&cache), cache)
    }

    fn step(&self, tokens: Tensor<1, Int>, cache: &mut TextCache) -> Tensor<2> {
        let (lengths, [rows]) = (cache.sequences.lengths(), tokens.dims());
        cache.sequences.write(lengths.clone(), tokens.reshape([rows, 1]));
        cache.lengthen((lengths + 1).clamp_max(cache.capacity() as i32), 1);
        self.next(cache)
    }
}

impl<F: Fn(Tensor<2, Int>) -> Tensor<3>> ContinuousLm for Recompute<F> {
    type RowsCache = TextCache;

    fn rows_cache(&self, rows: usize, capacity: usize) -> TextCache {
        TextCache::new(rows, capacity, &self.device)
    }

    fn begin(&self, row: usize, prompt: Tensor<2, Int>, cache: &mut TextCache) -> Tensor<2> {
        self.extend(row, 0, prompt, cache)
    }

    fn reads_in_chunks(&self) -> bool {
        true
    }

    fn extend(&self, row: usize, at: usize, tokens: Tensor<2, Int>, cache: &mut TextCache) -> Tensor<2> {
        let end = at + tokens.dims()[1];
        cache.set_row(row, at, tokens);
        self.after(cache.row(row, end))
    }

    fn copies_prefixes(&self) -> bool {
        true
    }

    fn copy_prefix(&self, from: usize, to: usize, length: usize, cache: &mut TextCache) {
        cache.set_row(to, 0, cache.row(from, length));
    }

    fn step_rows(&self, tokens: Tensor<1, Int>, cache: &mut TextCache) -> Tensor<2> {
        self.step(tokens, cache)
    }
}

impl<F: Fn(Tensor<2, Int>) -> Tensor<3>> TreeLm for Recompute<F> {
    type TreeCache = TextCache;

    fn branch(&self, cache: TextCache) -> TextCache {
        cache
    }

    /// Reads the path to every node after the row again.
    fn read(&self, tokens: Tensor<2, Int>, tree: &DraftTree, cache: &mut TextCache) -> Tensor<3> {
        let (lengths, [rows, nodes]) = (cache.sequences.lengths(), tokens.dims());
        let logits = (0..nodes).map(|node| {
            let path = tree.path(node).into_iter().map(|node| tokens.clone().narrow(1, node, 1));
            let (mut text, count) = (cache.clone(), tree.depths()[node] + 1);
            text.sequences.write(lengths.clone(), Tensor::cat(path.collect(), 1));
            text.lengthen(lengths.clone() + count as i32, count);
            self.next(&text).reshape([rows, 1, self.vocab_size])
        });
        let logits = Tensor::cat(logits.collect(), 1);
        cache.sequences.write(lengths.clone(), tokens);
        cache.lengthen(lengths + nodes as i32, nodes);
        logits
    }

    fn compact(&self, path: Tensor<2, Int>, nodes: usize, cache: &mut TextCache) {
        let [rows, count] = path.dims();
        let first = cache.sequences.lengths() - nodes as i32;
        let from = first.clone().reshape([rows, 1]).expand([rows, count]) + path;
        let moved = cache.sequences.tokens().gather(1, from);
        cache.sequences.write(first, moved);
    }

    fn truncate(&self, lengths: Tensor<1, Int>, cache: &mut TextCache) {
        cache.sequences.lengths.assign(lengths - cache.padding.clone());
    }
}

impl<F> fmt::Debug for Recompute<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recompute").field("vocab_size", &self.vocab_size).finish_non_exhaustive()
    }
}
