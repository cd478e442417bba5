//! A recorded step of a continuous batch: it is recorded once, and no memory leaks.

use burn_dfa::ErrorKind;
use std::cell::Cell;

use burn::tensor::{DType, Device};
use burn_dfa::constraint::Syntax;
use burn_dfa::generation::{ContinuousBatch, GenerationConfig, Output, Request, SamplingFeatures, generate};
use burn_dfa::{
    Capacity, CompiledConstraint, Constraint, Kernels, Limits, PendingConstraint, TensorOptions, TokenId,
    Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::alone;
use crate::common::altered::{Altered, Call};
use crate::common::devices;
use crate::common::embedded::Embedded;
use crate::common::model::RandomLm;
use crate::operations::renumbered;
use burn_dfa_testing::words::vocabulary_of;

const ROWS: usize = 16;

fn vocabulary() -> Vocabulary {
    vocabulary_of(&["true", "12", "ab", "été"])
}

/// Constraints of a few states to a hundred, in both forms.
fn pool(vocabulary: &Vocabulary) -> Vec<CompiledConstraint> {
    let patterns = (0..24usize).map(|index| match index % 3 {
        0 => format!("[a-z]{{{}}}", 1 + 4 * index),
        1 => format!("(true|12|[x-z]){{1,{index}}}"),
        _ => format!("([a-c]{{1,{index}}}-)?[^a]{{1,3}}"),
    });
    let compile = |(index, pattern): (usize, String)| {
        let compile = if index % 2 == 0 {
            CompiledConstraint::compile_byte_level
        } else {
            CompiledConstraint::compile_token_level
        };
        compile(&Constraint::regex(&pattern).unwrap(), vocabulary, &Limits::default()).unwrap()
    };
    patterns.enumerate().map(compile).collect()
}

/// Bytes in use on the device, if it counts them; else bytes in use by this program, if the system
/// counts them.
fn bytes_in_use(device: &Device) -> Option<u64> {
    device.sync().unwrap();
    if let Some(usage) = device.memory_pool_usage() {
        return Some(usage.bytes_in_use);
    }
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

fn soak(name: &str, device: &Device, arrivals: usize) {
    let vocabulary = vocabulary();
    let pool = pool(&vocabulary);
    let random = RandomLm::new(vocabulary.len(), 4, DType::F32, device);
    // The number of calls of the model's step.
    let asked = Cell::new(0);
    let model = Altered::new(random, |call, logits| {
        asked.set(asked.get() + usize::from(matches!(call, Call::StepRows)));
        logits
    });
    let mut rng = StdRng::seed_from_u64(6);
    let requests: Vec<Request> = (0..90)
        .map(|index| {
            let prompt = (0..rng.random_range(1..9)).map(|_| TokenId(rng.random_range(0..256))).collect();
            let constraint = pool.get(index % (pool.len() + 4));
            let needed =
                constraint.map_or(1, |constraint| constraint.tokens_to_end(constraint.start()) as usize);
            Request {
                constraint: constraint.cloned(),
                ..Request::new(prompt, needed + rng.random_range(0..12))
            }
        })
        .collect();
    let expected: Vec<Output> = requests
        .iter()
        .map(|request| {
            let request = std::slice::from_ref(request);
            generate(&model, &vocabulary, request, &GenerationConfig::new()).unwrap().remove(0)
        })
        .collect();
    let capacity = Capacity { constraints: 11, states: 500, classes: 40, ..Capacity::new() };
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    let config = GenerationConfig::new().with_tensors(tensors).with_sync_interval(8);
    let mut batch = ContinuousBatch::record(&model, &vocabulary, ROWS, 160, &config).unwrap();
    assert_eq!(batch.is_hardware(), name != "flex");
    let recorded = asked.get();

    let mut in_row = [0; ROWS];
    let (mut arrived, mut gone, mut refused) = (0, 0, 0);
    let (mut early, mut late) = (None, None);
    let mut compiled = Vec::new();
    while gone < arrivals {
        let idle: Vec<usize> = batch.idle().collect();
        for row in idle {
            let next = rng.random_range(0..requests.len());
            let mut request = requests[next].clone();
            // Some constraints are compiled later.
            if let Some(constraint) = request.constraint.clone().filter(|_| rng.random_bool(0.2)) {
                let (sender, pending) = PendingConstraint::channel();
                compiled.push((sender, constraint.clone()));
                request = Request { constraint: None, ..request }.with_pending(&pending);
            }
            match batch.admit(row, &request) {
                Ok(()) => (in_row[row], arrived) = (next, arrived + 1),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{name}: {error}");
                    refused += 1;
                }
            }
        }
        batch.step(rng.random_range(1..9), |_| ()).unwrap();
        compiled.drain(..).for_each(|(sender, constraint)| sender.send(Ok(constraint)));
        let finished: Vec<usize> = batch.finished().collect();
        for row in finished {
            let output = batch.release(row).unwrap();
            assert_eq!(output, expected[in_row[row]], "{name}: request {} in row {row}", in_row[row]);
            gone += 1;
        }
        // Some rows are released early.
        if rng.random_bool(0.1) {
            let row = rng.random_range(0..ROWS);
            if let Ok(output) = batch.release(row) {
                assert!(expected[in_row[row]].tokens.starts_with(&output.tokens), "{name}: row {row}");
                gone += 1;
            }
        }
        // The maximum in the second quarter, after all allocations, and in the last quarter.
        match 4 * gone / arrivals {
            1 => early = early.max(bytes_in_use(device)),
            3 => late = late.max(bytes_in_use(device)),
            _ => {}
        }
    }
    eprintln!(
        "{name}: {arrived} arrivals, {gone} departures, {refused} refused, {early:?} and {late:?} bytes"
    );
    assert!(refused > arrivals / 100);
    // The model's step is called only during the recording.
    if batch.is_hardware() {
        assert_eq!(asked.get(), recorded, "{name}: recorded again");
        // The usage varies by some hundred bytes with the texts and constraints in the rows. A leak
        // of the smallest tensor per request in between would be four times as much as this bound.
        let (early, late) = early.zip(late).expect("a device that counts its bytes");
        assert!(late < early + arrivals as u64 / 2, "{name}: from {early} to {late} bytes on the device");
    } else if let (Some(early), Some(late)) = (early, late) {
        // The reserve of the host's allocator; a leak of a page per request would be far more.
        assert!(late < early + (4 << 20), "{name}: from {early} to {late} bytes");
    }
}

#[test]
fn thousands_of_requests_begin_and_end_in_one_recording() {
    let _turn = alone();
    for (name, device) in devices::all() {
        soak(name, &device, if devices::is_software_gpu(name, &device) { 2_500 } else { 10_000 });
    }
}

#[test]
fn the_recorded_embedded_model_writes_the_output_of_each_request_alone() {
    let _turn = alone();
    for (name, device) in devices::all() {
        let embedded = Embedded::load(&device);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let constraints =
            [embedded.schema("person"), embedded.schema("team"), embedded.regex("[0-9]{5}(-[0-9]{4})?")];
        let count = if devices::is_software_gpu(name, &device) { 4 } else { 12 };
        let rows: Vec<_> = (0..count).map(|index| constraints.get(index % 4)).collect();
        let requests = embedded.requests(&rows, 50, 20);
        let base = GenerationConfig::new();
        for (kind, config) in [
            ("greedy", base.clone()),
            ("sampled", base.clone().with_temperature(0.8)),
            ("filters", base.with_temperature(0.8).with_top_k(20).with_min_new_tokens(3)),
        ] {
            let alone = |request| {
                generate(model, vocabulary, std::slice::from_ref(request), &config).unwrap().remove(0)
            };
            let expected: Vec<_> = requests.iter().map(alone).collect();
            for kernels in [Kernels::Fused, Kernels::BuiltIn] {
                // The built-in operations are slow on a GPU, and equal on all devices.
                if name != "flex" && kernels == Kernels::BuiltIn && kind != "filters" {
                    continue;
                }
                let capacity = Capacity { constraints: 2, states: 6000, classes: 300, ..Capacity::new() };
                let tensors = TensorOptions { capacity, kernels, ..TensorOptions::default() };
                let config = config.clone().with_tensors(tensors);
                let mut batch = ContinuousBatch::record(model, vocabulary, 3, 256, &config).unwrap();
                assert_eq!(batch.is_hardware(), name != "flex", "{name}, {kind}");
                let mut waiting: Vec<usize> = (0..requests.len()).rev().collect();
                let (mut in_row, mut done) = ([0; 3], 0);
                while done < requests.len() {
                    for row in batch.idle().collect::<Vec<_>>() {
                        let Some(next) = waiting.pop() else { break };
                        match batch.admit(row, &requests[next]) {
                            Ok(()) => in_row[row] = next,
                            Err(error) if error.kind() == ErrorKind::Full => waiting.push(next),
                            Err(error) => panic!("{name}, {kind}: {error}"),
                        }
                    }
                    batch.step(5, |_| ()).unwrap();
                    for row in batch.finished().collect::<Vec<_>>() {
                        let (output, of) = (batch.release(row).unwrap(), in_row[row]);
                        assert_eq!(output, expected[of], "{name}, {kind}, {kernels:?}, request {of}");
                        done += 1;
                    }
                }
            }
        }
    }
}

/// The operations up to the read after `steps` steps of rows under `constraints`, and the number of
/// tensors made of host data.
fn record(
    config: &GenerationConfig,
    constraints: fn(&Embedded) -> Vec<CompiledConstraint>,
    loads: usize,
    steps: usize,
) -> (Vec<String>, usize) {
    let device = Device::capture();
    let captured = device
        .capture_scope(|scope| {
            let embedded = Embedded::load(&device);
            let constraints = constraints(&embedded);
            let rows: Vec<_> = constraints.iter().map(Some).collect();
            let requests = embedded.requests(&rows, 60, 0);
            let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
            let mut batch = ContinuousBatch::record(model, vocabulary, 4, 256, config).unwrap();
            for (row, request) in requests.iter().take(loads).enumerate() {
                batch.admit(row, request).unwrap();
            }
            let error = batch.step(steps, |_| panic!("nothing was read")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Model, "{error}");
            scope.complete([], [])
        })
        .unwrap();
    let operations = captured.graph.operations.iter().map(|operation| format!("{operation:?}"));
    (operations.collect(), captured.values.len())
}

/// Checks that every step has the same operations, for any number of loaded constraints.
fn check_steps(
    config: &GenerationConfig,
    constraints: fn(&Embedded) -> Vec<CompiledConstraint>,
    loads: &[usize],
) {
    let mut first = None;
    for &loads in loads {
        let (short, few) = record(config, constraints, loads, 1);
        let (long, many) = record(config, constraints, loads, 4);
        assert_eq!(few, many, "a step makes no tensor out of host data");
        let length = (long.len() - short.len()) / 3;
        // After the steps come the read and the rewinding of the log.
        let tail = short.iter().rev().position(|operation| operation.contains("(Slice(")).unwrap();
        let end = long.len() - tail - 1;
        for index in 0..4 {
            let step = renumbered(&long[end - (index + 1) * length..end - index * length]);
            let known = first.get_or_insert_with(|| step.clone());
            assert_eq!(step.len(), known.len(), "{loads} loads, step {index} from the end");
            assert!(step == *known, "{loads} loads, step {index} from the end");
        }
        eprintln!("{loads} loads: {length} operations a step");
    }
}

#[test]
fn a_step_has_the_same_operations_for_any_loaded_constraints() {
    let _turn = alone();
    let capacity = Capacity { constraints: 3, states: 12_000, classes: 300, ..Capacity::new() };
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    for (temperature, row_features) in
        [(None, SamplingFeatures::NONE), (Some(0.8), SamplingFeatures::NONE), (None, SamplingFeatures::ALL)]
    {
        let config = GenerationConfig::new()
            .with_temperature(temperature)
            .with_row_features(row_features)
            .with_sync_interval(64)
            .with_tensors(tensors.clone());
        check_steps(
            &config,
            |embedded| ["person", "order", "event"].map(|kind| embedded.schema(kind)).into(),
            &[0, 1, 3],
        );
    }
}

#[test]
fn a_step_has_the_same_operations_for_any_number_of_ending_calls() {
    let _turn = alone();
    let capacity =
        Capacity { constraints: 2, states: 1_000, classes: 100, ..Capacity::new() }.with_stack(2, 2);
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    let config = GenerationConfig::new().with_sync_interval(64).with_tensors(tensors);
    // In the first grammar a byte follows the end of a call; in the second the next call may
    // follow.
    let constraints = |embedded: &Embedded| -> Vec<CompiledConstraint> {
        ["root ::= \"x\" | \"(\" root \")\"", "root ::= \"b\" | \"a\" root root root"]
            .map(|text| embedded.called(&Constraint::grammar(Syntax::Gbnf, text).unwrap(), 2))
            .into()
    };
    check_steps(&config, constraints, &[0, 1, 2]);
}
