//! The filters on a remote device, whose server runs them.

use burn::backend::Remote;
use burn::backend::tensor::FloatTensor;

use super::FilterOps;
use crate::remote::{call, like, operation};

impl FilterOps for Remote {
    fn filter_top_k(logits: FloatTensor<Self>, k: FloatTensor<Self>) -> FloatTensor<Self> {
        filter(operation::TOP_K, logits, k)
    }

    fn filter_top_p(logits: FloatTensor<Self>, p: FloatTensor<Self>) -> FloatTensor<Self> {
        filter(operation::TOP_P, logits, p)
    }
}

fn filter(
    operation: &'static str,
    logits: FloatTensor<Remote>,
    wanted: FloatTensor<Remote>,
) -> FloatTensor<Remote> {
    let kept = like(&logits);
    let [kept] = call(operation, [logits, wanted], [kept], &[]);
    kept
}
