//! The trait of a language model: a prefill and one decode step of constant shape.

use burn::tensor::{Device, Int, Tensor};

/// A causal language model that decodes at positions held on the device.
///
/// A batch is *left padded*: row `b` of the prompt starts with `padding[b]` positions that carry no
/// token, so every row ends at the same slot and one slot number serves the whole batch. The padded
/// positions must not be attended to, and the first real token of a row has position 0.
///
/// [`step`](CausalLm::step) must have constant shapes and must not read from the device, so it can
/// run in a static loop: it updates the tensors of positions, slot and cache itself. A
/// [`DecodeGraph`](super::DecodeGraph) can record a step if it also uploads nothing, and the model
/// promises to stay in the buffers of its cache ([`Recordable`]).
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::generation::{CausalLm, GenerationConfig, Request, generate};
/// use burn_dfa::{Constraint, Limits, TokenId, CompiledConstraint, Vocabulary};
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
/// let vocabulary = Vocabulary::from_bytes([Some("a"), Some("b"), None])?.with_eos([TokenId(2)])?;
/// let compiled = CompiledConstraint::compile(
///     &Constraint::regex("[ab]{2}")?,
///     &vocabulary,
///     &Limits::default(),
/// )?;
/// let requests = [Request::new(vec![TokenId(0)], 8).with_constraint(&compiled)];
/// let model = Counting(Tensor::eye(3, &Device::flex()));
/// let outputs = generate(&model, &vocabulary, &requests, &GenerationConfig::new())?;
/// // The constraint wants two letters, the model would end after one.
/// assert_eq!(outputs[0].text(), "ba");
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub trait CausalLm {
    /// Keys, values and positions of a batch, of a fixed capacity.
    type Cache;

    /// The device of the weights.
    fn device(&self) -> Device;

    /// Width of a row of logits. It may exceed the tokenizer's vocabulary (padded rows).
    fn vocab_size(&self) -> usize;

    /// The maximum number of positions (prompt and output together), if the model has one.
    fn max_positions(&self) -> Option<usize> {
        None
    }

    /// Reads the prompts and returns the logits after their last token with the filled cache.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, length]`, `i32`, left padded with any valid token id
    /// - `padding`: `[batch]`, `i32`, the number of padded positions of each row, each less than
    ///   `length`
    /// - returns logits `[batch, vocab_size]`
    ///
    /// `capacity` is the number of slots of the cache, at least `length`; the caller takes no more
    /// than `capacity - length` steps.
    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        capacity: usize,
    ) -> (Tensor<2>, Self::Cache);

    /// Feeds one token per row, advances the cache by one slot, and returns the next logits.
    ///
    /// # Shapes
    /// - `tokens`: `[batch]`, `i32`
    /// - returns logits `[batch, vocab_size]`
    fn step(&self, tokens: Tensor<1, Int>, cache: &mut Self::Cache) -> Tensor<2>;
}

