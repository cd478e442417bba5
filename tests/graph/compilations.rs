//! The kernels of the step are compiled once: other constraints, batches and stacks need no others.

use std::process::Command;

use burn::tensor::{DType, Device, Tensor};
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, StepContext};
use burn_dfa::sampling::Greedy;
use burn_dfa::{CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions};
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

#[test]
fn no_kernel_is_compiled_for_a_schema() {
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
        .args(["--exact", &format!("{module}::schemas_run"), "--include-ignored"])
        .env(LOG, &log)
        .env(CHILD, "1")
        .output()
        .unwrap();
    let _ = std::fs::remove_file(&log);
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}

/// The number of compilations of kernels of the step so far.
fn compilations() -> usize {
    let log = std::fs::read_to_string(std::env::var_os(LOG).unwrap()).unwrap();
    let kernels = ["advance_kernel", "mask_kernel", "choose_kernel", "merge_kernel", "follow_kernel"];
    let is_own = |part: &&str| kernels.iter().any(|kernel| part.contains(kernel));
    log.split("[START_KERNEL_COMPILATION]").skip(1).filter(is_own).count()
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

/// Masks and chooses under 200 schemas, with 1 to 3 constraints in batches of 1 to 5 rows.
#[test]
#[ignore = "run by the test above, in a process of its own"]
fn schemas_run() {
    let Some(device) = wgpu() else { return };
    let embedded = Embedded::load(&Device::flex());
    let (vocabulary, width) = (&embedded.vocabulary, embedded.vocabulary.len());
    let compile = |number: usize| {
        let constraint = Constraint::json_schema(schema(number)).unwrap();
        CompiledConstraint::compile(&constraint, vocabulary, &Limits::default()).unwrap()
    };
    let run = |number: usize| {
        let tables: Vec<_> = (0..1 + number % 3).map(|other| compile(number + 1_000 * other)).collect();
        let references: Vec<_> = tables.iter().collect();
        let table = DeviceConstraint::new(&references, width, &TensorOptions::new(), &device).unwrap();
        let rows: Vec<usize> = (0..1 + number % 5).map(|row| row % tables.len()).collect();
        let processor = ConstraintProcessor::new(table, &rows).unwrap();
        let logits = || Tensor::<2>::zeros([rows.len(), width], (&device, DType::F32));
        let mut position = processor.start();
        let mut context = StepContext {
            tokens: Tensor::full([rows.len()], width as i32, (&device, DType::I32)),
            step: Tensor::zeros([1], (&device, DType::I32)),
        };
        for _ in 0..2 {
            processor.sample_step(&mut position, &mut context, logits(), &Greedy);
        }
        drop(processor.mask(&position, logits()).into_data());
    };
    (0..24).for_each(run);
    let warm = compilations();
    assert!(warm > 0, "compilations are logged");
    (24..224).for_each(run);
    assert_eq!(compilations(), warm, "compilations after the warm-up");
}
