//! Top-k and top-p by a search for a threshold, without sorting a row.
//!
//! Both keep the logits at or above a threshold, a logit of the row called the *least*, and mask
//! the rest with −∞. NaN ranks as +∞. The least is:
//! - top-k: the `k`-th greatest, counted with repetition;
//! - top-p: the greatest logit such that the total probability of the logits at or above it reaches
//!   `p`.
//!
//! Probabilities are integers ([`weight`]), so their sums are exact: the result does not depend on
//! the order of summation, and so not on the backend, the batch or the number of threads.

mod built_in;
#[cfg(feature = "cube")]
mod cube;
#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "remote")]
mod remote;
#[cfg(feature = "cube")]
mod search;
mod weight;

use burn::backend::{Backend, Dispatch, backend_extension, tensor::FloatTensor};
use burn::tensor::Tensor;

use crate::tensor::{is_fused, reads};

/// The maximum vocabulary size of the fused operations: integers up to this one are exact in `f32`.
const MAX_VOCAB_SIZE: usize = 1 << 24;
/// The maximum vocabulary size for sums of probabilities: 32 bits hold every partial sum of a GPU
/// kernel.
const MAX_SUMMED: usize = 1 << 18;

#[backend_extension(
    Fusion: cfg(feature = "fusion"),
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cube"),
    Remote: cfg(feature = "remote"),
)]
pub(crate) trait FilterOps: Backend {
    /// See [`top_k`].
    #[fusion(meta = |logits, _k| logits.clone())]
    fn filter_top_k(logits: FloatTensor<Self>, k: FloatTensor<Self>) -> FloatTensor<Self>;

    /// See [`top_p`].
    #[fusion(meta = |logits, _p| logits.clone())]
    fn filter_top_p(logits: FloatTensor<Self>, p: FloatTensor<Self>) -> FloatTensor<Self>;
}

/// Keeps the `k` greatest logits of a row and all logits equal to the least of them; all logits if
/// `k` is `vocab_size`.
///
/// # Shapes
/// - `k`: `[1]`, or `[batch]` if rows differ; `f32`, whole numbers from 1 to `vocab_size`
pub(crate) fn top_k(logits: Tensor<2>, k: Tensor<1>) -> Tensor<2> {
    match fused(&logits, MAX_VOCAB_SIZE) {
        true => Tensor::from_dispatch(Dispatch::filter_top_k(logits.into_dispatch(), k.into_dispatch())),
        false => built_in::top_k(logits, k),
    }
}

/// Keeps the smallest set of likeliest tokens whose probability reaches `p`, and all tokens equal
/// to the least of them; all tokens if `p` is 1.
///
/// # Shapes
/// - `p`: `[1]`, or `[batch]` if rows differ; `f32`, above 0, at most 1
pub(crate) fn top_p(logits: Tensor<2>, p: Tensor<1>) -> Tensor<2> {
    match fused(&logits, MAX_SUMMED) {
        true => Tensor::from_dispatch(Dispatch::filter_top_p(logits.into_dispatch(), p.into_dispatch())),
        false => built_in::top_p(logits, p),
    }
}

/// Whether the fused operations take these logits.
fn fused(logits: &Tensor<2>, widest: usize) -> bool {
    is_fused(&logits.device()) && reads(logits.dtype()) && logits.dims()[1] <= widest
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;

    /// Values with ties, with some −∞ in every row, and NaN and +∞ in the last row.
    fn rows(vocab_size: usize) -> Vec<f32> {
        let value = |i: usize| ((i * 7919) % 1009) as f32 * 0.02 - 10.0;
        let mut values: Vec<f32> = (0..4 * vocab_size).map(value).collect();
        values.iter_mut().step_by(5).for_each(|x| *x = f32::NEG_INFINITY);
        values[3 * vocab_size + 1] = f32::NAN;
        values[3 * vocab_size + 2] = f32::INFINITY;
        values
    }

    fn bits(logits: Tensor<2>) -> Vec<u32> {
        logits.into_data().try_to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
    }

    #[test]
    fn built_in_and_fused_operations_agree() {
        let device = Device::default();
        for vocab_size in [7, 400, 5000] {
            let logits = Tensor::<2>::from_data(TensorData::new(rows(vocab_size), [4, vocab_size]), &device);
            assert!(fused(&logits, MAX_SUMMED));
            let wanted = |wanted: &[f32]| Tensor::<1>::from_floats(wanted, &device);
            for k in [&[1.0][..], &[3.0], &[6.0], &[1.0, 5.0, vocab_size as f32, 2.0]] {
                let built_in = built_in::top_k(logits.clone(), wanted(k));
                assert_eq!(
                    bits(top_k(logits.clone(), wanted(k))),
                    bits(built_in),
                    "{vocab_size} wide, k of {k:?}"
                );
            }
            // No `p` is within the tolerance of a cumulative probability of the rows.
            for p in [&[0.123][..], &[0.5001], &[0.9], &[0.987], &[0.9, 1.0, 0.123, 0.5001]] {
                let built_in = built_in::top_p(logits.clone(), wanted(p));
                assert_eq!(
                    bits(top_p(logits.clone(), wanted(p))),
                    bits(built_in),
                    "{vocab_size} wide, p of {p:?}"
                );
            }
        }
    }
}
