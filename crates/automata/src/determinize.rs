//! The subset construction.
//!
//! A state of the deterministic automaton is a context (see [`context`](super::context)) and a set
//! of *items*. An item is a state of the [`Nfa`] that reads a byte or accepts, with a *demand*: the
//! set of categories that the assertions on its path allow for the next character. Without
//! look-around there is one context, and no item has a demand.
//!
//! An item is dropped if the set has an item of a higher [rank](Rank) with the same demand, because
//! the higher item matches everything that the dropped one matches.
//!
//! Rows consist of runs of bytes, so the cost of a state depends on its number of outgoing runs,
//! not on the number of byte classes of the whole automaton.

use std::cmp::Reverse;

use super::context::{Categories, ContextRun, LookAroundStates};
use super::nfa::{Nfa, Rank, State};
use super::stamps::StampSet;
use super::sweep::{Cuts, Sweep};
use super::{ByteDfa, FastMap, Interner, Rows, Run};
use burn_dfa_common::Result;

impl Nfa<'_> {
    /// The minimal automaton of the strings on paths from `start` to [`Nfa::ACCEPT`].
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn determinize(&self, start: u32) -> Result<ByteDfa> {
        self.check()?;
        let contexts = match self.looks().as_slice() {
            [] => None,
            looks => Some(LookAroundStates::new(looks, self.meter())?),
        };
        let (rows, start) = Subsets::new(self, contexts).run(start)?;
        rows.minimize(start, self.meter())
    }

    /// Number of states before minimization, without look-around.
    #[cfg(test)]
    pub(super) fn subset_count(&self, start: u32) -> Result<usize> {
        Ok(Subsets::new(self, None).run(start)?.0.state_count())
    }
}

/// An item. Below [`Demands::base`] it is the number of a state without a demand; from `base` on,
/// it numbers a pair of a state and a demand.
type Item = u32;

/// The pairs of a state and a demand, numbered after the states.
struct Demands {
    base: u32,
    numbers: FastMap<(u32, Categories), Item>,
    pairs: Vec<(u32, Categories)>,
}

impl Demands {
    fn item(&mut self, state: u32, demand: Categories) -> Item {
        if demand == Categories::ALL {
            return state;
        }
        let next = self.base + self.pairs.len() as u32;
        let pairs = &mut self.pairs;
        *self.numbers.entry((state, demand)).or_insert_with(|| {
            pairs.push((state, demand));
            next
        })
    }

    fn get(&self, item: Item) -> (u32, Categories) {
        match item.checked_sub(self.base) {
            None => (item, Categories::ALL),
            Some(at) => self.pairs[at as usize],
        }
    }
}

struct Subsets<'n, 'm> {
    nfa: &'n Nfa<'m>,
    contexts: Option<LookAroundStates>,
    demands: Demands,
    /// The deterministic states: each a context and sorted items. The first is the dead state:
    /// `[]`.
    sets: Interner<u32>,
    /// For each state of the [`Nfa`] the deterministic state of the singleton set, if known. Not
    /// used with look-around.
    after_one: Vec<u32>,
    /// The items seen in a closure.
    seen: StampSet,
    stack: Vec<Item>,
    set: Vec<u32>,
    /// Scratch.
    sorted: Vec<Edge>,
    ranked: Vec<(u32, Categories, Rank, Item)>,
    work: usize,
}

/// An outgoing run of an item, with the item's demand.
type Edge = (Run, Categories);

/// From this many edges on, a counting sort by first byte is used.
const MANY_EDGES: usize = 32;

/// Sorts edges stably by first byte.
fn sort(edges: &mut [Edge], sorted: &mut Vec<Edge>) {
    if edges.len() < MANY_EDGES {
        return edges.sort_by_key(|edge| edge.0.first);
    }
    let mut positions = [0; 257];
    edges.iter().for_each(|edge| positions[edge.0.first as usize + 1] += 1);
    (1..257).for_each(|byte| positions[byte] += positions[byte - 1]);
    sorted.clear();
    sorted.resize(edges.len(), edges[0]);
    for edge in edges.iter() {
        let position = &mut positions[edge.0.first as usize];
        sorted[*position] = *edge;
        *position += 1;
    }
    edges.copy_from_slice(sorted);
}

