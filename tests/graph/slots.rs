//! A recorded step whose rows come and go: it is recorded once, and nothing leaks.

use std::cell::Cell;
use std::ops::ControlFlow;

use burn::tensor::{DType, Device};
use burn_dfa::generation::{GenerationConfig, Output, Request, SamplingKinds, Slots, generate};
use burn_dfa::{
    Capacity, Constraint, Kernels, Limits, PendingTable, TensorOptions, TokenId, TokenTable, Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::alone;
use crate::common::altered::{Altered, Call};
use crate::common::devices;
use crate::common::embedded::Embedded;
use crate::common::model::RandomLm;
use crate::common::words::vocabulary_of;
use crate::operations::renumbered;

const ROWS: usize = 16;

fn vocabulary() -> Vocabulary {
    vocabulary_of(&["true", "12", "ab", "été"])
}

/// Constraints of a few states to a hundred, in both forms.
fn pool(vocabulary: &Vocabulary) -> Vec<TokenTable> {
    let patterns = (0..24usize).map(|index| match index % 3 {
        0 => format!("[a-z]{{{}}}", 1 + 4 * index),
        1 => format!("(true|12|[x-z]){{1,{index}}}"),
        _ => format!("([a-c]{{1,{index}}}-)?[^a]{{1,3}}"),
    });
    let compile = |(index, pattern): (usize, String)| {
        let compile = if index % 2 == 0 { TokenTable::walk } else { TokenTable::tabulate };
        compile(&Constraint::regex(&pattern).unwrap(), vocabulary, &Limits::default()).unwrap()
    };
    patterns.enumerate().map(compile).collect()
}

/// Bytes in use on the device, where it counts them; else those of this program, where the system does.
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
    // How often the step of the rows is asked for.
    let asked = Cell::new(0);
    let model = Altered::new(random, |call, logits| {
        asked.set(asked.get() + usize::from(matches!(call, Call::StepRows)));
        logits
    });
    let mut rng = StdRng::seed_from_u64(6);
    let requests: Vec<Request> = (0..90)
        .map(|index| {
            let prompt = (0..rng.random_range(1..9)).map(|_| TokenId(rng.random_range(0..256))).collect();
            let table = pool.get(index % (pool.len() + 4));
            let needed = table.map_or(1, |table| table.tokens_to_end(table.start()) as usize);
            Request { table, ..Request::new(prompt, needed + rng.random_range(0..12)) }
        })
        .collect();
    let expected: Vec<Output> = requests
        .iter()
        .map(|request| {
            let request = std::slice::from_ref(request);
            let go_on = |_: burn_dfa::generation::Piece| ControlFlow::Continue(());
            generate(&model, &vocabulary, request, &GenerationConfig::new(), go_on).unwrap().remove(0)
        })
        .collect();
    let capacity = Capacity { tables: 11, states: 500, classes: 40, ..Capacity::new() };
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    let config = GenerationConfig::new().with_tensors(tensors).with_read_every(8);
    let mut slots = Slots::record(&model, &vocabulary, ROWS, 160, &config).unwrap();
    assert_eq!(slots.is_hardware(), name != "flex");
    let recorded = asked.get();

    let mut in_row = [0; ROWS];
    let (mut arrived, mut gone, mut refused) = (0, 0, 0);
    let (mut early, mut late) = (None, None);
    let mut compiled = Vec::new();
    while gone < arrivals {
        let idle: Vec<usize> = slots.idle().collect();
        for row in idle {
            let next = rng.random_range(0..requests.len());
            let mut request = requests[next].clone();
            // Some tables come later.
            if let Some(table) = request.table.filter(|_| rng.random_bool(0.2)) {
                let (sender, pending) = PendingTable::channel();
                compiled.push((sender, table.clone()));
                request = Request { table: None, ..request }.with_pending(&pending);
            }
            match slots.admit(row, &request) {
                Ok(()) => (in_row[row], arrived) = (next, arrived + 1),
                Err(error) => {
                    assert!(error.is_full(), "{name}: {error}");
                    refused += 1;
                }
            }
        }
        slots.step(rng.random_range(1..9), |_| ()).unwrap();
        compiled.drain(..).for_each(|(sender, table)| sender.send(Ok(table)));
        let finished: Vec<usize> = slots.finished().collect();
        for row in finished {
            let output = slots.release(row).unwrap();
            assert_eq!(output, expected[in_row[row]], "{name}: request {} in row {row}", in_row[row]);
            gone += 1;
        }
        // Some leave before their end.
        if rng.random_bool(0.1) {
            let row = rng.random_range(0..ROWS);
            if let Ok(output) = slots.release(row) {
                assert!(expected[in_row[row]].tokens.starts_with(&output.tokens), "{name}: row {row}");
                gone += 1;
            }
        }
        // The most in the second quarter, once everything was allocated, and in the last.
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
    // The step is asked for while it is recorded and never again.
    if slots.is_hardware() {
        assert_eq!(asked.get(), recorded, "{name}: recorded again");
        // What is in use goes up and down by some hundred bytes, as texts and tables of other lengths are in the rows. The smallest
        // tensor for each request that has gone in between would be four times as much as this.
        let (early, late) = early.zip(late).expect("a device that counts its bytes");
        assert!(late < early + arrivals as u64 / 2, "{name}: from {early} to {late} bytes on the device");
    } else if let (Some(early), Some(late)) = (early, late) {
        // What an allocator of the host keeps for itself; a page a request would be far more.
        assert!(late < early + (4 << 20), "{name}: from {early} to {late} bytes");
    }
}

#[test]
fn thousands_of_requests_come_and_go_in_one_recording() {
    let _turn = alone();
    for (name, device) in devices::all() {
        soak(name, &device, if devices::is_software_gpu(name, &device) { 2_500 } else { 10_000 });
    }
}

#[test]
fn the_recorded_embedded_model_writes_what_each_request_writes_alone() {
    let _turn = alone();
    for (name, device) in devices::all() {
        let embedded = Embedded::load(&device);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let tables =
            [embedded.schema("person"), embedded.schema("team"), embedded.regex("[0-9]{5}(-[0-9]{4})?")];
        let count = if devices::is_software_gpu(name, &device) { 4 } else { 12 };
        let rows: Vec<_> = (0..count).map(|index| tables.get(index % 4)).collect();
        let requests = embedded.requests(&rows, 50, 20);
        let go_on = |_: burn_dfa::generation::Piece| ControlFlow::Continue(());
        let base = GenerationConfig::new();
        for (kind, config) in [
            ("greedy", base.clone()),
            ("sampled", base.clone().with_temperature(0.8)),
            ("filters", base.with_temperature(0.8).with_top_k(20).with_min_new_tokens(3)),
        ] {
            let alone = |request| {
                generate(model, vocabulary, std::slice::from_ref(request), &config, go_on).unwrap().remove(0)
            };
            let expected: Vec<_> = requests.iter().map(alone).collect();
            for kernels in [Kernels::Fused, Kernels::BuiltIn] {
                // The built-in operations are slow on a GPU, and the same everywhere.
                if name != "flex" && kernels == Kernels::BuiltIn && kind != "filters" {
                    continue;
                }
                let capacity = Capacity { tables: 2, states: 6000, classes: 300, ..Capacity::new() };
                let tensors = TensorOptions { capacity, kernels, ..TensorOptions::default() };
                let config = config.clone().with_tensors(tensors);
                let mut slots = Slots::record(model, vocabulary, 3, 256, &config).unwrap();
                assert_eq!(slots.is_hardware(), name != "flex", "{name}, {kind}");
                let mut waiting: Vec<usize> = (0..requests.len()).rev().collect();
                let (mut in_row, mut done) = ([0; 3], 0);
                while done < requests.len() {
                    for row in slots.idle().collect::<Vec<_>>() {
                        let Some(next) = waiting.pop() else { break };
                        match slots.admit(row, &requests[next]) {
                            Ok(()) => in_row[row] = next,
                            Err(error) if error.is_full() => waiting.push(next),
                            Err(error) => panic!("{name}, {kind}: {error}"),
                        }
                    }
                    slots.step(5, |_| ()).unwrap();
                    for row in slots.finished().collect::<Vec<_>>() {
                        let (output, of) = (slots.release(row).unwrap(), in_row[row]);
                        assert_eq!(output, expected[of], "{name}, {kind}, {kernels:?}, request {of}");
                        done += 1;
                    }
                }
            }
        }
    }
}

#[test]
fn a_step_is_the_same_operations_whatever_was_loaded() {
    let _turn = alone();
    /// The operations of everything up to the read after `steps` steps, and the tensors made of host data.
    fn record(config: &GenerationConfig, loads: usize, steps: usize) -> (Vec<String>, usize) {
        let device = Device::capture();
        let captured = device
            .capture_scope(|scope| {
                let embedded = Embedded::load(&device);
                let tables = ["person", "order", "event"].map(|kind| embedded.schema(kind));
                let rows: Vec<_> = tables.iter().map(Some).collect();
                let requests = embedded.requests(&rows, 60, 0);
                let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
                let mut slots = Slots::record(model, vocabulary, 4, 256, config).unwrap();
                for (row, request) in requests.iter().take(loads).enumerate() {
                    slots.admit(row, request).unwrap();
                }
                let error = slots.step(steps, |_| panic!("nothing was read")).unwrap_err();
                assert!(error.is_model(), "{error}");
                scope.complete([], [])
            })
            .unwrap();
        let operations = captured.graph.operations.iter().map(|operation| format!("{operation:?}"));
        (operations.collect(), captured.values.len())
    }
    let capacity = Capacity { tables: 3, states: 12_000, classes: 300, ..Capacity::new() };
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    for (temperature, row_options) in
        [(None, SamplingKinds::NONE), (Some(0.8), SamplingKinds::NONE), (None, SamplingKinds::ALL)]
    {
        let config = GenerationConfig::new()
            .with_temperature(temperature)
            .with_row_options(row_options)
            .with_read_every(64)
            .with_tensors(tensors.clone());
        let mut first = None;
        for loads in [0, 1, 3] {
            let (short, few) = record(&config, loads, 1);
            let (long, many) = record(&config, loads, 4);
            assert_eq!(few, many, "a step makes no tensor out of host data");
            let length = (long.len() - short.len()) / 3;
            // After the steps come the read and the rewinding of the log.
            let tail = short.iter().rev().position(|operation| operation.contains("(Slice(")).unwrap();
            let end = long.len() - tail - 1;
            for index in 0..4 {
                let step = renumbered(&long[end - (index + 1) * length..end - index * length]);
                let known = first.get_or_insert_with(|| step.clone());
                assert_eq!(step, *known, "{loads} loads, step {index} from the end");
            }
            eprintln!("temperature {temperature:?}, {loads} loads: {length} operations a step");
        }
    }
}
