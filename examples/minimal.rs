//! A toy vocabulary and random logits: the smallest loop around a `ConstraintProcessor`.
//!
//!     cargo run --release --example minimal

use burn::tensor::Distribution;
use burn_dfa::prelude::*;
use burn_dfa::sampling::Greedy;
use burn_dfa::{DeviceConstraint, TensorOptions};

fn main() -> burn_dfa::Result<()> {
    // Ids 0 to 5 are text, 6 ends the sequence.
    let words = ["0", "1", "12", "ab", "-", "é"].map(|word| Some(word.as_bytes().to_vec()));
    let vocabulary = Vocabulary::from_bytes(words.into_iter().chain([None]))?.with_eos([TokenId(6)])?;

    // Compile the regex once, on the host, to a constraint over tokens, and upload it to the
    // device.
    let constraint = Constraint::regex(r"\d{3}-\d{3}")?.compile(&vocabulary)?;
    let device = Device::default();
    let tensors =
        DeviceConstraint::new(&[&constraint], vocabulary.len(), &TensorOptions::default(), &device)?;

    // Two rows with the same constraint; each is complete within eight tokens.
    let processor = ConstraintProcessor::new(tensors, &[0, 0])?.with_budgets(&[8, 8])?;
    let mut state = processor.start();
    let mut steps = Vec::new();
    for _ in 0..8 {
        let logits = Tensor::<2>::random([2, 7], Distribution::Normal(0.0, 1.0), &device);
        let masked = processor.mask(&state, logits);
        let tokens = Greedy.sample(masked, &Tensor::<1, Int>::zeros([1], &device));
        state = processor.advance(state, tokens.clone());
        steps.push(tokens.reshape([2, 1]));
    }

    // The only read from the device.
    let tokens = Tensor::cat(steps, 1).into_data().try_to_vec::<i32>().expect("tokens are i32");
    for row in tokens.chunks(8) {
        let ids: Vec<_> = row.iter().map(|&id| TokenId(id as u32)).collect();
        println!("{row:?} {}", String::from_utf8_lossy(&vocabulary.decode(&ids)));
    }
    Ok(())
}
