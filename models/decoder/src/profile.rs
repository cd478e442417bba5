//! A profile of the decode step and of a prompt on Flex, for random weights in the shapes of
//! SmolLM2-135M and Qwen3-0.6B.
//!
//! ```sh
//! cargo test --release -p burn-dfa-decoder --lib profile -- --ignored --nocapture
//! ```
//!
//! Every round times a whole step, and then each of its parts alone, with the same weights and
//! shapes. The figures are medians over the rounds. The last lines give the difference between the
//! step and its matrix products, and the speed at which the products of batch 1 read the weights.
//! The memory's bandwidth is printed for comparison: the speed at which all threads together read a
//! large buffer, measured in the same rounds.

use std::hint::black_box;
use std::time::Instant;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, FloatDType, Int, Tensor};
use burn_dfa::generation::CausalLm;
use rayon::prelude::*;

use crate::cache::attend;
use crate::config::DecoderConfig;
use crate::layers::gated;
use crate::model::Decoder;

const ROUNDS: usize = 15;
const CAPACITY: usize = 512;
/// Reads as many bytes as the weights have; not a part of the step.
const BUFFER: &str = "a buffer of as many bytes";

const SMOLLM2_135M: &str = r#"{"model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
    "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": true}"#;
const QWEN3_0_6B: &str = r#"{"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072,
    "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": true}"#;

#[test]
#[ignore = "takes a minute and judges nothing"]
fn profile_of_smollm2_135m() {
    profile(SMOLLM2_135M);
}

#[test]
#[ignore = "takes minutes and judges nothing"]
fn profile_of_qwen3_0_6b() {
    profile(QWEN3_0_6B);
}

#[test]
#[ignore = "takes seconds and judges nothing"]
fn prompts_of_smollm2_135m() {
    prompts(SMOLLM2_135M);
}

#[test]
#[ignore = "takes a minute and judges nothing"]
fn prompts_of_qwen3_0_6b() {
    prompts(QWEN3_0_6B);
}

/// Prints the time of a prompt, in two types.
fn prompts(config: &str) {
    let model = DecoderConfig::from_json(config).unwrap().init(&Device::flex());
    for dtype in [FloatDType::F32, FloatDType::BF16] {
        print!("{dtype:?}");
        prompt(&model.clone().map(&mut Cast(dtype)));
    }
}

fn profile(config: &str) {
    let model = DecoderConfig::from_json(config).unwrap().init(&Device::flex());
    for dtype in [FloatDType::F32, FloatDType::BF16, FloatDType::F16] {
        let model = model.clone().map(&mut Cast(dtype));
        for (batch, slot) in [(1, 16), (1, CAPACITY - ROUNDS - 2), (8, 16)] {
            println!("\n{dtype:?}, batch {batch}, slots {slot} to {} of {CAPACITY}", slot + ROUNDS);
            table(&measure(&model, batch, slot));
        }
        prompt(&model);
    }
}

