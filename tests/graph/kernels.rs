//! Counts the kernel launches of a step.

use std::sync::{Arc, Mutex};

use burn::tensor::{DType, Device, Tensor, TensorData, capture};
use burn_dfa::generation::CausalLm;
use burn_dfa::processor::{ConstraintProcessor, InPlaceState, InitContext, LogitsProcessor, StepContext};
use burn_dfa::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa::{DeviceConstraint, TensorOptions};
use burn_dfa_decoder::Decoder;
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
        let (model, width) = (embedded.model(), embedded.model().vocab_size());
        let prompt: Vec<i32> = embedded.prompt(0).iter().map(|token| token.0 as i32).collect();
        let length = prompt.len();
        let prompt = Tensor::from_data(TensorData::new(prompt, [1, length]), (device, DType::I32));
        let padding = Tensor::zeros([1], (device, DType::I32));
        let mut state =
            chain.init(&InitContext { prompt: prompt.clone(), padding: padding.clone(), vocab_size: width });
        let (logits, cache) = model.prefill(prompt, padding, length + 10);
        let mut context = StepContext {
            tokens: Tensor::full([1], width as i32, (device, DType::I32)),
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

/// The kernels of an eager step, once autotuning and fusion have settled.
fn eager(mut step: Step<impl LogitsProcessor>, device: &Device) -> Vec<&'static str> {
    let mut counted: Vec<&'static str> = Vec::new();
    for round in 0..8 {
        device.sync().unwrap();
        let launches = Arc::new(Launches::default());
        let observation = LaunchObservation::new(launches.clone());
        step.next();
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
fn recorded(mut step: Step<impl LogitsProcessor>, device: &Device) -> Vec<&'static str> {
    let launches = Arc::new(Launches::default());
    let observation = LaunchObservation::new(launches.clone());
    let graph = capture(device, || {
        // Runs the step a few times to warm up; the last run is recorded.
        launches.0.lock().unwrap().clear();
        step.next();
    });
    drop(observation);
    assert!(graph.is_hardware(), "the step was recorded");
    launches.0.lock().unwrap().clone()
}

#[test]
fn a_constrained_step_launches_no_more_kernels() {
    let _turn = alone();
    for (name, device) in devices::all() {
        if name == "flex" {
            continue;
        }
        let embedded = Embedded::load(&device);
        let width = embedded.model().vocab_size();
        let table = embedded.schema("person");
        let table = DeviceConstraint::new(&[&table], width, &TensorOptions::default(), &device).unwrap();
        let constraint = ConstraintProcessor::new(table, &[0]).unwrap().with_budgets(&[60]).unwrap();
        let gumbel = GumbelMax::new(&[1], width, &device).unwrap();
        let samplers: [(&str, &dyn Sampler); 2] = [("greedy", &Greedy), ("sampled", &gumbel)];
        for (kind, sampler) in samplers {
            let free = || Step::first(&embedded, &None::<ConstraintProcessor>, sampler, &device);
            let constrained = || Step::first(&embedded, &constraint, sampler, &device);
            for (run, free, constrained) in [
                ("eager", eager(free(), &device), eager(constrained(), &device)),
                ("recorded", recorded(free(), &device), recorded(constrained(), &device)),
            ] {
                let added = constrained.len() as i64 - free.len() as i64;
                eprintln!(
                    "{name}, {kind}, {run}: {} kernels a step, {} constrained, kernels_added={added}",
                    free.len(),
                    constrained.len()
                );
                // One kernel advances the rows, and one masks, adds noise if sampled, chooses and
                // writes the token.
                assert!(added <= 0, "{added} kernels\nfree: {free:#?}\nconstrained: {constrained:#?}");
            }
        }
    }
}
