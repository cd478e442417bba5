//! A transformer of an application in three steps: without a cache, with a cache of keys and
//! values, and in a recorded batch. It has random weights.
//!
//!     cargo run --release --example own_transformer

use burn::module::Module;
use burn::nn::attention::generate_autoregressive_mask;
use burn::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::DType;
use burn::tensor::activation::{gelu, softmax};
use burn_dfa::generation::speculative::{PromptLookup, speculate};
use burn_dfa::generation::{Cached, KvContext, KvShape, Recompute, Recordable, Transformer};
use burn_dfa::prelude::*;
use burn_dfa::{Capacity, TensorOptions};

const LAYERS: usize = 2;
const HEADS: usize = 4;
const HEAD_DIM: usize = 16;
const HIDDEN: usize = HEADS * HEAD_DIM;
const POSITIONS: usize = 128;

#[derive(Module, Debug)]
struct Block {
    before_attention: LayerNorm,
    qkv: Linear,
    out: Linear,
    before_mlp: LayerNorm,
    up: Linear,
    down: Linear,
}

#[derive(Module, Debug)]
struct Network {
    tokens: Embedding,
    positions: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Linear,
}

impl Network {
    fn new(vocab_size: usize, device: &Device) -> Self {
        let linear = |from, to| LinearConfig::new(from, to).init(device);
        let norm = || LayerNormConfig::new(HIDDEN).init(device);
        let block = |_| Block {
            before_attention: norm(),
            qkv: linear(HIDDEN, 3 * HIDDEN),
            out: linear(HIDDEN, HIDDEN),
            before_mlp: norm(),
            up: linear(HIDDEN, 2 * HIDDEN),
            down: linear(2 * HIDDEN, HIDDEN),
        };
        Self {
            tokens: EmbeddingConfig::new(vocab_size, HIDDEN).init(device),
            positions: EmbeddingConfig::new(POSITIONS, HIDDEN).init(device),
            blocks: (0..LAYERS).map(block).collect(),
            norm: norm(),
            head: linear(HIDDEN, vocab_size),
        }
    }

    /// The hidden state after each token, `[rows, count, HIDDEN]`. `attend` mixes the values of a
    /// layer by its queries and keys, each `[rows, HEADS, count, HEAD_DIM]`.
    fn hidden(
        &self,
        tokens: Tensor<2, Int>,
        positions: Tensor<2, Int>,
        mut attend: impl FnMut(usize, [Tensor<4>; 3]) -> Tensor<4>,
    ) -> Tensor<3> {
        let [rows, count] = tokens.dims();
        let mut x = self.tokens.forward(tokens) + self.positions.forward(positions);
        for (layer, block) in self.blocks.iter().enumerate() {
            let qkv = block.qkv.forward(block.before_attention.forward(x.clone()));
            let qkv = [0, 1, 2].map(|part| {
                let part = qkv.clone().narrow(2, part * HIDDEN, HIDDEN);
                part.reshape([rows, count, HEADS, HEAD_DIM]).swap_dims(1, 2)
            });
            let mixed = attend(layer, qkv).swap_dims(1, 2).reshape([rows, count, HIDDEN]);
            x = x + block.out.forward(mixed);
            let up = gelu(block.up.forward(block.before_mlp.forward(x.clone())));
            x = x + block.down.forward(up);
        }
        x
    }

    /// The plain network: every token attends to itself and the tokens before it.
    fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let ([rows, length], device) = (tokens.dims(), tokens.device());
        let positions = Tensor::arange(0..length as i64, &device).unsqueeze::<2>().expand([rows, length]);
        let later = generate_autoregressive_mask(rows, length, &device).unsqueeze_dim::<4>(1);
        let hidden = self.hidden(tokens, positions, |_, [q, k, v]| {
            let scores = q.matmul(k.transpose()) / (HEAD_DIM as f64).sqrt();
            let later = later.clone().expand(scores.dims());
            softmax(scores.mask_fill(later, f32::NEG_INFINITY), 3).matmul(v)
        });
        self.head(hidden)
    }
}

/// The same network with a cache: the context has the positions, and attends. The head runs on its
/// own, because only the last token of a prompt needs logits.
impl Transformer for Network {
    fn device(&self) -> Device {
        self.head.weight.device()
    }

    fn vocab_size(&self) -> usize {
        self.head.weight.dims()[1]
    }

    fn max_positions(&self) -> Option<usize> {
        Some(POSITIONS)
    }

    fn kv_shape(&self) -> KvShape {
        KvShape { layers: LAYERS, kv_heads: HEADS, head_dim: HEAD_DIM, dtype: DType::F32 }
    }

    fn forward_cached(&self, tokens: Tensor<2, Int>, context: &mut KvContext) -> Tensor<3> {
        self.hidden(tokens, context.positions(), |layer, [q, k, v]| context.attend(layer, q, k, v))
    }

    fn head(&self, hidden: Tensor<3>) -> Tensor<3> {
        self.head.forward(self.norm.forward(hidden))
    }
}

// SAFETY: the network keeps no tensor of a call, and its weights do not change.
#[allow(unsafe_code)]
unsafe impl Recordable for Network {}

fn main() -> burn_dfa::Result<()> {
    // Ids 0 to 94 are the printable characters, 95 ends the sequence.
    let vocabulary = Vocabulary::from_chars(' '..='~')?.pad_to(96)?.with_eos([TokenId(95)])?;
    let device = Device::default();
    let cached = Cached(Network::new(vocabulary.len(), &device));

    let date = Constraint::regex(r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")?;
    let date = date.compile(&vocabulary)?;
    let prompts = [vec![TokenId(36)], vec![TokenId(37), TokenId(50), TokenId(7)], vec![TokenId(11); 5]];
    let requests = prompts.map(|prompt| Request::new(prompt, 16).with_constraint(&date));
    let config = GenerationConfig::new();
    let show = |step, outputs: &[Output]| {
        println!("{step:20} {}", outputs.iter().map(Output::text).collect::<Vec<_>>().join(" "));
    };

    // 1. A function from tokens to logits is enough.
    let plain = Recompute::new(&device, |tokens| cached.0.forward(tokens));
    let expected = generate(&plain, &vocabulary, &requests, &config)?;
    show("without a cache", &expected);

    // 2. With a cache, each step reads one token per row.
    let outputs = generate(&cached, &vocabulary, &requests, &config)?;
    show("with a cache", &outputs);
    assert_eq!(outputs, expected);

    // 3. The step recorded, rows that begin and end, and drafts.
    let mut graph = DecodeGraph::record(&cached, &vocabulary, &requests, &config, 32)?;
    let outputs = graph.generate(&requests)?;
    show("recorded", &outputs);
    assert_eq!(outputs, expected);

    let capacity = Capacity::new().with_constraints(1).with_states(64).with_classes(32);
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    let mut batch =
        ContinuousBatch::record(&cached, &vocabulary, 2, 32, &config.clone().with_tensors(tensors))?;
    let mut outputs = Vec::new();
    for request in &requests {
        batch.admit(0, request)?;
        batch.step(16, drop)?;
        outputs.push(batch.release(0)?);
    }
    show("a continuous batch", &outputs);
    assert_eq!(outputs, expected);

    let rows = speculate(&cached, &vocabulary, &requests, &config, PromptLookup::new(2, 3))?;
    let outputs: Vec<_> = rows.into_iter().map(|row| row.output).collect();
    show("with drafts", &outputs);
    assert_eq!(outputs, expected);
    Ok(())
}
