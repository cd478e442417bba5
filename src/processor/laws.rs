//! A check of the laws of logits processors, for the tests of applications.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use super::{InitContext, LogitsProcessor, StepContext};
use burn_dfa_tokens::{Error, Result};

/// Number of rows, of prompt tokens and of steps of the check.
const ROWS: usize = 3;
const PROMPT: usize = 2;
const STEPS: usize = 4;

/// The maximum relative difference between a row alone and the same row in a batch.
const TOLERANCE: f32 = 1e-4;

/// Checks the [laws](super#laws) on a few steps of a batch of three rows with `vocab_size` logits:
/// a processor keeps the shape and the dtype of the logits and masked tokens, and a row alone gets
/// the same logits as in the batch. The options of the processor must be the same for all rows.
///
/// It reads values back from the device: use it in a test, not in a loop.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) names the first law that does not hold.
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
pub fn check_laws<P: LogitsProcessor>(processor: &P, vocab_size: usize, device: &Device) -> Result<()> {
    let rows: Vec<usize> = (0..ROWS).collect();
    let together = run(processor, &rows, vocab_size, device)?;
    for row in rows {
        let alone = run(processor, &[row], vocab_size, device)?;
        for (step, (all, alone)) in together.iter().zip(&alone).enumerate() {
            let own = &all[row * vocab_size..][..vocab_size];
            if let Some(token) = own.iter().zip(alone).position(|(&own, &alone)| !is_close(own, alone)) {
                return Err(Error::input(format!(
                    "the logits of a row depend on other rows: in step {step} token {token} of row {row} has {} in the batch and {} alone",
                    own[token], alone[token]
                )));
            }
        }
    }
    Ok(())
}

fn is_close(a: f32, b: f32) -> bool {
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1.0)
}

/// The logits after each step of a batch of some rows.
fn run<P: LogitsProcessor>(
    processor: &P,
    rows: &[usize],
    vocab_size: usize,
    device: &Device,
) -> Result<Vec<Vec<f32>>> {
    let ints = |values: Vec<i32>| Tensor::<1, Int>::from_data(values.as_slice(), (device, DType::I32));
    let batch = rows.len();
    let token = |row: usize, at: usize| ((row * 7 + at * 3 + 1) % vocab_size.max(1)) as i32;
    let prompt = rows.iter().flat_map(|&row| (0..PROMPT).map(move |at| token(row, at))).collect();
    let prompt = ints(prompt).reshape([batch, PROMPT]);
    let mut state = processor.init(&InitContext { prompt, padding: ints(vec![0; batch]), vocab_size });
    let mut results = Vec::with_capacity(STEPS);
    for step in 0..STEPS {
        // The first step has no token before it.
        let before = |&row: &usize| if step == 0 { vocab_size as i32 } else { token(row, PROMPT + step) };
        let tokens = ints(rows.iter().map(before).collect());
        let context = StepContext { tokens, step: ints(vec![step as i32]) };
        let given: Vec<f32> =
            rows.iter().flat_map(|&row| (0..vocab_size).map(move |id| logit(row, step, id))).collect();
        let logits = TensorData::new(given.clone(), [batch, vocab_size]);
        let (logits, next) =
            processor.process(state, Tensor::from_data(logits, (device, DType::F32)), &context);
        state = next;
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
                at / vocab_size,
                logits[at]
            )));
        }
        results.push(logits);
    }
    Ok(results)
}

/// A logit; every fifth token is masked.
fn logit(row: usize, step: usize, id: usize) -> f32 {
    match (row + step + id) % 5 {
        0 => f32::NEG_INFINITY,
        _ => ((row * 31 + step * 17 + id * 13) % 101) as f32 / 10.0 - 5.0,
    }
}
