//! The buffers of a recording: nothing outside of the graph changes them, and calls that could
//! change them are refused.

use burn_dfa::ErrorKind;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::{DType, Device, Int, StreamId, Tensor};
use burn_dfa::generation::{ContinuousBatch, ContinuousLm, DecodeGraph, GenerationConfig, Output, Request};
use burn_dfa::{Capacity, CompiledConstraint, Constraint, Error, Limits, TensorOptions, TokenId, Vocabulary};

use crate::alone;
use crate::common::altered::{Altered, Call, ReassignedCache};
use crate::common::devices;
use crate::common::model::{RandomLm, run};
use burn_dfa_testing::words::vocabulary_of;

const SLOTS: usize = 48;

fn vocabulary() -> Vocabulary {
    vocabulary_of(&["true", "12"])
}

fn regex(pattern: &str, vocabulary: &Vocabulary) -> CompiledConstraint {
    CompiledConstraint::compile(&Constraint::regex(pattern).unwrap(), vocabulary, &Limits::default()).unwrap()
}

fn config() -> GenerationConfig {
    let capacity = Capacity { constraints: 2, states: 96, classes: 32, ..Capacity::new() };
    GenerationConfig::new()
        .with_sync_interval(4)
        .with_tensors(TensorOptions { capacity, ..TensorOptions::default() })
}

fn request(prompt: &str, constraint: &CompiledConstraint) -> Request {
    let prompt = prompt.bytes().map(|byte| TokenId(u32::from(byte))).collect();
    Request::new(prompt, 30).with_constraint(constraint)
}

/// The output of a request in a row.
fn run_in<M: ContinuousLm>(batch: &mut ContinuousBatch<M>, row: usize, request: &Request) -> Output {
    batch.admit(row, request).unwrap();
    while batch.finished().all(|finished| finished != row) {
        batch.step(4, |_| ()).unwrap();
    }
    batch.release(row).unwrap()
}

/// Tensors of ones, in the sizes of the tensors of a small batch.
fn allocate(device: &Device) -> Vec<Tensor<1, Int>> {
    let sizes = [1, 2, 3, 8, 96, 2 * SLOTS, 514, 1 << 12, 1 << 15];
    let tensors: Vec<_> =
        sizes.iter().cycle().take(72).map(|&size| Tensor::ones([size], (device, DType::I32)) + 0).collect();
    device.sync().unwrap();
    tensors
}

#[test]
fn values_kept_from_a_recorded_batch_do_not_change_it() {
    let _turn = alone();
    let vocabulary = vocabulary();
    let constraints =
        ["[a-f]{20}", "(true|12){2,9}", "[0-9]{7}-x"].map(|pattern| regex(pattern, &vocabulary));
    let requests =
        [request("one", &constraints[0]), request("two", &constraints[1]), request("three", &constraints[2])];
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len(), 5, DType::F32, &device);
        let alone =
            |request| run(&model, &vocabulary, std::slice::from_ref(request), &config()).unwrap().remove(0);
        let expected = requests.each_ref().map(alone);
        let mut batch = ContinuousBatch::record(&model, &vocabulary, 2, SLOTS, &config()).unwrap();
        assert_eq!(batch.is_hardware(), name != "flex");
        for (round, index) in [0, 1, 2, 1, 0, 2].into_iter().enumerate() {
            // All public values of a batch.
            let kept = (
                batch.free_space(),
                batch.arena_capacity(),
                format!("{batch:?}"),
                constraints.clone(),
                requests.clone(),
            );
            batch.admit(1, &requests[(index + 1) % 3]).unwrap();
            let before = allocate(&device);
            drop(kept);
            drop(before);
            let after = allocate(&device);
            let output = run_in(&mut batch, 0, &requests[index]);
            assert_eq!(output, expected[index], "{name}, round {round}");
            batch.release(1).unwrap();
            for tensor in after {
                let values = tensor.into_data().convert::<i32>().try_to_vec::<i32>().unwrap();
                assert!(values.iter().all(|&value| value == 1), "{name}, round {round}: written by a replay");
            }
        }
        assert_eq!(batch.free_space(), batch.arena_capacity(), "{name}");
    }
}

#[test]
fn a_model_that_reassigns_its_cache_runs_unrecorded() {
    let _turn = alone();
    let vocabulary = vocabulary();
    let constraint = regex("[a-f]{20}", &vocabulary);
    let request = request("one", &constraint);
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len(), 5, DType::F32, &device);
        let one = std::slice::from_ref(&request);
        let expected = run(&model, &vocabulary, one, &config()).unwrap();
        let model = Altered::with_change(model, ReassignedCache);
        let outputs = burn_dfa::generation::generate(&model, &vocabulary, one, &config()).unwrap();
        assert_eq!(outputs, expected, "{name}");
        let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, SLOTS, &config()).unwrap();
        assert_eq!(run_in(&mut batch, 1, &request), expected[0], "{name}");
    }
}

