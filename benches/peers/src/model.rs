//! The extra time of a constraint in the greedy decode step of a whole model on the CPU.
//!
//! Two sequences of the same model take turns, one step without a constraint and one with it, so
//! that load on the machine affects both alike. The step without a constraint is argmax and the
//! model; the step with it is the processor's choice and the model.

use std::hint::black_box;
use std::time::Instant;

use burn::tensor::{DType, Device, Int, Tensor};
use burn_dfa::generation::CausalLm;
use burn_dfa::processor::{ConstraintProcessor, InPlaceState, LogitsProcessor, StepContext};
use burn_dfa::sampling::{Greedy, Sampler};
use burn_dfa::{CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, Vocabulary};
use burn_dfa_decoder::Decoder;

use crate::args::Args;
use crate::shapes::{self, Shape};
use crate::statistics::{median, medians};
use crate::tokens::{Name, Tokens};
use crate::triggers;

/// Measures the models, prints the results, and returns the figures.
pub fn figures(args: &Args, runs: usize) -> Vec<(String, f64)> {
    println!("\nGreedy decode steps on Flex, µs, without a constraint and with one\n");
    let mut figures = Vec::new();
    let tiny = Subject::tiny().decode(&long_string(), if args.quick { 20 } else { 200 }, runs);
    tiny.report("tiny", &mut figures);
    if let Some(tokens) = Tokens::load(Name::Smollm2) {
        for shape in shapes::WHOLE.iter().chain(&shapes::FIRST_LAYERS) {
            let decoding =
                Subject::random(shape, &tokens).decode(&long_string(), if args.quick { 3 } else { 24 }, runs);
            decoding.report(shape.name, &mut figures);
        }
    }
    figures
}

/// Measures the models in free text with 100 triggers, prints the results, and returns the figures.
pub fn in_free_text(args: &Args, runs: usize) -> Vec<(String, f64)> {
    println!("\nGreedy decode steps on Flex, µs, without a constraint and in free text with 100 triggers\n");
    let mut figures = Vec::new();
    let text = triggers::endless(100);
    Subject::tiny()
        .decode(&text, if args.quick { 20 } else { 200 }, runs)
        .report("tiny_free_text", &mut figures);
    if let Some(tokens) = Tokens::load(Name::Smollm2) {
        let smollm2 =
            Subject::random(&shapes::WHOLE[0], &tokens).decode(&text, if args.quick { 3 } else { 24 }, runs);
        smollm2.report("smollm2_135m_free_text", &mut figures);
    }
    figures
}

/// A constraint that does not end within the measured steps: a property with many characters.
fn long_string() -> Constraint {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"text": {"type": "string", "minLength": 1000, "maxLength": 2000}},
        "required": ["text"]
    });
    Constraint::json_schema(schema).expect("a schema")
}

/// Steps of one model. Times are in microseconds.
struct Decoding {
    /// The median of a step without a constraint.
    free: f64,
    /// The median of a step with a constraint.
    constrained: f64,
    /// The ratio of a constrained step to the adjacent free step: the median over the steps, then
    /// over the runs.
    ratio: f64,
}

impl Decoding {
    fn report(&self, name: &str, figures: &mut Vec<(String, f64)>) {
        println!("  {name:24}{:12.1}{:12.1}   ratio {:.4}", self.free, self.constrained, self.ratio);
        figures.push((format!("constrained_over_unconstrained_{name}"), self.ratio));
    }
}

/// A model on the CPU with its vocabulary.
struct Subject {
    model: Decoder,
    vocabulary: Vocabulary,
}

impl Subject {
    /// The embedded model of a million parameters.
    fn tiny() -> Self {
        let tiny = burn_dfa_tiny::load(&Device::flex()).expect("the embedded model");
        Self { model: tiny.model().clone(), vocabulary: tiny.vocabulary().clone() }
    }

    /// A published shape with random weights, and SmolLM2's vocabulary, padded to the model's
    /// number of logits.
    fn random(shape: &Shape, tokens: &Tokens) -> Self {
        let model = shape.init();
        let vocabulary = tokens.vocabulary.clone().pad_to(model.vocab_size()).expect("a larger vocabulary");
        Self { model, vocabulary }
    }

    /// Decodes `steps` tokens with and without a constraint, `runs` times.
    fn decode(&self, constraint: &Constraint, steps: usize, runs: usize) -> Decoding {
        let processor = self.processor(constraint);
        let runs: Vec<[Vec<f64>; 2]> = (0..runs).map(|_| self.run(&processor, steps)).collect();
        let [free, constrained] =
            [0, 1].map(|index| medians(&runs.iter().map(|run| run[index].clone()).collect::<Vec<_>>()));
        let ratios: Vec<f64> = runs
            .iter()
            .map(|[free, constrained]| {
                median(
                    &constrained.iter().zip(free).map(|(with, without)| with / without).collect::<Vec<_>>(),
                )
            })
            .collect();
        Decoding { free: median(&free), constrained: median(&constrained), ratio: median(&ratios) }
    }

    /// The step times without and with a constraint.
    fn run(&self, processor: &ConstraintProcessor, steps: usize) -> [Vec<f64>; 2] {
        let device = self.model.device();
        let vocab_size = self.model.vocab_size();
        let mut state = processor.start();
        let context = || StepContext {
            tokens: Tensor::full([1], vocab_size as i32, (&device, DType::I32)),
            step: Tensor::zeros([1], (&device, DType::I32)),
        };
        let mut contexts = [context(), context()];
        let prompt = || Tensor::<2, Int>::from_ints([[3, 4, 5, 6, 7, 8, 9, 10]], &device);
        let start = || self.model.prefill(prompt(), Tensor::zeros([1], &device), 8 + steps);
        let mut sequences = [start(), start()];
        let mut times = [Vec::with_capacity(steps), Vec::with_capacity(steps)];
        for step in 0..steps {
            // The order of the two alternates from step to step.
            for index in [step % 2, 1 - step % 2] {
                let (logits, cache) = &mut sequences[index];
                let context = &mut contexts[index];
                let given = std::mem::replace(logits, Tensor::empty([1, 1], &device));
                let began = Instant::now();
                if index == 0 {
                    context.tokens.assign(Greedy.sample(given, &context.step));
                } else {
                    processor.sample_step(&mut state, context, given, &Greedy);
                }
                *logits = self.model.step(context.tokens.clone(), cache);
                times[index].push(began.elapsed().as_secs_f64() * 1e6);
                black_box(&logits);
            }
        }
        times
    }

    /// A processor with one row of the constraint.
    fn processor(&self, constraint: &Constraint) -> ConstraintProcessor {
        let (vocab_size, device) = (self.model.vocab_size(), self.model.device());
        let compiled = CompiledConstraint::compile(constraint, &self.vocabulary, &Limits::default())
            .expect("a constraint");
        let device_constraint =
            DeviceConstraint::new(&[&compiled], vocab_size, &TensorOptions::default(), &device)
                .expect("a device constraint");
        ConstraintProcessor::new(device_constraint, &[0]).expect("one row")
    }
}
