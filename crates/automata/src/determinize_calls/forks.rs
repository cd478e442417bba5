//! Ends of counted parts in a lexed network.
//!
//! The division of a text into terminals depends on the start of the first terminal. A counted part
//! may end at several positions, and each of them starts a separate state: the state at the
//! possible end *forks* to it. The result of the subset construction is therefore nondeterministic,
//! but only by forks and without terminals to divide, and a second subset construction makes it
//! deterministic.

use super::super::FastMap;
use super::super::network::TransitionNetwork;
use super::super::pushdown::UntrimmedPda;
use super::{Outcome, SparseAutomaton, Subsets};

impl Subsets<'_, '_> {
    /// The deterministic automaton of the states and their forks.
    pub(super) fn joined(&self, done: &UntrimmedPda) -> Outcome<Option<SparseAutomaton>> {
        debug_assert!(done.calls.is_empty(), "forks are refused where something is called");
        let mut forks: FastMap<u32, Vec<u32>> = FastMap::default();
        self.forks.iter().for_each(|&(from, to)| forks.entry(1 + from).or_default().push(1 + to));
        let mut network = TransitionNetwork::new(self.network.meter());
        let states = done.rows.state_count() as u32;
        let mut nodes = vec![TransitionNetwork::DEAD];
        for _ in 1..states {
            nodes.push(network.reserve()?);
        }
        for state in 1..states {
            let runs = done.rows.row(state).iter();
            let reads = network.bytes(runs.map(|run| (run.first, run.last, nodes[run.target as usize])))?;
            let mut branches = vec![reads];
            branches.extend(done.rows.is_accepting(state).then_some(TransitionNetwork::ACCEPT));
            branches.extend(forks.get(&state).into_iter().flatten().map(|&to| nodes[to as usize]));
            network.fill(nodes[state as usize], &branches)?;
        }
        let found = network.determinize(nodes[done.start as usize], self.positions)?;
        Ok(found.map(|(determinized, _)| determinized))
    }
}
