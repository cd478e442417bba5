//! The bytes that none of several automata distinguish.

use super::{ByteDfa, Interner};

/// The coarsest partition of the bytes that refines the classes of several automata. Joint classes
/// are numbered in order of their first byte.
pub struct JointClasses {
    /// The bytes as runs of one joint class, in order: `(first, last, class)`.
    pub intervals: Vec<(u8, u8, usize)>,
    /// For each joint class, its class in each automaton.
    columns: Interner<u32>,
}

impl JointClasses {
    /// The joint classes of some automata.
    pub fn new(automata: &[&ByteDfa]) -> Self {
        let (mut intervals, mut columns): (Vec<(u8, u8, usize)>, _) = (Vec::new(), Interner::new());
        let mut column = Vec::new();
        for byte in 0..=u8::MAX {
            let is_alike = |dfa: &&ByteDfa| dfa.classes()[byte as usize] == dfa.classes()[byte as usize - 1];
            match intervals.last_mut() {
                Some((_, last, _)) if automata.iter().all(is_alike) => *last = byte,
                _ => {
                    column.clear();
                    column.extend(automata.iter().map(|dfa| u32::from(dfa.classes()[byte as usize])));
                    intervals.push((byte, byte, columns.intern(&column).0 as usize));
                }
            }
        }
        Self { intervals, columns }
    }

    /// Number of joint classes.
    pub fn count(&self) -> usize {
        self.columns.len()
    }

    /// For each joint class, its class in each automaton.
    pub fn columns(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.count() as u32).map(|class| self.columns.get(class))
    }
    /// For each joint class of two automata, its class in each of them.
    pub(super) fn pairs(&self) -> Vec<(usize, usize)> {
        self.columns().map(|column| (column[0] as usize, column[1] as usize)).collect()
    }
}
