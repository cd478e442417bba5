//! A check of the laws of logits processors, for the tests of applications.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use super::{InPlaceState, InitContext, LogitsProcessor, RowState, StepContext};
use crate::sampling::{Greedy, Sampler};
use crate::tensor::ints;
use burn_dfa_tokens::{Error, Result};

/// Number of steps of the check.
const STEPS: usize = 4;

/// The maximum number of tokens of a prompt.
const LONGEST: usize = 3;

/// The rows of two batches.
const FIRST: [usize; 3] = [0, 1, 2];
const SECOND: [usize; 3] = [5, 4, 3];

/// The dtypes of logits, with the maximum relative difference between a row alone and the same row
/// in a batch.
const DTYPES: [(DType, f32); 3] = [(DType::F32, 1e-4), (DType::F16, 4e-3), (DType::BF16, 3e-2)];

/// Checks the [laws](super#laws) on a few steps of batches of three rows with `vocab_size` logits,
/// in each of `f32`, `f16` and `bf16` that the device supports:
///
/// - the shape and the dtype of the logits are kept, and masked tokens stay masked;
/// - a row gets the same logits alone and in a batch, with any padding of its prompt, and with one
///   `step` for all rows or one for each;
/// - the state has the same shapes after every step and after prompts of every length, and
///   [`InPlaceState::assign`] writes the next state as well as the state of another batch;
/// - by [`RowState`], a row moves to another batch whose rows have taken other numbers of steps;
/// - one state continues with several tokens, as in a draft tree, because a clone of a state shares
///   nothing that a step changes;
/// - [`sample_step`](LogitsProcessor::sample_step) takes the token and leaves the state of
///   [`process`](LogitsProcessor::process), and a processor with
///   [`is_identity`](LogitsProcessor::is_identity) changes no logits.
///
/// The options of the processor must be the same for all rows.
///
/// It reads values back from the device: use it in a test, not in a loop.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) names the first law that does not hold. A panic of
/// the processor or of its state breaks a law.
///
/// # Panics
/// If `vocab_size` is 0.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_dfa::processor::{InitContext, LogitsProcessor, StepContext, Temperature, check_laws};
///
/// check_laws(&Temperature::new(0.7)?, 16, &Device::flex())?;
///
/// /// Makes every token legal.
/// struct Unmask;
///
/// impl LogitsProcessor for Unmask {
///     type State = ();
///     fn init(&self, _: &InitContext) {}
///     fn process(&self, _: (), logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
///         (logits.clamp_min(-1e4), ())
///     }
/// }
///
/// let error = check_laws(&Unmask, 16, &Device::flex()).unwrap_err();
/// assert!(error.to_string().contains("a masked token became legal"));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub fn check_laws<P>(processor: &P, vocab_size: usize, device: &Device) -> Result<()>
where
    P: LogitsProcessor<State: RowState>,
{
    in_each_dtype(device, |dtype, tolerance| Laws { processor, vocab_size, device, dtype, tolerance }.check())
}

/// Runs a check with logits of each dtype that the device supports. The check also takes the
/// tolerance of the dtype.
pub(crate) fn in_each_dtype(device: &Device, check: impl Fn(DType, f32) -> Result<()>) -> Result<()> {
    for (dtype, tolerance) in DTYPES {
        if dtype == DType::F32 || device.supports_dtype(dtype) {
            let result = check(dtype, tolerance);
            result.map_err(|error| Error::input(format!("with logits of {dtype:?}, {error}")))?;
        }
    }
    Ok(())
}

/// A processor, with logits of one dtype.
struct Laws<'a, P> {
    processor: &'a P,
    vocab_size: usize,
    device: &'a Device,
    dtype: DType,
    tolerance: f32,
}

impl<P> Laws<'_, P> {
    fn is_close(&self, a: f32, b: f32) -> bool {
        let (difference, scale) = ((a - b).abs(), a.abs().max(b.abs()).max(1.0));
        let is_small = difference.is_finite() && difference <= self.tolerance * scale;
        a == b || a.is_nan() && b.is_nan() || is_small
    }
}

