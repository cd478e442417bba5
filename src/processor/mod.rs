//! Logits processors: functions between a model's logits and the sampler.
//!
//! A processor is two functions, modeled on Bumblebee's behavior of the same name:
//! [`init`](LogitsProcessor::init) makes all of its state before the loop, in its final shapes, and
//! [`process`](LogitsProcessor::process) takes the state and the logits of a step and returns both.
//! It reads nothing from the device, so a chain of processors can run inside a static graph.
//!
//! # Laws
//! - the shape and the dtype of the logits are kept;
//! - the result of a row does not depend on the other rows of the batch;
//! - the state keeps its shapes and dtypes, after prompts of any length;
//! - a chain of processors is a processor, [`None`] is the processor that does nothing;
//! - masking is by selection: a masked logit becomes −∞ regardless of its value, an unmasked logit
//!   keeps its bits.
//!
//! In a loop of your own, chain your own processors first, then [`ConstraintProcessor`], then the
//! built-in processors. Nothing masks again after the chain, so a processor of your own before the
//! constraint cannot allow an illegal token. The built-in processors keep the guarantee: masked
//! tokens stay masked, and [`MinNewTokens`] and [`SuppressTokens`] never mask the last remaining
//! tokens.

mod chain;
mod constraint;
mod continuous;
mod frequency_presence;
pub(crate) mod laws;
mod logit_bias;
mod min_new_tokens;
mod min_p;
mod repetition;
mod suppress;
mod temperature;
mod top_k;
mod top_p;
mod tree;

use burn::tensor::kind::Basic;
use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData, f16};

use crate::sampling::Sampler;
use burn_dfa_tokens::Result;

pub use crate::in_place::{Constant, InPlaceState, RowParam, RowState, in_place};
pub use crate::tensor::Position;
pub use chain::Chain;
pub use constraint::ConstraintProcessor;
pub use frequency_presence::FrequencyPresencePenalty;
pub use laws::check_laws;
pub use logit_bias::LogitBias;
pub use min_new_tokens::MinNewTokens;
pub use min_p::MinP;
pub use repetition::{RepetitionPenalty, TokenCounts};
pub use suppress::SuppressTokens;
pub use temperature::Temperature;
pub use top_k::TopK;
pub use top_p::TopP;
pub use tree::DraftTree;

/// The input of [`LogitsProcessor::init`].
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::processor::InitContext;
///
/// let device = Device::flex();
/// let context = InitContext {
///     // The first row has one padded position.
///     prompt: Tensor::<2, Int>::from_ints([[0, 2], [1, 1]], &device),
///     padding: Tensor::from_ints([1, 0], &device),
///     vocab_size: 3,
/// };
/// assert_eq!(context.batch(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct InitContext {
    /// The prompts, `[batch, length]`, `i32`, left padded.
    pub prompt: Tensor<2, Int>,
    /// Padded positions of each row, `[batch]`, `i32`.
    pub padding: Tensor<1, Int>,
    /// Width of a row of logits.
    pub vocab_size: usize,
}

impl InitContext {
    /// Number of rows.
    pub fn batch(&self) -> usize {
        self.prompt.dims()[0]
    }

    /// The device of the batch.
    pub fn device(&self) -> Device {
        self.prompt.device()
    }
}

/// The context of a step, on the device.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_dfa::processor::StepContext;
///
/// let device = Device::flex();
/// // The first step of two rows of three logits: there is no token yet, which the number of
/// // logits stands for.
/// let first = StepContext {
///     tokens: Tensor::from_ints([3, 3], &device),
///     step: Tensor::from_ints([0], &device),
/// };
/// assert_eq!(first.tokens.dims(), [2]);
/// ```
#[derive(Clone, Debug)]
pub struct StepContext {
    /// The tokens of the previous step, `[batch]`, `i32`; the `vocab_size` of the logits if there
    /// was none.
    pub tokens: Tensor<1, Int>,
    /// The number of tokens generated so far, `i32`: `[1]`, or `[batch]` if rows began at different
    /// times.
    pub step: Tensor<1, Int>,
}

/// A stateful function over logits; see the [module](self) for the laws.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_dfa::processor::{InitContext, LogitsProcessor, StepContext};
///
/// /// Adds a bias to every logit.
/// struct Bias(f32);
///
/// impl LogitsProcessor for Bias {
///     type State = ();
///     fn init(&self, _: &InitContext) {}
///     fn process(&self, _: (), logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
///         (logits + self.0, ())
///     }
/// }
/// ```
pub trait LogitsProcessor {
    /// Tensors of a fixed shape.
    type State: InPlaceState;

    /// Makes the state before the first step.
    fn init(&self, context: &InitContext) -> Self::State;

