//! Shared code of plans of arrays and objects: finding states, and removing useless ones.
//!
//! A state is identified by a key. The key holds the *residues*: the remaining formulas of the goal
//! and of each probe. A value may end in a state if its residues are decided. States from which no
//! end can be reached are removed.

use std::hash::Hash;
use std::sync::Arc;

use super::live::live;
use super::nesting::Depth;
use super::{Kind, Planner, Step};
use crate::json_schema::formula::Formula;
use burn_dfa_automata::FastMap;

/// The start of a plan of an array or an object.
pub(super) struct Opening {
    /// The formula that must hold, followed by the probes.
    pub(super) residues: Vec<Formula>,
    pub(super) depth: Depth,
    /// The kind of the value, if it is within any JSON.
    pub(super) within_any: Option<Kind>,
}

/// A state of an array or an object.
pub(super) trait State {
    fn steps(&mut self) -> Vec<&mut Option<Step>>;

    /// The state entered without a step, such as the state without an optional property.
    fn skip(&mut self) -> Option<&mut Option<u32>> {
        None
    }

    /// The outcome of a value that ends in this state.
    fn end(&self) -> Option<u32>;
}

/// Numbers states by their keys, from 0 in order of first occurrence.
pub(super) struct Frame<K> {
    numbers: FastMap<K, u32>,
    keys: Vec<K>,
}

impl<K> Default for Frame<K> {
    fn default() -> Self {
        Self { numbers: FastMap::default(), keys: Vec::new() }
    }
}

impl<K: Clone + Eq + Hash> Frame<K> {
    pub(super) fn new(first: K) -> Self {
        let mut frame = Self::default();
        frame.number(first);
        frame
    }

    /// The number of a state.
    pub(super) fn number(&mut self, key: K) -> u32 {
        let keys = &mut self.keys;
        *self.numbers.entry(key).or_insert_with_key(|key| {
            keys.push(key.clone());
            keys.len() as u32 - 1
        })
    }

    /// The key of a numbered state.
    pub(super) fn get(&self, state: usize) -> Option<K> {
        self.keys.get(state).cloned()
    }
}

impl Planner<'_> {
    /// The distinct leaves of several residues.
    pub(super) fn leaves_of(&mut self, residues: &[Formula]) -> Arc<[Formula]> {
        match residues {
            [only] => self.formulas.leaves(*only),
            _ => {
                let mut seen: FastMap<Formula, ()> = FastMap::default();
                let mut all = Vec::new();
                for &residue in residues {
                    let leaves = self.formulas.leaves(residue);
                    all.extend(leaves.iter().copied().filter(|leaf| seen.insert(*leaf, ()).is_none()));
                }
                all.into()
            }
        }
    }

    /// The residues with some leaves decided.
    pub(super) fn assign(
        &mut self,
        residues: &[Formula],
        values: &FastMap<Formula, Formula>,
    ) -> Vec<Formula> {
        if values.is_empty() {
            return residues.to_vec();
        }
        residues.iter().map(|&residue| self.formulas.assign(residue, values)).collect()
    }
}

/// The answers of decided residues; `None` if the goal is false, or a residue is open.
pub(super) fn answers(residues: &[Formula]) -> Option<Vec<bool>> {
    if residues[0] != Formula::TRUE {
        return None;
    }
    residues[1..].iter().map(|residue| residue.decided()).collect()
}

/// The states on a path from the first state to an end, numbered breadth first; `None` if no such
/// state exists.
pub(super) fn finished<S: State>(mut states: Vec<S>) -> Option<Vec<S>> {
    let nexts: Vec<Vec<u32>> = states.iter_mut().map(nexts).collect();
    let live = live(states.iter().map(|state| state.end().is_some()), nexts.into_iter());
    if !live[0] {
        return None;
    }
    states.iter_mut().for_each(|state| redirect(state, |to| live[to as usize].then_some(to)));
    let mut numbers: Vec<Option<u32>> = vec![None; states.len()];
    numbers[0] = Some(0);
    let mut order = vec![0];
    let mut met = 0;
    while let Some(&state) = order.get(met) {
        met += 1;
        for to in self::nexts(&mut states[state as usize]) {
            if numbers[to as usize].is_none() {
                numbers[to as usize] = Some(order.len() as u32);
                order.push(to);
            }
        }
    }
    let mut states: Vec<Option<S>> = states.into_iter().map(Some).collect();
    let mut ordered: Vec<S> = order.iter().filter_map(|&state| states[state as usize].take()).collect();
    ordered.iter_mut().for_each(|state| redirect(state, |to| numbers[to as usize]));
    Some(ordered)
}

/// The successors of a state.
fn nexts(state: &mut impl State) -> Vec<u32> {
    let steps = state.steps().into_iter().flatten();
    let mut nexts: Vec<u32> = steps.flat_map(|step| step.next.iter().flatten().copied()).collect();
    nexts.extend(state.skip().and_then(|skip| *skip));
    nexts
}

/// Renumbers the successors of a state. A step without successors is removed.
fn redirect(state: &mut impl State, to: impl Fn(u32) -> Option<u32>) {
    for optional in state.steps() {
        let Some(step) = optional else { continue };
        step.next.iter_mut().for_each(|next| *next = next.and_then(&to));
        if step.next.iter().all(Option::is_none) {
            *optional = None;
        }
    }
    if let Some(skip) = state.skip() {
        *skip = skip.and_then(to);
    }
}
