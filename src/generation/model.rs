//! What a language model must offer: a prefill and one decode step of constant shape.

use burn::tensor::{Device, Int, Tensor};

/// A causal language model that decodes at positions held on the device.
///
/// A batch is *left padded*: row `b` of the prompt starts with `padding[b]` positions that carry no
/// token, so every row ends at the same slot and one slot number serves the whole batch. The padded
/// positions must not be attended to, and the first real token of a row has position 0.
///
/// [`step`](CausalLm::step) must have constant shapes and must not read from the device, so that it can
/// run in a static loop: positions, the slot and the cache are tensors that it updates itself. Where it also
/// uploads nothing and writes the cache into the buffers that it found it in (with [`Tensor::inplace`], of which no
/// clone is alive), a [`DecodeGraph`](super::DecodeGraph) can record it.
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Request, stream};
/// use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
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
/// let vocabulary = Vocabulary::from_bytes([Some("a"), Some("b"), None])?.with_eos([TokenId(2)])?;
/// let table = TokenTable::compile(&Constraint::regex("[ab]{2}")?, &vocabulary, &Limits::default())?;
/// let requests = [Request::new(vec![TokenId(0)], 8).with_table(&table)];
/// let model = Counting(Device::flex());
/// let outputs = stream(&model, &vocabulary, &requests, &GenerationConfig::new())?.finish()?;
/// assert_eq!(outputs[0].text(), "ba"); // the constraint wants two letters, the model would end after one
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub trait CausalLm {
    /// Keys, values and positions of a batch, of a fixed capacity.
    type Cache;

    /// The device that the weights live on.
    fn device(&self) -> Device;

    /// Width of a row of logits. It may exceed the tokenizer's vocabulary (padded rows).
    fn vocab_size(&self) -> usize;

    /// The greatest number of positions (prompt and output together), where the model has one.
    fn max_positions(&self) -> Option<usize> {
        None
    }

    /// Reads the prompts and returns the logits after their last token with the filled cache.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, length]`, left padded with any valid token id
    /// - `padding`: `[batch]`, the number of padded positions of each row, each less than `length`
    /// - returns logits `[batch, vocab_size]`
    ///
    /// `capacity` is the number of slots of the cache, at least `length`; the caller takes no more than
    /// `capacity - length` steps.
    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        capacity: usize,
    ) -> (Tensor<2>, Self::Cache);

    /// Feeds one token per row, advances the cache by one slot, and returns the next logits.
    ///
    /// # Shapes
    /// - `tokens`: `[batch]`
    /// - returns logits `[batch, vocab_size]`
    fn step(&self, tokens: Tensor<1, Int>, cache: &mut Self::Cache) -> Tensor<2>;
}
