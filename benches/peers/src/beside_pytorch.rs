//! Compares whole models with PyTorch on the same number of threads: decode steps at batch 1, and a
//! prompt.
//!
//! The weights are random, in the shapes of published models. Each round measures the memory
//! bandwidth, decode steps with Burn and with PyTorch, and a prompt with Burn and with PyTorch, so
//! that load on the machine affects all alike. A figure is the median over the rounds of the ratio
//! in a round.

use std::hint::black_box;
use std::time::Instant;

use burn::module::Module;
use burn::tensor::{DType, Int, Tensor};
use burn_dfa::generation::CausalLm;
use burn_dfa_decoder::Decoder;
use rayon::prelude::*;

use crate::args::Args;
use crate::published::Cast;
use crate::python::{Python, Server};
use crate::shapes::{self, Shape};
use crate::statistics::median;

/// Tokens of the prompt.
const PROMPT: usize = 512;
/// Bytes read to measure the bandwidth, far more than caches hold.
const BUFFER: usize = 1 << 30;

/// Measures the models, prints the results, and returns the figures.
pub fn figures(args: &Args, runs: usize) -> Vec<(String, f64)> {
    let threads = rayon::current_num_threads();
    println!("\nWhole models of random weights at batch 1, on {threads} threads, beside PyTorch\n");
    let python = Python::new(&args.python);
    let has_pytorch = python.offers("pytorch.py", &["--check"], "whole models in PyTorch");
    let buffer = vec![1u64; BUFFER / size_of::<u64>()];
    let mut figures = Vec::new();
    for shape in shapes::WHOLE {
        let random = shape.init();
        for (dtype, name) in [(DType::F32, "float32"), (DType::BF16, "bfloat16")] {
            let model = random.clone().map(&mut Cast(dtype));
            let server = has_pytorch.then(|| shape.serve(&python, name, threads)).flatten();
            let rounds = Rounds::measure(&model, server, &buffer, runs, if args.quick { 3 } else { 16 });
            rounds.report(&format!("{}_{name}", shape.name), &mut figures);
        }
    }
    figures
}

impl Shape {
    /// Starts the same model in PyTorch.
    fn serve(&self, python: &Python, dtype: &str, threads: usize) -> Option<Server> {
        let folder = std::env::temp_dir().join(format!("peers-{}-{}", std::process::id(), self.name));
        std::fs::create_dir_all(&folder).ok()?;
        std::fs::write(folder.join("config.json"), self.config).ok()?;
        let server = python.serve("pytorch.py", &[&folder.to_string_lossy(), dtype, &threads.to_string()]);
        server.map_err(|error| println!("skipped: PyTorch ({error})")).ok()
    }
}

/// The measurements of each round. Times are in seconds.
#[derive(Default)]
struct Rounds {
    /// Bytes of the weights; a step reads all of them.
    bytes: f64,
    /// Bytes per second.
    bandwidth: Vec<f64>,
    step: Vec<f64>,
    prompt: Vec<f64>,
    their_step: Vec<f64>,
    their_prompt: Vec<f64>,
}

impl Rounds {
    fn measure(
        model: &Decoder,
        mut server: Option<Server>,
        buffer: &[u64],
        runs: usize,
        steps: usize,
    ) -> Self {
        let bytes = (model.num_params() * model.dtype().size()) as f64;
        let mut rounds = Self { bytes, ..Self::default() };
        // The first round warms up.
        for round in 0..=runs {
            let bandwidth = bandwidth(buffer);
            let step = seconds_of_a_step(model, steps);
            let their_step = server.as_mut().and_then(|server| server.ask(&format!("steps {steps}")));
            let prompt = seconds_of_a_prompt(model);
            let their_prompt = server.as_mut().and_then(|server| server.ask(&format!("prompt {PROMPT}")));
            if round > 0 {
                rounds.bandwidth.push(bandwidth);
                rounds.step.push(step);
                rounds.prompt.push(prompt);
                rounds.their_step.extend(their_step);
                rounds.their_prompt.extend(their_prompt);
            }
        }
        rounds
    }

    fn report(&self, name: &str, figures: &mut Vec<(String, f64)>) {
        let ratio = |a: &[f64], b: &[f64]| median(&a.iter().zip(b).map(|(a, b)| a / b).collect::<Vec<_>>());
        let speeds: Vec<f64> = self.step.iter().map(|step| self.bytes / step).collect();
        let reading = ratio(&speeds, &self.bandwidth);
        println!(
            "  {name}: {:.1} tokens/s, which reads {:.1} GB/s, {:.0} % of {:.1} GB/s; a prompt of {PROMPT} in {:.2} s",
            1.0 / median(&self.step),
            median(&speeds) / 1e9,
            100.0 * reading,
            median(&self.bandwidth) / 1e9,
            median(&self.prompt)
        );
        let mut push = |figure: &str, value: f64| figures.push((format!("{figure}_{name}"), value));
        push("tokens_per_second", 1.0 / median(&self.step));
        push("reading_speed_of_bandwidth", reading);
        if !self.their_step.is_empty() && self.their_step.len() == self.step.len() {
            let (steps, prompts) =
                (ratio(&self.their_step, &self.step), ratio(&self.their_prompt, &self.prompt));
            println!(
                "    PyTorch: {:.1} tokens/s, {:.2} s; ratios {steps:.2} and {prompts:.2}",
                1.0 / median(&self.their_step),
                median(&self.their_prompt)
            );
            push("steps_against_pytorch", steps);
            push("prompt_against_pytorch", prompts);
        }
    }
}

/// Bytes per second that all threads together read.
fn bandwidth(buffer: &[u64]) -> f64 {
    let share = buffer.len().div_ceil(rayon::current_num_threads());
    let began = Instant::now();
    let sum: u64 =
        buffer.par_chunks(share).map(|share| share.iter().fold(0u64, |a, b| a.wrapping_add(*b))).sum();
    black_box(sum);
    size_of_val(buffer) as f64 / began.elapsed().as_secs_f64()
}

/// The median time of `steps` greedy steps.
fn seconds_of_a_step(model: &Decoder, steps: usize) -> f64 {
    let device = model.device();
    let prompt = Tensor::<2, Int>::from_ints([[3, 4, 5, 6, 7, 8, 9, 10]], &device);
    let (mut logits, mut cache) = model.prefill(prompt, Tensor::zeros([1], &device), 9 + steps);
    let times: Vec<f64> = (0..steps)
        .map(|_| {
            let began = Instant::now();
            let token = logits.clone().argmax(1).reshape([1]);
            logits = model.step(token, &mut cache);
            began.elapsed().as_secs_f64()
        })
        .collect();
    median(&times)
}

fn seconds_of_a_prompt(model: &Decoder) -> f64 {
    let device = model.device();
    let prompt = Tensor::<1, Int>::arange(0..PROMPT as i64, &device).reshape([1, PROMPT]) + 3;
    let began = Instant::now();
    black_box(model.prefill(prompt, Tensor::zeros([1], &device), PROMPT + 1));
    began.elapsed().as_secs_f64()
}
