//! A watermark as a logits processor: the token before selects half of the vocabulary, the green
//! tokens, whose logits rise. Text with the watermark has more green tokens than chance gives,
//! which anyone with the hash can count.
//!
//! Source: Kirchenbauer et al., "A Watermark for Large Language Models", 2023.
//!
//!     cargo run --release --example watermark

use std::error::Error;

use burn::tensor::DType;
use burn_dfa::prelude::*;
use burn_dfa::processor::Constant;

/// Raises the logits of green tokens.
struct Watermark {
    bias: f32,
}

/// Odd numbers for the hash of two token ids.
const FACTORS: [i32; 2] = [0x2c1b_3c6d, 0x297a_2d39];

/// Whether a token is green after another one: the sign of a hash.
fn is_green(before: TokenId, token: TokenId) -> bool {
    let hash = (before.0 as i32).wrapping_mul(FACTORS[0]).wrapping_add(token.0 as i32);
    hash.wrapping_mul(FACTORS[1]) < 0
}

impl LogitsProcessor for Watermark {
    /// `[1, vocab_size]`: the ids of all tokens. The state depends on no row.
    type State = Constant<Tensor<2, Int>>;

    fn init(&self, context: &InitContext) -> Self::State {
        let ids = Tensor::arange(0..context.vocab_size as i64, (&context.device(), DType::I32));
        Constant(ids.unsqueeze())
    }

    fn process(
        &self,
        ids: Self::State,
        logits: Tensor<2>,
        context: &StepContext,
    ) -> (Tensor<2>, Self::State) {
        let before = context.tokens.clone().cast(DType::I32).reshape([-1, 1]) * FACTORS[0];
        let [batch, vocab_size] = logits.dims();
        let hash = before.expand([batch, vocab_size]) + ids.0.clone().expand([batch, vocab_size]);
        let is_green = (hash * FACTORS[1]).lower_elem(0);
        let raised = logits.clone() + self.bias;
        (logits.mask_where(is_green, raised), ids)
    }
}

/// The number of green tokens after the first token, in standard deviations above chance.
fn score(tokens: &[TokenId]) -> f64 {
    let pairs = tokens.len().saturating_sub(1) as f64;
    let green = tokens.windows(2).filter(|pair| is_green(pair[0], pair[1])).count() as f64;
    (green - 0.5 * pairs) / (0.25 * pairs).sqrt()
}

fn main() -> Result<(), Box<dyn Error>> {
    let tiny = burn_dfa_tiny::load(&Device::flex())?;
    let letters = Constraint::regex("[A-Za-z ,.]{120,160}")?.compile(tiny.vocabulary())?;
    let request = Request::new(tiny.prompt("Meet Nora Keller, a 34 year old baker from Lisbon.")?, 200);
    let request = request.with_constraint(&letters).with_seed(7);
    let config = GenerationConfig::new().with_temperature(1.5);
    for (name, config) in
        [("plain", config.clone()), ("watermark", config.with_processor(Watermark { bias: 6.0 }))]
    {
        let output = &generate(tiny.model(), tiny.vocabulary(), std::slice::from_ref(&request), &config)?[0];
        println!("{name:9} {:5.1} standard deviations: {}", score(&output.tokens), output.text());
    }
    Ok(())
}
