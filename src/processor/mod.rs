//! Logits processors: what stands between a model's logits and the sampler.
//!
//! A processor is two functions, after Bumblebee's behaviour of the same name: [`init`](LogitsProcessor::init)
//! makes all of its state before the loop, in its final shapes, and [`process`](LogitsProcessor::process)
//! takes the state and the logits of a step and returns both. Nothing is read from the device in between, so
//! a chain of processors can run inside a static graph.
//!
//! # Laws
//! - the shape and the dtype of the logits are kept;
//! - a batch is its rows, stacked: what happens to one row does not depend on the others;
//! - a chain of processors is a processor, [`None`] is the processor that does nothing;
//! - masking is by selection: a masked logit is −∞ whatever it was, an unmasked one keeps its bits.
//!
//! Put [`DfaProcessor`] first in a chain: the processors that mask ([`MinNewTokens`], [`Suppress`]) leave a
//! token alone where nothing else would be left, and so never undo its guarantee.

mod chain;
mod dfa;
mod logit_bias;
mod min_new_tokens;
mod min_p;
mod output_penalties;
mod repetition;
mod slots;
mod suppress;
mod temperature;
mod top_k;
mod top_p;
mod tree;

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};

use crate::sampling::Sampler;

pub use crate::persistent::{Constant, Kept, Persistent, RowState};
pub use crate::tensor::Position;
pub use chain::Chain;
pub use dfa::DfaProcessor;
pub use logit_bias::LogitBias;
pub use min_new_tokens::MinNewTokens;
pub use min_p::MinP;
pub use output_penalties::OutputPenalties;
pub use repetition::{RepetitionPenalty, Seen};
pub use suppress::Suppress;
pub use temperature::Temperature;
pub use top_k::TopK;
pub use top_p::TopP;
pub use tree::DraftTree;

/// What is known before the first step.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_dfa::processor::InitContext;
///
/// let device = Device::flex();
/// let context = InitContext {
///     prompt: Tensor::<2, Int>::from_ints([[0, 2], [1, 1]], &device), // the first row has one padded position
///     padding: Tensor::from_ints([1, 0], &device),
///     width: 3,
/// };
/// assert_eq!(context.batch(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct InitContext {
    /// The prompts, `[batch, length]`, left padded.
    pub prompt: Tensor<2, Int>,
    /// Padded positions of each row, `[batch]`.
    pub padding: Tensor<1, Int>,
    /// Width of a row of logits.
    pub width: usize,
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

/// What is known at a step, on the device.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_dfa::processor::StepContext;
///
/// let device = Device::flex();
/// // The first step of two rows of three logits: there is no token yet, which the number of logits stands for.
/// let first = StepContext { tokens: Tensor::from_ints([3, 3], &device), step: Tensor::from_ints([0], &device) };
/// assert_eq!(first.tokens.dims(), [2]);
/// ```
#[derive(Clone, Debug)]
pub struct StepContext {
    /// The tokens of the step before, `[batch]`; the width of the logits where there was none.
    pub tokens: Tensor<1, Int>,
    /// The number of tokens generated so far: `[1]`, or `[batch]` where rows began at different times.
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
    type State: Persistent;

    /// Makes the state before the first step.
    fn init(&self, context: &InitContext) -> Self::State;

    /// Transforms the logits of one step.
    ///
    /// # Shapes
    /// - `logits`: `[batch, width]`, kept, as is the dtype
    fn process(
        &self,
        state: Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State);

    /// Processes the logits of one step and samples, in place: the state moves on and `context.tokens`
    /// becomes the new tokens, both in the buffers that hold them. `context.step` stays.
    ///
    /// A processor that can sample in its own pass over the logits does so; the results are the same.
    ///
    /// # Shapes
    /// - `logits`: `[batch, width]`
    fn choose(
        &self,
        state: &mut Self::State,
        context: &mut StepContext,
        logits: Tensor<2>,
        sampler: &dyn Sampler,
    ) {
        process_and_sample(self, state, context, logits, sampler);
    }

    /// Whether it leaves all logits as they are, so that a chain may pass it by.
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

/// [`LogitsProcessor::choose`] in two passes over the logits.
fn process_and_sample<P: LogitsProcessor + ?Sized>(
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

/// A number for each row, or one for all of them, `[1]` or `[batch]`, `f32`.
fn of_rows(values: &[f32], context: &InitContext) -> Kept<Tensor<1>> {
    Kept::new(Tensor::from_data(TensorData::from(values), (&context.device(), DType::F32)))
}

/// The same as a column of the type of `logits`.
fn column(values: &Kept<Tensor<1>>, logits: &Tensor<2>) -> Tensor<2> {
    values.get().clone().cast(logits.dtype()).reshape([-1, 1])
}

/// Masks `logits` where `mask` is true, but for rows of which nothing would be left.
///
/// # Shapes
/// - `logits`, `mask`: `[batch, width]`
fn mask_unless_last(logits: Tensor<2>, mask: Tensor<2, Bool>) -> Tensor<2> {
    let [batch, width] = logits.dims();
    let masked = logits.clone().mask_fill(mask, f32::NEG_INFINITY);
    // NaN is a value that may be sampled, so "nothing left" is "all equal to −∞".
    let empty = masked.clone().equal_elem(f32::NEG_INFINITY).all_dim(1).expand([batch, width]);
    masked.mask_where(empty, logits)
}
