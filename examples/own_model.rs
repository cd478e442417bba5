//! A custom model that implements `CausalLm`: a small recurrent network of Burn's layers with
//! random weights.
//!
//!     cargo run --release --example own_model

use burn::module::Module;
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig};
use burn_dfa::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

const HIDDEN: usize = 32;

/// Each token changes the memory of the network, and the memory determines the next token.
#[derive(Module, Debug)]
struct Network {
    embedding: Embedding,
    mix: Linear,
    head: Linear,
}

impl Network {
    fn new(vocab_size: usize, device: &Device) -> Self {
        Self {
            embedding: EmbeddingConfig::new(vocab_size, HIDDEN).init(device),
            mix: LinearConfig::new(2 * HIDDEN, HIDDEN).init(device),
            head: LinearConfig::new(HIDDEN, vocab_size).init(device),
        }
    }

    /// The memory after one more token, `[batch, HIDDEN]`.
    fn remember(&self, tokens: Tensor<1, Int>, memory: Tensor<2>) -> Tensor<2> {
        let tokens = self.embedding.forward(tokens.reshape([-1, 1])).squeeze_dim(1);
        self.mix.forward(Tensor::cat(vec![tokens, memory], 1)).tanh()
    }
}

impl CausalLm for Network {
    /// The memory of the network.
    type Cache = Tensor<2>;

    fn device(&self) -> Device {
        self.head.weight.device()
    }

    fn vocab_size(&self) -> usize {
        self.head.weight.dims()[1]
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        _capacity: usize,
    ) -> (Tensor<2>, Tensor<2>) {
        let [batch, length] = tokens.dims();
        let mut memory = Tensor::zeros([batch, HIDDEN], &tokens.device());
        for at in 0..length {
            let token = tokens.clone().slice([0..batch, at..at + 1]).reshape([batch]);
            // A row begins after its padding.
            let begun =
                padding.clone().lower_equal_elem(at as i64).reshape([batch, 1]).expand([batch, HIDDEN]);
            memory = memory.clone().mask_where(begun, self.remember(token, memory));
        }
        (self.head.forward(memory.clone()), memory)
    }

    fn step(&self, tokens: Tensor<1, Int>, memory: &mut Tensor<2>) -> Tensor<2> {
        *memory = self.remember(tokens, memory.clone());
        self.head.forward(memory.clone())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
enum Answer {
    Yes,
    No,
    Perhaps,
}

fn main() -> burn_dfa::Result<()> {
    // Ids 0 to 94 are the printable characters, 95 ends the sequence.
    let vocabulary = Vocabulary::from_chars(' '..='~')?.pad_to(96)?.with_eos([TokenId(95)])?;
    let model = Network::new(vocabulary.len(), &Device::default());
    let config = GenerationConfig::new().with_temperature(1.0);

    let date = Constraint::regex(r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")?;
    let date = date.compile(&vocabulary)?;
    let prompts = [vec![TokenId(36)], vec![TokenId(37), TokenId(50)]];
    let requests = prompts.map(|prompt| Request::new(prompt, 16).with_constraint(&date));
    for (row, output) in generate(&model, &vocabulary, &requests, &config)?.iter().enumerate() {
        println!("row {row}: {}", output.text());
    }

    let answer: Answer = generate_choice(&model, &vocabulary, Request::new(vec![TokenId(40)], 16), &config)?;
    println!("Answer: {answer:?}");
    Ok(())
}
