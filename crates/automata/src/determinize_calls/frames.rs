//! Targets of bytes: states, calls and returns, and the frames pushed.

use super::super::FastMap;
use super::conflict::ConflictKind;
use super::exits::AT_ONCE;
use super::{CallState, Frame, Item, Outcome, Procedure, Row, Subsets, Target, Witness};

/// The items entered by a call: the further pending calls of each, and the node.
type Paths = Vec<(Vec<u32>, u32)>;

impl Subsets<'_, '_> {
    /// The target of a byte in a procedure, given the items after the byte.
    pub(super) fn target(&mut self, procedure: u32, items: &[Item], witness: Witness) -> Outcome<Target> {
        self.now = witness;
        if let [Item { tag: 0, pending: 0, node }] = *items
            && self.reads_alone(node).is_some()
        {
            return self.state(procedure, items, witness).map(Target::State);
        }
        let items = self.settled(procedure, items)?;
        if items.is_empty() {
            return Ok(Target::Dead);
        }
        if items.iter().all(|item| self.returns(item) || self.early_return_of(item).is_some()) {
            return Ok(Target::Return(self.outcome(AT_ONCE, &items)));
        }
        if items.iter().all(|item| self.is_ahead(item)) {
            return self.called(procedure, &items, witness).map(Target::Call);
        }
        self.state(procedure, &items, witness).map(Target::State)
    }

    /// The items reachable from `items` without reading, past the terminals that must end.
    pub(super) fn settled(&mut self, procedure: u32, items: &[Item]) -> Outcome<Vec<Item>> {
        let mut items = self.closed(procedure, items)?.items;
        // A lazy terminal ends now, and its alternatives are dropped.
        if items.iter().any(|item| self.is_lazy(item)) {
            items.retain(|item| self.is_lazy(item) || self.is_counted(item) || self.forks(item));
        }
        // Terminals end now if none of them can continue.
        while !items.is_empty() && !items.iter().any(|item| self.reads(item)) {
            if !items.iter().any(|item| self.closes(item)) {
                break;
            }
            let mut rest = self.behind(procedure, &items)?.items;
            rest.extend(items.iter().filter(|item| !self.closes(item)));
            rest.sort_unstable();
            rest.dedup();
            items = rest;
        }
        Ok(items)
    }

    /// The call state of items that all have pending calls.
    pub(super) fn called(&mut self, within: u32, items: &[Item], witness: Witness) -> Outcome<u32> {
        // The items entered by each outermost call.
        let mut entered: Vec<((u32, u32), Paths)> = Vec::new();
        for item in items {
            let calls = self.calls_of(item.pending);
            let by = (item.tag, calls[0]);
            let path = (calls[1..].to_vec(), item.node);
            match entered.iter_mut().find(|(known, _)| *known == by) {
                Some((_, paths)) => paths.push(path),
                None => entered.push((by, vec![path])),
            }
        }
        for (_, paths) in &mut entered {
            paths.sort_unstable();
        }
        // Calls with the same entered items become one entry.
        entered.sort_unstable_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
        let mut frame = Frame::new();
        let mut entry = Vec::new();
        let mut last: Option<&Paths> = None;
        for (by, paths) in &entered {
            if last == Some(paths) {
                if let Some(calls) = frame.last_mut() {
                    calls.push(*by);
                }
                continue;
            }
            last = Some(paths);
            let tag = frame.len() as u32;
            frame.push(vec![*by]);
            for (calls, node) in paths {
                let pending =
                    calls.iter().try_fold(0, |pending, &call| self.longer(pending, call)).unwrap_or(0);
                entry.push(Item { tag, pending, node: *node });
            }
        }
        entry.sort_unstable();
        let known_calls = entry.iter().any(|item| self.special.contains_key(&item.node)).then(|| {
            let calls = frame.iter().map(|calls| sorted(calls.iter().map(|&(_, call)| call).collect()));
            calls.collect()
        });
        let procedure = self.procedure(entry, known_calls, witness)?;
        let key = (within, procedure, frame.clone());
        if let Some(&known) = self.call_of.get(&key) {
            return Ok(known);
        }
        let call = self.calls.len() as u32;
        self.call_of.insert(key, call);
        self.calls.push(CallState { within, procedure, frame, returns: FastMap::default(), witness });
        self.procedures[procedure as usize].callers.push(call);
        let of = &self.procedures[procedure as usize];
        self.owed.extend(of.outcomes.iter().map(|&outcome| (call, outcome)));
        self.unchecked.extend(of.forbidden.iter().map(|&forbidden| (call, forbidden)));
        Ok(call)
    }

    /// The procedure entered with the given items, and by the given calls if its callers are known.
    fn procedure(
        &mut self,
        entry: Vec<Item>,
        known_calls: Option<Vec<Vec<u32>>>,
        witness: Witness,
    ) -> Outcome<u32> {
        let key = (entry, known_calls);
        if let Some(&known) = self.procedure_of.get(&key) {
            return Ok(known);
        }
        let procedure = self.procedures.len() as u32;
        self.procedures.push(Procedure { known_calls: key.1.clone(), ..Procedure::default() });
        // Even if all items still have pending calls: a call never directly enters another call.
        // The second call is pushed after the next byte.
        let entry = key.0.clone();
        self.procedure_of.insert(key, procedure);
        let enter = self.state(procedure, &entry, witness)?;
        self.begins[enter as usize] = true;
        let of = &mut self.procedures[procedure as usize];
        of.enter = enter;
        of.nodes = entry.iter().map(|item| item.node).collect();
        Ok(procedure)
    }

    /// Refuses items with more distinct pending calls than the limit.
    fn count_pending(&mut self, items: &[Item], witness: Witness) -> Outcome<()> {
        let pending_calls = sorted(items.iter().map(|item| item.pending).collect());
        self.widest = self.widest.max(pending_calls.len());
        if pending_calls.len() <= self.positions {
            return Ok(());
        }
        let of = |pending| {
            items.iter().find(|item| item.pending == pending).map_or(0, |item| self.network.origin(item.node))
        };
        let origins = [of(pending_calls[0]), of(pending_calls[pending_calls.len() - 1])];
        Err(self.conflict(ConflictKind::Height, origins, None, witness))
    }

    /// The state of a set of items in a procedure.
    pub(super) fn state(&mut self, procedure: u32, items: &[Item], witness: Witness) -> Outcome<u32> {
        if items.windows(2).any(|two| two[0].pending != two[1].pending) {
            self.count_pending(items, witness)?;
        }
        self.key.clear();
        self.key.push(procedure);
        self.key.extend(items.iter().flat_map(|item| [item.tag, item.pending, item.node]));
        let (state, new) = self.sets.intern(&self.key);
        if new {
            self.rows.push(Row::default());
            self.witnesses.push(witness);
            self.begins.push(false);
            let meter = self.network.meter();
            meter.states(self.rows.len() + self.calls.len())?;
            if state % 256 == 0 {
                self.check_bytes()?;
            }
        }
        Ok(state)
    }
}

fn sorted(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
