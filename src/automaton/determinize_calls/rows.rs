//! The row of a state: where each byte leads.

use std::iter::Peekable;

use super::super::network::{Network, Node, Range};
use super::ends::TEXT_END;
use super::{Forbidden, Item, Outcome, Row, Story, Subsets, Target};

/// What may come at items of which none can go on without reading.
#[derive(Default)]
pub(super) struct Ahead {
    /// What they read, by the first byte.
    pub(super) inner: Vec<(Range, Item)>,
    /// What is read behind the terminals that end, where nothing of `inner` is.
    pub(super) outer: Vec<(Range, Item)>,
    /// Those that return before a byte of `inner`.
    pub(super) ended: Vec<Item>,
    /// The same before any other byte.
    pub(super) ended_behind: Vec<Item>,
    /// Whether the text may end.
    pub(super) accepting: bool,
}

impl Subsets<'_, '_> {
    /// What may come at items.
    pub(super) fn ahead(&mut self, piece: u32, items: &[Item]) -> Outcome<Ahead> {
        let behind = if items.iter().any(|item| self.closes(item)) {
            self.behind(piece, items)?.items
        } else {
            Vec::new()
        };
        let accepts =
            |item: &&Item| item.node == Network::ACCEPT && self.leads[item.lead as usize].length == 0;
        let accepting = items.iter().chain(&behind).find(accepts);
        if accepting.is_some_and(|item| item.lead != 0) {
            return Err(self.ends_within(piece, self.now));
        }
        let accepting = accepting.is_some();
        let ended = self.ended(items.iter());
        let ended_behind =
            if behind.is_empty() { ended.clone() } else { self.ended(items.iter().chain(&behind)) };
        Ok(Ahead { inner: self.edges(items), outer: self.edges(&behind), ended, ended_behind, accepting })
    }

    /// Works out where each byte leads.
    pub(super) fn row(&mut self, state: u32) -> Outcome<Row> {
        self.now = self.stories[state as usize];
        let key = self.sets.get(state);
        let piece = key[0];
        let words = key[1..].chunks_exact(3);
        let items: Vec<Item> =
            words.map(|word| Item { tag: word[0], lead: word[1], node: word[2] }).collect();
        let ahead = self.ahead(piece, &items)?;
        let mut row = Row { runs: Vec::new(), accepting: ahead.accepting };
        let mut cuts = [false; 257];
        if ahead.ended_behind.is_empty() {
            for (range, _) in ahead.inner.iter().chain(&ahead.outer) {
                cuts[range.first as usize] = true;
                cuts[range.last as usize + 1] = true;
            }
        } else {
            cuts = self.cuts;
            let outcome = self.outcome(TEXT_END, &ahead.ended_behind);
            self.forbid(piece, Forbidden { piece, outcome, inner: None, story: self.now })?;
        }
        let (mut inner, mut outer) = (Edges::new(&ahead.inner), Edges::new(&ahead.outer));
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
            let story = Story::Read { from: state, byte };
            let target = self.read(piece, byte, &mut next, ended, story)?;
            if let Target::Return(outcome) = target {
                self.ends(piece, outcome, state, byte);
            }
            if target != Target::Dead {
                row.runs.push((byte, last as u8, target));
            }
        }
        Ok(row)
    }

    /// Where a byte leads: to `next` in a piece, or out of it where nothing reads it and `ended` is not empty.
    pub(super) fn read(
        &mut self,
        piece: u32,
        byte: u8,
        next: &mut Vec<Item>,
        ended: &[Item],
        story: Story,
    ) -> Outcome<Target> {
        if next.is_empty() {
            let returns = |own: &mut Self| Target::Return(own.outcome(u16::from(byte), ended));
            return Ok(if ended.is_empty() { Target::Dead } else { returns(self) });
        }
        next.sort_unstable();
        next.dedup();
        let mut key = vec![piece];
        key.extend(next.iter().flat_map(|item| [item.tag, item.lead, item.node]));
        let (number, new) = self.moves.intern(&key);
        if new {
            self.moved.push(Target::Dead);
            self.moved[number as usize] = self.target(piece, next, story)?;
        }
        if !ended.is_empty() {
            let outcome = self.outcome(u16::from(byte), ended);
            self.forbid(piece, Forbidden { piece, outcome, inner: Some(number), story })?;
        }
        self.tick(next.len())?;
        Ok(self.moved[number as usize])
    }

    fn edges(&self, items: &[Item]) -> Vec<(Range, Item)> {
        let mut edges = Vec::new();
        for item in items {
            if let Node::Bytes { from, to } = self.network.node(item.node) {
                edges.extend(self.network.ranges(from, to).iter().map(|&range| (range, *item)));
            }
        }
        edges.sort_unstable_by_key(|edge| edge.0.first);
        edges
    }
}

/// The ranges of a state, read from the first byte on.
struct Edges<'a> {
    /// That begin later.
    pending: Peekable<std::slice::Iter<'a, (Range, Item)>>,
    open: Vec<(Range, Item)>,
}

impl<'a> Edges<'a> {
    fn new(edges: &'a [(Range, Item)]) -> Self {
        Self { pending: edges.iter().peekable(), open: Vec::new() }
    }

    /// Where `byte` leads, which is greater than at the last time.
    fn after(&mut self, byte: u8, next: &mut Vec<Item>) {
        while let Some(edge) = self.pending.next_if(|(range, _)| range.first <= byte) {
            self.open.push(*edge);
        }
        self.open.retain(|(range, _)| range.last >= byte);
        next.clear();
        next.extend(self.open.iter().map(|(range, item)| Item { node: range.next, ..*item }));
    }
}
