//! A logits processor of an application: text without the letter e. The embedded model writes an
//! object under a schema, and a real model writes a poem.
//!
//!     cargo run --release --example no_letter_e
//!     cargo run --release --example no_letter_e -- --model models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

use std::error::Error;
use std::path::PathBuf;

use burn::tensor::{Device, Tensor};
use burn_dfa::generation::{CausalLm, GenerationConfig};
use burn_dfa::processor::{InitContext, LogitsProcessor, StepContext};
use burn_dfa::{TokenId, Vocabulary};
use burn_dfa_decoder::{Generator, Pretrained};
use clap::Parser;

/// Text without the letter e.
#[derive(Parser)]
struct Args {
    /// A GGUF file, or a Hugging Face folder. Default: the embedded model, under a schema.
    #[arg(long, value_name = "PATH")]
    model: Option<PathBuf>,
    /// The prompt. Default: a sentence for the embedded model, and a request for a poem for others.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
}

/// Lowers the logits of tokens with the letter e.
struct NoLetterE {
    /// `[1, vocab_size]`
    bias: Tensor<2>,
}

impl NoLetterE {
    fn new(vocabulary: &Vocabulary, vocab_size: usize, device: &Device) -> Self {
        let has_e = |id: usize| {
            let bytes = vocabulary.bytes(TokenId(id as u32)).unwrap_or_default();
            bytes.iter().any(|byte| byte.eq_ignore_ascii_case(&b'e'))
        };
        let bias: Vec<f32> =
            (0..vocab_size).map(|id| if has_e(id) { f32::NEG_INFINITY } else { 0.0 }).collect();
        Self { bias: Tensor::<1>::from_floats(bias.as_slice(), device).unsqueeze() }
    }
}

impl LogitsProcessor for NoLetterE {
    type State = ();

    fn init(&self, _: &InitContext) {}

    fn process(&self, _: (), logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
        let bias = self.bias.clone().cast(logits.dtype());
        (logits + bias, ())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let device = Device::flex();
    let (pretrained, prompt, constraint) = match args.model {
        Some(path) => {
            (Pretrained::load(path, None, &device)?, "Write a short poem in the style of Shakespeare.", None)
        }
        None => {
            let schema = burn_dfa_tiny::schema("person").ok_or("no such schema")?;
            let sentence = "Meet Nora Keller, a 34 year old baker from Lisbon.";
            (burn_dfa_tiny::load(&device)?, sentence, Some(schema.constraint()?))
        }
    };
    let prompt = args.prompt.as_deref().unwrap_or(prompt);
    let vocab_size = pretrained.model().vocab_size();
    let no_e = NoLetterE::new(pretrained.vocabulary(), vocab_size, &device);

    let generator = Generator::new(pretrained).with_max_new_tokens(80);
    println!("with every letter\n{}\n", generator.generate(prompt, constraint.as_ref())?);
    let generator = generator.with_config(GenerationConfig::new().with_processor(no_e));
    println!("without e\n{}", generator.generate(prompt, constraint.as_ref())?);
    Ok(())
}
