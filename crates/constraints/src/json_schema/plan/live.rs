//! Finds the states of a plan on a path to an end.

use burn_dfa_automata::Csr;

/// Whether each state leads to an end.
pub(super) fn live(ends: impl Iterator<Item = bool>, nexts: impl Iterator<Item = Vec<u32>>) -> Vec<bool> {
    let mut live: Vec<bool> = ends.collect();
    let mut edges = Vec::new();
    for (from, nexts) in nexts.enumerate() {
        edges.extend(nexts.into_iter().map(|to| (to, from as u32)));
    }
    let before = Csr::new(live.len(), edges.iter().copied());
    let mut rest: Vec<u32> = (0..live.len() as u32).filter(|&state| live[state as usize]).collect();
    while let Some(state) = rest.pop() {
        for &from in before.of(state) {
            if !std::mem::replace(&mut live[from as usize], true) {
                rest.push(from);
            }
        }
    }
    live
}
