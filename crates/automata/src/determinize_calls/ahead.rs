//! The items and edges that may follow without another step.

use super::super::Run;
use super::super::network::{Node, TransitionNetwork};
use super::{Item, Outcome, Subsets};

/// The possible continuations of items that read, close, return or accept.
#[derive(Default)]
pub(super) struct Ahead {
    /// The runs read by the items themselves, sorted by first byte; counted parts excluded.
    pub(super) inner: Vec<(Run, Item)>,
    /// The runs read after the terminals end, for bytes that `inner` does not read.
    pub(super) outer: Vec<(Run, Item)>,
    /// The runs read within counted parts, independent of terminals.
    pub(super) counted: Vec<(Run, Item)>,
    /// The items that return before a byte of `inner`.
    pub(super) ended: Vec<Item>,
    /// The items that return before any other byte.
    pub(super) ended_behind: Vec<Item>,
    /// Whether the text may end.
    pub(super) accepting: bool,
}

impl Subsets<'_, '_> {
    /// Computes the possible continuations of items.
    pub(super) fn ahead(&mut self, procedure: u32, items: &[Item]) -> Outcome<Ahead> {
        let behind = if items.iter().any(|item| self.closes(item)) {
            self.behind(procedure, items)?.items
        } else {
            Vec::new()
        };
        let accepts = |item: &&Item| {
            item.node == TransitionNetwork::ACCEPT && self.pending_calls[item.pending as usize].length == 0
        };
        let accepting = items.iter().chain(&behind).find(accepts);
        if accepting.is_some_and(|item| item.pending != 0) {
            return Err(self.ends_within(procedure, self.now));
        }
        let accepting = accepting.is_some();
        let ended = self.ended(items.iter());
        let ended_behind =
            if behind.is_empty() { ended.clone() } else { self.ended(items.iter().chain(&behind)) };
        let (inner, outer) =
            (self.edges(items, |item| !self.is_counted(item)), self.edges(&behind, |_| true));
        let counted = self.edges(items, |item| self.is_counted(item));
        Ok(Ahead { inner, outer, counted, ended, ended_behind, accepting })
    }

    /// The runs read by the items that satisfy `counts`.
    fn edges(&self, items: &[Item], counts: impl Fn(&Item) -> bool) -> Vec<(Run, Item)> {
        let mut edges = Vec::new();
        for item in items.iter().filter(|item| counts(item)) {
            if let Node::Bytes(span) = self.network.node(item.node) {
                edges.extend(self.network.edges().runs(span).iter().map(|&run| (run, *item)));
            }
        }
        edges.sort_unstable_by_key(|edge| edge.0.first);
        edges
    }
}

impl Ahead {
    /// Approximate memory.
    pub(super) fn bytes(&self) -> usize {
        let edges = self.inner.len() + self.outer.len() + self.counted.len();
        let items = self.ended.len() + self.ended_behind.len();
        size_of::<Self>() + edges * size_of::<(Run, Item)>() + items * size_of::<Item>()
    }

    /// The items after a byte, and the items that end before it.
    pub(super) fn after(&self, byte: u8) -> (Vec<Item>, &[Item]) {
        let by = |edges: &[(Run, Item)]| {
            let reads = edges.iter().filter(|(run, _)| (run.first..=run.last).contains(&byte));
            reads.map(|(run, item)| Item { node: run.target, ..*item }).collect::<Vec<_>>()
        };
        let inner = by(&self.inner);
        if inner.is_empty() { (by(&self.outer), &self.ended_behind) } else { (inner, &self.ended) }
    }
}
