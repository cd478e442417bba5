//! A profile of the decode step on Flex, for SmolLM2-135M with random weights.
//!
//! ```sh
//! cargo test --release -p burn-dfa-decoder --lib profile -- --ignored --nocapture
//! ```
//!
//! Every round times a whole step, and then each of its parts alone, with the same weights and shapes. The figures are
//! medians over the rounds. The last line is the difference between the step and its matrix products.

use std::time::Instant;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, FloatDType, Int, Tensor};
use burn_dfa::generation::CausalLm;

use crate::config::DecoderConfig;
use crate::layers::gated;
use crate::model::Decoder;

const ROUNDS: usize = 25;
const CAPACITY: usize = 512;

#[test]
#[ignore = "takes a minute and judges nothing"]
fn profile() {
    let config = DecoderConfig {
        num_key_value_heads: 3,
        tie_word_embeddings: true,
        ..DecoderConfig::new(49_152, 576, 1536, 30, 9)
    };
    let model = config.init(&Device::flex());
    for dtype in [FloatDType::F32, FloatDType::BF16, FloatDType::F16] {
        let model = model.clone().map(&mut Cast(dtype));
        for (batch, slot) in [(1, 16), (1, CAPACITY - ROUNDS - 2), (8, 16)] {
            println!("\n{dtype:?}, batch {batch}, slots {slot} to {} of {CAPACITY}", slot + ROUNDS);
            table(&measure(&model, batch, slot));
        }
    }
}

struct Cast(FloatDType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        Param::from_tensor(param.val().cast(DType::from(self.0)))
    }
}

/// Microseconds of each part in each round; the first is the whole step.
fn measure(model: &Decoder, batch: usize, slot: usize) -> Vec<(&'static str, Vec<f64>)> {
    let device = model.device();
    let config = model.config();
    let prompt = Tensor::<2, Int>::full([batch, 16], 7, &device);
    let (logits, mut cache) = model.prefill(prompt, Tensor::zeros([batch], &device), CAPACITY);
    let mut tokens = logits.argmax(1).reshape([batch]);
    cache.truncate(slot);

    let wide = |width| Tensor::<3>::ones([batch, 1, width], (&device, model.dtype()));
    let (x, inner) = (wide(config.hidden_size), wide(config.intermediate_size));
    let narrow = wide(config.num_key_value_heads * config.head_dim);
    let layers = &model.model.layers;
    let logits = model.logits(x.clone()).reshape([batch, config.vocab_size]);

    let mut parts: Vec<(&'static str, Vec<f64>)> = Vec::new();
    for round in 0..ROUNDS + 1 {
        let mut index = 0;
        let mut time = |name, part: &mut dyn FnMut()| {
            let start = Instant::now();
            part();
            let time = start.elapsed().as_secs_f64() * 1e6;
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
                for linear in [&attention.q_proj, &attention.k_proj, &attention.v_proj, &attention.o_proj] {
                    linear.forward(x.clone());
                }
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
        let hidden = cache.hidden(config);
        let rotations = cache.rotations(&model.rotary, x.dtype());
        time("attention over the cache", &mut || {
            for (index, layer) in layers.iter().enumerate() {
                let qkv = [x.clone(), narrow.clone(), narrow.clone()];
                cache.attend(index, &layer.self_attn, qkv, &rotations, &hidden);
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
        time("embedding, positions, mask", &mut || {
            model.embed(tokens.clone().reshape([batch, 1]));
            cache.rotations(&model.rotary, x.dtype());
            cache.hidden(config);
        });
        time("argmax", &mut || {
            logits.clone().argmax(1);
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
        parts[1..].iter().filter(|(name, _)| of(name)).map(|(_, times)| median(times)).sum()
    };
    let products = sum(&|name| name.starts_with("products"));
    line("all products", products);
    line("all other parts", sum(&|name| !name.starts_with("products")));
    line("step less products", step - products);
}
