//! Decoding on the device of a server, over a line with a delay: tokens per second, and traffic per
//! token.
//!
//! Server and client run in this process, with a proxy between them that counts and delays
//! messages. The model is the embedded one. One run compares:
//! - **free**: without a constraint;
//! - **device**: masks on the device, by the operations of the server, or by Burn's built-in ones;
//! - **client**: masks on the client, which reads the logits of each token and sends the token
//!   back.

mod line;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use burn::server::{RemoteServer, WebSocketTransport};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_dfa::generation::{CausalLm, GenerationConfig, Request, stream};
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, StepContext};
use burn_dfa::sampling::Greedy;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId, Vocabulary,
};
use burn_dfa_decoder::Decoder;
use burn_dfa_tiny::generator::{Generator, Split};
use line::{Counts, Line};

/// Tokens of each text.
const TOKENS: usize = 120;
/// Measurements of each case; the fastest counts.
const ROUNDS: usize = 7;

/// A model that never ends a text.
struct Endless {
    model: Decoder,
    /// `[1, vocab_size]`
    bias: Tensor<2>,
}

impl CausalLm for Endless {
    type Cache = <Decoder as CausalLm>::Cache;

    fn device(&self) -> Device {
        self.model.device()
    }

    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn max_positions(&self) -> Option<usize> {
        CausalLm::max_positions(&self.model)
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        capacity: usize,
    ) -> (Tensor<2>, Self::Cache) {
        let (logits, cache) = self.model.prefill(tokens, padding, capacity);
        (logits + self.bias.clone(), cache)
    }

    fn step(&self, tokens: Tensor<1, Int>, cache: &mut Self::Cache) -> Tensor<2> {
        self.model.step(tokens, cache) + self.bias.clone()
    }
}

struct Bench {
    model: Endless,
    vocabulary: Vocabulary,
    prompt: Vec<TokenId>,
    constraint: CompiledConstraint,
}

impl Bench {
    fn new(device: &Device) -> Self {
        let pretrained = burn_dfa_tiny::load(device).expect("the embedded model");
        let vocabulary = pretrained.vocabulary().clone();
        let vocab_size = pretrained.model().vocab_size();
        let mut bias = vec![0.0f32; vocab_size];
        vocabulary.eos().iter().for_each(|token| bias[token.index()] = -1e9);
        let bias = Tensor::from_data(TensorData::new(bias, [1, vocab_size]), (device, DType::F32));
        let constraint = Constraint::regex(r#"[A-Za-z ,.:"{}0-9]*"#).expect("a regex");
        let compiled = CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default())
            .expect("a constraint");
        let prompt =
            pretrained.prompt(&Generator::new(5).example(Split::HeldOut, 0).prompt).expect("a prompt");
        Self {
            model: Endless { model: pretrained.model().clone(), bias },
            vocabulary,
            prompt,
            constraint: compiled,
        }
    }

    /// Generates a text on the device. The time begins after the first read.
    fn on_the_device(&self, constrained: bool, sync_interval: usize, counts: &Counts) -> Measured {
        let constraint = constrained.then_some(&self.constraint);
        let request =
            Request { constraint: constraint.cloned(), ..Request::new(self.prompt.clone(), TOKENS) };
        let config = GenerationConfig::new().with_sync_interval(sync_interval);
        let mut pieces = stream(&self.model, &self.vocabulary, &[request], &config).expect("a text");
        let first = pieces.next().expect("a piece").expect("tokens");
        assert_eq!(first.tokens.len(), sync_interval);
        let meter = Meter::start(counts);
        let tokens: usize = pieces.map(|piece| piece.expect("tokens").tokens.len()).sum();
        meter.stop(tokens)
    }

