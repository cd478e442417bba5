//! Processors and samplers of an application, in the loop of a batch.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

use burn::tensor::{Bool, DType, Int, Tensor};

use super::model::Recordable;
use crate::processor::{
    Chain, FrequencyPresencePenalty, InPlaceState, InitContext, LogitBias, LogitsProcessor, MinNewTokens,
    MinP, RepetitionPenalty, RowState, StepContext, SuppressTokens, Temperature, TopK, TopP,
    process_and_sample, unless_empty,
};
use crate::sampling::{FusedSampler, Greedy, GumbelMax, Sampler};
use burn_dfa_tokens::{Error, ErrorKind, Result};

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
///         let [_, vocab_size] = logits.dims();
///         let ids =
///             Tensor::arange(0..vocab_size as i64, &logits.device()).float().cast(logits.dtype());
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

    /// Makes the states of all processors.
    fn begin(&self, context: &InitContext) -> States {
        States(self.0.iter().map(|named| named.value.begin(context)).collect())
    }

    /// Applies the processors to the `legal` logits. Masked tokens stay masked.
    fn apply(&self, states: States, legal: &Tensor<2>, context: &StepContext) -> (Tensor<2>, States) {
        let (mut logits, mut new) = (legal.clone(), Vec::with_capacity(states.0.len()));
        for (named, state) in self.0.iter().zip(states.0) {
            let (next, state) = named.value.apply(state, logits, context);
            logits = next;
            new.push(state);
        }
        let masked = legal.clone().equal_elem(f32::NEG_INFINITY);
        (logits.mask_fill(masked, f32::NEG_INFINITY), States(new))
    }

    /// Refuses a processor that cannot process logits of a shape, `[batch, vocab_size]`. `remedy` is
    /// the remedy for a processor of other rows.
    pub(super) fn check_shape(&self, shape: [usize; 2], remedy: &str) -> Result<()> {
        self.0.iter().try_for_each(|named| {
            let refuse = |error: Error| {
                let (name, vocab_size) = (named.name, shape[1]);
                Error::input(match error.kind() {
                    ErrorKind::IncompatibleVocabulary => format!(
                        "the processor {name}: {error}; give each request a constraint for the vocabulary of this model by `Request::with_constraint`, or make the processor for rows of {vocab_size} logits"
                    ),
                    _ => format!("the processor {name}: {error}; {remedy}"),
                })
            };
            named.value.fits(shape).map_err(refuse)
        })
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

/// The tokens become `i32`, because Burn's `argmax` returns the default integers of the device.
impl Sampler for OwnSampler {
    fn sample(&self, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int> {
        match self.alone {
            Some([row, batch]) => self.sample_row(row, batch, logits, step),
            None => self.sampler.value.sample(logits, step).cast(DType::I32),
        }
    }

    fn sample_row(
        &self,
        row: usize,
        batch: usize,
        logits: Tensor<2>,
        step: &Tensor<1, Int>,
    ) -> Tensor<1, Int> {
        self.sampler.value.sample_row(row, batch, logits, step).cast(DType::I32)
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
        // SAFETY: a processor has no tensors. `init` makes new tensors, and `process` returns new
        // ones outside of `RowParam` and `Constant`. The tensors of a sampler never change. No call
        // keeps a tensor.
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

// SAFETY: both processors make the promise. A chain has no other tensors, its state is a pair of
// their states, and every call and every method of the state calls the two one after the other. No
// other crate can implement a trait of the promise for this type or for `Option`.
#[allow(unsafe_code)]
unsafe impl<A: Recordable, B: Recordable> Recordable for Chain<A, B> {}

// SAFETY: the processor makes the promise, and its state is `Some` of the processor's state. Without
// a processor there are no tensors, and `process` returns the logits.
#[allow(unsafe_code)]
unsafe impl<P: Recordable> Recordable for Option<P> {}

/// A processor with a state of any type.
trait AnyProcessor: Send + Sync {
    fn fits(&self, shape: [usize; 2]) -> Result<()>;
    fn begin(&self, context: &InitContext) -> AnyState;
    fn apply(&self, state: AnyState, logits: Tensor<2>, context: &StepContext) -> (Tensor<2>, AnyState);
}

impl<P: LogitsProcessor<State: RowState + Send + 'static> + Send + Sync> AnyProcessor for P {
    fn fits(&self, shape: [usize; 2]) -> Result<()> {
        self.check_shape(shape)
    }

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
    built_in: Vec<Member>,
}

struct Member {
    processor: Box<dyn AnyProcessor>,
    /// Whether a step applies it. Otherwise its state stays, for later rows.
    on: bool,
}

impl Filters {
    /// The processors of the application.
    pub(super) fn new(application: &Processors) -> Self {
        Self { application: application.clone(), built_in: Vec::new() }
    }

    /// Appends a built-in processor.
    pub(super) fn push<P>(&mut self, processor: P, on: bool)
    where
        P: LogitsProcessor<State: RowState + Send + 'static> + Send + Sync + 'static,
    {
        self.built_in.push(Member { processor: Box::new(processor), on });
    }

    /// The processors of the application.
    pub(super) fn application(&self) -> &Processors {
        &self.application
    }

    /// Whether no step applies a built-in processor.
    fn is_off(&self) -> bool {
        self.built_in.iter().all(|member| !member.on)
    }
}

impl LogitsProcessor for Filters {
    /// The states of the application's processors, and of the built-in ones.
    type State = (States, States);

    fn init(&self, context: &InitContext) -> Self::State {
        let built_in = self.built_in.iter().map(|member| member.processor.begin(context));
        (self.application.begin(context), States(built_in.collect()))
    }

    fn process(
        &self,
        (own, states): Self::State,
        legal: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let (mut logits, own) = if self.application.is_empty() {
            (legal, own)
        } else {
            let (masked, own) = self.application.apply(own, &legal, context);
            (unless_empty(masked, legal), own)
        };
        let mut new = Vec::with_capacity(states.0.len());
        for (member, mut state) in self.built_in.iter().zip(states.0) {
            if member.on {
                (logits, state) = member.processor.apply(state, logits, context);
            }
            new.push(state);
        }
        (logits, (own, States(new)))
    }

    /// If the application's processors alone precede a greedy choice, the choice finds the rows in
    /// which they masked all legal tokens: the greatest logit is −∞. So only the token of such a
    /// row is replaced, and no logits are written again.
    fn sample_step(
        &self,
        state: &mut Self::State,
        context: &mut StepContext,
        legal: Tensor<2>,
        sampler: &dyn Sampler,
    ) {
        let is_greedy = matches!(sampler.fused(), Some(FusedSampler::Greedy));
        if self.application.is_empty() || !self.is_off() || !is_greedy {
            return process_and_sample(self, state, context, legal, sampler);
        }
        let [batch, _] = legal.dims();
        let (masked, own) = self.application.apply(state.0.clone(), &legal, context);
        state.0.assign(own);
        let token = Greedy.sample(masked.clone(), &context.step);
        let greatest = masked.gather(1, token.clone().reshape([batch, 1])).reshape([batch]);
        let is_empty = greatest.equal_elem(f32::NEG_INFINITY);
        let legal_token = Greedy.sample(legal, &context.step);
        context.tokens.assign(token.mask_where(is_empty, legal_token));
    }

    fn is_identity(&self) -> bool {
        self.application.is_empty() && self.is_off()
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{Device, TensorData};
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    const BATCH: usize = 600;
    const VOCAB_SIZE: usize = 4;
    const NEVER: f32 = f32::NEG_INFINITY;

    /// Returns the same logits at every step.
    struct Fixed(Tensor<2>);

    impl LogitsProcessor for Fixed {
        type State = ();

        fn init(&self, _: &InitContext) {}

        fn process(&self, _: (), _: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
            (self.0.clone(), ())
        }
    }

    /// The first NaN, or the first of the greatest logits.
    fn greatest(row: &[f32]) -> i32 {
        let nan = row.iter().position(|logit| logit.is_nan());
        let greatest = || (0..row.len()).rev().max_by(|&a, &b| row[a].total_cmp(&row[b]));
        nan.or_else(greatest).unwrap() as i32
    }

    #[test]
    fn rows_of_any_logits_are_masked_again() {
        let device = Device::flex();
        let mut rng = StdRng::seed_from_u64(1);
        let mut random = || -> Vec<f32> {
            let values = [NEVER, NEVER, NEVER, f32::INFINITY, f32::NAN, -1.0, 2.0];
            (0..BATCH * VOCAB_SIZE).map(|_| values[rng.random_range(0..values.len())]).collect()
        };
        let (legal, processed) = (random(), random());
        let expected =
            legal.chunks(VOCAB_SIZE).zip(processed.chunks(VOCAB_SIZE)).flat_map(|(legal, processed)| {
                let masked = legal.iter().zip(processed);
                let masked: Vec<f32> =
                    masked.map(|(&legal, &logit)| if legal == NEVER { NEVER } else { logit }).collect();
                let is_empty = masked.iter().all(|&logit| logit == NEVER);
                if is_empty { legal.to_vec() } else { masked }
            });
        let expected: Vec<f32> = expected.collect();

        let ints = |shape: [usize; 1]| Tensor::<1, Int>::zeros(shape, (&device, DType::I32));
        let tensor = |values: &[f32]| {
            let data = TensorData::new(values.to_vec(), [BATCH, VOCAB_SIZE]);
            Tensor::<2>::from_data(data, (&device, DType::F32))
        };
        let filters = Filters::new(&Processors::new().with(Fixed(tensor(&processed))));
        let prompt = ints([BATCH]).reshape([BATCH, 1]);
        let mut state = filters.init(&InitContext { prompt, padding: ints([BATCH]), vocab_size: VOCAB_SIZE });
        let mut context = StepContext { tokens: ints([BATCH]), step: ints([1]) };

        let (found, _) = filters.process(state.clone(), tensor(&legal), &context);
        let found = found.into_data().try_to_vec::<f32>().unwrap();
        let is_same =
            |(&found, &expected): (&f32, &f32)| found == expected || found.is_nan() && expected.is_nan();
        assert!(found.iter().zip(&expected).all(is_same), "{found:?}");

        filters.sample_step(&mut state, &mut context, tensor(&legal), &Greedy);
        let tokens = context.tokens.into_data().try_to_vec::<i32>().unwrap();
        assert_eq!(tokens, expected.chunks(VOCAB_SIZE).map(greatest).collect::<Vec<_>>());
    }
}
