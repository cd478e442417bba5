//! The row of a state: the target of each byte.

use super::super::Run;
use super::super::edges::Span;
use super::super::network::Node;
use super::super::sweep::{Cuts, Sweep};
use super::exits::TEXT_END;
use super::{Forbidden, Item, Outcome, Row, Subsets, Target, Witness};

impl Subsets<'_, '_> {
    /// Computes the target of each byte.
    pub(super) fn row(&mut self, state: u32) -> Outcome<Row> {
        self.now = self.witnesses[state as usize];
        let key = self.sets.get(state);
        let procedure = key[0];
        if let [_, 0, 0, node] = *key
            && let Some(runs) = self.reads_alone(node)
        {
            return self.row_alone(state, procedure, runs);
        }
        let words = key[1..].chunks_exact(3);
        let items: Vec<Item> =
            words.map(|word| Item { tag: word[0], pending: word[1], node: word[2] }).collect();
        let ahead = self.ahead(procedure, &items)?;
        let from = self.runs.len();
        let mut cuts = Cuts::new();
        if ahead.ended_behind.is_empty() {
            let edges = ahead.inner.iter().chain(&ahead.outer).chain(&ahead.counted);
            edges.for_each(|(run, _)| cuts.add(run.first, run.last));
        } else {
            cuts = self.cuts.clone();
            let outcome = self.outcome(TEXT_END, &ahead.ended_behind);
            self.forbid(procedure, Forbidden { procedure, outcome, inner: None, witness: self.now });
        }
        let (mut inner, mut outer) = (Sweep::new(&ahead.inner), Sweep::new(&ahead.outer));
        let mut counted = Sweep::new(&ahead.counted);
        let after = |&(run, item): &(Run, Item)| Item { node: run.target, ..item };
        let mut next = Vec::new();
        for (byte, last) in cuts.intervals() {
            next.clear();
            next.extend(inner.at(byte).iter().map(after));
            let mut ended = &ahead.ended;
            if next.is_empty() {
                // The terminals end before this byte.
                next.extend(outer.at(byte).iter().map(after));
                ended = &ahead.ended_behind;
            }
            next.extend(counted.at(byte).iter().map(after));
            let witness = Witness::Read { from: state, byte };
            let target = self.read(procedure, byte, &mut next, ended, witness)?;
            if let Target::Return(outcome) = target {
                self.record_exit(procedure, outcome, state, byte);
            }
            if target != Target::Dead {
                self.runs.push((byte, last, target));
            }
        }
        if let Some(symbol) = self.network.boundary() {
            let items = self.past_boundary(procedure, &items)?;
            if !items.is_empty() {
                let witness = Witness::Read { from: state, byte: symbol };
                let target = Target::State(self.state(procedure, &items, witness)?);
                let at = from + self.runs[from..].partition_point(|run| run.0 < symbol);
                self.runs.insert(at, (symbol, symbol, target));
            }
        }
        self.fork(state, procedure, &items)?;
        Ok(Row { from, to: self.runs.len(), accepting: ahead.accepting })
    }

    /// The runs of a reading node, if the set of the node alone has only the node's runs in its
    /// row. Most sets are such singletons, because most copied parts were deterministic before.
    pub(super) fn reads_alone(&self, node: u32) -> Option<Span> {
        match self.network.node(node) {
            Node::Bytes(span) if !span.is_empty() && self.network.boundary().is_none() => Some(span),
            _ => None,
        }
    }

    /// The row of a state of one item without tag and pending calls, which reads by the given runs.
    fn row_alone(&mut self, state: u32, procedure: u32, runs: Span) -> Outcome<Row> {
        let from = self.runs.len();
        let network = self.network;
        for &Run { first, last, target: next } in network.edges().runs(runs) {
            let key = u64::from(procedure) << 32 | u64::from(next);
            let target = match self.moved_alone.get(&key) {
                Some(&known) => known,
                None => {
                    let item = Item { tag: 0, pending: 0, node: next };
                    let target =
                        self.target(procedure, &[item], Witness::Read { from: state, byte: first })?;
                    self.moved_alone.insert(key, target);
                    target
                }
            };
            if let Target::Return(outcome) = target {
                self.record_exit(procedure, outcome, state, first);
            }
            if target != Target::Dead {
                self.runs.push((first, last, target));
            }
        }
        let to = self.runs.len();
        self.tick(to - from)?;
        Ok(Row { from, to, accepting: false })
    }

    /// Records the forks of a state: the ended counted parts among its items lead to a separate
    /// state.
    fn fork(&mut self, state: u32, procedure: u32, items: &[Item]) -> Outcome<()> {
        let next = |item: &Item| match self.network.node(item.node) {
            Node::Fork { next } => Some(Item { node: next, ..*item }),
            _ => None,
        };
        let forked: Vec<Item> = items.iter().filter_map(next).collect();
        if forked.is_empty() {
            return Ok(());
        }
        let witness = self.witnesses[state as usize];
        let items = self.settled(procedure, &forked)?;
        if !items.is_empty() {
            let to = self.state(procedure, &items, witness)?;
            self.forks.push((state, to));
        }
        Ok(())
    }

    /// The target of a byte: `next` in the procedure, or a return if `next` is empty and `ended` is
    /// not.
    pub(super) fn read(
        &mut self,
        procedure: u32,
        byte: u8,
        next: &mut Vec<Item>,
        ended: &[Item],
        witness: Witness,
    ) -> Outcome<Target> {
        if next.is_empty() {
            let returns = |own: &mut Self| Target::Return(own.outcome(u16::from(byte), ended));
            return Ok(if ended.is_empty() { Target::Dead } else { returns(self) });
        }
        next.sort_unstable();
        next.dedup();
        self.key.clear();
        self.key.push(procedure);
        self.key.extend(next.iter().flat_map(|item| [item.tag, item.pending, item.node]));
        let (number, new) = self.moves.intern(&self.key);
        if new {
            self.moved.push(Target::Dead);
            self.moved[number as usize] = self.target(procedure, next, witness)?;
        }
        if !ended.is_empty() {
            let outcome = self.outcome(u16::from(byte), ended);
            self.forbid(procedure, Forbidden { procedure, outcome, inner: Some(number), witness });
        }
        self.tick(next.len())?;
        Ok(self.moved[number as usize])
    }
}
