//! What a model must offer so that its rows come and go.

use burn::tensor::{Int, Tensor};

use crate::generation::CausalLm;

/// A causal language model whose rows begin on their own, each at its own position, while the others go on.
///
/// As in [`CausalLm`], a step has constant shapes and reads nothing from the device; to be recorded, it uploads nothing
/// and writes all that it changes into the buffers that it found.
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Request, SlotLm, Slots};
/// use burn_dfa::{Capacity, Constraint, Limits, TensorOptions, TokenId, TokenTable, Vocabulary};
///
/// /// Always says the token after the last one, up to the end: there is nothing to remember.
/// struct Counting(Device);
///
/// impl CausalLm for Counting {
///     type Cache = ();
///     fn device(&self) -> Device {
///         self.0.clone()
///     }
///     fn vocab_size(&self) -> usize {
///         3
///     }
///     fn prefill(&self, tokens: Tensor<2, Int>, _: Tensor<1, Int>, _: usize) -> (Tensor<2>, ()) {
///         let [batch, length] = tokens.dims();
///         (self.step(tokens.slice([0..batch, length - 1..length]).reshape([batch]), &mut ()), ())
///     }
///     fn step(&self, tokens: Tensor<1, Int>, (): &mut ()) -> Tensor<2> {
///         (tokens.cast(DType::I32) + 1).clamp_max(2).one_hot::<2>(3).float()
///     }
/// }
///
/// impl SlotLm for Counting {
///     type SlotCache = ();
///     fn slots(&self, _rows: usize, _capacity: usize) {}
///     fn begin(&self, _row: usize, prompt: Tensor<2, Int>, (): &mut ()) -> Tensor<2> {
///         self.prefill(prompt.clone(), Tensor::zeros([1], &self.0), 0).0
///     }
///     fn step_rows(&self, tokens: Tensor<1, Int>, (): &mut ()) -> Tensor<2> {
///         self.step(tokens, &mut ())
///     }
/// }
///
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let table = TokenTable::compile(&Constraint::regex("bbb|a")?, &vocabulary, &Limits::default())?;
/// let capacity = Capacity::new().with_tables(2).with_states(64).with_classes(8);
/// let tensors = TensorOptions { capacity, ..TensorOptions::default() };
/// let config = GenerationConfig::new().with_tensors(tensors);
///
/// let model = Counting(Device::flex());
/// let mut slots = Slots::new(&model, &vocabulary, 2, 16, &config)?;
/// slots.admit(0, &Request::new(vec![TokenId(0)], 8).with_table(&table))?;
/// slots.step(2, |_| ())?;
/// slots.admit(1, &Request::new(vec![TokenId(1)], 8).with_table(&table))?; // while row 0 goes on
/// slots.step(4, |_| ())?;
/// assert_eq!(slots.finished().collect::<Vec<_>>(), [0, 1]);
/// assert_eq!(slots.release(0)?.text(), "bbb");
/// assert_eq!(slots.release(1)?.text(), "a");
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub trait SlotLm: CausalLm {
    /// Keys, values and positions of rows with lengths of their own, of a fixed capacity.
    type SlotCache;

    /// A cache of `rows` rows of `capacity` slots each, all of them idle.
    fn slots(&self, rows: usize, capacity: usize) -> Self::SlotCache;

    /// Begins a row anew with a prompt, in the buffers of the cache; whatever the row held is gone, the other rows
    /// stay as they are. Returns the logits after the prompt.
    ///
    /// # Shapes
    /// - `prompt`: `[1, length]`, of at most `capacity` tokens
    /// - returns logits `[1, vocab_size]`
    fn begin(&self, row: usize, prompt: Tensor<2, Int>, cache: &mut Self::SlotCache) -> Tensor<2>;

    /// Begins several rows, of each the row and its prompt, `[1, length]`; returns the logits after each, `[1, vocab_size]`.
    ///
    /// By default they begin one after the other. A model may read the prompts in one pass.
    fn begin_all(
        &self,
        prompts: Vec<(usize, Tensor<2, Int>)>,
        cache: &mut Self::SlotCache,
    ) -> Vec<Tensor<2>> {
        prompts.into_iter().map(|(row, prompt)| self.begin(row, prompt, cache)).collect()
    }

    /// Whether prompts can be read in pieces, by [`extend`](Self::extend). Default: no.
    fn reads_in_pieces(&self) -> bool {
        false
    }

    /// Continues the prompt of a row: `tokens` take the positions from `at` on, and whatever the row held there is gone. Returns
    /// the logits after them.
    ///
    /// A row whose prompt is not read to its end is fed by [`step_rows`](Self::step_rows) as an idle one is. So the tokens
    /// before `at` are those of the pieces, and what steps have written after them does not count.
    ///
    /// # Shapes
    /// - `tokens`: `[1, length]`; with those before, at most `capacity`
    /// - returns logits `[1, vocab_size]`
    ///
    /// # Panics
    /// By default, as [`reads_in_pieces`](Self::reads_in_pieces) says no.
    fn extend(
        &self,
        row: usize,
        at: usize,
        tokens: Tensor<2, Int>,
        cache: &mut Self::SlotCache,
    ) -> Tensor<2> {
        let _ = (tokens, cache);
        panic!("row {row} at {at}: this model reads prompts whole");
    }

    /// Whether a row can begin with what was read in another one, by [`copy_prefix`](Self::copy_prefix). Default: no.
    fn copies_prefixes(&self) -> bool {
        false
    }

    /// Begins row `to` anew with the first `length` tokens of row `from`; [`extend`](Self::extend) goes on behind them. The
    /// rows may be the same one, which then keeps these tokens and no others.
    ///
    /// The tokens are those of the prompt of `from`, and behind it those that [`step_rows`](Self::step_rows) has fed to it. The
    /// row may have become idle since, and have been fed other tokens behind them.
    ///
    /// # Panics
    /// By default, as [`copies_prefixes`](Self::copies_prefixes) says no.
    fn copy_prefix(&self, from: usize, to: usize, length: usize, cache: &mut Self::SlotCache) {
        let _ = cache;
        panic!("{length} tokens of row {from} for row {to}: this model copies none");
    }

    /// Feeds one token to every row, each at its own position, and returns the next logits.
    ///
    /// Rows that are idle or have ended are fed as well, for as long as they stay so: past its capacity, a row
    /// writes its last slot and no other place.
    ///
    /// # Shapes
    /// - `tokens`: `[rows]`
    /// - returns logits `[rows, vocab_size]`
    fn step_rows(&self, tokens: Tensor<1, Int>, cache: &mut Self::SlotCache) -> Tensor<2>;
}
