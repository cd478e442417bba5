//! Automata of other constraints, copied into a transition network.

use burn_dfa_automata::{FastMap, Jump, Pushdown, SparseAutomaton, TransitionNetwork};
use burn_dfa_common::Result;

/// The procedures of nested automata in a network. All copies of an automaton share them.
#[derive(Default)]
pub(super) struct Procedures {
    /// The node of each state, by the number of its automaton.
    nodes: FastMap<(usize, u32), u32>,
}

/// Copies a nested automaton with this number.
struct Copier<'c, 'm> {
    network: &'c mut TransitionNetwork<'m>,
    procedures: &'c mut Procedures,
    number: usize,
}

impl Procedures {
    /// The start of the non-empty texts of a nested automaton before `next`.
    pub(super) fn copy(
        &mut self,
        network: &mut TransitionNetwork,
        number: usize,
        nested: &SparseAutomaton,
        next: u32,
    ) -> Result<u32> {
        match nested {
            SparseAutomaton::Finite(dfa) => network.copy(dfa.rows().rows(), 1, next),
            SparseAutomaton::Pushdown(automaton) => {
                let mut copier = Copier { network, procedures: self, number };
                let mut outermost = FastMap::default();
                copier.state(automaton, 1, Some(next), &mut outermost)?;
                // The start without its end.
                let row = automaton.rows().row(1);
                let mut ranges = Vec::new();
                for run in row {
                    let to = copier.state(automaton, run.target, Some(next), &mut outermost)?;
                    ranges.push((run.first, run.last, to));
                }
                copier.network.bytes(ranges)
            }
        }
    }
}

impl Copier<'_, '_> {
    /// The node of a state of a nested automaton, in its outermost part before `next` or in a
    /// procedure.
    fn state(
        &mut self,
        automaton: &Pushdown,
        state: u32,
        next: Option<u32>,
        outermost: &mut FastMap<u32, u32>,
    ) -> Result<u32> {
        let (mut rest, mut ranges) = (Vec::new(), Vec::new());
        let node = self.node_of(state, next, outermost, &mut rest)?;
        while let Some((state, next, node)) = rest.pop() {
            let mut to =
                |own: &mut Self, state, next, rest: &mut _| own.node_of(state, next, outermost, rest);
            let filled = match automaton.jump(state).clone() {
                Jump::Return(outcome) => self.network.returning(outcome)?,
                Jump::Call(call) => {
                    let enter = to(self, call.enter, None, &mut rest)?;
                    let mut returns = Vec::with_capacity(call.returns.len());
                    for state in call.returns {
                        returns.push(to(self, state, next, &mut rest)?);
                    }
                    self.network.call(enter, &returns)?
                }
                Jump::None => {
                    ranges.clear();
                    for run in automaton.rows().row(state) {
                        ranges.push((run.first, run.last, to(self, run.target, next, &mut rest)?));
                    }
                    let runs = ranges.iter().copied();
                    match next {
                        Some(next) if automaton.rows().is_accepting(state) => {
                            let reads = self.network.bytes(runs)?;
                            self.network.union(&[reads, next])?
                        }
                        _ => {
                            self.network.fill_bytes(node, runs)?;
                            continue;
                        }
                    }
                }
            };
            self.network.fill(node, &[filled])?;
        }
        Ok(node)
    }

    fn node_of(
        &mut self,
        state: u32,
        next: Option<u32>,
        outermost: &mut FastMap<u32, u32>,
        rest: &mut Vec<(u32, Option<u32>, u32)>,
    ) -> Result<u32> {
        if state == 0 {
            return Ok(TransitionNetwork::DEAD);
        }
        let known = match next {
            Some(_) => outermost.get(&state),
            None => self.procedures.nodes.get(&(self.number, state)),
        };
        if let Some(&known) = known {
            return Ok(known);
        }
        let node = self.network.reserve()?;
        match next {
            Some(_) => outermost.insert(state, node),
            None => self.procedures.nodes.insert((self.number, state), node),
        };
        rest.push((state, next, node));
        Ok(node)
    }
}
