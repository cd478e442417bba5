//! A transformer of an application, without and with a cache, writes the same tokens in every loop.

use std::cell::RefCell;

use burn::tensor::activation::softmax;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_dfa::generation::speculative::{
    Drafter, ForcedBytes, ForcedTokens, MergedDrafters, PromptLookup, TreeLm, speculate, speculate_recorded,
};
use burn_dfa::generation::{
    Cached, CausalLm, ContinuousBatch, ContinuousLm, DecodeGraph, GenerationConfig, KvContext, KvShape,
    Recompute, Recordable, Request, Transformer, generate,
};
use burn_dfa::{Capacity, Compile, Constraint, TensorOptions, TokenId, Vocabulary};
use burn_dfa_testing::words::vocabulary_of;
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::common::devices;

const HEADS: usize = 4;
const KV_HEADS: usize = 2;
/// On CUDA, rows of 20 bytes are apart in memory.
const HEAD_DIM: usize = 5;
const HIDDEN: usize = HEADS * HEAD_DIM;
const LAYERS: usize = 2;
/// The layer with a sliding window.
const SLIDING: usize = 1;
const WINDOW: usize = 4;
const POSITIONS: usize = 64;

/// Layers of attention with random weights.
struct Network {
    /// `[vocab_size, HIDDEN]`
    tokens: Tensor<2>,
    /// `[POSITIONS, HIDDEN]`
    positions: Tensor<2>,
    /// Per layer: queries, keys and values, and the output.
    layers: Vec<[Tensor<2>; 4]>,
    /// `[HIDDEN, vocab_size]`
    head: Tensor<2>,
    /// Rows and tokens of each call of the head.
    heads: RefCell<Vec<[usize; 2]>>,
}

impl Network {
    fn new(vocab_size: usize, device: &Device) -> Self {
        let mut rng = StdRng::seed_from_u64(9);
        let mut random = |rows: usize, columns: usize| {
            let values: Vec<f32> = (0..rows * columns).map(|_| rng.random_range(-1.0..1.0)).collect();
            Tensor::<2>::from_data(TensorData::new(values, [rows, columns]), (device, DType::F32))
        };
        let kv = KV_HEADS * HEAD_DIM;
        Self {
            tokens: random(vocab_size, HIDDEN),
            positions: random(POSITIONS, HIDDEN),
            layers: (0..LAYERS)
                .map(|_| [HIDDEN, kv, kv, HIDDEN].map(|columns| random(HIDDEN, columns)))
                .collect(),
            head: random(HIDDEN, vocab_size),
            heads: RefCell::default(),
        }
    }

    /// The hidden states, `[rows, count, HIDDEN]`.
    fn run(
        &self,
        tokens: Tensor<2, Int>,
        positions: Tensor<2, Int>,
        mut attend: impl FnMut(usize, [Tensor<4>; 3]) -> Tensor<4>,
    ) -> Tensor<3> {
        let [rows, count] = tokens.dims();
        let embed = |table: &Tensor<2>, ids: Tensor<2, Int>| table.clone().select(0, ids.reshape([-1]));
        // `[rows * count, HIDDEN]`
        let mut x = embed(&self.tokens, tokens) + embed(&self.positions, positions);
        for (layer, [q, k, v, out]) in self.layers.iter().enumerate() {
            let heads = |weight: &Tensor<2>| {
                let [_, columns] = weight.dims();
                let heads = x.clone().matmul(weight.clone());
                heads.reshape([rows, count, columns / HEAD_DIM, HEAD_DIM]).swap_dims(1, 2)
            };
            let mixed = attend(layer, [q, k, v].map(heads)).swap_dims(1, 2);
            x = x + mixed.reshape([rows * count, HIDDEN]).matmul(out.clone()).tanh();
        }
        x.reshape([rows, count, HIDDEN])
    }

    /// Without a cache.
    fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let ([rows, length], options) = (tokens.dims(), (&tokens.device(), DType::I32));
        let index = Tensor::<1, Int>::arange(0..length as i64, options);
        let positions = index.clone().reshape([1, length]).expand([rows, length]);
        let shape = [rows, HEADS, length, length];
        let key = index.clone().reshape([1, 1, 1, length]).expand(shape);
        let query = index.reshape([1, 1, length, 1]).expand(shape);
        let later = key.clone().greater(query.clone());
        let outside = later.clone().bool_or((query - key).greater_equal_elem(WINDOW as i32));
        let hidden = self.run(tokens, positions, |layer, [q, k, v]| {
            let [k, v] = [k, v].map(|heads| {
                let group = [rows, KV_HEADS, HEADS / KV_HEADS, length, HEAD_DIM];
                heads.unsqueeze_dim::<5>(2).expand(group).reshape([rows, HEADS, length, HEAD_DIM])
            });
            let scores = q.matmul(k.transpose()) / (HEAD_DIM as f64).sqrt();
            let hidden = if layer == SLIDING { &outside } else { &later };
            softmax(scores.mask_fill(hidden.clone(), f32::NEG_INFINITY), 3).matmul(v)
        });
        self.head(hidden)
    }
}

