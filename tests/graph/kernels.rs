//! Counts the kernel launches of a step.

use std::sync::{Arc, Mutex};

use burn::tensor::{DType, Device, Int, Tensor, TensorData, capture};
use burn_dfa::generation::CausalLm;
use burn_dfa::processor::{
    ConstraintProcessor, DraftTree, InPlaceState, InitContext, LogitsProcessor, StepContext,
};
use burn_dfa::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa::{CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions};
use burn_dfa_decoder::Decoder;
use burn_dfa_testing::words::vocabulary_of;
use cubecl::logging::{LaunchObservation, LaunchObserver};

use crate::alone;
use crate::common::devices;
use crate::common::embedded::Embedded;

/// Every launch, by the name of its kernel.
#[derive(Default)]
struct Launches(Mutex<Vec<&'static str>>);

impl LaunchObserver for Launches {
    fn launched(&self, kernel: &'static str) {
        self.0.lock().unwrap().push(kernel);
    }
}

/// A decode step of one row: the model, the constraint if there is one, and the choice of a token.
struct Step<'a, P: LogitsProcessor> {
    model: &'a Decoder,
    chain: &'a P,
    sampler: &'a dyn Sampler,
    cache: <Decoder as CausalLm>::Cache,
    state: P::State,
    context: StepContext,
}

impl<'a, P: LogitsProcessor> Step<'a, P> {
    /// Reads a prompt and chooses the first token.
    fn first(embedded: &'a Embedded, chain: &'a P, sampler: &'a dyn Sampler, device: &Device) -> Self {
        let (model, vocab_size) = (embedded.model(), embedded.model().vocab_size());
        let prompt: Vec<i32> = embedded.prompt(0).iter().map(|token| token.0 as i32).collect();
        let length = prompt.len();
        let prompt = Tensor::from_data(TensorData::new(prompt, [1, length]), (device, DType::I32));
        let padding = Tensor::zeros([1], (device, DType::I32));
        let mut state =
            chain.init(&InitContext { prompt: prompt.clone(), padding: padding.clone(), vocab_size });
        let (logits, cache) = model.prefill(prompt, padding, length + 10);
        let mut context = StepContext {
            tokens: Tensor::full([1], vocab_size as i32, (device, DType::I32)),
            step: Tensor::zeros([1], (device, DType::I32)),
        };
        chain.sample_step(&mut state, &mut context, logits, sampler);
        Self { model, chain, sampler, cache, state, context }
    }

    fn next(&mut self) {
        let logits = self.model.step(self.context.tokens.clone(), &mut self.cache);
        self.chain.sample_step(&mut self.state, &mut self.context, logits, self.sampler);
        self.context.step.assign(self.context.step.clone() + 1);
    }
}

/// A choice among given logits, without a model.
struct Choice<'a, P: LogitsProcessor> {
    logits: Tensor<2>,
    chain: &'a P,
    sampler: &'a dyn Sampler,
    state: P::State,
    context: StepContext,
}

impl<'a, P: LogitsProcessor> Choice<'a, P> {
    /// A row that has no token yet.
    fn first(logits: &Tensor<2>, chain: &'a P, sampler: &'a dyn Sampler, device: &Device) -> Self {
        let [_, vocab_size] = logits.dims();
        let prompt = Tensor::zeros([1, 1], (device, DType::I32));
        let padding = Tensor::zeros([1], (device, DType::I32));
        let state = chain.init(&InitContext { prompt, padding, vocab_size });
        let context = StepContext {
            tokens: Tensor::full([1], vocab_size as i32, (device, DType::I32)),
            step: Tensor::zeros([1], (device, DType::I32)),
        };
        Self { logits: logits.clone(), chain, sampler, state, context }
    }

    fn next(&mut self) {
        self.chain.sample_step(&mut self.state, &mut self.context, self.logits.clone(), self.sampler);
        self.context.step.assign(self.context.step.clone() + 1);
    }
}

/// Runs a step, and returns its kernels.
type Kernels = fn(&mut dyn FnMut(), &Device) -> Vec<&'static str>;

/// The kernels of an eager step, once autotuning and fusion have settled.
fn eager(step: &mut dyn FnMut(), device: &Device) -> Vec<&'static str> {
    let mut counted: Vec<&'static str> = Vec::new();
    for round in 0..8 {
        device.sync().unwrap();
        let launches = Arc::new(Launches::default());
        let observation = LaunchObservation::new(launches.clone());
        step();
        device.sync().unwrap();
        drop(observation);
        let launched = std::mem::take(&mut *launches.0.lock().unwrap());
        assert!(round < 4 || launched == counted, "step {round} launches other kernels");
        counted = launched;
    }
    counted
}

/// The kernels of a recorded step: the kernels launched during the recording, which a replay
/// launches again.
fn recorded(step: &mut dyn FnMut(), device: &Device) -> Vec<&'static str> {
    let launches = Arc::new(Launches::default());
    let observation = LaunchObservation::new(launches.clone());
    let graph = capture(device, || {
        // Runs the step a few times to warm up; the last run is recorded.
        launches.0.lock().unwrap().clear();
        step();
    });
    drop(observation);
    assert!(graph.is_hardware(), "the step was recorded");
    launches.0.lock().unwrap().clone()
}

const RUNS: [(&str, Kernels); 2] = [("eager", eager), ("recorded", recorded)];