/// Prints the time of a prompt.
fn prompt(model: &Decoder) {
    let device = model.device();
    let mut times: Vec<f64> = (0..3)
        .map(|_| {
            let tokens = Tensor::<2, Int>::full([1, CAPACITY], 7, &device);
            let start = Instant::now();
            model.prefill(tokens, Tensor::zeros([1], &device), CAPACITY + 1);
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("\nA prompt of {CAPACITY}: {:.2} s", times[1]);
}

struct Cast(FloatDType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        Param::from_tensor(param.val().cast(DType::from(self.0)))
    }
}

/// Microseconds of each part in each round; the first part is the whole step.
fn measure(model: &Decoder, batch: usize, slot: usize) -> Vec<(&'static str, Vec<f64>)> {
    let device = model.device();
    let config = model.config();
    let prompt = Tensor::<2, Int>::full([batch, 16], 7, &device);
    let (logits, mut cache) = model.prefill(prompt, Tensor::zeros([batch], &device), CAPACITY);
    let mut tokens = logits.argmax(1).reshape([batch]);
    cache.set_lengths(Tensor::full([batch], slot as i32, (&device, DType::I32)));

    let wide = |width| Tensor::<3>::ones([batch, 1, width], (&device, model.dtype()));
    let (x, inner) = (wide(config.hidden_size), wide(config.intermediate_size));
    let [queries, keys] =
        [config.num_attention_heads, config.num_key_value_heads].map(|heads| wide(heads * config.head_dim));
    let layers = &model.model.layers;
    let logits = model.logits(x.clone()).reshape([batch, config.vocab_size]);

    let buffer = vec![1u64; model.num_params() * model.dtype().size() / size_of::<u64>()];
    let sum = |share: &[u64]| share.iter().fold(0u64, |a, b| a.wrapping_add(*b));
    let mut parts: Vec<(&'static str, Vec<f64>)> = Vec::new();
    for round in 0..ROUNDS + 1 {
        let mut index = 0;
        let mut time = |name, part: &mut (dyn FnMut() + Send)| {
            // Runs on a thread of the pool, as within a step.
            let time = crate::flex::in_pool(|| {
                let start = Instant::now();
                part();
                start.elapsed().as_secs_f64() * 1e6
            });
            // The first round warms up.
            if round == 0 {
                parts.push((name, Vec::with_capacity(ROUNDS)));
            } else {
                parts[index].1.push(time);
            }
            index += 1;
        };
        time("step and argmax", &mut || {
            tokens = model.step(tokens.clone(), &mut cache).argmax(1).reshape([batch]);
        });
        time("products: q, k, v, o", &mut || {
            for layer in layers {
                let attention = &layer.self_attn;
                for linear in [&attention.q_proj, &attention.k_proj, &attention.v_proj] {
                    linear.forward(x.clone());
                }
                attention.o_proj.forward(queries.clone());
            }
        });
        time("products: gate, up", &mut || {
            for layer in layers {
                layer.mlp.gate_proj.forward(x.clone());
                layer.mlp.up_proj.forward(x.clone());
            }
        });
        time("products: down", &mut || {
            for layer in layers {
                layer.mlp.down_proj.forward(inner.clone());
            }
        });
        time("products: output layer", &mut || {
            model.model.embed_tokens.project(x.clone());
        });
        let rotations = model.rotations(&cache, x.dtype());
        time("attention over the cache", &mut || {
            for (index, layer) in layers.iter().enumerate() {
                let qkv = [queries.clone(), keys.clone(), keys.clone()];
                attend(&mut cache, index, &layer.self_attn, qkv, &rotations, None);
            }
        });
        time("norms", &mut || {
            for layer in layers {
                layer.input_layernorm.forward(x.clone());
                layer.post_attention_layernorm.forward(x.clone());
            }
            model.model.norm.forward(x.clone());
        });
        time("gates", &mut || {
            for _ in layers {
                gated(config.activation, inner.clone(), inner.clone());
            }
        });
        time("residual sums", &mut || {
            for _ in 0..2 * layers.len() {
                let _ = x.clone() + x.clone();
            }
        });
        time("embedding, positions", &mut || {
            model.embed(tokens.clone().reshape([batch, 1]));
            model.rotations(&cache, x.dtype());
        });
        time("argmax", &mut || {
            logits.clone().argmax(1);
        });
        time(BUFFER, &mut || {
            black_box(buffer.par_chunks(buffer.len() / rayon::current_num_threads()).map(sum).sum::<u64>());
        });
    }
    parts
}

fn table(parts: &[(&'static str, Vec<f64>)]) {
    let median = |times: &[f64]| {
        let mut times = times.to_vec();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let step = median(&parts[0].1);
    let line = |name: &str, time: f64| println!("{name:<28}{time:>9.0} µs {:>6.1} %", 100.0 * time / step);
    for (name, times) in parts {
        line(name, median(times));
    }
    let sum = |of: &dyn Fn(&str) -> bool| -> f64 {
        parts[1..parts.len() - 1].iter().filter(|(name, _)| of(name)).map(|(_, times)| median(times)).sum()
    };
    let products = sum(&|name| name.starts_with("products"));
    line("all products", products);
    line("all other parts", sum(&|name| !name.starts_with("products")));
    line("step less products", step - products);
    // Compares the fastest rounds, since other programs may use the machine.
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let fastest: f64 =
        parts.iter().filter(|(name, _)| name.starts_with("products")).map(|(_, times)| least(times)).sum();
    let (_, buffer) = parts.last().expect("there are parts");
    println!("{:<28}{:>9.2} of the memory's bandwidth", "reading speed", least(buffer) / fastest);
}
