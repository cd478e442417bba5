//! Top-k and top-p with Burn's built-in operations: the reference, and the fallback for backends
//! without fused operations.

use burn::tensor::{DType, Tensor};

/// Halvings of the interval that contains top-p's least.
const HALVINGS: usize = 48;
/// exp(−40) · 2¹⁸ is below the tolerance of top-p.
const REACH: f32 = 40.0;

/// See [`top_k`](super::top_k).
pub(super) fn top_k(logits: Tensor<2>, k: Tensor<1>) -> Tensor<2> {
    let [batch, vocab_size] = logits.dims();
    let ranks = ranks(&logits);
    let sorted = ranks.clone().sort_descending(1);
    let last = (k.int().cast(DType::I32) - 1).clamp(0, vocab_size as i32 - 1);
    let last = last.expand([batch]).reshape([batch, 1]);
    let least = sorted.gather(1, last);
    keep(logits, ranks, least)
}

/// See [`top_p`](super::top_p). Bisects the values, so logits closer than 2⁻⁴⁸ of the row's range
/// (at most 40) may be kept together.
pub(super) fn top_p(logits: Tensor<2>, p: Tensor<1>) -> Tensor<2> {
    let p = p.reshape([-1, 1]);
    let dims = logits.dims();
    let ranks = ranks(&logits);
    let greatest = ranks.clone().max_dim(1);
    // exp(∞ − ∞) is NaN, so set the weight of the greatest to 1 explicitly.
    let is_greatest = ranks.clone().greater_equal(greatest.clone().expand(dims));
    let weights = (ranks.clone() - greatest.clone().expand(dims)).exp().mask_fill(is_greatest, 1.0);
    let target = weights.clone().sum_dim(1) * p.clone();
    let reaches = |value: Tensor<2>| {
        let below = ranks.clone().lower(value.expand(dims));
        weights.clone().mask_fill(below, 0.0).sum_dim(1).greater_equal(target.clone())
    };
    // The mass from `low` up reaches p; the mass from `high` up does not, or `high` is the
    // greatest.
    let finite =
        ranks.clone().mask_where(ranks.clone().equal_elem(f32::NEG_INFINITY), greatest.clone().expand(dims));
    let mut low = finite.min_dim(1).max_pair(greatest.clone() - REACH);
    let mut high = greatest.clone();
    for _ in 0..HALVINGS {
        let middle = low.clone() + (high.clone() - low.clone()) * 0.5;
        let reached = reaches(middle.clone());
        low = low.mask_where(reached.clone(), middle.clone());
        high = middle.mask_where(reached, high);
    }
    // If the greatest alone reaches p, the interval shrinks toward the greatest without reaching
    // it.
    let least = low.mask_where(reaches(greatest.clone()), greatest);
    let everything = p.greater_equal_elem(1.0).expand(least.dims());
    let least = least.mask_fill(everything, f32::NEG_INFINITY);
    keep(logits, ranks, least)
}

/// In f32, NaN as +∞.
fn ranks(logits: &Tensor<2>) -> Tensor<2> {
    let values = logits.clone().cast(DType::F32);
    let nan = values.clone().is_nan();
    values.mask_fill(nan, f32::INFINITY)
}

/// Masks logits whose `ranks` are below `least`, `[batch, 1]`.
fn keep(logits: Tensor<2>, ranks: Tensor<2>, least: Tensor<2>) -> Tensor<2> {
    let below = ranks.lower(least.expand(logits.dims()));
    logits.mask_fill(below, f32::NEG_INFINITY)
}
