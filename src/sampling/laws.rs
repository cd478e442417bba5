//! A check of the laws of samplers, for the tests of applications.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use super::{FusedSampler, Greedy, Sampler};
use crate::processor::laws::{caught, ids, in_each_dtype, value};
use crate::tensor::ints;
use burn_dfa_tokens::{Error, Result};

/// The number of different rows of logits.
const CASES: usize = 9;

/// Checks the [laws](Sampler#laws) in batches of `rows` rows of `vocab_size` logits, in each of
/// `f32`, `f16` and `bf16` that the device supports:
///
/// - the tokens have the shape `[rows]` and the dtype `i32`;
/// - every token is below `vocab_size` and has a logit above −∞, even if it is the only such token
///   of the row or all logits are low;
/// - a row takes the same token if the call is repeated, if the other rows change, and with one
///   `step` for all rows or one for each;
/// - [`sample_row`](Sampler::sample_row) and the sampler of [`fused`](Sampler::fused) choose the
///   tokens of [`sample`](Sampler::sample);
/// - the logits of the caller do not change.
///
/// If the sampler holds a value for each row, such as the seeds of a
/// [`GumbelMax`](super::GumbelMax), `rows` is the number of values; otherwise 3 is enough. Different
/// rows may take different tokens of the same logits.
///
/// It reads values back from the device: use it in a test, not in a loop.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind::Input) names the first law that does not hold. A panic of
/// the sampler breaks a law.
///
/// # Panics
/// If `rows` or `vocab_size` is 0.
///
/// ```
/// use burn::tensor::Device;
/// use burn_dfa::sampling::{GumbelMax, check_laws};
///
/// let device = Device::flex();
/// check_laws(&GumbelMax::new(&[7, 8, 9], 16, &device)?, 3, 16, &device)?;
/// // Another number of rows than seeds.
/// assert!(check_laws(&GumbelMax::new(&[7, 8], 16, &device)?, 3, 16, &device).is_err());
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub fn check_laws(sampler: &dyn Sampler, rows: usize, vocab_size: usize, device: &Device) -> Result<()> {
    assert!(rows > 0 && vocab_size > 0, "a batch of {rows} rows of {vocab_size} logits");
    in_each_dtype(device, |dtype, _| Laws { sampler, rows, vocab_size, device, dtype }.check())
}

/// A sampler, with logits of one dtype.
struct Laws<'a> {
    sampler: &'a dyn Sampler,
    rows: usize,
    vocab_size: usize,
    device: &'a Device,
    dtype: DType,
}

impl Laws<'_> {
    fn check(&self) -> Result<()> {
        let Laws { sampler, rows, .. } = *self;
        for first in 0..CASES {
            let cases: Vec<usize> = (0..rows).map(|row| (first + 2 * row) % CASES).collect();
            let steps: Vec<usize> = (first..first + rows).collect();
            let tokens = self.sample(&cases, &steps)?;
            let again = self.sample(&cases, &steps)?;
            let fused: Option<&dyn Sampler> = sampler.fused().map(|fused| match fused {
                FusedSampler::Greedy => &Greedy as &dyn Sampler,
                FusedSampler::GumbelMax(draw) => draw,
            });
            let fused = fused.map(|sampler| Laws { sampler, ..*self }.sample(&cases, &steps)).transpose()?;
            for row in 0..rows {
                let same = |law: &str, token: i32| match tokens[row] {
                    own if own == token => Ok(()),
                    own => Err(Error::input(format!("{law}: row {row} takes {token} instead of {own}"))),
                };
                same("the token of a row is another one in a repeated call", again[row])?;
                let mut others: Vec<usize> = cases.iter().map(|case| (case + 1) % CASES).collect();
                others[row] = cases[row];
                same("the token of a row depends on other rows", self.sample(&others, &steps)?[row])?;
                let law = "the token of a row depends on the shape of `step` or on the steps of other rows";
                let step = &steps[row..=row];
                same(law, self.sample(&cases, step)?[row])?;
                let sample = |logits, step: &Tensor<1, Int>| sampler.sample_row(row, rows, logits, step);
                let alone = self.call("`Sampler::sample_row`", &cases[row..=row], step, sample)?;
                same("`Sampler::sample_row` does not choose the token of `sample`", alone[0])?;
                let law = "the sampler of `Sampler::fused` does not choose the token of `sample`";
                same(law, fused.as_ref().map_or(tokens[row], |fused| fused[row]))?;
            }
        }
        Ok(())
    }

    /// The tokens of rows with the logits of `cases`, at one step for all rows or one for each.
    fn sample(&self, cases: &[usize], steps: &[usize]) -> Result<Vec<i32>> {
        self.call("`Sampler::sample`", cases, steps, |logits, step| self.sampler.sample(logits, step))
    }

    /// The tokens of a call, which is checked on its own.
    fn call(
        &self,
        name: &str,
        cases: &[usize],
        steps: &[usize],
        sample: impl FnOnce(Tensor<2>, &Tensor<1, Int>) -> Tensor<1, Int>,
    ) -> Result<Vec<i32>> {
        let (shape, vocab_size) = ([cases.len()], self.vocab_size);
        let logits = |case| (0..vocab_size).map(move |id| logit(case, id, vocab_size));
        let given: Vec<f32> = cases.iter().flat_map(|&case| logits(case)).collect();
        let logits = TensorData::new(given.clone(), [cases.len(), vocab_size]);
        let logits = Tensor::<2>::from_data(logits, (self.device, self.dtype));
        let (before, step) = (logits.to_data(), steps.iter().map(|&step| step as i32).collect());
        let step = ints(step, self.device);
        let call = format!("{name} with `step` of shape {:?}", step.dims());
        let tokens = caught(&call, || sample(logits.clone(), &step))?;
        let (found, dtype) = (tokens.dims(), tokens.dtype());
        if found != shape || dtype != DType::I32 {
            let problem = format!("returns {dtype:?} of shape {found:?} instead of I32 of shape {shape:?}");
            return Err(Error::input(format!("{call} {problem}")));
        }
        let tokens = ids(tokens)?;
        if logits.into_data() != before {
            return Err(Error::input(format!("{call} changes the logits of the caller")));
        }
        for (row, (&token, logits)) in tokens.iter().zip(given.chunks_exact(vocab_size)).enumerate() {
            let problem = match usize::try_from(token).ok().and_then(|id| logits.get(id)) {
                Some(&logit) if logit > f32::NEG_INFINITY => continue,
                Some(_) => "where it is masked".into(),
                None => format!("which has {vocab_size} logits"),
            };
            return Err(Error::input(format!("{call} chooses token {token} in row {row}, {problem}")));
        }
        Ok(tokens)
    }
}

/// A logit. In a third of the cases each, all tokens, few or one are legal; the first, a middle or
/// the last token is among them.
fn logit(case: usize, id: usize, vocab_size: usize) -> f32 {
    let stride = [1, 7, vocab_size][case % 3];
    let legal = [0, vocab_size / 2, vocab_size - 1][case / 3];
    if id % stride != legal % stride {
        return f32::NEG_INFINITY;
    }
    value(case, 0, id) - [1000.0, 0.0][case % 2]
}