/// The promise of a model, a drafter, a logits processor or a sampler to write to the same buffers
/// at each step, so a step can be recorded.
///
/// A replay uses the buffers of the recorded step. The device does not check whether these buffers
/// still exist, or whether the cache still uses them. Therefore
/// [`DecodeGraph::record`](super::DecodeGraph::record),
/// [`ContinuousBatch::record`](super::ContinuousBatch::record) and
/// [`speculate_recorded`](super::speculative::speculate_recorded) require this promise. Loops that
/// record nothing take any model, drafter, processor and sampler. The drafters of this library, the
/// processors of [`SamplingOptions`](super::SamplingOptions), [`Greedy`](crate::sampling::Greedy)
/// and [`GumbelMax`](crate::sampling::GumbelMax) make the promise. A
/// [`Chain`](crate::processor::Chain) and an [`Option`] make it if their processors do.
///
/// # Safety
/// The promise covers every implementation of [`CausalLm`], [`ContinuousLm`](super::ContinuousLm),
/// [`TreeLm`](super::speculative::TreeLm), [`Transformer`](super::Transformer),
/// [`Drafter`](super::speculative::Drafter), [`LogitsProcessor`](crate::processor::LogitsProcessor)
/// and [`Sampler`](crate::sampling::Sampler) for the type, its `Box` and its `&mut`. A *step* is a
/// call of `CausalLm::step`, `ContinuousLm::step_rows`, `Transformer::forward_cached`,
/// `Transformer::head`, `Drafter::draft`, `LogitsProcessor::process`, `RowState::mask_rows` of the
/// state of a processor, `Sampler::sample`, or a method of `TreeLm` that takes a cache. A *cache*
/// is the cache of the model, the state of a processor, or all tensors that a drafter holds after
/// `Drafter::start`.
///
/// - **In place.** Every method that takes a cache by reference writes to the existing buffers of
///   the cache's tensors. It neither replaces nor drops a tensor of the cache. This rule includes
///   the methods between two steps,
///   [`InPlaceState::assign`](crate::processor::InPlaceState::assign) and
///   [`RowState::assign_row`](crate::processor::RowState::assign_row) of the cache.
///   [`in_place`](crate::processor::in_place) follows the rule with an operation such as
///   `slice_assign`, if the tensor has no clone.
/// - **No other handle.** A new cache shares no buffer with another tensor. After a call, no handle
///   of a buffer of the cache or of an argument remains: not in the value, not in the result, not
///   in another thread. A drafter may keep the tensors of its
///   [`DrafterContext`](super::speculative::DrafterContext).
/// - **New states.** `LogitsProcessor::process` returns a state of new tensors. It may return a
///   tensor of the old state only within a [`RowParam`](crate::processor::RowParam) or a
///   [`Constant`](crate::processor::Constant), because a tensor that is assigned to itself moves to
///   another buffer. `RowState::mask_rows` may return tensors of the two states that it takes.
/// - **Constant weights.** All other tensors that a step reads belong to the value. Nobody writes,
///   replaces or drops them while the value is borrowed.
/// - **One stream.** Each method issues its work on the thread and the stream of its caller.
///
/// A method may panic. After a panic the library replays nothing.
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use burn_dfa::generation::{CausalLm, DecodeGraph, GenerationConfig, Recordable, Request};
/// use burn_dfa::processor::InPlaceState;
/// use burn_dfa::{TokenId, Vocabulary};
///
/// /// Says how many tokens it has read. The field is the identity matrix.
/// struct Counting(Tensor<2>);
///
/// impl CausalLm for Counting {
///     type Cache = Tensor<1, Int>;
///     fn device(&self) -> Device {
///         self.0.device()
///     }
///     fn vocab_size(&self) -> usize {
///         self.0.dims()[0]
///     }
///     fn prefill(
///         &self,
///         tokens: Tensor<2, Int>,
///         _: Tensor<1, Int>,
///         _: usize,
///     ) -> (Tensor<2>, Self::Cache) {
///         let [batch, length] = tokens.dims();
///         let read = Tensor::<1, Int>::full([batch], length as i32, (&self.device(), DType::I32));
///         (self.0.clone().select(0, read.clone()), read)
///     }
///     fn step(&self, _: Tensor<1, Int>, read: &mut Self::Cache) -> Tensor<2> {
///         read.assign(read.clone() + 1);
///         self.0.clone().select(0, read.clone())
///     }
/// }
///
/// // SAFETY: `assign` writes in place, the logits are a new tensor, and the model keeps no tensor.
/// unsafe impl Recordable for Counting {}
///
/// let vocabulary = Vocabulary::from_chars("012345678".chars())?.with_eos([TokenId(8)])?;
/// let requests = [Request::new(vec![TokenId(0)], 8)];
/// let model = Counting(Tensor::eye(9, &Device::flex()));
/// let mut graph =
///     DecodeGraph::record(&model, &vocabulary, &requests, &GenerationConfig::new(), 16)?;
/// let outputs = graph.generate(&requests)?;
/// assert_eq!(outputs[0].text(), "1234567");
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[allow(unsafe_code)]
pub unsafe trait Recordable {}