impl<P: LogitsProcessor<State: RowState>> Laws<'_, P> {
    fn check(&self) -> Result<()> {
        let mut alone = Vec::with_capacity(FIRST.len() + SECOND.len());
        for row in 0..FIRST.len() + SECOND.len() {
            let mut run = self.run(&[row], 0)?;
            alone.push((0..STEPS).map(|_| run.advance()).collect::<Result<Vec<_>>>()?);
        }
        let compare = |run, law| self.compare(run, &alone, law);
        compare(self.run(&[0], 2)?, "the logits of a row depend on its padding")?;
        compare(self.run(&FIRST, 0)?, "the logits of a row depend on other rows")?;
        let counting = self.run(&FIRST, 0)?.counting_rows();
        compare(counting, "the logits of a row depend on the shape of `step`")?;
        let in_place = self.run(&FIRST, 0)?.in_place();
        compare(in_place, "`InPlaceState::assign` does not write the next state")?;

        // Each branch of a draft tree continues the state of its root.
        let mut root = self.run(&FIRST, 0)?;
        root.advance()?;
        let mut branch = root.clone();
        branch.rows.rotate_left(1);
        branch.advance()?;
        compare(root, "the logits of a row depend on another continuation of its state")?;
        let sampling = self.run(&FIRST, 0)?.sampling();
        compare(sampling, "`LogitsProcessor::sample_step` does not write the next state")?;

        // A recorded batch begins again in the buffers of the batch before.
        let mut before = self.run(&SECOND, 1)?.in_place();
        before.advance()?;
        let mut after = self.run(&FIRST, 0)?.in_place();
        let (mut state, new) = (before.state, after.state);
        let what = "`InPlaceState::assign` of the state of another batch, which must have the same shapes,";
        caught(what, || state.assign(new))?;
        after.state = state;
        compare(after, "`InPlaceState::assign` does not write the state of another batch")?;

        // Rows continue with the states of other batches, after other numbers of steps.
        let [mut own, mut other, mut one] =
            [self.run(&FIRST, 0)?, self.run(&SECOND, 0)?, self.run(&SECOND[2..], 0)?]
                .map(|run| run.counting_rows().in_place());
        own.advance()?;
        for run in [&mut own, &mut other, &mut one] {
            run.advance()?;
        }
        let mask = Tensor::from_data([false, true, false], self.device);
        let (state, others) = (own.state, other.state);
        own.state = caught("`RowState::mask_rows`", || state.mask_rows(&mask, others))?;
        (own.rows[1], own.steps[1]) = (other.rows[1], other.steps[1]);
        compare(own.clone(), "after `RowState::mask_rows` of rows at other steps, the logits are wrong")?;
        let new = one.state;
        let what = "`RowState::assign_row` of the state of a row alone";
        caught(what, || own.state.assign_row(2, new))?;
        (own.rows[2], own.steps[2]) = (one.rows[0], one.steps[0]);
        compare(own, "after `RowState::assign_row` of a row at another step, the logits are wrong")
    }

    /// Compares the next steps of a batch with the steps of its rows alone.
    fn compare(&self, mut run: Run<'_, P>, alone: &[Vec<Vec<f32>>], law: &str) -> Result<()> {
        while run.steps.iter().all(|&step| step < STEPS) {
            let steps = run.steps.clone();
            let logits = run.advance()?;
            let rows = run.rows.iter().zip(&steps).zip(logits.chunks_exact(self.vocab_size));
            for ((&row, &step), own) in rows {
                let expected = &alone[row][step];
                let differs = own.iter().zip(expected).position(|(&own, &alone)| !self.is_close(own, alone));
                if let Some(token) = differs {
                    return Err(Error::input(format!(
                        "{law}: in step {step} token {token} of row {row} has {} instead of {}",
                        own[token], expected[token]
                    )));
                }
            }
        }
        Ok(())
    }

    /// A batch before its first step, whose prompts have `extra` padded positions more than they
    /// need.
    fn run(&self, rows: &[usize], extra: usize) -> Result<Run<'_, P>> {
        let Laws { processor, vocab_size, device, .. } = *self;
        let length = extra + rows.iter().map(|&row| prompt_length(row)).max().unwrap_or(0);
        let padding = |row| length - prompt_length(row);
        let prompt = rows.iter().flat_map(|&row| {
            // The padding may be any token: here it is the text of another row.
            let padded = (0..padding(row)).map(move |at| token(row + 1, at, vocab_size));
            padded.chain((0..prompt_length(row)).map(move |at| token(row, at, vocab_size)))
        });
        let context = InitContext {
            prompt: ints(prompt.collect(), device).reshape([rows.len(), length]),
            padding: ints(rows.iter().map(|&row| padding(row) as i32).collect(), device),
            vocab_size,
        };
        let state = caught("`LogitsProcessor::init`", || processor.init(&context))?;
        let steps = vec![0; rows.len()];
        Ok(Run { laws: self, state, rows: rows.to_vec(), steps, counts_rows: false, next: Next::Replaced })
    }
}