const UNKNOWN: u32 = u32::MAX;

impl<'n, 'm> Subsets<'n, 'm> {
    fn new(nfa: &'n Nfa<'m>, contexts: Option<LookAroundStates>) -> Self {
        let count = nfa.state_count();
        let mut sets = Interner::new();
        sets.intern(&[]);
        Self {
            nfa,
            contexts,
            demands: Demands { base: count as u32, numbers: FastMap::default(), pairs: Vec::new() },
            sets,
            after_one: vec![UNKNOWN; count],
            seen: StampSet::new(count),
            stack: Vec::new(),
            set: Vec::new(),
            sorted: Vec::new(),
            ranked: Vec::new(),
            work: 0,
        }
    }

    /// The deterministic states, and the start.
    fn run(mut self, start: u32) -> Result<(Rows, u32)> {
        let mut rows = Rows::new();
        let start = self.closure(0, &[start])?;
        let mut edges = Vec::new();
        let mut row = Vec::new();
        let mut at = 1;
        while at < self.sets.len() as u32 {
            let accepting = self.edges(at, &mut edges);
            row.clear();
            self.row(at, &mut edges, &mut row)?;
            rows.push(accepting, row.iter().copied());
            at += 1;
            self.nfa.meter().states(self.sets.len())?;
            if at % 1024 == 0 {
                rows.check(self.nfa.meter())?;
                self.nfa.meter().bytes(self.sets.bytes())?;
            }
        }
        Ok((rows, start))
    }

    /// Gathers the runs out of a deterministic state; returns whether it accepts.
    fn edges(&self, set: u32, edges: &mut Vec<Edge>) -> bool {
        edges.clear();
        let mut accepting = false;
        for &item in self.sets.get(set).iter().skip(1) {
            let (state, demand) = self.demands.get(item);
            match self.nfa.state(state) {
                State::Bytes(runs) => edges.extend(runs.iter().map(|&run| (run, demand))),
                State::Accept => accepting |= demand.contains(Categories::EDGE),
                State::Union(_) | State::Look { .. } => {}
            }
        }
        accepting
    }

    /// Computes the target of each byte.
    fn row(&mut self, set: u32, edges: &mut [Edge], row: &mut Vec<Run>) -> Result<()> {
        self.tick(edges.len())?;
        let items = self.sets.get(set);
        if self.contexts.is_none() && items.len() == 2 {
            // The runs of a single state are in order and do not overlap.
            for &(run, _) in edges.iter() {
                row.push(Run { target: self.after(&[run.target])?, ..run });
            }
            return Ok(());
        }
        let context = items[0];
        sort(edges, &mut self.sorted);
        let context_runs: Vec<ContextRun> =
            self.contexts.as_ref().map_or_else(Vec::new, |c| c.runs(context).to_vec());

        // Between cuts, the set of covering edges and the next context do not change.
        let mut cuts = Cuts::new();
        edges.iter().for_each(|(run, _)| cuts.add(run.first, run.last));
        context_runs.iter().for_each(|run| cuts.add(run.first, run.last));

        let mut sweep = Sweep::new(edges);
        let mut next: Vec<Item> = Vec::new();
        let mut previous: (Vec<Item>, u32, u32) = (Vec::new(), 0, 0);
        for (first, last) in cuts.intervals() {
            let open = sweep.at(first);
            if open.is_empty() {
                continue;
            }
            self.tick(open.len())?;
            next.clear();
            let mut to = 0;
            if self.contexts.is_none() {
                next.extend(open.iter().map(|(run, _)| run.target));
            } else {
                let Some(run) = context_runs.iter().find(|run| run.first <= first && first <= run.last)
                else {
                    continue;
                };
                to = run.next;
                for &(edge, demand) in open {
                    let left = demand.and(run.categories);
                    if left.is_none() {
                        continue;
                    }
                    let settled = run.complete || left == run.categories;
                    let demand = if settled { Categories::ALL } else { left };
                    next.push(self.demands.item(edge.target, demand));
                }
            }
            next.sort_unstable();
            next.dedup();
            if previous.0 != next || previous.1 != to {
                let target =
                    if self.contexts.is_none() { self.after(&next)? } else { self.closure(to, &next)? };
                previous = (next.clone(), to, target);
            }
            row.push(Run { first, last, target: previous.2 });
        }
        Ok(())
    }

