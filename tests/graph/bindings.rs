//! The buffers that a kernel of the step binds.

use std::process::Command;

use burn::tensor::{DType, Device, Tensor};
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, StepContext};
use burn_dfa::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa::{CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, Vocabulary};

use crate::alone;
use crate::common::devices;
use crate::common::embedded::Embedded;

/// The number of buffers that WebGPU guarantees on every device.
const PORTABLE: usize = 8;

/// Set in the process that runs the kernels, whose log of compilations the test reads.
const CHILD: &str = "BURN_DFA_TEST_BINDINGS";

/// The compile function of a form.
type Form = fn(&Constraint, &Vocabulary, &Limits) -> burn_dfa::Result<CompiledConstraint>;

fn wgpu() -> Option<Device> {
    devices::all().into_iter().find(|(name, _)| *name == "wgpu").map(|(_, device)| device)
}

#[test]
fn no_kernel_of_the_step_binds_more_buffers_than_every_device_grants() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    let _turn = alone();
    if wgpu().is_none() {
        return;
    }
    let log = std::env::temp_dir().join(format!("burn-dfa-bindings-{}.log", std::process::id()));
    // The name of a test does not include its program.
    let (_, module) = module_path!().split_once("::").unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::the_kernels_of_the_step_run"), "--include-ignored"])
        .env("CUBECL_DEBUG_LOG", &log)
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    let mut found = Vec::new();
    // A kernel is logged as its name, and then its source.
    for kernel in ["advance_kernel", "mask_kernel", "mask_in_place_kernel", "choose_kernel"] {
        let sources: Vec<&str> =
            text.split("[START_KERNEL_COMPILATION]").filter(|part| part.contains(kernel)).collect();
        assert!(!sources.is_empty(), "{kernel} was not compiled\n{}", &text[..text.len().min(2000)]);
        for source in sources {
            let bindings = source.matches("var<storage").count();
            assert!((1..=PORTABLE).contains(&bindings), "{kernel}: {bindings} bindings\n{source}");
            found.push((kernel, bindings));
        }
    }
    found.sort_unstable();
    found.dedup();
    eprintln!("storage bindings: {found:?}");
}

/// Masks and chooses once in each form.
#[test]
#[ignore = "run by the test above, in a process of its own"]
fn the_kernels_of_the_step_run() {
    let Some(device) = wgpu() else { return };
    let embedded = Embedded::load(&Device::flex());
    let (vocabulary, vocab_size) = (&embedded.vocabulary, embedded.vocabulary.len());
    let compile = |form: Form, pattern| {
        form(&Constraint::regex(pattern).unwrap(), vocabulary, &Limits::default()).unwrap()
    };
    let forms: [Form; 2] = [CompiledConstraint::compile_token_level, CompiledConstraint::compile_byte_level];
    for form in forms {
        let constraints = [compile(form, "[a-z]+"), compile(form, "[0-9]{4}")];
        let options = TensorOptions::new();
        let device_constraint =
            DeviceConstraint::new(&[&constraints[0], &constraints[1]], vocab_size, &options, &device)
                .unwrap();
        let processor = ConstraintProcessor::new(device_constraint, &[0, 1]).unwrap();
        let logits = || Tensor::<2>::zeros([2, vocab_size], (&device, DType::F32));
        let gumbel = GumbelMax::new(&[1, 2], vocab_size, &device).unwrap();
        let mut position = processor.start();
        let (own, shared) = (logits(), logits());
        drop(processor.mask(&position, own).into_data());
        drop(processor.mask(&position, shared.clone()).into_data());
        drop(shared);
        let samplers: [&dyn Sampler; 2] = [&Greedy, &gumbel];
        for sampler in samplers {
            let mut context = StepContext {
                tokens: Tensor::full([2], vocab_size as i32, (&device, DType::I32)),
                step: Tensor::zeros([1], (&device, DType::I32)),
            };
            processor.sample_step(&mut position, &mut context, logits(), sampler);
            drop(context.tokens.into_data());
        }
    }
}
