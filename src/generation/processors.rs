//! Processors and samplers of an application, in the loop of a batch.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

use burn::tensor::{Bool, Int, Tensor};

use super::model::Recordable;
use crate::processor::{
    FrequencyPresencePenalty, InPlaceState, InitContext, LogitBias, LogitsProcessor, MinNewTokens, MinP,
    RepetitionPenalty, RowState, StepContext, SuppressTokens, Temperature, TopK, TopP, mask_or,
};
use crate::sampling::{Greedy, GumbelMax, Sampler};

/// The logits processors of an application. A batch applies them in order, after the constraint and
/// before the built-in options.
///
/// A token that the constraint masks stays masked, whatever a processor returns. If processors mask
/// all legal tokens of a row, the row takes the logits of the constraint instead. So an output fits
/// its constraint with any processors.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_dfa::generation::{GenerationConfig, Processors};
/// use burn_dfa::processor::{InitContext, LogitsProcessor, StepContext};
///
/// /// Prefers tokens with a small id.
/// struct Early;
///
/// impl LogitsProcessor for Early {
///     type State = ();
///     fn init(&self, _: &InitContext) {}
///     fn process(&self, _: (), logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
///         let [_, width] = logits.dims();
///         let ids = Tensor::arange(0..width as i64, &logits.device()).float().cast(logits.dtype());
///         (logits - ids.unsqueeze::<2>() * 0.01, ())
///     }
/// }
///
/// let config = GenerationConfig::new().with_processor(Early);
/// assert_eq!(config.processors.len(), 1);
/// assert!(Processors::new().is_empty());
/// ```
#[derive(Clone, Default)]
pub struct Processors(Vec<Named<dyn AnyProcessor>>);

/// A processor or a sampler, with the name of its type.
pub(super) struct Named<T: ?Sized> {
    value: Arc<T>,
    name: &'static str,
    is_recordable: bool,
}

impl<T: ?Sized> Clone for Named<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), ..*self }
    }
}

impl Processors {
    /// No processors.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a processor. A batch that records its step refuses it: see
    /// [`with_recordable`](Self::with_recordable).
    #[must_use]
    pub fn with<P>(self, processor: P) -> Self
    where
        P: LogitsProcessor<State: RowState + Send + 'static> + Send + Sync + 'static,
    {
        self.and(processor, false)
    }

    /// Appends a processor that a recorded step may run, by the promise of its type. The built-in
    /// processors make this promise.
    #[must_use]
    pub fn with_recordable<P>(self, processor: P) -> Self
    where
        P: LogitsProcessor<State: RowState + Send + 'static> + Recordable + Send + Sync + 'static,
    {
        self.and(processor, true)
    }

    fn and<P>(mut self, processor: P, is_recordable: bool) -> Self
    where
        P: LogitsProcessor<State: RowState + Send + 'static> + Send + Sync + 'static,
    {
        self.0.push(Named { value: Arc::new(processor), name: type_name::<P>(), is_recordable });
        self
    }

    /// The number of processors.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no processors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The type of the first processor that may not be recorded.
    pub(super) fn unrecordable(&self) -> Option<&'static str> {
        self.0.iter().find(|named| !named.is_recordable).map(|named| named.name)
    }
}

impl fmt::Debug for Processors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|named| named.name)).finish()
    }
}

/// The sampler of an application, for all rows of a batch.
///
/// ```
/// use burn_dfa::generation::{GenerationConfig, OwnSampler};
/// use burn_dfa::sampling::Greedy;
///
/// let sampler: Option<OwnSampler> = GenerationConfig::new().with_sampler(Greedy).sampler;
/// assert!(format!("{:?}", sampler.unwrap()).ends_with("Greedy"));
/// ```
#[derive(Clone)]
pub struct OwnSampler {
    sampler: Named<dyn Sampler + Send + Sync>,
    /// The row that it samples alone, and the number of rows of the batch; `None`: all rows.
    alone: Option<[usize; 2]>,
}

impl OwnSampler {
    pub(super) fn new<S: Sampler + Send + Sync + 'static>(sampler: S, is_recordable: bool) -> Self {
        Self {
            sampler: Named { value: Arc::new(sampler), name: type_name::<S>(), is_recordable },
            alone: None,
        }
    }

    /// The type of the sampler, if it may not be recorded.
    pub(super) fn unrecordable(&self) -> Option<&'static str> {
        (!self.sampler.is_recordable).then_some(self.sampler.name)
    }

    /// The sampler of one row alone, in a batch of `batch` rows.
    pub(super) fn of_row(&self, row: usize, batch: usize) -> Self {
        Self { alone: Some([row, batch]), ..self.clone() }
    }
}

impl Sampler for OwnSampler {
    fn sample(&self, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int> {
        match self.alone {
            Some([row, batch]) => self.sample_row(row, batch, logits, step),
            None => self.sampler.value.sample(logits, step),
        }
    }

    fn sample_row(
        &self,
        row: usize,
        batch: usize,
        logits: Tensor<2>,
        step: &Tensor<1, Int>,
    ) -> Tensor<1, Int> {
        self.sampler.value.sample_row(row, batch, logits, step)
    }
}

impl fmt::Debug for OwnSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sampler.name)
    }
}

/// The promise of the built-in processors and samplers.
macro_rules! recordable {
    ($($built_in:ty),+) => {$(
        // SAFETY: a processor has no tensors. `init` makes new tensors, and `process` returns new ones
        // outside of `RowParam` and `Constant`. The tensors of a sampler never change. No call keeps a
        // tensor.
        #[allow(unsafe_code)]
        unsafe impl Recordable for $built_in {}
    )+};
}

