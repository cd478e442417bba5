//! Where counted parts end in a lexed network.
//!
//! How a text is cut into terminals depends on where the first of them begins. What is read behind a counted part, which may end
//! in several places, is therefore a state of its own: the state in which the part may end *forks* to it. So what comes of the
//! subset construction is nondeterministic by these forks alone, without terminals to be cut, and is determinised once more.

use super::super::FastMap;
use super::super::network::Network;
use super::{Determinized, Done, Outcome, Subsets};

impl Subsets<'_, '_> {
    /// The deterministic automaton of the states and their forks.
    pub(super) fn joined(&self, done: &Done) -> Outcome<Option<Determinized>> {
        debug_assert!(done.calls.is_empty(), "forks are refused where something is called");
        let mut forks: FastMap<u32, Vec<u32>> = FastMap::default();
        self.forks.iter().for_each(|&(from, to)| forks.entry(1 + from).or_default().push(1 + to));
        let mut network = Network::new(self.network.meter());
        let states = done.rows.state_count() as u32;
        let mut nodes = vec![Network::DEAD];
        for _ in 1..states {
            nodes.push(network.reserve()?);
        }
        for state in 1..states {
            let runs = done.rows.row(state).iter();
            let reads = network.bytes(runs.map(|run| (run.first, run.last, nodes[run.target as usize])))?;
            let mut branches = vec![reads];
            branches.extend(done.rows.is_accepting(state).then_some(Network::ACCEPT));
            branches.extend(forks.get(&state).into_iter().flatten().map(|&to| nodes[to as usize]));
            network.fill(nodes[state as usize], &branches)?;
        }
        let found = network.determinize(nodes[done.start as usize], self.positions)?;
        Ok(found.map(|(determinized, _)| determinized))
    }
}
