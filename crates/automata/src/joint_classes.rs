//! The bytes that none of several automata distinguish.

use super::{ByteDfa, FastMap};

/// The coarsest partition of the bytes that refines the classes of several automata.
pub struct JointClasses {
    /// The bytes as runs of one joint class, in order: `(first, last, class)`.
    pub intervals: Vec<(u8, u8, usize)>,
    /// For each joint class, its class in each automaton. Joint classes are numbered in order of
    /// their first byte.
    pub columns: Vec<Vec<usize>>,
}

impl JointClasses {
    /// The joint classes of some automata.
    pub fn new(automata: &[&ByteDfa]) -> Self {
        let mut joint = Self { intervals: Vec::new(), columns: Vec::new() };
        let mut known: FastMap<Vec<usize>, usize> = FastMap::default();
        for byte in 0..=u8::MAX {
            let is_alike = |dfa: &&ByteDfa| dfa.classes()[byte as usize] == dfa.classes()[byte as usize - 1];
            if let Some((_, last, _)) = joint.intervals.last_mut()
                && automata.iter().all(is_alike)
            {
                *last = byte;
                continue;
            }
            let column: Vec<usize> =
                automata.iter().map(|dfa| dfa.classes()[byte as usize] as usize).collect();
            let class = *known.entry(column).or_insert_with_key(|column| {
                joint.columns.push(column.clone());
                joint.columns.len() - 1
            });
            joint.intervals.push((byte, byte, class));
        }
        joint
    }
}