    /// Generates a text with masks on the client.
    fn on_the_client(&self, counts: &Counts) -> Measured {
        let (own, device) = (Device::flex(), self.model.device());
        let vocab_size = self.model.vocab_size();
        let device_constraint =
            DeviceConstraint::new(&[&self.constraint], vocab_size, &TensorOptions::default(), &own)
                .expect("a device constraint");
        let processor = ConstraintProcessor::new(device_constraint, &[0])
            .expect("a processor")
            .with_budgets(&[TOKENS])
            .expect("a budget");
        let mut state = processor.start();
        let mut context = StepContext {
            tokens: Tensor::full([1], vocab_size as i32, (&own, DType::I32)),
            step: Tensor::zeros([1], (&own, DType::I32)),
        };
        let prompt: Vec<i32> = self.prompt.iter().map(|token| token.0 as i32).collect();
        let prompt = Tensor::<1, Int>::from_data(&prompt[..], (&device, DType::I32)).unsqueeze::<2>();
        let padding = Tensor::zeros([1], (&device, DType::I32));
        let (mut logits, mut cache) = self.model.prefill(prompt, padding, self.prompt.len() + TOKENS);
        let mut meter = Meter::start(counts);
        for token in 0..TOKENS {
            let read = Tensor::<2>::from_data(logits.into_data(), &own);
            processor.sample_step(&mut state, &mut context, read, &Greedy);
            let chosen = context.tokens.clone().into_data().try_to_vec::<i32>().expect("a token");
            if token == 0 {
                meter = Meter::start(counts);
            }
            let chosen = Tensor::<1, Int>::from_data(&chosen[..], (&device, DType::I32));
            logits = self.model.step(chosen, &mut cache);
        }
        meter.stop(TOKENS - 1)
    }
}

/// The measurements of one text.
#[derive(Clone, Copy)]
struct Measured {
    per_second: f64,
    /// Bytes and messages per token, to the server and back.
    bytes: [f64; 2],
    messages: [f64; 2],
}

struct Meter<'a> {
    counts: &'a Counts,
    before: [[u64; 2]; 2],
    began: Instant,
}

impl<'a> Meter<'a> {
    fn start(counts: &'a Counts) -> Self {
        Self { counts, before: counts.now(), began: Instant::now() }
    }

    fn stop(self, tokens: usize) -> Measured {
        let (elapsed, after) = (self.began.elapsed(), self.counts.now());
        let each = |of: usize| {
            std::array::from_fn(|direction| {
                (after[of][direction] - self.before[of][direction]) as f64 / tokens as f64
            })
        };
        Measured { per_second: tokens as f64 / elapsed.as_secs_f64(), bytes: each(0), messages: each(1) }
    }
}

/// The fastest of several rounds. Each round runs every case once.
fn fastest(cases: &[&dyn Fn() -> Measured]) -> Vec<Measured> {
    let mut best: Vec<Option<Measured>> = vec![None; cases.len()];
    for _ in 0..ROUNDS {
        for (best, case) in best.iter_mut().zip(cases) {
            let measured = case();
            if best.is_none_or(|best| measured.per_second > best.per_second) {
                *best = Some(measured);
            }
        }
    }
    best.into_iter().flatten().collect()
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let serve = |server: RemoteServer| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(server.serve_async(WebSocketTransport::from_listener(listener)));
        address
    };
    let plain = || RemoteServer::new([Device::flex()]);
    let servers = [("hosted", burn_dfa::remote::server::with_operations(plain())), ("built-in", plain())];
    println!(
        "| round trip | operations | masks | read every | tokens/s | ÷ free | bytes/token to, from | messages/token to, from |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (operations, server) in servers {
        let address = serve(server);
        for delay in [0, 1, 10] {
            let line = Line::to(address, Duration::from_micros(delay * 500));
            let device = burn_dfa::remote::connect(&line.address).expect("a server");
            assert!(!line.counts.now()[0].contains(&0), "the line is in use");
            let bench = Bench::new(&device);
            let counts = &line.counts;
            let measured = fastest(&[
                &|| bench.on_the_device(false, 1, counts),
                &|| bench.on_the_device(true, 1, counts),
                &|| bench.on_the_device(false, 8, counts),
                &|| bench.on_the_device(true, 8, counts),
                &|| bench.on_the_client(counts),
            ]);
            let names = [("free", 1), ("device", 1), ("free", 8), ("device", 8), ("client", 1)];
            let free = [0, 0, 2, 2, 0].map(|free: usize| measured[free].per_second);
            for ((masks, every), (case, free)) in names.into_iter().zip(measured.iter().zip(free)) {
                let Measured { per_second, bytes: [to, from], messages: [sent, received] } = *case;
                println!(
                    "| {delay} ms | {operations} | {masks} | {every} | {per_second:.1} | {:.2} | {to:.0}, {from:.0} | {sent:.1}, {received:.2} |",
                    per_second / free
                );
            }
            println!(
                "device, reading every 8, ÷ client: {:.2}",
                measured[3].per_second / measured[4].per_second
            );
        }
    }
    runtime.shutdown_background();
}
