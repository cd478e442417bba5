//! The filters on a server.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Remote, backend_extension};
use burn::tensor::Tensor;

use crate::remote::{OPERATIONS, call, like};

#[backend_extension(Remote)]
trait HostedFilters: Backend {
    /// See [`super::top_k`].
    fn hosted_top_k(logits: FloatTensor<Self>, k: FloatTensor<Self>) -> FloatTensor<Self>;

    /// See [`super::top_p`].
    fn hosted_top_p(logits: FloatTensor<Self>, p: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl HostedFilters for Remote {
    fn hosted_top_k(logits: FloatTensor<Self>, k: FloatTensor<Self>) -> FloatTensor<Self> {
        filter(OPERATIONS.top_k, logits, k)
    }

    fn hosted_top_p(logits: FloatTensor<Self>, p: FloatTensor<Self>) -> FloatTensor<Self> {
        filter(OPERATIONS.top_p, logits, p)
    }
}

fn filter(
    operation: &'static str,
    logits: FloatTensor<Remote>,
    wanted: FloatTensor<Remote>,
) -> FloatTensor<Remote> {
    let kept = like(&logits);
    let [kept] = call(operation, [logits, wanted], [kept], Vec::new());
    kept
}

/// [`super::top_k`] on a server.
pub(super) fn top_k(logits: Tensor<2>, k: Tensor<1>) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as HostedFilters>::hosted_top_k(
        logits.into_dispatch(),
        k.into_dispatch(),
    ))
}

/// [`super::top_p`] on a server.
pub(super) fn top_p(logits: Tensor<2>, p: Tensor<1>) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as HostedFilters>::hosted_top_p(
        logits.into_dispatch(),
        p.into_dispatch(),
    ))
}