impl Transformer for Network {
    fn device(&self) -> Device {
        self.head.device()
    }

    fn vocab_size(&self) -> usize {
        self.head.dims()[1]
    }

    fn max_positions(&self) -> Option<usize> {
        Some(POSITIONS)
    }

    fn kv_shape(&self) -> KvShape {
        KvShape { layers: LAYERS, kv_heads: KV_HEADS, head_dim: HEAD_DIM, dtype: DType::F32 }
    }

    fn forward_cached(&self, tokens: Tensor<2, Int>, context: &mut KvContext) -> Tensor<3> {
        let window = context.hidden_within(WINDOW);
        self.run(tokens, context.positions(), |layer, [q, k, v]| match layer {
            SLIDING => context.attend_masked(layer, q, k, v, window.clone()),
            _ => context.attend(layer, q, k, v),
        })
    }

    fn head(&self, hidden: Tensor<3>) -> Tensor<3> {
        let ([rows, count, _], [_, vocab_size]) = (hidden.dims(), self.head.dims());
        self.heads.borrow_mut().push([rows, count]);
        let logits = hidden.reshape([rows * count, HIDDEN]).matmul(self.head.clone());
        logits.reshape([rows, count, vocab_size])
    }
}

// SAFETY: the network keeps no tensor of a call, and its weights do not change.
#[allow(unsafe_code)]
unsafe impl Recordable for Network {}

fn requests(vocabulary: &Vocabulary) -> Vec<Request> {
    let constraint = Constraint::regex("[abc]{4,20}").unwrap().compile(vocabulary).unwrap();
    let prompt = |ids: &[u32]| ids.iter().map(|&id| TokenId(id)).collect::<Vec<_>>();
    let long: Vec<u32> = (0..20).map(|at| 97 + at % 3).collect();
    vec![
        Request::new(prompt(&[97, 98, 99]), 12).with_constraint(&constraint),
        Request::new(prompt(&[97]), 9).with_seed(3),
        Request::new(prompt(&long), 10).with_constraint(&constraint).with_seed(4),
        Request::new(prompt(&[&long[..], &[98, 98]].concat()), 11).with_constraint(&constraint).with_seed(5),
    ]
}

fn config() -> GenerationConfig {
    let capacity = Capacity::new().with_constraints(3).with_states(500).with_classes(300);
    GenerationConfig::new().with_tensors(TensorOptions { capacity, ..TensorOptions::default() })
}

/// The tokens of the requests, one after the other in the rows of a batch.
fn in_rows<M: ContinuousLm>(mut batch: ContinuousBatch<M>, requests: &[Request]) -> Vec<Vec<TokenId>> {
    let mut outputs = vec![Vec::new(); requests.len()];
    let mut indices = [None; 2];
    let mut waiting = requests.iter().enumerate();
    loop {
        for (row, index) in indices.iter_mut().enumerate().filter(|(_, index)| index.is_none()) {
            if let Some((next, request)) = waiting.next() {
                batch.admit(row, request).unwrap();
                *index = Some(next);
            }
        }
        if indices.iter().all(Option::is_none) {
            return outputs;
        }
        batch.step(2, drop).unwrap();
        for row in batch.finished().collect::<Vec<_>>() {
            outputs[indices[row].take().unwrap()] = batch.release(row).unwrap().tokens;
        }
    }
}

fn drafters() -> Vec<Box<dyn Drafter>> {
    let chain = || PromptLookup::new(3, 2);
    vec![
        Box::new(()),
        Box::new(chain()),
        Box::new(MergedDrafters::new(chain(), PromptLookup::new(2, 1)).unwrap()),
        Box::new(ForcedTokens::new(2, ForcedBytes::LongestToken)),
    ]
}

