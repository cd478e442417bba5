//! A logits processor of an application next to a schema: text without the letter e.
//!
//!     cargo run --release --example no_letter_e -- "Meet Nora Keller, a 34 year old baker from Lisbon."

use std::error::Error;

use burn::tensor::{Device, Tensor};
use burn_dfa::Vocabulary;
use burn_dfa::generation::{GenerationConfig, Request, generate};
use burn_dfa::processor::{InitContext, LogitsProcessor, StepContext};
use burn_dfa::{Compile, TokenId};

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
    let sentence = std::env::args().nth(1);
    let sentence = sentence.unwrap_or("Meet Nora Keller, a 34 year old baker from Lisbon.".to_owned());
    let device = Device::flex();
    let tiny = burn_dfa_tiny::load(&device)?;
    let (model, vocabulary) = (tiny.model(), tiny.vocabulary());
    let schema = burn_dfa_tiny::schema("person").ok_or("no such schema")?;
    let person = schema.constraint()?.compile(vocabulary)?;
    let requests = [Request::new(tiny.prompt(&sentence)?, 60).with_constraint(&person)];

    let no_e = NoLetterE::new(vocabulary, burn_dfa::generation::CausalLm::vocab_size(model), &device);
    let configs =
        [("schema", GenerationConfig::new()), ("schema, no e", GenerationConfig::new().with_processor(no_e))];
    for (name, config) in configs {
        let outputs = generate(model, vocabulary, &requests, &config)?;
        println!("{name:13} {}", outputs[0].text());
    }
    Ok(())
}
