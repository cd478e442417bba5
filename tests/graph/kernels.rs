//! The kernels that a step launches, counted.

use std::sync::{Arc, Mutex};

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::generation::CausalLm;
use burn_dfa::processor::{DfaProcessor, InitContext, LogitsProcessor, Persistent, StepContext};
use burn_dfa::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa::{TensorOptions, TensorTable};
use cubecl::logging::{LaunchObservation, LaunchObserver};

use crate::common::embedded::Embedded;
use crate::alone;
use crate::common::devices;

/// Every launch, by the name of its kernel.
#[derive(Default)]
struct Launches(Mutex<Vec<&'static str>>);

impl LaunchObserver for Launches {
    fn launched(&self, kernel: &'static str) {
        self.0.lock().unwrap().push(kernel);
    }
}

/// The kernels of one step of the loop, once autotuning and fusion have settled.
fn kernels(
    embedded: &Embedded,
    chain: &impl LogitsProcessor,
    sampler: &dyn Sampler,
    device: &Device,
) -> Vec<&'static str> {
    let (model, width) = (embedded.model(), embedded.model().vocab_size());
    let prompt: Vec<i32> = embedded.prompt(0).iter().map(|token| token.0 as i32).collect();
    let length = prompt.len();
    let prompt = Tensor::from_data(TensorData::new(prompt, [1, length]), (device, DType::I32));
    let padding = Tensor::zeros([1], (device, DType::I32));
    let mut state = chain.init(&InitContext { prompt: prompt.clone(), padding: padding.clone(), width });
    let (logits, mut cache) = model.prefill(prompt, padding, length + 10);
    let mut context = StepContext {
        tokens: Tensor::full([1], width as i32, (device, DType::I32)),
        step: Tensor::zeros([1], (device, DType::I32)),
    };
    chain.choose(&mut state, &mut context, logits, sampler);
    let mut counted: Vec<&'static str> = Vec::new();
    for step in 0..8 {
        device.sync().unwrap();
        let launches = Arc::new(Launches::default());
        let observation = LaunchObservation::new(launches.clone());
        let logits = model.step(context.tokens.clone(), &mut cache);
        chain.choose(&mut state, &mut context, logits, sampler);
        context.step.assign(context.step.clone() + 1);
        device.sync().unwrap();
        drop(observation);
        let launched = std::mem::take(&mut *launches.0.lock().unwrap());
        assert!(step < 4 || launched == counted, "step {step} launches other kernels");
        counted = launched;
    }
    counted
}

#[test]
fn a_constraint_adds_no_kernel_to_a_step() {
    let _turn = alone();
    for (name, device) in devices::all() {
        if name == "flex" {
            continue;
        }
        let embedded = Embedded::load(&device);
        let width = embedded.model().vocab_size();
        let table = embedded.schema("person");
        let table = TensorTable::new(&[&table], width, &TensorOptions::default(), &device).unwrap();
        let constraint = DfaProcessor::new(table, &[0]).unwrap().with_budgets(&[60]).unwrap();
        let gumbel = GumbelMax::new(&[1], width, &device).unwrap();
        let samplers: [(&str, &dyn Sampler); 2] = [("greedy", &Greedy), ("sampled", &gumbel)];
        for (kind, sampler) in samplers {
            let free = kernels(&embedded, &None::<DfaProcessor>, sampler, &device);
            let constrained = kernels(&embedded, &constraint, sampler, &device);
            let added = constrained.len() as i64 - free.len() as i64;
            eprintln!(
                "{name}, {kind}: {} kernels a step, {} constrained, kernels_added={added}",
                free.len(),
                constrained.len()
            );
            assert!(
                added <= 0,
                "the constraint shares the pass that chooses\nfree: {free:#?}\nconstrained: {constrained:#?}"
            );
        }
    }
}
