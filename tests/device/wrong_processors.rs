//! Logits processors and samplers that break one law each, which `check_laws` names.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::{Bool, DType, Device, Int, Tensor};
use burn_dfa::processor::{
    Constant, InPlaceState, InitContext, LogitsProcessor, RowState, StepContext, check_laws,
};
use burn_dfa::sampling::{self, FusedSampler, Greedy, GumbelMax, Sampler};
use burn_dfa::{Error, ErrorKind};

const VOCAB_SIZE: usize = 16;

/// A processor without state, of a function.
struct Of<F>(F);

impl<F: Fn(Tensor<2>, &StepContext) -> Tensor<2>> LogitsProcessor for Of<F> {
    type State = ();

    fn init(&self, _: &InitContext) {}

    fn process(&self, _: (), logits: Tensor<2>, context: &StepContext) -> (Tensor<2>, ()) {
        (self.0(logits, context), ())
    }
}

/// Adds one number to all logits of each row.
fn raised(logits: Tensor<2>, numbers: Tensor<1>) -> Tensor<2> {
    let numbers = numbers.cast(logits.dtype()).reshape([-1, 1]).expand(logits.dims());
    logits + numbers
}

/// Adds the number of tokens in the prompt and the output to all logits.
struct Lengths(Fault);

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Nothing,
    /// Padded positions count as tokens.
    Padding,
    Assign,
    MaskRows,
    AssignRow,
}

#[derive(Clone)]
struct Length {
    /// `[batch]`
    length: Tensor<1>,
    fault: Fault,
}

impl InPlaceState for Length {
    fn assign(&mut self, new: Self) {
        if self.fault != Fault::Assign {
            self.length.assign(new.length);
        }
    }
}

impl RowState for Length {
    fn assign_row(&mut self, row: usize, new: Self) {
        if self.fault != Fault::AssignRow {
            self.length.assign_row(row, new.length);
        }
    }

    fn mask_rows(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
        match self.fault {
            Fault::MaskRows => self,
            fault => Self { length: self.length.mask_rows(mask, other.length), fault },
        }
    }
}

impl LogitsProcessor for Lengths {
    type State = Length;

    fn init(&self, context: &InitContext) -> Length {
        let [batch, length] = context.prompt.dims();
        let length = Tensor::<1>::full([batch], length as f32, (&context.device(), DType::F32));
        let padding = context.padding.clone().float().cast(DType::F32);
        let length = if self.0 == Fault::Padding { length } else { length - padding };
        Length { length, fault: self.0 }
    }

    fn process(&self, state: Length, logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, Length) {
        let length = state.length + 1.0;
        (raised(logits, length.clone()), Length { length, ..state })
    }
}

/// Adds the number of tokens of the output, which the state holds.
struct History;

impl LogitsProcessor for History {
    /// The tokens of the output, `[batch, tokens]`: the shape changes.
    type State = Tensor<2, Int>;

    fn init(&self, context: &InitContext) -> Self::State {
        Tensor::zeros([context.batch(), 1], (&context.device(), DType::I32))
    }

    fn process(
        &self,
        tokens: Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let last = context.tokens.clone().cast(DType::I32).reshape([-1, 1]);
        let tokens = Tensor::cat(vec![tokens, last], 1);
        let [_, length] = tokens.dims();
        (logits + length as f32, tokens)
    }
}

/// Adds the last token of the prompt.
struct LastOfPrompt;

impl LogitsProcessor for LastOfPrompt {
    /// `[batch]`: not a constant, because another batch has other prompts.
    type State = Constant<Tensor<1, Int>>;

    fn init(&self, context: &InitContext) -> Self::State {
        let [_, length] = context.prompt.dims();
        Constant(context.prompt.clone().narrow(1, length - 1, 1).reshape([-1]))
    }

    fn process(&self, last: Self::State, logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, Self::State) {
        (raised(logits, last.0.clone().float().cast(DType::F32)), last)
    }
}

/// Keeps the prompt.
struct Prompt;

impl LogitsProcessor for Prompt {
    /// `[batch, length]`: the shape depends on the prompt.
    type State = Tensor<2, Int>;

    fn init(&self, context: &InitContext) -> Self::State {
        context.prompt.clone()
    }

    fn process(&self, prompt: Self::State, logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, Self::State) {
        (logits, prompt)
    }
}

/// Adds the number of steps.
struct Steps;

/// The clones of a state share the number.
#[derive(Clone)]
struct SharedNumber(Arc<AtomicUsize>);