/// The message of the panic appears on the standard error.
fn panics<T>(call: impl FnOnce() -> T) {
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err(), "it was to panic");
}

#[track_caller]
fn assert_lost<T>(result: Result<T, Error>, what: &str) {
    let error = result.err().unwrap_or_else(|| panic!("{what}: it went on"));
    assert!(error.kind() == ErrorKind::Model && error.to_string().contains("panicked"), "{what}: {error}");
}

#[test]
fn after_a_panic_nothing_is_replayed() {
    let _turn = alone();
    let vocabulary = vocabulary();
    let constraint = regex("[a-f]{20}", &vocabulary);
    let request = request("one", &constraint);
    let one = std::slice::from_ref(&request);
    for (name, device) in devices::all() {
        let told = Cell::new(false);
        let model =
            Altered::new(RandomLm::new(vocabulary.len(), 5, DType::F32, &device), |_: Call, logits| {
                assert!(!told.replace(false), "as it was told");
                logits
            });
        for (kind, make) in
            [("run", ContinuousBatch::new as fn(_, _, _, _, &_) -> _), ("recorded", ContinuousBatch::record)]
        {
            let what = format!("{name}, {kind}");
            let expected = run_in(&mut make(&model, &vocabulary, 2, SLOTS, &config()).unwrap(), 0, &request);
            // In the model, and in the callback.
            for in_callback in [false, true] {
                let mut batch = make(&model, &vocabulary, 2, SLOTS, &config()).unwrap();
                batch.admit(0, &request).unwrap();
                if in_callback {
                    panics(|| batch.step(4, |_| panic!("as it is told")));
                } else {
                    batch.step(4, |_| ()).unwrap();
                    told.set(true);
                    panics(|| batch.admit(1, &request));
                }
                assert_lost(batch.step(4, |_| ()), &what);
                assert_lost(batch.admit(1, &request), &what);
                assert_lost(batch.release(0), &what);
                assert!(
                    batch
                        .admit_all(&[(1, &request), (1, &request)])
                        .into_iter()
                        .all(|result| result.is_err())
                );
            }
            // A new batch works.
            let mut batch = make(&model, &vocabulary, 2, SLOTS, &config()).unwrap();
            assert_eq!(run_in(&mut batch, 0, &request), expected, "{what}");
        }
        let record = || DecodeGraph::record(&model, &vocabulary, one, &config(), SLOTS).unwrap();
        let mut graph = record();
        let expected = graph.generate(one).unwrap();
        told.set(true);
        panics(|| graph.generate(one));
        assert_lost(graph.generate(one), name);
        if name == "flex" {
            // A step that is run again can panic as well.
            let mut graph = record();
            let mut pieces = graph.stream(one).unwrap();
            told.set(true);
            panics(|| pieces.next());
            drop(pieces);
            assert_lost(graph.generate(one), name);
        }
        // A panic between two chunks does not affect the tensors of a graph.
        let mut graph = record();
        panics(|| {
            let mut chunks = graph.stream(one).unwrap();
            panic!("after {:?}", chunks.next());
        });
        assert_eq!(graph.generate(one).unwrap(), expected, "{name}");
    }
}

#[test]
fn a_recording_stays_on_its_stream() {
    let _turn = alone();
    let vocabulary = vocabulary();
    let constraint = regex("[a-f]{20}", &vocabulary);
    let request = request("one", &constraint);
    let one = std::slice::from_ref(&request);
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len(), 5, DType::F32, &device);
        let expected = run(&model, &vocabulary, one, &config()).unwrap();
        let mut graph = DecodeGraph::record(&model, &vocabulary, one, &config(), SLOTS).unwrap();
        let mut batch = ContinuousBatch::record(&model, &vocabulary, 2, SLOTS, &config()).unwrap();
        batch.admit(0, &request).unwrap();
        StreamId::allocate().executes(|| {
            let refused = |error: Error| {
                assert!(
                    error.kind() == ErrorKind::Input && error.to_string().contains("stream"),
                    "{name}: {error}"
                );
            };
            refused(graph.generate(one).unwrap_err());
            refused(batch.admit(1, &request).unwrap_err());
            refused(batch.step(4, |_| ()).unwrap_err());
            refused(batch.release(0).unwrap_err());
        });
        // They continue on the stream of the recording.
        assert_eq!(graph.generate(one).unwrap(), expected, "{name}");
        batch.step(SLOTS, |_| ()).unwrap();
        assert_eq!(batch.release(0).unwrap(), expected[0], "{name}");
        // Without a recording every stream is accepted.
        let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, SLOTS, &config()).unwrap();
        let output = StreamId::allocate().executes(|| run_in(&mut batch, 0, &request));
        assert_eq!(output, expected[0], "{name}");
    }
}
