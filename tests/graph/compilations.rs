//! The kernels of a step are compiled once: other constraints, other batches of up to 1,024 tiles,
//! and other stacks whose arrays of frames have the same size need no others.

use std::process::Command;

use burn::tensor::{DType, Device, Tensor};
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, Position, StepContext};
use burn_dfa::sampling::{Greedy, GumbelMax, Sampler};
use burn_dfa::{
    Arena, Capacity, CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, Vocabulary,
};
use serde_json::{Value, json};

use crate::alone;
use crate::common::devices;
use crate::common::embedded::Embedded;

/// Set in the process that runs the kernels, whose log of compilations the test reads.
const CHILD: &str = "BURN_DFA_TEST_COMPILATIONS";
/// Names the log of compilations.
const LOG: &str = "CUBECL_DEBUG_LOG";

fn wgpu() -> Option<Device> {
    devices::all().into_iter().find(|(name, _)| *name == "wgpu").map(|(_, device)| device)
}

/// Runs an ignored test of this module in a separate process.
fn run_child(test: &str) {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    let _turn = alone();
    if wgpu().is_none() {
        return;
    }
    let log = std::env::temp_dir().join(format!("burn-dfa-compilations-{}.log", std::process::id()));
    // The name of a test does not include its program.
    let (_, module) = module_path!().split_once("::").unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::{test}"), "--include-ignored"])
        .env(LOG, &log)
        .env(CHILD, "1")
        .output()
        .unwrap();
    let _ = std::fs::remove_file(&log);
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}

#[test]
fn no_kernel_is_compiled_for_a_schema() {
    run_child("schemas_run");
}

#[test]
fn no_kernel_is_compiled_for_a_schema_in_an_arena() {
    run_child("schemas_run_in_an_arena");
}

/// The kernels of the step.
const KERNELS: [&str; 6] = [
    "advance_kernel",
    "mask_kernel",
    "mask_in_place_kernel",
    "choose_kernel",
    "merge_kernel",
    "follow_kernel",
];

/// The number of compilations of each kernel of the step so far.
fn compilations() -> [usize; KERNELS.len()] {
    let log = std::fs::read_to_string(std::env::var_os(LOG).unwrap()).unwrap();
    let compiled: Vec<&str> = log.split("[START_KERNEL_COMPILATION]").skip(1).collect();
    let count = |path: &str| compiled.iter().filter(|kernel| kernel.contains(path)).count();
    // The path of a kernel's type has a module with the name of the function.
    let counts = KERNELS.map(|kernel| count(&format!("::{kernel}::")));
    assert_eq!(counts.iter().sum::<usize>(), count("burn_dfa::kernel::step::"), "kernels without a name");
    counts
}

fn compile(number: usize, vocabulary: &Vocabulary) -> CompiledConstraint {
    let constraint = Constraint::json_schema(schema(number)).unwrap();
    CompiledConstraint::compile(&constraint, vocabulary, &Limits::default()).unwrap()
}

/// A schema, different for each number: flat objects, nested lists, and recursive ones.
fn schema(number: usize) -> Value {
    const TYPES: [&str; 3] = ["integer", "string", "null"];
    let properties: serde_json::Map<_, _> =
        (0..1 + number % 7).map(|at| (format!("p{number}_{at}"), json!({"type": TYPES[at % 3]}))).collect();
    let object = json!({"type": "object", "properties": properties, "additionalProperties": false});
    match number % 4 {
        0 => object,
        1 => json!({"type": "array", "items": object, "maxItems": 1 + number % 5}),
        2 => json!({"type": "object", "properties": {"head": object, "tail": {"$ref": "#"}},
            "additionalProperties": false}),
        _ => json!({"type": "array", "items": {"anyOf": [object, {"$ref": "#"}]}}),
    }
}

/// Rows of more than one tile, whose vectors of halves are as long as a load.
const WIDE: usize = 16_400;

/// Chooses, masks in place and in a copy, and advances.
fn steps(
    processor: &ConstraintProcessor,
    position: &mut Position,
    vocab_size: usize,
    dtype: DType,
    sampler: &dyn Sampler,
    device: &Device,
) {
    let [rows] = position.states().dims();
    let logits = || Tensor::<2>::zeros([rows, vocab_size], (device, dtype));
    let mut context = StepContext {
        tokens: Tensor::full([rows], vocab_size as i32, (device, DType::I32)),
        step: Tensor::zeros([1], (device, DType::I32)),
    };
    for _ in 0..2 {
        processor.sample_step(position, &mut context, logits(), sampler);
    }
    drop(processor.mask(position, logits()).into_data());
    // Another handle keeps the logits as they are.
    let kept = logits();
    drop(processor.mask(position, kept.clone()).into_data());
    drop(processor.advance(position.clone(), context.tokens).states().into_data());
}

