//! The time that three processors of an application add to a constrained step, compared with the
//! time of their operations alone.
//!
//! `cargo bench --bench processors`, on the device in `BURN_DEVICE`, by default Flex. Times are
//! medians of rounds in which all cases take turns. The last column is the time of the loop with
//! processors, divided by the sum of the loop without them and their operations.

#[path = "../tests/common/embedded.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod embedded;

use std::time::Instant;

use burn::tensor::{DType, Device, Distribution, Int, Tensor};
use burn_dfa::generation::{CausalLm, GenerationConfig, Request, generate};
use burn_dfa::processor::{InitContext, LogitsProcessor, StepContext};
use burn_dfa::{CompiledConstraint, Constraint, Limits, TokenId, Vocabulary};

use embedded::Embedded;

const STEPS: usize = 64;
/// The vocabulary of SmolLM2 has as many ids.
const VOCAB_SIZE: usize = 49_152;

/// Adds a bias to the logits, `[1, vocab_size]`.
#[derive(Clone)]
struct Bias(Tensor<2>);

impl LogitsProcessor for Bias {
    type State = ();

    fn init(&self, _: &InitContext) {}

    fn process(&self, _: (), logits: Tensor<2>, _: &StepContext) -> (Tensor<2>, ()) {
        (logits + self.0.clone(), ())
    }
}

/// A model that computes nothing: the same random logits at every step.
struct Random(Tensor<2>);

impl CausalLm for Random {
    type Cache = ();

    fn device(&self) -> Device {
        self.0.device()
    }

    fn vocab_size(&self) -> usize {
        VOCAB_SIZE
    }

    fn prefill(&self, _: Tensor<2, Int>, _: Tensor<1, Int>, _: usize) -> (Tensor<2>, ()) {
        (self.0.clone(), ())
    }

    fn step(&self, _: Tensor<1, Int>, _: &mut ()) -> Tensor<2> {
        self.0.clone()
    }
}

/// One byte a token, then words that no text needs.
fn numbered_words() -> Vocabulary {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let words = (256..VOCAB_SIZE as u32 - 1).map(|id| format!("word{id}").into_bytes());
    let vocabulary = Vocabulary::from_bytes(bytes.chain(words).map(Some).chain([None])).unwrap();
    vocabulary.with_eos([TokenId(VOCAB_SIZE as u32 - 1)]).unwrap()
}

fn random(dims: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::random(dims, Distribution::Normal(0.0, 1.0), (device, DType::F32))
}

/// Seconds of a call, with the work of the device.
fn seconds(device: &Device, run: impl FnOnce()) -> f64 {
    device.sync().unwrap();
    let start = Instant::now();
    run();
    device.sync().unwrap();
    start.elapsed().as_secs_f64()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(name: &str, model: &impl CausalLm, vocabulary: &Vocabulary, requests: &[Request], rounds: usize) {
    let (device, vocab_size, batch) = (model.device(), model.vocab_size(), requests.len());
    let biases = [(); 3].map(|()| Bias(random([1, vocab_size], &device) * 0.01));
    let free = GenerationConfig::new().with_sync_interval(STEPS);
    let own = biases.iter().cloned().fold(free.clone(), GenerationConfig::with_processor);
    let logits = random([batch, vocab_size], &device);
    let operations = || {
        for _ in 0..STEPS {
            std::hint::black_box(biases.iter().fold(logits.clone(), |logits, bias| logits + bias.0.clone()));
        }
    };
    let run = |config: &GenerationConfig| {
        std::hint::black_box(generate(model, vocabulary, requests, config).unwrap());
    };
    let mut times = [const { Vec::new() }; 3];
    for round in 0..=rounds {
        let measured =
            [seconds(&device, || run(&free)), seconds(&device, || run(&own)), seconds(&device, operations)];
        // The first round warms up.
        if round > 0 {
            times.iter_mut().zip(measured).for_each(|(times, seconds)| times.push(seconds));
        }
    }
    let [free, own, operations] = times.map(|times| median(times) / STEPS as f64 * 1e6);
    let ratio = own / (free + operations);
    println!("| {name} | {batch} | {free:.0} µs | {operations:.0} µs | {own:.0} µs | {ratio:.2} |");
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let rounds = if is_test { 1 } else { 20 };
    let device = if std::env::var_os("BURN_DEVICE").is_some() { Device::default() } else { Device::flex() };
    println!("| model | rows | step | operations of the processors | step with processors | ÷ sum |");
    println!("|---|---:|---:|---:|---:|---:|");
    let embedded = Embedded::load(&device);
    let constraint = embedded.schema("person");
    let vocabulary = numbered_words();
    let text = Constraint::regex("[a-z]{62}").unwrap();
    let text = CompiledConstraint::compile(&text, &vocabulary, &Limits::default()).unwrap();
    for batch in [1, 8] {
        let requests = embedded.requests(&vec![Some(&constraint); batch], STEPS, 0);
        measure("embedded", embedded.model(), &embedded.vocabulary, &requests, rounds);
        let requests: Vec<Request> =
            (0..batch).map(|_| Request::new(vec![TokenId(0)], STEPS).with_constraint(&text)).collect();
        measure(
            "49,152 random logits",
            &Random(random([batch, VOCAB_SIZE], &device)),
            &vocabulary,
            &requests,
            rounds,
        );
    }
}
