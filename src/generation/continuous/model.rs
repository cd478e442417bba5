//! The trait of a model for continuous batching.

use burn::tensor::{Int, Tensor};

use crate::generation::model::CausalLm;

/// A causal language model whose rows begin independently, each at its own position, while the
/// other rows continue.
///
/// As in [`CausalLm`], a step has constant shapes and reads nothing from the device. A recorded
/// step uploads nothing either, and its model promises to write all changes into the existing
/// buffers, see [`Recordable`](crate::generation::Recordable).
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Request, ContinuousLm, ContinuousBatch};
/// use burn_dfa::{
///     Capacity, CompiledConstraint, Constraint, Limits, TensorOptions, TokenId, Vocabulary,
/// };
///
/// /// Always says the token after the last one, up to the end: there is nothing to remember. The
/// /// field is the identity matrix.
/// struct Counting(Tensor<2>);
///
/// impl CausalLm for Counting {
///     type Cache = ();
///     fn device(&self) -> Device {
///         self.0.device()
///     }
///     fn vocab_size(&self) -> usize {
///         3
///     }
///     fn prefill(&self, tokens: Tensor<2, Int>, _: Tensor<1, Int>, _: usize) -> (Tensor<2>, ()) {
///         let [batch, length] = tokens.dims();
///         (self.step(tokens.slice([0..batch, length - 1..length]).reshape([batch]), &mut ()), ())
///     }
///     fn step(&self, tokens: Tensor<1, Int>, (): &mut ()) -> Tensor<2> {
///         self.0.clone().select(0, (tokens + 1).clamp_max(2))
///     }
/// }
///
/// impl ContinuousLm for Counting {
///     type RowsCache = ();
///     fn rows_cache(&self, _rows: usize, _capacity: usize) {}
///     fn begin(&self, _row: usize, prompt: Tensor<2, Int>, (): &mut ()) -> Tensor<2> {
///         self.prefill(prompt.clone(), Tensor::zeros([1], &self.device()), 0).0
///     }
///     fn step_rows(&self, tokens: Tensor<1, Int>, (): &mut ()) -> Tensor<2> {
///         self.step(tokens, &mut ())
///     }
/// }
///
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let compiled =
///     CompiledConstraint::compile(&Constraint::regex("bbb|a")?, &vocabulary, &Limits::default())?;
/// let capacity = Capacity::new().with_constraints(2).with_states(64).with_classes(8);
/// let tensors = TensorOptions { capacity, ..TensorOptions::default() };
/// let config = GenerationConfig::new().with_tensors(tensors);
///
/// let model = Counting(Tensor::eye(3, &Device::flex()));
/// let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 16, &config)?;
/// batch.admit(0, &Request::new(vec![TokenId(0)], 8).with_constraint(&compiled))?;
/// batch.step(2, |_| ())?;
/// // While row 0 goes on.
/// batch.admit(1, &Request::new(vec![TokenId(1)], 8).with_constraint(&compiled))?;
/// batch.step(4, |_| ())?;
/// assert_eq!(batch.finished().collect::<Vec<_>>(), [0, 1]);
/// assert_eq!(batch.release(0)?.text(), "bbb");
/// assert_eq!(batch.release(1)?.text(), "a");
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub trait ContinuousLm: CausalLm {
    /// Keys, values and positions of rows with individual lengths, of a fixed capacity.
    type RowsCache;

    /// A cache of `rows` idle rows of `capacity` tokens each.
    fn rows_cache(&self, rows: usize, capacity: usize) -> Self::RowsCache;

    /// Begins a row with a prompt, in the buffers of the cache, and discards the old content of the
    /// row. The other rows do not change. Returns the logits after the prompt.
    ///
    /// # Shapes
    /// - `prompt`: `[1, length]`, of at most `capacity` tokens
    /// - returns logits `[1, vocab_size]`
    fn begin(&self, row: usize, prompt: Tensor<2, Int>, cache: &mut Self::RowsCache) -> Tensor<2>;

    /// Begins several rows, given as pairs of row and prompt, `[1, length]`; returns the logits
    /// after each prompt, `[1, vocab_size]`.
    ///
    /// By default the rows begin one after the other. A model may read the prompts in one pass.
    fn begin_all(
        &self,
        prompts: Vec<(usize, Tensor<2, Int>)>,
        cache: &mut Self::RowsCache,
    ) -> Vec<Tensor<2>> {
        prompts.into_iter().map(|(row, prompt)| self.begin(row, prompt, cache)).collect()
    }

    /// Whether prompts can be read in chunks, by [`extend`](Self::extend). Default: no.
    fn reads_in_chunks(&self) -> bool {
        false
    }

    /// Continues the prompt of a row: `tokens` overwrite the positions from `at` on. Returns the
    /// logits after `tokens`.
    ///
    /// [`step_rows`](Self::step_rows) feeds a row with an incomplete prompt like an idle row. So
    /// the tokens before `at` come from earlier chunks, and tokens written by steps at or after
    /// `at` have no meaning.
    ///
    /// # Shapes
    /// - `tokens`: `[1, length]`, with `at + length` at most `capacity`
    /// - returns logits `[1, vocab_size]`
    ///
    /// # Panics
    /// By default, because [`reads_in_chunks`](Self::reads_in_chunks) is false.
    fn extend(
        &self,
        row: usize,
        at: usize,
        tokens: Tensor<2, Int>,
        cache: &mut Self::RowsCache,
    ) -> Tensor<2> {
        let _ = (tokens, cache);
        panic!("row {row} at {at}: this model reads prompts whole");
    }

    /// Whether a row can begin with tokens read in another row, by
    /// [`copy_prefix`](Self::copy_prefix). Default: no.
    fn copies_prefixes(&self) -> bool {
        false
    }

    /// Begins row `to` with the first `length` tokens of row `from`; [`extend`](Self::extend)
    /// continues after these tokens. If both are the same row, it keeps only these tokens.
    ///
    /// The tokens are the prompt of `from`, followed by tokens fed by
    /// [`step_rows`](Self::step_rows). The row `from` may be idle by now, and may hold further
    /// tokens after the first `length`.
    ///
    /// # Panics
    /// By default, because [`copies_prefixes`](Self::copies_prefixes) is false.
    fn copy_prefix(&self, from: usize, to: usize, length: usize, cache: &mut Self::RowsCache) {
        let _ = cache;
        panic!("{length} tokens of row {from} for row {to}: this model copies none");
    }

    /// Feeds one token to every row, each at its own position, and returns the next logits.
    ///
    /// Idle and ended rows are fed as well. Past its capacity, a row writes only its last position.
    ///
    /// # Shapes
    /// - `tokens`: `[rows]`
    /// - returns logits `[rows, vocab_size]`
    fn step_rows(&self, tokens: Tensor<1, Int>, cache: &mut Self::RowsCache) -> Tensor<2>;
}