    /// The deterministic state of some states, without look-around.
    fn after(&mut self, states: &[u32]) -> Result<u32> {
        match *states {
            [one] if self.after_one[one as usize] != UNKNOWN => Ok(self.after_one[one as usize]),
            [one] => {
                let set = self.closure(0, states)?;
                self.after_one[one as usize] = set;
                Ok(set)
            }
            _ => self.closure(0, states),
        }
    }

    /// The deterministic state of `context` and all items reachable from `items` without reading.
    fn closure(&mut self, context: u32, items: &[Item]) -> Result<u32> {
        self.seen.clear();
        self.set.clear();
        self.set.push(context);
        self.stack.clear();
        self.stack.extend_from_slice(items);
        while let Some(item) = self.stack.pop() {
            if !self.seen.insert(item) {
                continue;
            }
            self.tick(1)?;
            let (state, demand) = self.demands.get(item);
            match self.nfa.state(state) {
                State::Bytes(runs) => {
                    if !runs.is_empty() && demand != Categories::EDGE {
                        self.set.push(item);
                    }
                }
                State::Accept => {
                    if demand.contains(Categories::EDGE) {
                        self.set.push(item);
                    }
                }
                State::Union(branches) => {
                    // In reverse, so that branches are followed in their order.
                    for &branch in branches.iter().rev() {
                        let next = self.demands.item(branch, demand);
                        self.stack.push(next);
                    }
                }
                State::Look { look, next } => {
                    let allowed = self
                        .contexts
                        .as_ref()
                        .map_or(Categories::ALL, |contexts| contexts.allowed(context, look));
                    let demand = demand.and(allowed);
                    if !demand.is_none() {
                        let next = self.demands.item(next, demand);
                        self.stack.push(next);
                    }
                }
            }
        }
        if self.set.len() == 1 {
            return Ok(0);
        }
        if self.nfa.is_ranked() && self.set.len() > 2 {
            self.drop_outranked()?;
        }
        self.set[1..].sort_unstable();
        let (number, new) = self.sets.intern(&self.set);
        if new {
            self.nfa.meter().bytes(self.sets.bytes())?;
        }
        Ok(number)
    }

    /// Drops the items of the set that another item outranks.
    fn drop_outranked(&mut self) -> Result<()> {
        let mut ranked = std::mem::take(&mut self.ranked);
        ranked.clear();
        for &item in &self.set[1..] {
            let (state, demand) = self.demands.get(item);
            let rank = self.nfa.rank_of(state);
            ranked.push((rank.body, demand, rank, item));
        }
        // Within one body and demand, an item comes after all items that outrank it.
        ranked.sort_unstable_by_key(|&(body, demand, rank, item)| (body, demand, Reverse(rank.counts), item));
        self.set.truncate(1);
        let mut compared = 0;
        for group in ranked.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let mut highest: Vec<Rank> = Vec::new();
            for &(_, _, rank, item) in group {
                compared += highest.len();
                if !highest.iter().any(|other| other.is_at_least(rank)) {
                    highest.push(rank);
                    self.set.push(item);
                }
            }
        }
        self.ranked = ranked;
        self.tick(compared)
    }

    fn tick(&mut self, work: usize) -> Result<()> {
        self.work += work + 1;
        if self.work > 1 << 14 {
            self.work = 0;
            self.nfa.meter().time()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_edges_and_many_are_sorted_alike() {
        for count in [0, 1, MANY_EDGES - 1, MANY_EDGES, 500] {
            let first = |at: usize| (at * 97 % 251) as u8 & !3;
            let run = |at: usize| Run { first: first(at), last: 255, target: at as u32 };
            let mut edges: Vec<Edge> = (0..count).map(|at| (run(at), Categories::ALL)).collect();
            let mut expected = edges.clone();
            expected.sort_by_key(|edge| edge.0.first);
            sort(&mut edges, &mut Vec::new());
            assert!(edges == expected, "{count} edges");
        }
    }
}