/// Checks every loop that records nothing.
fn check<M: ContinuousLm + TreeLm>(
    name: &str,
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    config: &GenerationConfig,
    expected: &[Vec<TokenId>],
) {
    let outputs = generate(model, vocabulary, requests, config).unwrap();
    assert_eq!(outputs.into_iter().map(|output| output.tokens).collect::<Vec<_>>(), expected, "{name}");
    let chunked = config.clone().with_prompt_chunk(5);
    for (kind, config) in [
        ("whole", config.clone()),
        ("prefixes", chunked.clone().with_prefix_cache(true)),
        ("chunks", chunked),
    ] {
        let batch = ContinuousBatch::new(model, vocabulary, 2, 40, &config).unwrap();
        assert_eq!(in_rows(batch, requests), expected, "{name}, continuous, {kind}");
    }
    if config.sampling.is_greedy() {
        for (number, drafter) in drafters().into_iter().enumerate() {
            let rows = speculate(model, vocabulary, requests, config, drafter).unwrap();
            let tokens: Vec<_> = rows.into_iter().map(|row| row.output.tokens).collect();
            assert_eq!(tokens, expected, "{name}, drafter {number}");
        }
    }
}

#[test]
fn a_transformer_writes_the_same_tokens_with_and_without_a_cache() {
    let vocabulary = vocabulary_of(&["ab", "ba"]);
    let requests = requests(&vocabulary);
    for (name, device) in devices::all() {
        let cached = Cached(Network::new(vocabulary.len() + 2, &device));
        let plain = Recompute::new(&device, |tokens| cached.0.forward(tokens));
        for temperature in [None, Some(0.9)] {
            let config = config().with_temperature(temperature).with_sync_interval(3);
            // Each request alone, so that no row is padded.
            let alone = |request| generate(&plain, &vocabulary, std::slice::from_ref(request), &config);
            let expected: Vec<_> =
                requests.iter().map(|request| alone(request).unwrap().remove(0).tokens).collect();
            let of = |model| format!("{name}, {temperature:?}, {model}");
            // Each new length compiles kernels, which takes a software GPU minutes.
            if !devices::is_software_gpu(name, &device) {
                check(&of("without a cache"), &plain, &vocabulary, &requests, &config, &expected);
            }
            check(&of("with a cache"), &cached, &vocabulary, &requests, &config, &expected);

            let mut graph = DecodeGraph::record(&cached, &vocabulary, &requests, &config, 40).unwrap();
            for _ in 0..2 {
                let outputs = graph.generate(&requests).unwrap();
                let tokens: Vec<_> = outputs.into_iter().map(|output| output.tokens).collect();
                assert_eq!(tokens, expected, "{}", of("recorded"));
            }
            let batch = ContinuousBatch::record(&cached, &vocabulary, 2, 40, &config).unwrap();
            assert_eq!(in_rows(batch, &requests), expected, "{}", of("a recorded continuous batch"));
            if temperature.is_none() {
                let drafter = PromptLookup::new(3, 2);
                let rows = speculate_recorded(&cached, &vocabulary, &requests, &config, drafter).unwrap();
                let tokens: Vec<_> = rows.into_iter().map(|row| row.output.tokens).collect();
                assert_eq!(tokens, expected, "{}", of("recorded drafts"));
            }
        }
    }
}

#[test]
fn only_the_last_token_of_a_prompt_has_logits() {
    let device = Device::flex();
    let cached = Cached(Network::new(9, &device));
    let prompts = |rows: usize| Tensor::<2, Int>::ones([rows, 6], (&device, DType::I32));
    let (_, mut cache) = cached.prefill(prompts(2), Tensor::zeros([2], (&device, DType::I32)), 8);
    cached.step(Tensor::ones([2], (&device, DType::I32)), &mut cache);
    let mut cache = cached.rows_cache(3, 16);
    cached.begin(1, prompts(1), &mut cache);
    cached.extend(1, 6, prompts(1), &mut cache);
    assert_eq!(*cached.0.heads.borrow(), [[2, 1], [2, 1], [1, 1], [1, 1]]);
}

#[test]
fn a_full_row_writes_its_last_slot_alone() {
    for (name, device) in devices::all() {
        let cached = Cached(Network::new(9, &device));
        let tokens = |ids: &[i32]| Tensor::<1, Int>::from_data(ids, (&device, DType::I32));
        let mut cache = cached.rows_cache(2, 4);
        cached.begin(0, tokens(&[1, 2]).reshape([1, 2]), &mut cache);
        cached.begin(1, tokens(&[3]).reshape([1, 1]), &mut cache);
        for _ in 0..6 {
            let logits = cached.step_rows(tokens(&[5, 6]), &mut cache);
            let values = logits.into_data().try_to_vec::<f32>().unwrap();
            assert!(values.iter().all(|value| value.is_finite()), "{name}");
        }
        assert_eq!(cache.lengths().into_data().try_to_vec::<i32>().unwrap(), [3, 3], "{name}");
        assert_eq!(CausalLm::vocab_size(&cached), 9);
    }
}
