//! The step as operations of Burn, recorded instead of run.

use burn_dfa::ErrorKind;
use std::collections::HashMap;

use burn::tensor::Device;
use burn_dfa::generation::{DecodeGraph, GenerationConfig};

use crate::alone;
use crate::common::embedded::{Embedded, POSITIONS};

/// The operations of [`DecodeGraph`] until its first read, which fails because nothing was
/// computed.
pub struct Recorded {
    /// With tensors numbered in order of their first use in the step.
    pub operations: Vec<String>,
    /// Tensors made of host data.
    pub values: usize,
}

/// Replays up to the token of step `last`, the first read.
fn record(config: &GenerationConfig, last: usize) -> Recorded {
    let device = Device::capture();
    let captured = device
        .capture_scope(|scope| {
            let embedded = Embedded::load(&device);
            let (person, order) = (embedded.schema("person"), embedded.schema("order"));
            let requests = embedded.requests(&[Some(&person), None, Some(&order)], 200, 0);
            let config = config.clone().with_sync_interval(last + 1);
            let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
            let mut graph = DecodeGraph::record(model, vocabulary, &requests, &config, POSITIONS).unwrap();
            let error = graph.stream(&requests).unwrap().next().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Model, "{error}");
            scope.complete([], [])
        })
        .unwrap();
    let operations = captured.graph.operations.iter().map(|operation| format!("{operation:?}")).collect();
    Recorded { operations, values: captured.values.len() }
}

/// The operations of a step with its tensors renumbered.
pub fn renumbered(operations: &[String]) -> Vec<String> {
    let tensor = regex_automata::meta::Regex::new(r"TensorId \{ value: [0-9]+ \}").unwrap();
    let mut numbers = HashMap::new();
    let renumber = |operation: &String| {
        let mut text = String::new();
        let mut end = 0;
        for found in tensor.find_iter(operation) {
            let next = numbers.len();
            let number = *numbers.entry(operation[found.range()].to_owned()).or_insert(next);
            text.push_str(&operation[end..found.start()]);
            text.push_str(&format!("#{number}"));
            end = found.end();
        }
        text + &operation[end..]
    };
    operations.iter().map(renumber).collect()
}

#[test]
fn every_step_has_the_same_operations_and_reads_nothing_back() {
    let _turn = alone();
    for temperature in [None, Some(0.8)] {
        let config = GenerationConfig::new().with_temperature(temperature);
        let [short, long] = [0, 51].map(|last| record(&config, last));
        assert_eq!(short.values, long.values, "a step makes no tensor out of host data");
        let more = long.operations.len() - short.operations.len();
        assert_eq!(more % 51, 0, "{more} operations of 51 steps");
        let length = more / 51;
        // The read begins with a separate operation, the slice of the log.
        let slice = short.operations.last().unwrap();
        assert!(slice.contains("Slice") && long.operations.last().unwrap().contains("Slice"), "{slice}");
        let start = short.operations.len() - 1;
        let step =
            |index: usize| renumbered(&long.operations[start + index * length..start + (index + 1) * length]);
        let first = step(0);
        // Memory that the warm-up of a recording need not have left.
        let empty = first.iter().find(|operation| operation.contains("dims: [0"));
        assert!(empty.is_none(), "a step allocates an empty tensor: {empty:?}");
        for index in 1..51 {
            assert_eq!(step(index), first, "step {index}");
        }
        eprintln!("temperature {temperature:?}: {length} operations a step");
    }
}
