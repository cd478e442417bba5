//! An automaton over tokens, given by its transitions, as for Bumblebee's DFA processor: the tokens
//! 1, 2 and 3, twice.
//!
//!     cargo run --release --example dfa_123123
//!     cargo run --release --example dfa_123123 -- --model models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

use std::error::Error;
use std::path::PathBuf;

use burn::tensor::Device;
use burn_dfa::constraint::Transitions;
use burn_dfa::{Constraint, TokenId, Vocabulary};
use burn_dfa_decoder::{Generator, Pretrained};
use clap::Parser;

/// The tokens 1, 2 and 3, twice.
#[derive(Parser)]
struct Args {
    /// A GGUF file, or a Hugging Face folder. Default: the embedded model.
    #[arg(long, value_name = "PATH")]
    model: Option<PathBuf>,
    /// The prompt.
    #[arg(long, value_name = "TEXT", default_value = "Count to three, twice.")]
    prompt: String,
}

/// The token that is exactly this text.
fn token(vocabulary: &Vocabulary, text: &str) -> Result<TokenId, Box<dyn Error>> {
    let found = vocabulary.iter().find(|(_, bytes)| *bytes == text.as_bytes());
    found.map(|(id, _)| id).ok_or_else(|| format!("no token is {text:?}").into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let device = Device::flex();
    let pretrained = match args.model {
        Some(path) => Pretrained::load(path, None, &device)?,
        None => burn_dfa_tiny::load(&device)?,
    };
    let vocabulary = pretrained.vocabulary();

    // From state 0, a token after the other to state 6, where the output ends.
    let mut transitions = Vec::new();
    for (state, text) in ["1", "2", "3", "1", "2", "3"].into_iter().enumerate() {
        let state = state as u32;
        transitions.push((state, token(vocabulary, text)?, state + 1));
    }
    let constraint = Constraint::transitions(Transitions::new(0, [6], transitions)?);

    let generator = Generator::new(pretrained).with_max_new_tokens(12);
    println!("free         {:?}", generator.generate(args.prompt.as_str(), None)?);
    println!("constrained  {:?}", generator.generate(args.prompt.as_str(), &constraint)?);
    Ok(())
}
