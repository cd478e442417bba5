//! Closure: the items reachable without reading.

use super::super::network::{Node, TransitionNetwork};
use super::{Closed, Item, MAX_PENDING, Outcome, PendingCalls, Subsets};

impl Subsets<'_, '_> {
    /// The items reachable from `items` of a procedure without reading. Entering a call adds it
    /// to the pending calls of an item. Items that leave a procedure with known callers return
    /// early.
    pub(super) fn closed(&mut self, procedure: u32, items: &[Item]) -> Outcome<Closed> {
        self.seen.clear();
        if !self.seen_others.is_empty() {
            self.seen_others.clear();
        }
        let mut closed = Closed::default();
        let mut past = Vec::new();
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        stack.extend_from_slice(items);
        while let Some(item) = stack.pop() {
            if self.was_seen(item) {
                continue;
            }
            self.tick(1)?;
            match self.network.node(item.node) {
                Node::Bytes(span) if span.is_empty() => {}
                Node::Bytes(_) | Node::Close { .. } | Node::Accept | Node::Fork { .. } => {
                    closed.items.push(item);
                }
                Node::Past { next } => past.push(Item { node: next, ..item }),
                Node::Union(span) => {
                    let branches = self.network.edges().branches(span).iter();
                    stack.extend(branches.map(|&node| Item { node, ..item }));
                }
                Node::Call { enter, .. } => {
                    let Some(pending) = self.longer(item.pending, item.node) else {
                        return Err(self.too_far_ahead(item.node));
                    };
                    stack.push(Item { pending, node: enter, ..item });
                }
                Node::Return(outcome)
                    if item.pending == 0 && self.procedures[procedure as usize].known_calls.is_some() =>
                {
                    for call in self.known_calls(procedure, item.tag) {
                        stack.push(Item {
                            pending: self.early_return(call),
                            node: self.after(call, outcome),
                            ..item
                        });
                    }
                }
                Node::Return(_) if self.pending_calls[item.pending as usize].length == 0 => {
                    closed.items.push(item)
                }
                Node::Return(outcome) => {
                    let PendingCalls { before, call, .. } = self.pending_calls[item.pending as usize];
                    stack.push(Item { pending: before, node: self.after(call, outcome), ..item });
                }
            }
        }
        self.stack = stack;
        if !past.is_empty() {
            let before = self.closed(procedure, &past)?.items;
            closed.items.extend(self.past_boundary(procedure, &before)?);
        }
        closed.items.sort_unstable();
        // An item after a boundary may have been reached before.
        closed.items.dedup();
        Ok(closed)
    }

    /// The items after a boundary.
    pub(super) fn past_boundary(&mut self, procedure: u32, items: &[Item]) -> Outcome<Vec<Item>> {
        // The target of a fork was forked before.
        let items = items.iter().filter(|item| !matches!(self.network.node(item.node), Node::Fork { .. }));
        let past = |item: &Item| self.network.past_boundary(item.node).unwrap_or(item.node);
        let past: Vec<Item> = items.map(|item| Item { node: past(item), ..*item }).collect();
        Ok(self.closed(procedure, &past)?.items)
    }

    /// Marks an item as seen in this pass; returns whether it was seen before.
    pub(super) fn was_seen(&mut self, item: Item) -> bool {
        if item.tag == 0 && item.pending == 0 {
            return !self.seen.insert(item.node);
        }
        self.seen_others.insert(item, ()).is_some()
    }

    /// The node after a call that returns with an exit.
    pub(super) fn after(&self, call: u32, outcome: u32) -> u32 {
        let Node::Call { returns, .. } = self.network.node(call) else { return TransitionNetwork::DEAD };
        let returns = self.network.edges().branches(returns);
        returns.get(outcome as usize).copied().unwrap_or(TransitionNetwork::DEAD)
    }

    /// The calls of a tag in a procedure with known callers.
    fn known_calls(&self, procedure: u32, tag: u32) -> Vec<u32> {
        let known = self.procedures[procedure as usize]
            .known_calls
            .as_ref()
            .and_then(|calls| calls.get(tag as usize));
        known.cloned().unwrap_or_default()
    }

    /// `pending` plus one call; `None` if there are too many.
    pub(super) fn longer(&mut self, pending: u32, call: u32) -> Option<u32> {
        let of = self.pending_calls[pending as usize];
        let longer =
            PendingCalls { before: pending, call, length: of.length + 1, early_return: of.early_return };
        (longer.length <= MAX_PENDING).then(|| self.pending(longer))
    }

    /// The pending calls of items that returned early from `call`: none.
    fn early_return(&mut self, call: u32) -> u32 {
        self.pending(PendingCalls { before: 0, call, length: 0, early_return: Some(call) })
    }

    fn pending(&mut self, pending: PendingCalls) -> u32 {
        let pending_calls = &mut self.pending_calls;
        *self.pending_of.entry((pending.before, pending.call, pending.length == 0)).or_insert_with(|| {
            pending_calls.push(pending);
            pending_calls.len() as u32 - 1
        })
    }

    /// The pending calls, the outermost first.
    pub(super) fn calls_of(&self, mut pending: u32) -> Vec<u32> {
        let mut calls = Vec::new();
        while self.pending_calls[pending as usize].length != 0 {
            calls.push(self.pending_calls[pending as usize].call);
            pending = self.pending_calls[pending as usize].before;
        }
        calls.reverse();
        calls
    }

    /// The call from which an item returned early.
    pub(super) fn early_return_of(&self, item: &Item) -> Option<u32> {
        self.pending_calls[item.pending as usize].early_return
    }

    /// Whether an item has pending calls and no early return.
    pub(super) fn is_ahead(&self, item: &Item) -> bool {
        let pending = self.pending_calls[item.pending as usize];
        pending.early_return.is_none() && pending.length != 0
    }

    /// The items after the terminals that end.
    pub(super) fn behind(&mut self, procedure: u32, items: &[Item]) -> Outcome<Closed> {
        let ended: Vec<Item> = items
            .iter()
            .filter_map(|item| match self.network.node(item.node) {
                Node::Close { next, .. } => Some(Item { node: next, ..*item }),
                _ => None,
            })
            .collect();
        self.closed(procedure, &ended)
    }

    pub(super) fn reads(&self, item: &Item) -> bool {
        matches!(self.network.node(item.node), Node::Bytes(_))
    }

    /// Whether an item is within a counted part, and not a terminal.
    pub(super) fn is_counted(&self, item: &Item) -> bool {
        self.reads(item) && self.network.past_boundary(item.node).is_some()
    }

    pub(super) fn forks(&self, item: &Item) -> bool {
        matches!(self.network.node(item.node), Node::Fork { .. })
    }

    pub(super) fn closes(&self, item: &Item) -> bool {
        matches!(self.network.node(item.node), Node::Close { .. })
    }

    pub(super) fn is_lazy(&self, item: &Item) -> bool {
        matches!(self.network.node(item.node), Node::Close { lazy: true, .. })
    }

    pub(super) fn returns(&self, item: &Item) -> bool {
        matches!(self.network.node(item.node), Node::Return(_))
    }
}
