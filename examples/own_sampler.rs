//! A sampler of an application: top-nσ, which draws among the tokens whose logits are at most *n*
//! standard deviations below the greatest.
//!
//! Source: Tang et al., "Top-nσ: Not All Logits Are You Need", 2024 (arXiv:2411.07641).
//!
//!     cargo run --release --example own_sampler

use std::error::Error;

use burn::tensor::DType;
use burn_dfa::prelude::*;
use burn_dfa::sampling::{GumbelMax, check_laws};

struct TopNSigma {
    n: f32,
    /// Draws from the softmax of the kept logits.
    draw: GumbelMax,
}

impl Sampler for TopNSigma {
    fn sample(&self, logits: Tensor<2>, step: &Tensor<1, Int>) -> Tensor<1, Int> {
        let logits = logits.cast(DType::F32);
        // Masked tokens do not count.
        let masked = logits.clone().equal_elem(f32::NEG_INFINITY);
        let count = masked.clone().bool_not().float().cast(DType::F32).sum_dim(1);
        let mean = logits.clone().mask_fill(masked.clone(), 0.0).sum_dim(1) / count.clone();
        let distance = (logits.clone() - mean).mask_fill(masked, 0.0);
        let sigma = ((distance.clone() * distance).sum_dim(1) / count).sqrt();
        let least = logits.clone().max_dim(1) - sigma * self.n;
        let below = logits.clone().lower(least.expand(logits.dims()));
        self.draw.sample(logits.mask_fill(below, f32::NEG_INFINITY), step)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();
    // An application checks this in a test.
    check_laws(&TopNSigma { n: 1.0, draw: GumbelMax::new(&[1, 2, 3], 16, &device)? }, 3, 16, &device)?;

    let tiny = burn_dfa_tiny::load(&device)?;
    let name = Constraint::regex("[A-Z][a-z]{2,9} [A-Z][a-z]{2,9}")?.compile(tiny.vocabulary())?;
    let prompt = tiny.prompt("Meet Nora Keller, a 34 year old baker from Lisbon.")?;
    let requests = [(); 3].map(|()| Request::new(prompt.clone(), 24).with_constraint(&name));
    for n in [0.0, 1.0, 3.0] {
        let draw = GumbelMax::new(&[1, 2, 3], tiny.model().vocab_size(), &device)?;
        let config = GenerationConfig::new().with_sampler(TopNSigma { n, draw });
        let outputs = generate(tiny.model(), tiny.vocabulary(), &requests, &config)?;
        println!("{n} σ: {}", outputs.iter().map(Output::text).collect::<Vec<_>>().join(", "));
    }
    Ok(())
}
