//! Top-k and top-p on Flex: by search, with Burn's built-in operations, and by a sort on the host.
//!
//! `cargo bench --bench samplers`. Each timed region takes shared logits and ends with the masked
//! row in memory.

use burn::tensor::activation::softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_dfa::processor::{InitContext, LogitsProcessor, StepContext, TopK, TopP};
use divan::{Bencher, black_box};
use rand::{Rng, SeedableRng, rngs::StdRng};

fn main() {
    divan::main();
}

/// The vocabulary size and the number of rows.
const SIZES: [(usize, usize); 4] = [(49_152, 1), (49_152, 8), (200_000, 1), (200_000, 8)];
const K: usize = 50;
const P: f32 = 0.9;

/// Logits with a standard deviation of 3.
fn values(vocab_size: usize, batch: usize) -> Vec<f32> {
    let rng = &mut StdRng::seed_from_u64(1);
    let mut normal = || (0..12).map(|_| rng.random_range(-0.5f32..0.5)).sum::<f32>();
    (0..vocab_size * batch).map(|_| 3.0 * normal()).collect()
}

fn logits((vocab_size, batch): (usize, usize)) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values(vocab_size, batch), [batch, vocab_size]), &Device::flex())
}

fn processor<P: LogitsProcessor>(bencher: Bencher, processor: P, size: (usize, usize)) {
    let logits = logits(size);
    let device = logits.device();
    let context = StepContext {
        tokens: Tensor::<1, Int>::zeros([size.1], &device),
        step: Tensor::<1, Int>::zeros([1], &device),
    };
    let state = processor.init(&InitContext {
        prompt: Tensor::zeros([size.1, 1], &device),
        padding: Tensor::zeros([size.1], &device),
        vocab_size: size.0,
    });
    bencher.bench_local(|| processor.process(state.clone(), black_box(logits.clone()), &context).0);
}

#[divan::bench(args = SIZES)]
fn top_k(bencher: Bencher, size: (usize, usize)) {
    processor(bencher, TopK::new(K).unwrap(), size);
}

#[divan::bench(args = SIZES)]
fn top_p(bencher: Bencher, size: (usize, usize)) {
    processor(bencher, TopP::new(P).unwrap(), size);
}

#[divan::bench(args = SIZES)]
fn top_k_built_in(bencher: Bencher, size: (usize, usize)) {
    let logits = logits(size);
    bencher.bench_local(|| {
        let logits = black_box(logits.clone());
        let least = logits.clone().topk(K, 1).min_dim(1).expand(logits.dims());
        let below = logits.clone().lower(least);
        logits.mask_fill(below, f32::NEG_INFINITY)
    });
}

#[divan::bench(args = SIZES)]
fn top_p_built_in(bencher: Bencher, size: (usize, usize)) {
    let logits = logits(size);
    bencher.bench_local(|| {
        let logits = black_box(logits.clone());
        let sorted = logits.clone().sort_descending(1);
        let probabilities = softmax(sorted.clone(), 1);
        let before = probabilities.clone().cumsum(1) - probabilities;
        let least = sorted.mask_fill(before.greater_equal_elem(P), f32::INFINITY).min_dim(1);
        let below = logits.clone().lower(least.expand(logits.dims()));
        logits.mask_fill(below, f32::NEG_INFINITY)
    });
}

/// A reference on the host, for a row in host memory: sort, sum, mask.
fn host_sort(bencher: Bencher, (vocab_size, batch): (usize, usize), kept: impl Fn(&[f32]) -> usize) {
    let values = values(vocab_size, batch);
    bencher.bench_local(|| {
        let mut values = black_box(values.clone());
        for row in values.chunks_exact_mut(vocab_size) {
            let mut sorted = row.to_vec();
            sorted.sort_unstable_by(|a, b| b.total_cmp(a));
            let least = sorted[kept(&sorted) - 1];
            for x in row {
                *x = if *x < least { f32::NEG_INFINITY } else { *x };
            }
        }
        values
    });
}

#[divan::bench(args = SIZES)]
fn top_k_host_sort(bencher: Bencher, size: (usize, usize)) {
    host_sort(bencher, size, |_| K);
}

#[divan::bench(args = SIZES)]
fn top_p_host_sort(bencher: Bencher, size: (usize, usize)) {
    host_sort(bencher, size, |sorted| {
        let weights: Vec<f32> = sorted.iter().map(|x| (x - sorted[0]).exp()).collect();
        let total: f32 = weights.iter().sum();
        let mut mass = 0.0;
        let reaches = |&weight: &f32| {
            mass += weight;
            mass >= P * total
        };
        weights.iter().position(reaches).map_or(weights.len(), |last| last + 1)
    });
}
