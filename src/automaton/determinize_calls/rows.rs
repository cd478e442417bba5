//! The row of a state: where each byte leads.

use std::cmp::Reverse;

use super::super::network::{Network, Node, Range};
use super::{Item, Outcome, Row, Story, Subsets, Target};

impl Subsets<'_, '_> {
    /// Works out where each byte leads.
    pub(super) fn row(&mut self, state: u32) -> Outcome<Row> {
        self.now = self.stories[state as usize];
        let key = self.sets.get(state);
        let piece = key[0];
        let words = key[1..].chunks_exact(3);
        let items: Vec<Item> =
            words.map(|word| Item { tag: word[0], lead: word[1], node: word[2] }).collect();
        let behind =
            if items.iter().any(|item| self.closes(item)) { self.behind(&items)?.items } else { Vec::new() };
        let accepts = |item: &Item| item.node == Network::ACCEPT && item.lead == 0;
        let accepting = items.iter().chain(&behind).any(accepts);
        let ending = behind.iter().find(|item| self.returns(item)).copied();
        let (mut inner, mut outer) = (self.edges(&items), self.edges(&behind));
        let mut cuts = [false; 257];
        for (range, _) in inner.pending.iter().chain(&outer.pending) {
            cuts[range.first as usize] = true;
            cuts[range.last as usize + 1] = true;
        }
        let mut row = Row { runs: Vec::new(), accepting };
        let mut next = Vec::new();
        let mut key = Vec::new();
        let mut first = 0;
        while first < 256 {
            let last = (first..256).find(|&byte| cuts[byte + 1]).unwrap_or(255);
            let byte = first as u8;
            first = last + 1;
            inner.after(byte, &mut next);
            if next.is_empty() {
                // The terminals end before this byte.
                outer.after(byte, &mut next);
                if let Some(ending) = ending {
                    return Err(self.may_end(piece, ending, next.first().copied(), self.now));
                }
            }
            if next.is_empty() {
                continue;
            }
            next.sort_unstable();
            next.dedup();
            key.clear();
            key.push(piece);
            key.extend(next.iter().flat_map(|item| [item.tag, item.lead, item.node]));
            let (number, new) = self.moves.intern(&key);
            if new {
                self.moved.push(Target::Dead);
                let target = self.target(piece, &next, Story::Read { from: state, byte })?;
                if let Target::Return(outcome) = target {
                    self.ends(piece, outcome, state, byte);
                }
                self.moved[number as usize] = target;
            }
            self.tick(next.len())?;
            row.runs.push((byte, last as u8, self.moved[number as usize]));
        }
        Ok(row)
    }

    fn edges(&self, items: &[Item]) -> Edges {
        let mut pending = Vec::new();
        for item in items {
            if let Node::Bytes { from, to } = self.network.node(item.node) {
                pending.extend(self.network.ranges(from, to).iter().map(|&range| (range, *item)));
            }
        }
        // From the end, the first byte first.
        pending.sort_unstable_by_key(|edge| Reverse(edge.0.first));
        Edges { pending, open: Vec::new() }
    }
}

/// The ranges of a state, read from the first byte on.
struct Edges {
    /// That begin later, the next one last.
    pending: Vec<(Range, Item)>,
    open: Vec<(Range, Item)>,
}

impl Edges {
    /// Where `byte` leads, which is greater than at the last time.
    fn after(&mut self, byte: u8, next: &mut Vec<Item>) {
        while let Some(edge) = self.pending.pop_if(|(range, _)| range.first <= byte) {
            self.open.push(edge);
        }
        self.open.retain(|(range, _)| range.last >= byte);
        next.clear();
        next.extend(self.open.iter().map(|(range, item)| Item { node: range.next, ..*item }));
    }
}
