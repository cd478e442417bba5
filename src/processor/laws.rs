//! A check of the laws of logits processors, for the tests of applications.

use burn::tensor::{DType, Device, Tensor, TensorData};

use super::{InitContext, LogitsProcessor, RowState, StepContext};
use crate::tensor::ints;
use burn_dfa_tokens::{Error, Result};

/// Number of rows, of prompt tokens and of steps of the check.
const ROWS: usize = 3;
const PROMPT: usize = 2;
const STEPS: usize = 4;

/// The maximum relative difference between a row alone and the same row in a batch.
const TOLERANCE: f32 = 1e-4;

/// Checks the [laws](super#laws) on a few steps of a batch of three rows with `vocab_size` logits:
/// a processor keeps the shape and the dtype of the logits, and masked tokens stay masked. A row
/// alone gets the same logits as in the batch, also after its state was replaced by [`RowState`]. The
/// options of the processor must be the same for all rows.
///
/// It reads values back from the device: use it in a test, not in a loop.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) names the first law that does not hold.
///
/// # Panics
/// If the state is not one row per row of the batch.
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
/// assert!(check_laws(&Unmask, 16, &Device::flex()).is_err());
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub fn check_laws<P>(processor: &P, vocab_size: usize, device: &Device) -> Result<()>
where
    P: LogitsProcessor<State: RowState>,
{
    let run = |rows: &[usize]| Run::new(processor, rows, vocab_size, device);
    let mut alone = Vec::with_capacity(2 * ROWS);
    for row in 0..2 * ROWS {
        alone.push(run(&[row]).steps(STEPS)?);
    }
    let check = |run: Run<P>, before: &str| {
        let (rows, first) = (run.rows.clone(), run.step);
        for (step, all) in (first..).zip(run.steps(STEPS - first)?) {
            for (row, own) in rows.iter().zip(all.chunks_exact(vocab_size)) {
                let expected = &alone[*row][step];
                let differs = own.iter().zip(expected).position(|(&own, &alone)| !is_close(own, alone));
                if let Some(token) = differs {
                    return Err(Error::input(format!(
                        "the logits of a row depend on other rows{before}: in step {step} token {token} of row {row} has {} in the batch and {} alone",
                        own[token], expected[token]
                    )));
                }
            }
        }
        Ok(())
    };
    let together: Vec<usize> = (0..ROWS).collect();
    check(run(&together), "")?;

    // Two rows continue with states of other batches.
    let half = STEPS / 2;
    let [mut own, mut other, mut one] = [run(&together), run(&[3, 4, 5]), run(&[5])];
    for run in [&mut own, &mut other, &mut one] {
        for _ in 0..half {
            run.advance()?;
        }
    }
    let mask = Tensor::from_data([false, true, false], device);
    own.state = own.state.mask_rows(&mask, other.state);
    own.rows[1] = 4;
    check(own.clone(), " after `RowState::mask_rows`")?;
    own.state.assign_row(2, one.state);
    own.rows[2] = 5;
    check(own, " after `RowState::assign_row`")
}

fn is_close(a: f32, b: f32) -> bool {
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1.0)
}

/// A batch whose logits and tokens depend only on the numbers of its rows.
struct Run<'a, P: LogitsProcessor> {
    processor: &'a P,
    state: P::State,
    rows: Vec<usize>,
    step: usize,
    vocab_size: usize,
    device: &'a Device,
}

impl<P: LogitsProcessor> Clone for Run<'_, P> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), rows: self.rows.clone(), ..*self }
    }
}

impl<'a, P: LogitsProcessor> Run<'a, P> {
    fn new(processor: &'a P, rows: &[usize], vocab_size: usize, device: &'a Device) -> Self {
        let batch = rows.len();
        let prompt = rows.iter().flat_map(|&row| (0..PROMPT).map(move |at| token(row, at, vocab_size)));
        let prompt = ints(prompt.collect(), device).reshape([batch, PROMPT]);
        let state =
            processor.init(&InitContext { prompt, padding: ints(vec![0; batch], device), vocab_size });
        Self { processor, state, rows: rows.to_vec(), step: 0, vocab_size, device }
    }

    /// The logits of all rows after each of the next `steps` steps.
    fn steps(mut self, steps: usize) -> Result<Vec<Vec<f32>>> {
        (0..steps).map(|_| self.advance()).collect()
    }

    /// Takes a step; returns the logits of all rows.
    fn advance(&mut self) -> Result<Vec<f32>> {
        let Self { processor, step, vocab_size, device, .. } = *self;
        let batch = self.rows.len();
        // The first step has no token before it.
        let before = |&row: &usize| match step {
            0 => vocab_size as i32,
            step => token(row, PROMPT + step, vocab_size),
        };
        let tokens = ints(self.rows.iter().map(before).collect(), device);
        let context = StepContext { tokens, step: ints(vec![step as i32], device) };
        let given: Vec<f32> =
            self.rows.iter().flat_map(|&row| (0..vocab_size).map(move |id| logit(row, step, id))).collect();
        let logits = TensorData::new(given.clone(), [batch, vocab_size]);
        let logits = Tensor::from_data(logits, (device, DType::F32));
        let (logits, next) = processor.process(self.state.clone(), logits, &context);
        self.state = next;
        self.step += 1;
        if logits.dims() != [batch, vocab_size] || logits.dtype() != DType::F32 {
            return Err(Error::input(format!(
                "logits of shape {:?} and {:?} became {:?} and {:?}",
                [batch, vocab_size],
                DType::F32,
                logits.dims(),
                logits.dtype()
            )));
        }
        let logits =
            logits.into_data().try_to_vec::<f32>().map_err(|error| Error::input(error.to_string()))?;
        let masked = given.iter().zip(&logits);
        if let Some(at) = masked.clone().position(|(&given, &new)| given == f32::NEG_INFINITY && new != given)
        {
            return Err(Error::input(format!(
                "a masked token became legal: in step {step} token {} of row {} has {}",
                at % vocab_size,
                self.rows[at / vocab_size],
                logits[at]
            )));
        }
        Ok(logits)
    }
}

/// A token of the prompt or of the output.
fn token(row: usize, at: usize, vocab_size: usize) -> i32 {
    ((row * 7 + at * 3 + 1) % vocab_size.max(1)) as i32
}

/// A logit; every fifth token is masked.
fn logit(row: usize, step: usize, id: usize) -> f32 {
    match (row + step + id) % 5 {
        0 => f32::NEG_INFINITY,
        _ => ((row * 31 + step * 17 + id * 13) % 101) as f32 / 10.0 - 5.0,
    }
}
