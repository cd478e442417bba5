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

/// A [`RandomLm`] whose logits pass through a function, which gets no tensor of a cache.
pub struct Altered<F> {
    model: RandomLm,
    positions: Option<usize>,
    alter: F,
}

impl<F: Fn(Call, Tensor<2>) -> Tensor<2>> Altered<F> {
    pub fn new(model: RandomLm, alter: F) -> Self {
        Self { model, positions: None, alter }
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

impl<F: Fn(Call, Tensor<2>) -> Tensor<2>> CausalLm for Altered<F> {
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
        ((self.alter)(Call::Prefill, logits), cache)
    }

    fn step(&self, tokens: Tensor<1, Int>, cache: &mut Self::Cache) -> Tensor<2> {
        (self.alter)(Call::Step, self.model.step(tokens, cache))
    }
}

impl<F: Fn(Call, Tensor<2>) -> Tensor<2>> ContinuousLm for Altered<F> {
    type SlotCache = <RandomLm as ContinuousLm>::SlotCache;

    fn slots(&self, rows: usize, capacity: usize) -> Self::SlotCache {
        self.model.slots(rows, capacity)
    }

    fn begin(&self, row: usize, prompt: Tensor<2, Int>, cache: &mut Self::SlotCache) -> Tensor<2> {
        let logits = self.model.begin(row, prompt.clone(), cache);
        (self.alter)(Call::Begin(prompt), logits)
    }

    fn reads_in_pieces(&self) -> bool {
        self.model.reads_in_pieces()
    }

    fn extend(
        &self,
        row: usize,
        at: usize,
        tokens: Tensor<2, Int>,
        cache: &mut Self::SlotCache,
    ) -> Tensor<2> {
        let logits = self.model.extend(row, at, tokens.clone(), cache);
        (self.alter)(Call::Extend(tokens), logits)
    }

    fn copies_prefixes(&self) -> bool {
        self.model.copies_prefixes()
    }

    fn copy_prefix(&self, from: usize, to: usize, length: usize, cache: &mut Self::SlotCache) {
        self.model.copy_prefix(from, to, length, cache);
    }

    fn step_rows(&self, tokens: Tensor<1, Int>, cache: &mut Self::SlotCache) -> Tensor<2> {
        (self.alter)(Call::StepRows, self.model.step_rows(tokens, cache))
    }
}
