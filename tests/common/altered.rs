//! A random model with observed calls and replaceable logits.

use burn::tensor::{Device, Int, Tensor};
use burn_dfa::generation::{CausalLm, ContinuousLm, Recordable};

use super::model::RandomLm;

/// The call of a model that computed logits.
#[allow(clippy::large_enum_variant, reason = "one at a time, and never kept")]
pub enum Call {
    Prefill,
    Step,
    /// The prompt, `[1, length]`.
    Begin(Tensor<2, Int>),
    /// A chunk of the prompt, `[1, length]`.
    Extend(Tensor<2, Int>),
    StepRows,
}

/// What an [`Altered`] model does differently. It gets no tensor of a cache but to clone it.
pub trait Change {
    /// Whether the model reads prompts in chunks and copies prefixes.
    const EXTENDS: bool = true;

    fn logits(&self, _: Call, logits: Tensor<2>) -> Tensor<2> {
        logits
    }

    fn step<C: Clone>(&self, cache: &mut C, step: impl FnOnce(&mut C) -> Tensor<2>) -> Tensor<2> {
        step(cache)
    }
}

impl<F: Fn(Call, Tensor<2>) -> Tensor<2>> Change for F {
    fn logits(&self, call: Call, logits: Tensor<2>) -> Tensor<2> {
        self(call, logits)
    }
}

/// Reads prompts whole and copies no prefixes.
pub struct WholePrompts;

impl Change for WholePrompts {
    const EXTENDS: bool = false;
}

/// Assigns a new cache at every step, so the model cannot make the promise of [`Recordable`].
pub struct ReassignedCache;

impl Change for ReassignedCache {
    fn step<C: Clone>(&self, cache: &mut C, step: impl FnOnce(&mut C) -> Tensor<2>) -> Tensor<2> {
        let mut other = cache.clone();
        let logits = step(&mut other);
        *cache = other;
        logits
    }
}

/// A [`RandomLm`] with a change, such as a function for its logits.
pub struct Altered<A> {
    model: RandomLm,
    positions: Option<usize>,
    change: A,
}

impl<F: Fn(Call, Tensor<2>) -> Tensor<2>> Altered<F> {
    pub fn new(model: RandomLm, logits: F) -> Self {
        Self::with_change(model, logits)
    }
}

impl<A: Change> Altered<A> {
    pub fn with_change(model: RandomLm, change: A) -> Self {
        Self { model, positions: None, change }
    }

    /// Limits the positions of the model.
    pub fn with_positions(self, positions: usize) -> Self {
        Self { positions: Some(positions), ..self }
    }
}

// SAFETY: The random model makes the promise. The function gets logits and prompts, and no tensor
// of a cache.
#[allow(unsafe_code)]
unsafe impl<F: Fn(Call, Tensor<2>) -> Tensor<2>> Recordable for Altered<F> {}

impl<A: Change> CausalLm for Altered<A> {
    type Cache = <RandomLm as CausalLm>::Cache;

    fn device(&self) -> Device {
        self.model.device()
    }

    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn max_positions(&self) -> Option<usize> {
        self.positions
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        capacity: usize,
    ) -> (Tensor<2>, Self::Cache) {
        let (logits, cache) = self.model.prefill(tokens, padding, capacity);
        (self.change.logits(Call::Prefill, logits), cache)
    }

    fn step(&self, tokens: Tensor<1, Int>, cache: &mut Self::Cache) -> Tensor<2> {
        let logits = self.change.step(cache, |cache| self.model.step(tokens, cache));
        self.change.logits(Call::Step, logits)
    }
}

impl<A: Change> ContinuousLm for Altered<A> {
    type RowsCache = <RandomLm as ContinuousLm>::RowsCache;

    fn rows_cache(&self, rows: usize, capacity: usize) -> Self::RowsCache {
        self.model.rows_cache(rows, capacity)
    }

    fn begin(&self, row: usize, prompt: Tensor<2, Int>, cache: &mut Self::RowsCache) -> Tensor<2> {
        let logits = self.model.begin(row, prompt.clone(), cache);
        self.change.logits(Call::Begin(prompt), logits)
    }

    fn reads_in_chunks(&self) -> bool {
        A::EXTENDS
    }

    fn extend(
        &self,
        row: usize,
        at: usize,
        tokens: Tensor<2, Int>,
        cache: &mut Self::RowsCache,
    ) -> Tensor<2> {
        assert!(A::EXTENDS, "row {row} at {at}: this model reads prompts whole");
        let logits = self.model.extend(row, at, tokens.clone(), cache);
        self.change.logits(Call::Extend(tokens), logits)
    }

    fn copies_prefixes(&self) -> bool {
        A::EXTENDS
    }

    fn copy_prefix(&self, from: usize, to: usize, length: usize, cache: &mut Self::RowsCache) {
        assert!(A::EXTENDS, "{length} tokens of row {from} for row {to}: this model copies none");
        self.model.copy_prefix(from, to, length, cache);
    }

    fn step_rows(&self, tokens: Tensor<1, Int>, cache: &mut Self::RowsCache) -> Tensor<2> {
        let logits = self.change.step(cache, |cache| self.model.step_rows(tokens, cache));
        self.change.logits(Call::StepRows, logits)
    }
}