/// Expects that a constraint adds at most `max` kernels.
fn compare(name: &str, free: &[&str], constrained: &[&str], max: i64) {
    let added = constrained.len() as i64 - free.len() as i64;
    eprintln!(
        "{name}: {} kernels a step, {} constrained, kernels_added={added}",
        free.len(),
        constrained.len()
    );
    assert!(added <= max, "{added} kernels\nfree: {free:#?}\nconstrained: {constrained:#?}");
}

/// One kernel advances the rows, and one masks, adds noise if sampled, chooses and writes the
/// token.
#[test]
fn a_constrained_step_launches_no_more_kernels() {
    let _turn = alone();
    for (name, device) in devices::all() {
        if name == "flex" {
            continue;
        }
        let embedded = Embedded::load(&device);
        let vocab_size = embedded.model().vocab_size();
        let compiled = embedded.schema("person");
        let device_constraint =
            DeviceConstraint::new(&[&compiled], vocab_size, &TensorOptions::default(), &device).unwrap();
        let constraint =
            ConstraintProcessor::new(device_constraint, &[0]).unwrap().with_budgets(&[60]).unwrap();
        let none = None::<ConstraintProcessor>;
        let gumbel = GumbelMax::new(&[1], vocab_size, &device).unwrap();
        let samplers: [(&str, &dyn Sampler); 2] = [("greedy", &Greedy), ("sampled", &gumbel)];
        for (kind, sampler) in samplers {
            for (run, kernels) in RUNS {
                let mut free = Step::first(&embedded, &none, sampler, &device);
                let free = kernels(&mut || free.next(), &device);
                let mut constrained = Step::first(&embedded, &constraint, sampler, &device);
                let constrained = kernels(&mut || constrained.next(), &device);
                compare(&format!("{name}, {kind}, {run}"), &free, &constrained, 0);
            }
        }
    }
}

/// Rows of three tiles of up to 8,192 logits. WGSL has no order of memory between cubes, so another
/// kernel compares the best tokens of the tiles there.
#[test]
fn a_constrained_choice_in_wide_rows_launches_at_most_one_kernel_more() {
    const VOCAB_SIZE: usize = 16_400;
    let _turn = alone();
    let words: Vec<String> = (0..VOCAB_SIZE - 257).map(|word| format!("w{word}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let vocabulary = vocabulary_of(&words);
    assert_eq!(vocabulary.len(), VOCAB_SIZE);
    let constraint = Constraint::regex("(w[0-9]+ ?)*").unwrap();
    let compiled =
        CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap();
    for (name, device) in devices::all() {
        if name == "flex" {
            continue;
        }
        let is_wgsl = name == "wgpu" && !cfg!(any(feature = "vulkan", target_os = "macos"));
        let device_constraint =
            DeviceConstraint::new(&[&compiled], VOCAB_SIZE, &TensorOptions::default(), &device).unwrap();
        let constraint = ConstraintProcessor::new(device_constraint, &[0]).unwrap();
        let none = None::<ConstraintProcessor>;
        let values: Vec<f32> = (0..VOCAB_SIZE).map(|token| (token * 7_919 % 1_013) as f32).collect();
        let logits = Tensor::<2>::from_data(TensorData::new(values, [1, VOCAB_SIZE]), (&device, DType::F32));
        let gumbel = GumbelMax::new(&[1], VOCAB_SIZE, &device).unwrap();
        let samplers: [(&str, &dyn Sampler); 2] = [("greedy", &Greedy), ("sampled", &gumbel)];
        for (kind, sampler) in samplers {
            for (run, kernels) in RUNS {
                let mut free = Choice::first(&logits, &none, sampler, &device);
                let free = kernels(&mut || free.next(), &device);
                let mut constrained = Choice::first(&logits, &constraint, sampler, &device);
                let constrained = kernels(&mut || constrained.next(), &device);
                let name = format!("{name}, {kind}, {run}, {VOCAB_SIZE} logits");
                compare(&name, &free, &constrained, i64::from(is_wgsl));
            }
        }
    }
}

/// One kernel follows a chain of drafts, and one kernel each branch of a tree.
#[test]
fn a_branch_of_drafts_takes_one_kernel() {
    let _turn = alone();
    let vocabulary = vocabulary_of(&["ab"]);
    let vocab_size = vocabulary.len();
    let constraint = Constraint::regex("[ab]*").unwrap();
    let compiled =
        CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap();
    for (name, device) in devices::all() {
        if name == "flex" {
            continue;
        }
        let device_constraint =
            DeviceConstraint::new(&[&compiled], vocab_size, &TensorOptions::default(), &device).unwrap();
        let constraint = ConstraintProcessor::new(device_constraint, &[0]).unwrap();
        let position = constraint.start();
        for (tree, branches) in [(DraftTree::chain(6), 1), (DraftTree::new(&[0, 0, 2, 0]).unwrap(), 3)] {
            let tokens = Tensor::<2, Int>::full([1, tree.len()], b'a', (&device, DType::I32));
            let logits = Tensor::<3>::zeros([1, tree.len(), vocab_size], (&device, DType::F32));
            let mut step = || {
                let (masked, _) = constraint.mask_tree(&position, &tree, tokens.clone(), logits.clone());
                drop(masked.into_data());
            };
            let kernels = eager(&mut step, &device);
            let count = kernels.iter().filter(|kernel| kernel.contains("follow_kernel")).count();
            assert_eq!(count, branches, "{name}: {kernels:#?}");
        }
    }
}
