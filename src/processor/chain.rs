//! Composition of processors.

use burn::tensor::Tensor;

use super::{InPlaceState, InitContext, LogitsProcessor, StepContext};
use crate::sampling::Sampler;
use burn_dfa_tokens::Result;

/// Two processors, one after the other; made by [`LogitsProcessor::then`].
///
/// ```
/// use burn_dfa::processor::{LogitsProcessor, MinP, Temperature};
///
/// let chain = Temperature::new(0.7)?.then(Some(MinP::new(0.05)?));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Chain<A, B> {
    first: A,
    second: B,
}

impl<A, B> Chain<A, B> {
    pub(super) fn new(first: A, second: B) -> Self {
        Self { first, second }
    }

    pub(crate) fn first(&self) -> &A {
        &self.first
    }

    pub(crate) fn first_mut(&mut self) -> &mut A {
        &mut self.first
    }

    pub(crate) fn second(&self) -> &B {
        &self.second
    }

    pub(crate) fn second_mut(&mut self) -> &mut B {
        &mut self.second
    }
}

impl<A: LogitsProcessor, B: LogitsProcessor> Chain<A, B> {
    /// As [`sample_step`](LogitsProcessor::sample_step), but also returns the logits between the
    /// two processors.
    pub(crate) fn choose_observed(
        &self,
        (first, second): &mut (A::State, B::State),
        context: &mut StepContext,
        logits: Tensor<2>,
        sampler: &dyn Sampler,
    ) -> Tensor<2> {
        let (logits, new) = self.first.process(first.clone(), logits, context);
        first.assign(new);
        self.second.sample_step(second, context, logits.clone(), sampler);
        logits
    }
}

impl<A: LogitsProcessor, B: LogitsProcessor> LogitsProcessor for Chain<A, B> {
    type State = (A::State, B::State);

    fn init(&self, context: &InitContext) -> Self::State {
        (self.first.init(context), self.second.init(context))
    }

    fn process(
        &self,
        (first, second): Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let (logits, first) = self.first.process(first, logits, context);
        let (logits, second) = self.second.process(second, logits, context);
        (logits, (first, second))
    }

    fn sample_step(
        &self,
        (first, second): &mut Self::State,
        context: &mut StepContext,
        logits: Tensor<2>,
        sampler: &dyn Sampler,
    ) {
        if self.second.is_identity() {
            return self.first.sample_step(first, context, logits, sampler);
        }
        let (logits, new) = self.first.process(first.clone(), logits, context);
        first.assign(new);
        self.second.sample_step(second, context, logits, sampler);
    }

    fn check_shape(&self, shape: [usize; 2]) -> Result<()> {
        self.first.check_shape(shape)?;
        self.second.check_shape(shape)
    }

    fn is_identity(&self) -> bool {
        self.first.is_identity() && self.second.is_identity()
    }
}

impl<P: LogitsProcessor> LogitsProcessor for Option<P> {
    type State = Option<P::State>;

    fn init(&self, context: &InitContext) -> Self::State {
        self.as_ref().map(|processor| processor.init(context))
    }

    fn process(
        &self,
        state: Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        match (self, state) {
            (Some(processor), Some(state)) => {
                let (logits, state) = processor.process(state, logits, context);
                (logits, Some(state))
            }
            _ => (logits, None),
        }
    }

    fn check_shape(&self, shape: [usize; 2]) -> Result<()> {
        self.as_ref().map_or(Ok(()), |processor| processor.check_shape(shape))
    }

    fn is_identity(&self) -> bool {
        self.as_ref().is_none_or(P::is_identity)
    }
}
