//! The states and edges of an automaton, as they are drawn: without the dead state, one edge for all bytes
//! between two states.

use std::collections::BTreeMap;

use burn_dfa::automaton::{ByteDfa, ByteStateId};
use serde_json::{Value, json};

use crate::classes::of_bytes;

/// States in the order in which the start leads to them; the start is 0.
pub struct Graph {
    pub accepting: Vec<bool>,
    pub edges: Vec<Edge>,
}

/// All bytes from one state to another.
pub struct Edge {
    pub from: usize,
    pub to: usize,
    /// The bytes as a class.
    pub label: String,
}

impl Graph {
    pub fn new(dfa: &ByteDfa) -> Self {
        let mut order = vec![dfa.start()];
        let mut numbers = BTreeMap::from([(dfa.start().0, 0)]);
        let mut edges = Vec::new();
        let mut at = 0;
        while let Some(&state) = order.get(at) {
            let mut targets: Vec<ByteStateId> = Vec::new();
            for byte in 0..=u8::MAX {
                let next = dfa.next(state, byte);
                if next != ByteStateId::DEAD && !targets.contains(&next) {
                    targets.push(next);
                }
            }
            for target in targets {
                let to = *numbers.entry(target.0).or_insert_with(|| {
                    order.push(target);
                    order.len() - 1
                });
                let label = of_bytes(|byte| dfa.next(state, byte) == target).unwrap_or_default();
                edges.push(Edge { from: at, to, label });
            }
            at += 1;
        }
        Self { accepting: order.iter().map(|&state| dfa.is_accepting(state)).collect(), edges }
    }

    /// The edges for a program.
    pub fn edges(&self) -> Vec<Value> {
        let edge = |edge: &Edge| json!({"from": edge.from, "to": edge.to, "bytes": edge.label});
        self.edges.iter().map(edge).collect()
    }
}
