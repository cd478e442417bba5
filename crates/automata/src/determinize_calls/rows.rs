//! The row of a state: the target of each byte.

use std::iter::Peekable;

use super::super::network::{Node, Range};
use super::ends::TEXT_END;
use super::{Forbidden, Item, Outcome, Row, Subsets, Target, Witness};

impl Subsets<'_, '_> {
    /// Computes the target of each byte.
    pub(super) fn row(&mut self, state: u32) -> Outcome<Row> {
        self.now = self.stories[state as usize];
        let key = self.sets.get(state);
        let piece = key[0];
        if let [_, 0, 0, node] = *key
            && let Some((from, to)) = self.reads_alone(node)
        {
            return self.row_alone(state, piece, from..to);
        }
        let words = key[1..].chunks_exact(3);
        let items: Vec<Item> =
            words.map(|word| Item { tag: word[0], lead: word[1], node: word[2] }).collect();
        let ahead = self.ahead(piece, &items)?;
        let from = self.runs.len();
        let mut cuts = [false; 257];
        if ahead.ended_behind.is_empty() {
            for (range, _) in ahead.inner.iter().chain(&ahead.outer).chain(&ahead.counted) {
                cuts[range.first as usize] = true;
                cuts[range.last as usize + 1] = true;
            }
        } else {
            cuts = self.cuts;
            let outcome = self.outcome(TEXT_END, &ahead.ended_behind);
            self.forbid(piece, Forbidden { piece, outcome, inner: None, story: self.now });
        }
        let (mut inner, mut outer) = (Edges::new(&ahead.inner), Edges::new(&ahead.outer));
        let mut counted = Edges::new(&ahead.counted);
        let mut next = Vec::new();
        let mut first = 0;
        while first < 256 {
            let last = (first..256).find(|&byte| cuts[byte + 1]).unwrap_or(255);
            let byte = first as u8;
            first = last + 1;
            inner.after(byte, &mut next);
            let mut ended = &ahead.ended;
            if next.is_empty() {
                // The terminals end before this byte.
                outer.after(byte, &mut next);
                ended = &ahead.ended_behind;
            }
            counted.add(byte, &mut next);
            let story = Witness::Read { from: state, byte };
            let target = self.read(piece, byte, &mut next, ended, story)?;
            if let Target::Return(outcome) = target {
                self.ends(piece, outcome, state, byte);
            }
            if target != Target::Dead {
                self.runs.push((byte, last as u8, target));
            }
        }
        if let Some(symbol) = self.network.boundary() {
            let items = self.past_boundary(piece, &items)?;
            if !items.is_empty() {
                let story = Witness::Read { from: state, byte: symbol };
                let target = Target::State(self.state(piece, &items, story)?);
                let at = from + self.runs[from..].partition_point(|run| run.0 < symbol);
                self.runs.insert(at, (symbol, symbol, target));
            }
        }
        self.fork(state, piece, &items)?;
        Ok(Row { from, to: self.runs.len(), accepting: ahead.accepting })
    }

    /// The ranges of a reading node, if the set of the node alone has only the node's ranges in its
    /// row. Most sets are such singletons, because most copied parts were deterministic before.
    pub(super) fn reads_alone(&self, node: u32) -> Option<(u32, u32)> {
        match self.network.node(node) {
            Node::Bytes { from, to } if from < to && self.network.boundary().is_none() => Some((from, to)),
            _ => None,
        }
    }

    /// The row of a state of one item without tag and lead, which reads the given ranges.
    fn row_alone(&mut self, state: u32, piece: u32, ranges: std::ops::Range<u32>) -> Outcome<Row> {
        let from = self.runs.len();
        for at in ranges {
            let Range { first, last, next } = self.network.all_ranges()[at as usize];
            let key = u64::from(piece) << 32 | u64::from(next);
            let target = match self.moved_alone.get(&key) {
                Some(&known) => known,
                None => {
                    let item = Item { tag: 0, lead: 0, node: next };
                    let target = self.target(piece, &[item], Witness::Read { from: state, byte: first })?;
                    self.moved_alone.insert(key, target);
                    target
                }
            };
            if let Target::Return(outcome) = target {
                self.ends(piece, outcome, state, first);
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
    fn fork(&mut self, state: u32, piece: u32, items: &[Item]) -> Outcome<()> {
        let next = |item: &Item| match self.network.node(item.node) {
            Node::Fork { next } => Some(Item { node: next, ..*item }),
            _ => None,
        };
        let forked: Vec<Item> = items.iter().filter_map(next).collect();
        if forked.is_empty() {
            return Ok(());
        }
        let story = self.stories[state as usize];
        let items = self.settled(piece, &forked)?;
        if !items.is_empty() {
            let to = self.state(piece, &items, story)?;
            self.forks.push((state, to));
        }
        Ok(())
    }

    /// The target of a byte: `next` in the procedure, or a return if `next` is empty and `ended` is
    /// not.
    pub(super) fn read(
        &mut self,
        piece: u32,
        byte: u8,
        next: &mut Vec<Item>,
        ended: &[Item],
        story: Witness,
    ) -> Outcome<Target> {
        if next.is_empty() {
            let returns = |own: &mut Self| Target::Return(own.outcome(u16::from(byte), ended));
            return Ok(if ended.is_empty() { Target::Dead } else { returns(self) });
        }
        next.sort_unstable();
        next.dedup();
        self.key.clear();
        self.key.push(piece);
        self.key.extend(next.iter().flat_map(|item| [item.tag, item.lead, item.node]));
        let (number, new) = self.moves.intern(&self.key);
        if new {
            self.moved.push(Target::Dead);
            self.moved[number as usize] = self.target(piece, next, story)?;
        }
        if !ended.is_empty() {
            let outcome = self.outcome(u16::from(byte), ended);
            self.forbid(piece, Forbidden { piece, outcome, inner: Some(number), story });
        }
        self.tick(next.len())?;
        Ok(self.moved[number as usize])
    }
}

/// The ranges of a state, read in order of bytes.
struct Edges<'a> {
    /// The ranges that start later.
    pending: Peekable<std::slice::Iter<'a, (Range, Item)>>,
    open: Vec<(Range, Item)>,
}

impl<'a> Edges<'a> {
    fn new(edges: &'a [(Range, Item)]) -> Self {
        Self { pending: edges.iter().peekable(), open: Vec::new() }
    }

    /// Replaces `next` by the items after `byte`, which must be greater than in the last call.
    fn after(&mut self, byte: u8, next: &mut Vec<Item>) {
        next.clear();
        self.add(byte, next);
    }

    /// Appends the items after `byte` to `next`.
    fn add(&mut self, byte: u8, next: &mut Vec<Item>) {
        while let Some(edge) = self.pending.next_if(|(range, _)| range.first <= byte) {
            self.open.push(*edge);
        }
        self.open.retain(|(range, _)| range.last >= byte);
        next.extend(self.open.iter().map(|(range, item)| Item { node: range.next, ..*item }));
    }
}