impl InPlaceState for SharedNumber {
    fn assign(&mut self, new: Self) {
        self.0.store(new.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl RowState for SharedNumber {
    fn assign_row(&mut self, _: usize, new: Self) {
        self.assign(new);
    }

    fn mask_rows(self, _: &Tensor<1, Bool>, _: Self) -> Self {
        self
    }
}

impl LogitsProcessor for Steps {
    type State = SharedNumber;

    fn init(&self, _: &InitContext) -> SharedNumber {
        SharedNumber(Arc::default())
    }

    fn process(&self, state: SharedNumber, logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, SharedNumber) {
        let steps = state.0.fetch_add(1, Ordering::Relaxed);
        (logits + steps as f32, state)
    }
}

/// Prefers the least logits, and raises all of them by the number of steps.
struct Least(Shortcut);

#[derive(PartialEq)]
enum Shortcut {
    /// Claims to be the identity.
    Identity,
    /// Samples without the processor.
    Unprocessed,
    /// Samples, and keeps the old state.
    OldState,
}

impl LogitsProcessor for Least {
    type State = Tensor<1>;

    fn init(&self, context: &InitContext) -> Tensor<1> {
        Tensor::zeros([context.batch()], (&context.device(), DType::F32))
    }

    fn process(&self, steps: Tensor<1>, logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, Tensor<1>) {
        let masked = logits.clone().equal_elem(f32::NEG_INFINITY);
        let least = (logits * -1.0).mask_fill(masked, f32::NEG_INFINITY);
        (raised(least, steps.clone()), steps + 1.0)
    }

    fn sample_step(
        &self,
        state: &mut Tensor<1>,
        context: &mut StepContext,
        logits: Tensor<2>,
        sampler: &dyn Sampler,
    ) {
        let (processed, next) = self.process(state.clone(), logits.clone(), context);
        let logits = if self.0 == Shortcut::Unprocessed { logits } else { processed };
        context.tokens.assign(sampler.sample(logits, &context.step));
        if self.0 != Shortcut::OldState {
            state.assign(next);
        }
    }

    fn is_identity(&self) -> bool {
        self.0 == Shortcut::Identity
    }
}

#[track_caller]
fn breaks<P: LogitsProcessor<State: RowState>>(processor: P, law: &str) {
    names(check_laws(&processor, VOCAB_SIZE, &Device::flex()).unwrap_err(), law);
}

#[track_caller]
fn names(error: Error, law: &str) {
    assert!(
        error.kind() == ErrorKind::Input && error.to_string().contains(law),
        "{law:?} is not in: {error}"
    );
}

#[test]
fn every_law_has_a_processor_that_breaks_it() {
    check_laws(&Lengths(Fault::Nothing), VOCAB_SIZE, &Device::flex()).unwrap();

    breaks(
        Of(|logits: Tensor<2>, _: &StepContext| logits.narrow(1, 0, VOCAB_SIZE - 1)),
        "logits of shape [1, 16]",
    );
    // As in a processor that was tried with logits of `f32` alone.
    breaks(
        Of(|logits: Tensor<2>, _: &StepContext| logits.cast(DType::F32)),
        "with logits of F16, logits of shape",
    );
    breaks(Of(|logits: Tensor<2>, _: &StepContext| logits.zeros_like()), "a masked token became legal");
    let mean = |logits: Tensor<2>, _: &StepContext| {
        let masked = logits.clone().equal_elem(f32::NEG_INFINITY);
        let mean = logits.clone().mask_fill(masked, 0.0).mean_dim(0).expand(logits.dims());
        logits - mean
    };
    breaks(Of(mean), "the logits of a row depend on other rows");

    let one_step = |logits: Tensor<2>, context: &StepContext| {
        let step = context.step.clone().float().cast(logits.dtype()).reshape([1, 1]);
        logits.clone() + step.expand(logits.dims())
    };
    breaks(Of(one_step), "`LogitsProcessor::process` with `step` of shape [3] panicked");
    let first_step = |logits: Tensor<2>, context: &StepContext| {
        let step = context.step.clone().narrow(0, 0, 1).float().cast(DType::F32);
        raised(logits, step)
    };
    breaks(Of(first_step), "of rows at other steps, the logits are wrong");

    breaks(Lengths(Fault::Padding), "the logits of a row depend on its padding");
    breaks(Lengths(Fault::Assign), "`InPlaceState::assign` does not write the next state");
    breaks(Lengths(Fault::MaskRows), "after `RowState::mask_rows`");
    breaks(Lengths(Fault::AssignRow), "after `RowState::assign_row`");
    breaks(Steps, "depend on another continuation of its state");
    breaks(Least(Shortcut::Identity), "`LogitsProcessor::is_identity` is true, but the logits change");
    breaks(Least(Shortcut::Unprocessed), "does not sample the logits of `process`");
    breaks(Least(Shortcut::OldState), "`LogitsProcessor::sample_step` does not write the next state");
    breaks(LastOfPrompt, "does not write the state of another batch");
    breaks(History, "the next state, which must have the shapes of the state before, panicked");
    breaks(Prompt, "the state of another batch, which must have the same shapes, panicked");
}

/// A sampler of a function.
struct Choose<F>(F);

impl<F: Fn(Tensor<2>, &Tensor<1, Int>) -> Tensor<1, Int>> Sampler for Choose<F> {
    fn sample(&self, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int> {
        (self.0)(logits, step)
    }
}

/// The token of the least logit that is not masked.
fn least(logits: Tensor<2>) -> Tensor<1, Int> {
    let [batch, _] = logits.dims();
    let masked = logits.clone().equal_elem(f32::NEG_INFINITY);
    logits.mask_fill(masked, f32::INFINITY).argmin(1).reshape([batch]).cast(DType::I32)
}

/// Draws, but samples a row alone with the seed of the first row.
struct FirstSeed(GumbelMax);

impl Sampler for FirstSeed {
    fn sample(&self, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int> {
        self.0.sample(logits, step)
    }

    fn sample_row(&self, _: usize, batch: usize, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int> {
        self.0.sample_row(0, batch, logits, step)
    }
}

/// Draws, but claims to be greedy.
struct ClaimsGreedy(GumbelMax);

impl Sampler for ClaimsGreedy {
    fn sample(&self, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int> {
        self.0.sample(logits, step)
    }

    fn fused(&self) -> Option<FusedSampler<'_>> {
        Some(FusedSampler::Greedy)
    }
}

#[track_caller]
fn sampler_breaks(sampler: impl Sampler, law: &str) {
    names(sampling::check_laws(&sampler, 3, VOCAB_SIZE, &Device::flex()).unwrap_err(), law);
}

#[test]
fn every_law_has_a_sampler_that_breaks_it() {
    let device = Device::flex();
    let draw = GumbelMax::new(&[1, 2, 3], VOCAB_SIZE, &device).unwrap().with_temperature(100.0).unwrap();
    let right = Choose(|logits: Tensor<2>, _: &Tensor<1, Int>| least(logits));
    sampling::check_laws(&right, 3, VOCAB_SIZE, &device).unwrap();

    let with_masked = |logits: Tensor<2>, _: &Tensor<1, Int>| {
        let [batch, _] = logits.dims();
        logits.argmin(1).reshape([batch]).cast(DType::I32)
    };
    sampler_breaks(Choose(with_masked), "where it is masked");
    sampler_breaks(
        Choose(|logits: Tensor<2>, _: &Tensor<1, Int>| least(logits).zeros_like() + VOCAB_SIZE as i32),
        "chooses token 16 in row 0, which has 16 logits",
    );
    sampler_breaks(
        Choose(|logits: Tensor<2>, _: &Tensor<1, Int>| least(logits).cast(DType::I64)),
        "returns I64 of shape [3]",
    );
    sampler_breaks(
        Choose(|logits: Tensor<2>, _: &Tensor<1, Int>| least(logits).narrow(0, 0, 1)),
        "returns I32 of shape [1]",
    );
    let greedy_in_one_row = |logits: Tensor<2>, step: &Tensor<1, Int>| {
        let max = logits.clone().max_dim(1);
        let is_greatest = max.clone().equal(max.clone().max_dim(0).expand(max.dims())).reshape([-1]);
        least(logits.clone()).mask_where(is_greatest, Greedy.sample(logits, step))
    };
    sampler_breaks(Choose(greedy_in_one_row), "the token of a row depends on other rows");

    let calls = AtomicUsize::new(0);
    let in_turn = |logits: Tensor<2>, step: &Tensor<1, Int>| match calls.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => least(logits),
        _ => Greedy.sample(logits, step),
    };
    sampler_breaks(Choose(in_turn), "is another one in a repeated call");
    let one_step = |logits: Tensor<2>, step: &Tensor<1, Int>| {
        let step = step.clone().reshape([1]);
        draw.sample(logits, &step)
    };
    sampler_breaks(Choose(one_step), "`Sampler::sample` with `step` of shape [3] panicked");
    let first_step =
        |logits: Tensor<2>, step: &Tensor<1, Int>| draw.sample(logits, &step.clone().narrow(0, 0, 1));
    sampler_breaks(Choose(first_step), "or on the steps of other rows");
    sampler_breaks(FirstSeed(draw.clone()), "`Sampler::sample_row` does not choose the token of `sample`");
    sampler_breaks(ClaimsGreedy(draw), "the sampler of `Sampler::fused` does not choose");
}