recordable!(
    FrequencyPresencePenalty,
    LogitBias,
    MinNewTokens,
    MinP,
    RepetitionPenalty,
    SuppressTokens,
    Temperature,
    TopK,
    TopP
);
recordable!(Greedy, GumbelMax);

/// A processor with a state of any type.
trait AnyProcessor: Send + Sync {
    fn begin(&self, context: &InitContext) -> AnyState;
    fn apply(&self, state: AnyState, logits: Tensor<2>, context: &StepContext) -> (Tensor<2>, AnyState);
}

impl<P: LogitsProcessor<State: RowState + Send + 'static> + Send + Sync> AnyProcessor for P {
    fn begin(&self, context: &InitContext) -> AnyState {
        AnyState(Box::new(self.init(context)))
    }

    fn apply(&self, state: AnyState, logits: Tensor<2>, context: &StepContext) -> (Tensor<2>, AnyState) {
        let (logits, state) = self.process(own(state), logits, context);
        (logits, AnyState(Box::new(state)))
    }
}

/// The state of a processor.
struct AnyState(Box<dyn StateOfAnyType>);

/// The state as its own type. A state only meets states of the same processor.
fn own<S: 'static>(state: AnyState) -> S {
    *state.0.into_any().downcast().expect("a processor has one type of state")
}

trait StateOfAnyType: Send {
    fn duplicate(&self) -> AnyState;
    fn write(&mut self, new: AnyState);
    fn write_row(&mut self, row: usize, new: AnyState);
    fn masked(self: Box<Self>, mask: &Tensor<1, Bool>, other: AnyState) -> AnyState;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<S: RowState + Send + 'static> StateOfAnyType for S {
    fn duplicate(&self) -> AnyState {
        AnyState(Box::new(self.clone()))
    }

    fn write(&mut self, new: AnyState) {
        self.assign(own(new));
    }

    fn write_row(&mut self, row: usize, new: AnyState) {
        self.assign_row(row, own(new));
    }

    fn masked(self: Box<Self>, mask: &Tensor<1, Bool>, other: AnyState) -> AnyState {
        AnyState(Box::new(self.mask_rows(mask, own(other))))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Clone for AnyState {
    fn clone(&self) -> Self {
        self.0.duplicate()
    }
}

/// The states of all processors of a list.
#[derive(Clone)]
pub(super) struct States(Vec<AnyState>);

impl InPlaceState for States {
    fn assign(&mut self, new: Self) {
        self.0.iter_mut().zip(new.0).for_each(|(state, new)| state.0.write(new));
    }
}

impl RowState for States {
    fn assign_row(&mut self, row: usize, new: Self) {
        self.0.iter_mut().zip(new.0).for_each(|(state, new)| state.0.write_row(row, new));
    }

    fn mask_rows(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
        Self(self.0.into_iter().zip(other.0).map(|(state, other)| state.0.masked(mask, other)).collect())
    }
}

/// The processors after the constraint, in order of application: the application's, then built-in
/// ones.
pub(super) struct Filters {
    application: Processors,
    /// The application's processors are the first member, if there are any.
    members: Vec<Member>,
}

struct Member {
    processor: Box<dyn AnyProcessor>,
    /// Whether a step applies it. Otherwise its state stays, for later rows.
    on: bool,
}

impl Filters {
    /// The processors of the application.
    pub(super) fn new(application: &Processors) -> Self {
        let mut filters = Self { application: application.clone(), members: Vec::new() };
        if !application.is_empty() {
            filters.push(Applied(application.clone()), true);
        }
        filters
    }

    /// Appends a processor.
    pub(super) fn push<P>(&mut self, processor: P, on: bool)
    where
        P: LogitsProcessor<State: RowState + Send + 'static> + Send + Sync + 'static,
    {
        self.members.push(Member { processor: Box::new(processor), on });
    }

    /// The processors of the application.
    pub(super) fn application(&self) -> &Processors {
        &self.application
    }
}

impl LogitsProcessor for Filters {
    type State = States;

    fn init(&self, context: &InitContext) -> States {
        States(self.members.iter().map(|member| member.processor.begin(context)).collect())
    }

    fn process(&self, states: States, mut logits: Tensor<2>, context: &StepContext) -> (Tensor<2>, States) {
        let mut new = Vec::with_capacity(states.0.len());
        for (member, mut state) in self.members.iter().zip(states.0) {
            if member.on {
                (logits, state) = member.processor.apply(state, logits, context);
            }
            new.push(state);
        }
        (logits, States(new))
    }

    fn is_identity(&self) -> bool {
        self.members.iter().all(|member| !member.on)
    }
}

/// The processors of the application as one processor, which keeps masked tokens masked.
struct Applied(Processors);

impl LogitsProcessor for Applied {
    type State = States;

    fn init(&self, context: &InitContext) -> States {
        States(self.0.0.iter().map(|named| named.value.begin(context)).collect())
    }

    fn process(&self, states: States, legal: Tensor<2>, context: &StepContext) -> (Tensor<2>, States) {
        let (mut logits, mut new) = (legal.clone(), Vec::with_capacity(states.0.len()));
        for (named, state) in self.0.0.iter().zip(states.0) {
            let (next, state) = named.value.apply(state, logits, context);
            logits = next;
            new.push(state);
        }
        let masked = legal.clone().equal_elem(f32::NEG_INFINITY);
        (mask_or(logits, masked, legal), States(new))
    }
}