/// Steps under 200 schemas, with 1 to 3 constraints in batches of 1 to 5 rows.
#[test]
#[ignore = "run by a test above, in a process of its own"]
fn schemas_run() {
    let Some(device) = wgpu() else { return };
    let embedded = Embedded::load(&Device::flex());
    let (vocabulary, vocab_size) = (&embedded.vocabulary, embedded.vocabulary.len());
    let run = |number: usize| {
        let compiled: Vec<_> =
            (0..1 + number % 3).map(|other| compile(number + 1_000 * other, vocabulary)).collect();
        let references: Vec<_> = compiled.iter().collect();
        let device_constraint =
            DeviceConstraint::new(&references, vocab_size, &TensorOptions::new(), &device).unwrap();
        let rows: Vec<usize> = (0..1 + number % 5).map(|row| row % compiled.len()).collect();
        let processor = ConstraintProcessor::new(device_constraint, &rows).unwrap();
        steps(&processor, &mut processor.start(), vocab_size, DType::F32, &Greedy, &device);
        if number.is_multiple_of(12) {
            // In wide rows of halves, sampled, byte-level without a stack.
            let limits = Limits::default().with_frames(0);
            let constraint = Constraint::json_schema(schema(number)).unwrap();
            let compiled = CompiledConstraint::compile_byte_level(&constraint, vocabulary, &limits).unwrap();
            let device_constraint =
                DeviceConstraint::new(&[&compiled], WIDE, &TensorOptions::new(), &device).unwrap();
            let processor = ConstraintProcessor::new(device_constraint, &rows).unwrap();
            let seeds: Vec<u64> = (0..rows.len() as u64).collect();
            let gumbel = GumbelMax::new(&seeds, WIDE, &device).unwrap();
            let halves = if device.supports_dtype(DType::F16) { DType::F16 } else { DType::F32 };
            steps(&processor, &mut processor.start(), WIDE, halves, &gumbel, &device);
        }
    };
    (0..24).for_each(run);
    let warm = compilations();
    for (kernel, count) in KERNELS.into_iter().zip(warm) {
        // Only WGSL has no order of memory between cubes.
        let is_used = kernel != "merge_kernel" || !cfg!(any(feature = "vulkan", target_os = "macos"));
        assert_eq!(count > 0, is_used, "{kernel}: {count} compilations");
    }
    (24..224).for_each(run);
    assert_eq!(compilations(), warm, "compilations of {KERNELS:?} after the warm-up");
}

/// The rows of the batch with an arena.
const ROWS: usize = 3;

/// Steps of one batch, in which 200 schemas replace each other row by row. Burn compiles the write
/// of a page for each of a few sizes, so kernels of Burn do not count.
#[test]
#[ignore = "run by a test above, in a process of its own"]
fn schemas_run_in_an_arena() {
    let Some(device) = wgpu() else { return };
    let embedded = Embedded::load(&Device::flex());
    let (vocabulary, vocab_size) = (&embedded.vocabulary, embedded.vocabulary.len());
    let constraints: Vec<_> = (0..212).map(|number| compile(number, vocabulary)).collect();
    let max = |count: fn(&CompiledConstraint) -> usize| constraints.iter().map(count).max().unwrap();
    let capacity = Capacity::new()
        .with_constraints(ROWS)
        // A constraint takes whole pages of 32 states.
        .with_states(ROWS * (max(CompiledConstraint::state_count) + 32))
        .with_classes(max(CompiledConstraint::class_count))
        .with_stack(max(CompiledConstraint::exits), max(CompiledConstraint::frames))
        .with_pushes(max(CompiledConstraint::pushes));
    let options = TensorOptions::new().with_capacity(capacity);
    let arena = Arena::new(vocabulary, vocab_size, &options, &device).unwrap();
    let mut processor = ConstraintProcessor::continuous(arena, ROWS).unwrap();
    let mut position = processor.start();
    let mut run = |number: usize| {
        let row = number % ROWS;
        if number >= ROWS {
            processor.release(&mut position, row).unwrap();
        }
        processor.admit(&mut position, row, Some(&constraints[number]), 1_000).unwrap();
        steps(&processor, &mut position, vocab_size, DType::F32, &Greedy, &device);
    };
    (0..12).for_each(&mut run);
    let warm = compilations();
    assert!(warm.iter().sum::<usize>() > 0, "no compilations in {LOG}");
    (12..212).for_each(&mut run);
    assert_eq!(compilations(), warm, "compilations of {KERNELS:?} after the warm-up");
}
