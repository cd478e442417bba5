//! A vocabulary of 65 characters and a format: speaker in capitals, colon, words in small letters,
//! line feed.
//!
//! The example uses the same format twice: as *static masks*, one set of characters per position,
//! and as a *pattern* of classes with quantifiers, `UPPER+: LOWER+\n`. The model counts the pairs
//! of characters of a text.
//!
//!     cargo run --release --example nanogpt_format -- --text FILE

use std::error::Error;
use std::path::PathBuf;

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_dfa::constraint::CharPattern;
use burn_dfa::generation::{CausalLm, GenerationConfig, Request, generate};
use burn_dfa::{CompiledConstraint, Constraint, Limits, TokenId, Vocabulary};
use clap::Parser;

/// The characters of nanoGPT's Shakespeare model, in its order.
const CHARACTERS: &str = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The id after the characters ends the output.
const EOS: TokenId = TokenId(65);
const VOCAB_SIZE: usize = 66;
const SEEDS: u64 = 5;

/// Character bigrams under a format.
#[derive(Parser)]
struct Args {
    /// The text to count. Default: the short dialogue of this example.
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let text = match Args::parse().text {
        Some(path) => {
            std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?
        }
        None => include_str!("data/dialogue.txt").to_owned(),
    };
    let device = Device::default();
    let model = Bigram::count(&text, &device)?;
    let vocabulary = Vocabulary::from_chars(CHARACTERS.chars())?.pad_to(VOCAB_SIZE)?.with_eos([EOS])?;

    let set = |characters: &str| -> Vec<TokenId> { characters.chars().filter_map(id).collect() };
    let (upper, lower) = (set(&CHARACTERS[13..39]), set(&CHARACTERS[39..]));
    let mut sets = vec![upper; 5];
    sets.extend([set(":"), set(" ")]);
    sets.extend(vec![lower; 7]);
    sets.push(set("\n"));
    let masks = Constraint::token_sets(sets)?;
    let pattern = Constraint::pattern(CharPattern::parse("UPPER+: LOWER+\n")?);

    for (name, constraint) in [("static masks", masks), ("UPPER+: LOWER+\\n", pattern)] {
        let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default())?;
        println!("{name}: {} states, {} classes", compiled.state_count(), compiled.class_count());
        let start = id('\n').map(|newline| vec![newline]).unwrap_or_default();
        let requests: Vec<_> = (0..SEEDS)
            .map(|seed| Request::new(start.clone(), 32).with_constraint(&compiled).with_seed(seed))
            .collect();
        let config = GenerationConfig::new().with_temperature(1.0);
        let outputs = generate(&model, &vocabulary, &requests, &config)?;
        for (seed, output) in outputs.iter().enumerate() {
            println!("  seed {seed}: {:?}", output.text());
        }
    }
    Ok(())
}

fn id(character: char) -> Option<TokenId> {
    CHARACTERS.chars().position(|c| c == character).map(|id| TokenId(id as u32))
}

/// The logarithms of the counts of character pairs.
struct Bigram {
    /// `[VOCAB_SIZE, VOCAB_SIZE]`
    logits: Tensor<2>,
}

impl Bigram {
    /// Counts the pairs of `text`, starting from 1.
    fn count(text: &str, device: &Device) -> Result<Self, Box<dyn Error>> {
        let mut counts = vec![1f32; VOCAB_SIZE * VOCAB_SIZE];
        let mut before = None;
        for (offset, character) in text.char_indices() {
            let next = id(character)
                .ok_or_else(|| format!("byte {offset}: {character:?} is not one of the 65 characters"))?;
            if let Some(TokenId(before)) = before {
                counts[before as usize * VOCAB_SIZE + next.index()] += 1.0;
            }
            before = Some(next);
        }
        let logits = counts.into_iter().map(f32::ln).collect();
        Ok(Self { logits: Tensor::from_data(TensorData::new(logits, [VOCAB_SIZE, VOCAB_SIZE]), device) })
    }
}

impl CausalLm for Bigram {
    type Cache = ();

    fn device(&self) -> Device {
        self.logits.device()
    }

    fn vocab_size(&self) -> usize {
        VOCAB_SIZE
    }

    fn prefill(&self, tokens: Tensor<2, Int>, _padding: Tensor<1, Int>, _capacity: usize) -> (Tensor<2>, ()) {
        let [batch, length] = tokens.dims();
        let last = tokens.slice([0..batch, length - 1..length]).reshape([batch]);
        (self.step(last, &mut ()), ())
    }

    fn step(&self, tokens: Tensor<1, Int>, _cache: &mut ()) -> Tensor<2> {
        self.logits.clone().select(0, tokens)
    }
}
