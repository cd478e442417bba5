//! Greedy steps of whole models, without a constraint and with one, in turns.
//!
//! Measures an eager step, the recorded step, a recorded step of a continuous batch, and whole
//! generations of a recorded graph, prompts included. All rows have the same constraint. Without a
//! constraint, a step is the model and `Greedy` alone. Continuous batches and graphs can change
//! rows, so their steps include the operation of the constraint even if no row has one.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_dfa::generation::{CausalLm, ContinuousBatch, DecodeGraph, GenerationConfig, Request};
use burn_dfa::processor::{ConstraintProcessor, InPlaceState, InitContext, LogitsProcessor, StepContext};
use burn_dfa::sampling::Greedy;
use burn_dfa::{Capacity, CompiledConstraint, DeviceConstraint, Limits, TensorOptions, TokenId, Vocabulary};
use burn_dfa_decoder::Decoder;

use crate::clock::{Clock, Recorded, Times, Variant, in_turns, seconds, variant};
use crate::launches::Launches;
use crate::model::{self, SHAPES, SMALL, Shape};
use crate::table::{self, Table};
use crate::{constraint, vocabulary};

const BATCHES: [usize; 4] = [1, 8, 64, 256];
/// Prompt tokens, and new tokens of a generation.
const PROMPT: usize = 8;
const NEW: usize = 64;
/// Positions of a cache. Later steps overwrite the last position, which takes as long.
const CAPACITY: usize = 128;
/// Seconds per variant in a round.
const ROUND: f64 = 0.15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loop {
    /// Eager steps.
    Eager,
    /// Recorded steps.
    Recorded,
    /// Steps of `ContinuousBatch`, recorded, read every 8 steps.
    ContinuousBatch,
    /// Whole generations of `DecodeGraph`.
    Graph,
}

const LOOPS: [Loop; 4] = [Loop::Recorded, Loop::Eager, Loop::ContinuousBatch, Loop::Graph];

pub fn measure(device: &Device, clock: &Clock) {
    let dtype = model::dtype(device);
    let columns = [
        "model",
        "type",
        "batch",
        "loop",
        "µs a step",
        "constrained",
        "constrained ÷ unconstrained",
        "tokens/s",
        "constrained",
        "kernels",
        "added",
        "recorded",
    ];
    let table = Table::begin("Greedy steps", &columns);
    let shapes: &[Shape] = if clock.is_quick { &[SMALL] } else { &SHAPES };
    for (index, shape) in shapes.iter().enumerate() {
        let clock = &clock.share(shapes.len() - index);
        if clock.is_over() {
            println!("\nOut of time: {} left out.", shape.name);
            continue;
        }
        let subject = Subject::new(shape, dtype, device);
        let batches = clock.cases(BATCHES.to_vec());
        let cases = LOOPS.iter().flat_map(|kind| batches.iter().map(|batch| (*kind, *batch))).collect();
        let name = |(kind, batch): &(Loop, usize)| format!("{} | {batch} | {kind:?}", shape.name);
        clock.each(cases, name, |&(kind, batch)| {
            subject.measure(kind, batch, clock, &table);
            device.memory_cleanup();
        });
    }
}

/// A model with a vocabulary and a constraint.
struct Subject {
    name: &'static str,
    model: Decoder,
    vocabulary: Vocabulary,
    constraint: CompiledConstraint,
}

impl Subject {
    fn new(shape: &Shape, dtype: DType, device: &Device) -> Self {
        let model = shape.init(dtype, device);
        let vocabulary = vocabulary::of_size(model.vocab_size());
        let constraint = CompiledConstraint::compile(&constraint::text(), &vocabulary, &Limits::default())
            .expect("a constraint");
        Self { name: shape.name, model, vocabulary, constraint }
    }