/// The result of a call, or an error that says what panicked.
pub(crate) fn caught<T>(what: &str, call: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Error::input(format!("{what} panicked: {said}"))
    })
}

/// A batch whose logits and tokens depend only on the numbers of its rows and of their steps.
struct Run<'a, P: LogitsProcessor> {
    laws: &'a Laws<'a, P>,
    state: P::State,
    rows: Vec<usize>,
    /// The number of steps that each row has taken.
    steps: Vec<usize>,
    /// Whether the context has a number of steps for each row.
    counts_rows: bool,
    next: Next,
}

/// How a step leaves the next state.
#[derive(Clone, Copy)]
enum Next {
    Replaced,
    /// Written into the state before.
    Assigned,
    /// By `LogitsProcessor::sample_step`.
    Sampled,
}

impl<P: LogitsProcessor> Clone for Run<'_, P> {
    fn clone(&self) -> Self {
        let (state, rows, steps) = (self.state.clone(), self.rows.clone(), self.steps.clone());
        Self { state, rows, steps, ..*self }
    }
}

impl<P: LogitsProcessor> Run<'_, P> {
    fn counting_rows(self) -> Self {
        Self { counts_rows: true, ..self }
    }

    fn in_place(self) -> Self {
        Self { next: Next::Assigned, ..self }
    }

    fn sampling(self) -> Self {
        Self { next: Next::Sampled, ..self }
    }

    /// Takes a step; returns the logits of all rows.
    fn advance(&mut self) -> Result<Vec<f32>> {
        let Laws { processor, vocab_size, device, dtype, .. } = *self.laws;
        let shape = [self.rows.len(), vocab_size];
        // Before its first token, a row has the id of no token.
        let before = |(&row, &step): (&usize, &usize)| match step {
            0 => vocab_size as i32,
            step => token(row, LONGEST + step, vocab_size),
        };
        let tokens = self.rows.iter().zip(&self.steps).map(before).collect();
        let counted = if self.counts_rows { &self.steps[..] } else { &self.steps[..1] };
        let step = counted.iter().map(|&step| step as i32).collect();
        let context = StepContext { tokens: ints(tokens, device), step: ints(step, device) };
        let rows = self.rows.iter().zip(&self.steps);
        let given: Vec<f32> =
            rows.flat_map(|(&row, &step)| (0..vocab_size).map(move |id| logit(row, step, id))).collect();
        let logits = Tensor::<2>::from_data(TensorData::new(given.clone(), shape), (device, dtype));
        // Only then, because no processor writes logits in place that have another handle.
        let unprocessed = matches!(self.next, Next::Sampled).then(|| logits.clone());
        let state = self.state.clone();
        let what = format!("`LogitsProcessor::process` with `step` of shape {:?}", context.step.dims());
        let (logits, next) = caught(&what, || processor.process(state, logits, &context))?;
        let assign =
            "`InPlaceState::assign` of the next state, which must have the shapes of the state before,";
        let mut tokens = None;
        match self.next {
            Next::Replaced => self.state = next,
            Next::Assigned => caught(assign, || self.state.assign(next))?,
            Next::Sampled => {
                let (state, mut sampled) = (&mut self.state, context.clone());
                let unprocessed = unprocessed.expect("a clone of the logits");
                caught("`LogitsProcessor::sample_step`", || {
                    processor.sample_step(state, &mut sampled, unprocessed, &Greedy);
                })?;
                let greatest = Greedy.sample(logits.clone(), &context.step);
                tokens = Some([ids(sampled.tokens)?, ids(greatest)?]);
            }
        }
        if logits.dims() != shape || logits.dtype() != dtype {
            return Err(Error::input(format!(
                "logits of shape {shape:?} and {dtype:?} became {:?} and {:?}",
                logits.dims(),
                logits.dtype()
            )));
        }
        let logits = logits.into_data().convert_dtype(DType::F32).try_to_vec::<f32>();
        let logits = logits.map_err(|error| Error::input(error.to_string()))?;
        let at = |at: usize| {
            let row = at / vocab_size;
            let (step, token, row) = (self.steps[row], at % vocab_size, self.rows[row]);
            format!("in step {step} token {token} of row {row} has {}", logits[at])
        };
        let mut masked = given.iter().zip(&logits);
        if let Some(token) = masked.position(|(&given, &new)| given == f32::NEG_INFINITY && new != given) {
            return Err(Error::input(format!("a masked token became legal: {}", at(token))));
        }
        let mut kept = given.iter().zip(&logits);
        let is_changed = |(&given, &new): (&f32, &f32)| !self.laws.is_close(given, new);
        if processor.is_identity()
            && let Some(token) = kept.position(is_changed)
        {
            let problem = "`LogitsProcessor::is_identity` is true, but the logits change";
            return Err(Error::input(format!("{problem}: {}", at(token))));
        }
        if let Some([sampled, greatest]) = tokens {
            let rows = sampled.into_iter().zip(greatest).zip(logits.chunks_exact(vocab_size)).enumerate();
            for (row, ((sampled, greatest), logits)) in rows {
                let [own, max] = [sampled, greatest].map(|token| logits.get(token as usize));
                let is_close = own.zip(max).is_some_and(|(&own, &max)| self.laws.is_close(own, max));
                if sampled != greatest && !is_close {
                    return Err(Error::input(format!(
                        "`LogitsProcessor::sample_step` does not sample the logits of `process`: in step {} row {} \
                         takes token {sampled} instead of {greatest}",
                        self.steps[row], self.rows[row]
                    )));
                }
            }
        }
        self.steps.iter_mut().for_each(|step| *step += 1);
        Ok(logits)
    }
}

/// Token ids, on the host.
pub(crate) fn ids(tokens: Tensor<1, Int>) -> Result<Vec<i32>> {
    let data = tokens.into_data().convert_dtype(DType::I32);
    data.try_to_vec::<i32>().map_err(|error| Error::input(error.to_string()))
}

fn prompt_length(row: usize) -> usize {
    1 + row % LONGEST
}

/// A token of the prompt or of the output.
fn token(row: usize, at: usize, vocab_size: usize) -> i32 {
    ((row * 7 + at * 3 + 1) % vocab_size.max(1)) as i32
}

/// A logit; every fifth token is masked.
fn logit(row: usize, step: usize, id: usize) -> f32 {
    match (row + step + id) % 5 {
        0 => f32::NEG_INFINITY,
        _ => value(row, step, id),
    }
}

/// The logit of a legal token.
pub(crate) fn value(row: usize, step: usize, id: usize) -> f32 {
    ((row * 31 + step * 17 + id * 13) % 101) as f32 / 10.0 - 5.0
}