    /// Transforms the logits of one step.
    ///
    /// # Shapes
    /// - `logits`: `[batch, vocab_size]`; the result has the same shape and dtype
    fn process(
        &self,
        state: Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State);

    /// Processes the logits of one step and samples: writes the next state and the new
    /// `context.tokens` in place. `context.step` does not change.
    ///
    /// A processor may sample in its own pass over the logits, with the same results.
    ///
    /// # Shapes
    /// - `logits`: `[batch, vocab_size]`
    fn sample_step(
        &self,
        state: &mut Self::State,
        context: &mut StepContext,
        logits: Tensor<2>,
        sampler: &dyn Sampler,
    ) {
        process_and_sample(self, state, context, logits, sampler);
    }

    /// Checks whether it can process logits of a shape, `[batch, vocab_size]`. By default, any
    /// shape.
    ///
    /// A processor that holds data of fixed rows, such as [`ConstraintProcessor`], refuses other
    /// shapes. The loops of [`generation`](crate::generation) check the shape of a batch before its
    /// first step. In a continuous batch, rows begin one at a time, so its processors must accept
    /// one row as well.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if it cannot process the shape;
    /// [`ErrorKind::IncompatibleVocabulary`](crate::ErrorKind::IncompatibleVocabulary) if the reason
    /// is `vocab_size` alone, so that the error of a loop names the remedy for it.
    fn check_shape(&self, shape: [usize; 2]) -> Result<()> {
        let _ = shape;
        Ok(())
    }

    /// Whether it never changes logits, so a chain may skip it.
    fn is_identity(&self) -> bool {
        false
    }

    /// This processor, then `next`.
    fn then<P: LogitsProcessor>(self, next: P) -> Chain<Self, P>
    where
        Self: Sized,
    {
        Chain::new(self, next)
    }
}

/// [`LogitsProcessor::sample_step`] in two passes over the logits.
pub(crate) fn process_and_sample<P: LogitsProcessor + ?Sized>(
    processor: &P,
    state: &mut P::State,
    context: &mut StepContext,
    logits: Tensor<2>,
    sampler: &dyn Sampler,
) {
    let (logits, new) = processor.process(state.clone(), logits, context);
    state.assign(new);
    context.tokens.assign(sampler.sample(logits, &context.step));
}

/// A number for each row, `[batch]`, `f32`; a single number counts for all rows.
fn of_rows(values: &[f32], context: &InitContext) -> RowParam<Tensor<1>> {
    of_batch(Tensor::from_data(TensorData::from(values), (&context.device(), DType::F32)), context)
}

/// A parameter of each row, `[batch, …]`; a single row counts for all rows.
fn of_batch<const D: usize, K: Basic>(values: Tensor<D, K>, context: &InitContext) -> RowParam<Tensor<D, K>> {
    let rows = values.dims()[0];
    RowParam::new(if rows == context.batch() { values } else { values.repeat_dim(0, context.batch()) })
}

/// The values as a column, in the dtype of `logits`.
fn column(values: &RowParam<Tensor<1>>, logits: &Tensor<2>) -> Tensor<2> {
    values.get().clone().cast(logits.dtype()).reshape([-1, 1])
}

/// Masks `logits` where `mask` is true, except in rows that would become empty.
///
/// # Shapes
/// - `logits`, `mask`: `[batch, vocab_size]`
fn mask_unless_last(logits: Tensor<2>, mask: Tensor<2, Bool>) -> Tensor<2> {
    unless_empty(logits.clone().mask_fill(mask, f32::NEG_INFINITY), logits)
}

/// The logits after `change` without new infinities: a masked logit stays −∞, and every other one
/// is finite. Only `f16` has a range that biases, penalties and temperatures leave.
///
/// # Shapes
/// - `logits`, and the result of `change`: `[batch, vocab_size]`
fn in_range(logits: Tensor<2>, change: impl FnOnce(Tensor<2>) -> Tensor<2>) -> Tensor<2> {
    if logits.dtype() != DType::F16 {
        return change(logits);
    }
    let masked = logits.clone().equal_elem(f32::NEG_INFINITY);
    let max = f16::MAX.to_f32();
    change(logits).clamp(-max, max).mask_fill(masked, f32::NEG_INFINITY)
}

/// The rows of `masked`, or of `otherwise` where all logits of the row are masked.
///
/// # Shapes
/// - `masked`, `otherwise`: `[batch, vocab_size]`
pub(crate) fn unless_empty(masked: Tensor<2>, otherwise: Tensor<2>) -> Tensor<2> {
    // NaN may be sampled, so a row is empty only if all logits equal −∞. The maximum of NaN and
    // other logits is NaN.
    let empty = masked.clone().max_dim(1).equal_elem(f32::NEG_INFINITY).expand(masked.dims());
    masked.mask_where(empty, otherwise)
}