    fn measure(&self, kind: Loop, batch: usize, clock: &Clock, table: &Table) {
        let (times, kernels, is_recorded) = match kind {
            Loop::Eager | Loop::Recorded => self.steps(kind == Loop::Recorded, batch, clock),
            Loop::ContinuousBatch => self.continuous(batch, clock),
            Loop::Graph => self.graph(batch, clock),
        };
        let [free, constrained] = [times.median(0), times.median(1)];
        let speed = |step: f64| format!("{:.0}", batch as f64 / step);
        let [count, added] = match kernels {
            Some([free, constrained]) if free > 0 => {
                [free.to_string(), format!("{:+}", constrained as i64 - free as i64)]
            }
            _ => [String::from("–"), String::from("–")],
        };
        table.row(&[
            self.name.into(),
            table::dtype(self.model.dtype()),
            batch.to_string(),
            format!("{kind:?}").to_lowercase(),
            table::microseconds(free),
            table::microseconds(constrained),
            table::ratio(times.ratio(1, 0)),
            speed(free),
            speed(constrained),
            count,
            added,
            if is_recorded { "yes".into() } else { "no".into() },
        ]);
    }

    /// Single steps, which the host does not read.
    fn steps(&self, is_recorded: bool, batch: usize, clock: &Clock) -> Measured {
        let device = self.model.device();
        let vocab_size = self.model.vocab_size();
        let device_constraint =
            DeviceConstraint::new(&[&self.constraint], vocab_size, &TensorOptions::default(), &device)
                .expect("a device constraint");
        let constraint = ConstraintProcessor::new(device_constraint, &vec![0; batch]).expect("rows");
        let mut free = Sequence::start(&self.model, None::<ConstraintProcessor>, batch);
        let mut constrained = Sequence::start(&self.model, constraint, batch);
        device.sync().expect("the device");
        let launches = Launches::default();
        if !is_recorded {
            let mut variants = [variant(&device, || free.step()), variant(&device, || constrained.step())];
            let counts = variants.each_mut().map(|variant| {
                // Autotuning and fusion settle after a few steps.
                variant(4);
                launches.during(|| variant(1));
                launches.count()
            });
            return (in_turns(clock, ROUND, variants), Some(counts), false);
        }
        // The warm-up runs of the step complete first; the last run is recorded.
        let mut free = launches.during(|| {
            Recorded::new(&device, || {
                launches.restart();
                free.step();
            })
        });
        let free_count = launches.count();
        let mut constrained = launches.during(|| {
            Recorded::new(&device, || {
                launches.restart();
                constrained.step();
            })
        });
        let counts = [free_count, launches.count()];
        let is_hardware = free.is_hardware() && constrained.is_hardware();
        let times = in_turns(
            clock,
            ROUND,
            [variant(&device, || free.replay()), variant(&device, || constrained.replay())],
        );
        (times, Some(counts), is_hardware)
    }

    fn requests(&self, batch: usize, is_constrained: bool) -> Vec<Request> {
        let rows = 0..batch as u32;
        let prompt = |row| (0..PROMPT as u32).map(|at| TokenId(256 + (13 * row + at) % 1024)).collect();
        rows.map(|row| Request {
            constraint: is_constrained.then(|| self.constraint.clone()),
            ..Request::new(prompt(row), NEW)
        })
        .collect()
    }

    /// Whole generations, prompts included. The time is per token of each row.
    fn graph(&self, batch: usize, clock: &Clock) -> Measured {
        let device = self.model.device();
        let config = GenerationConfig::new();
        let requests = [false, true].map(|is_constrained| self.requests(batch, is_constrained));
        let mut graphs = requests.each_ref().map(|requests| {
            DecodeGraph::record(&self.model, &self.vocabulary, requests, &config, PROMPT + NEW)
                .expect("a graph")
        });
        let is_hardware = graphs.iter().all(DecodeGraph::is_hardware);
        let mut index = 0;
        let variants = graphs.each_mut().map(|graph| {
            let requests = &requests[index];
            index += 1;
            let device = device.clone();
            let variant: Variant = Box::new(move |runs| {
                let generations = runs.div_ceil(NEW);
                let spent = seconds(&device, || {
                    for _ in 0..generations {
                        graph.generate(requests).expect("a generation");
                    }
                });
                spent * runs as f64 / (generations * NEW) as f64
            });
            variant
        });
        (in_turns(clock, ROUND, variants), None, is_hardware)
    }

    /// Steps of a continuous batch, after admission of its rows.
    fn continuous(&self, batch: usize, clock: &Clock) -> Measured {
        let device = self.model.device();
        let (states, classes) = (self.constraint.state_count(), self.constraint.class_count());
        let capacity = Capacity::new().with_constraints(1).with_states(states).with_classes(classes);
        let tensors = TensorOptions { capacity, ..TensorOptions::default() };
        let config = GenerationConfig::new().with_tensors(tensors);
        let requests = [false, true].map(|is_constrained| self.requests(batch, is_constrained));
        let mut batches = [(); 2].map(|()| {
            ContinuousBatch::record(&self.model, &self.vocabulary, batch, PROMPT + NEW, &config)
                .expect("a continuous batch")
        });
        let is_hardware = batches.iter().all(ContinuousBatch::is_hardware);
        let mut index = 0;
        let variants = batches.each_mut().map(|continuous| {
            let requests = &requests[index];
            index += 1;
            let device = device.clone();
            let variant: Variant = Box::new(move |runs| {
                let mut spent = 0.0;
                let mut left = runs;
                while left > 0 {
                    let taken: Vec<usize> =
                        (0..batch).filter(|row| !continuous.idle().any(|idle| idle == *row)).collect();
                    taken.into_iter().for_each(|row| _ = continuous.release(row).expect("an output"));
                    let requests: Vec<_> = requests.iter().enumerate().collect();
                    continuous.admit_all(&requests).into_iter().for_each(|admitted| admitted.expect("a row"));
                    let now = left.min(NEW - 1);
                    spent += seconds(&device, || continuous.step(now, |_| ()).expect("steps"));
                    left -= now;
                }
                spent
            });
            variant
        });
        (in_turns(clock, ROUND, variants), None, is_hardware)
    }
}

/// Times without and with the constraint, the kernels per step if the build counts them, and
/// whether the step was recorded.
type Measured = (Times<2>, Option<[usize; 2]>, bool);

/// A batch with all values that a decoding step reads and writes.
struct Sequence<'a, P: LogitsProcessor> {
    model: &'a Decoder,
    chain: P,
    cache: <Decoder as CausalLm>::Cache,
    state: P::State,
    context: StepContext,
}

impl<'a, P: LogitsProcessor> Sequence<'a, P> {
    fn start(model: &'a Decoder, chain: P, batch: usize) -> Self {
        let (device, vocab_size) = (model.device(), model.vocab_size());
        let prompt: Vec<i32> = (0..batch * PROMPT).map(|at| 256 + (7 * at % 1024) as i32).collect();
        let prompt: Tensor<2, Int> =
            Tensor::from_data(TensorData::new(prompt, [batch, PROMPT]), (&device, DType::I32));
        let padding = Tensor::zeros([batch], (&device, DType::I32));
        let state = chain.init(&InitContext { prompt: prompt.clone(), padding: padding.clone(), vocab_size });
        let (logits, cache) = model.prefill(prompt, padding, CAPACITY);
        let context = StepContext {
            tokens: Tensor::full([batch], vocab_size as i32, (&device, DType::I32)),
            step: Tensor::zeros([1], (&device, DType::I32)),
        };
        let mut sequence = Self { model, chain, cache, state, context };
        sequence.choose(logits);
        sequence
    }

    fn step(&mut self) {
        let logits = self.model.step(self.context.tokens.clone(), &mut self.cache);
        self.choose(logits);
    }

    fn choose(&mut self, logits: Tensor<2>) {
        self.chain.sample_step(&mut self.state, &mut self.context, logits, &Greedy);
        self.context.step.assign(self.context.step.clone() + 1);
    }
}
