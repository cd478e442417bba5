//! Returns from procedures: immediate, or decided by the next byte.

use std::rc::Rc;

use super::super::network::{Node, TransitionNetwork};
use super::super::sweep::Cuts;
use super::ahead::Ahead;
use super::{EXIT_BYTES, Forbidden, Item, Outcome, RETURN_BYTES, Subsets, Target, Witness};

/// Marks an exit known without another byte.
pub(super) const AT_ONCE: u16 = 256;

/// Marks an exit before the end of the text.
pub(super) const TEXT_END: u16 = 257;

/// Maximum number of cached continuations after calls.
const MAX_KEPT: usize = 4096;

impl Subsets<'_, '_> {
    /// The number of the exit of items that left the procedure before `before`: a byte, [`AT_ONCE`]
    /// or [`TEXT_END`].
    pub(super) fn outcome(&mut self, before: u16, ended: &[Item]) -> u32 {
        let words: Vec<u32> = ended.iter().flat_map(|item| [item.tag, item.pending, item.node]).collect();
        let (ended, _) = self.endings.intern(&words);
        self.outcomes.intern(&[u32::from(before), ended]).0
    }

    /// The lookahead of an exit, and the number of its ended items.
    fn ending(&self, outcome: u32) -> (u16, u32) {
        let [before, ended] = *self.outcomes.get(outcome) else { return (AT_ONCE, 0) };
        (before as u16, ended)
    }

    /// The items that return, sorted.
    pub(super) fn ended<'a>(&self, items: impl Iterator<Item = &'a Item>) -> Vec<Item> {
        let mut ended: Vec<Item> = items.filter(|item| self.returns(item)).copied().collect();
        ended.sort_unstable();
        ended.dedup();
        ended
    }

    /// Computes all owed returns and all unchecked conditions, until both queues are empty.
    pub(super) fn settle(&mut self) -> Outcome<()> {
        loop {
            if let Some((call, outcome)) = self.owed.pop() {
                self.returned(call, outcome)?;
            } else if let Some((call, forbidden)) = self.unchecked.pop() {
                self.check(call, forbidden)?;
            } else {
                return Ok(());
            }
        }
    }

    /// Records an exit of a procedure.
    pub(super) fn record_exit(&mut self, procedure: u32, outcome: u32, from: u32, byte: u8) {
        if self.known_exits.insert((procedure, outcome), ()).is_none() {
            self.exit_bytes += EXIT_BYTES;
            let of = &mut self.procedures[procedure as usize];
            of.outcomes.push(outcome);
            of.met.push((from, byte));
            self.owed.extend(of.callers.iter().map(|&call| (call, outcome)));
        }
    }

    /// Records that no call of a procedure may continue from an exit.
    pub(super) fn forbid(&mut self, procedure: u32, forbidden: Forbidden) {
        let key = (procedure, forbidden.outcome, forbidden.inner);
        if self.known_forbidden.insert(key, ()).is_none() {
            self.exit_bytes += EXIT_BYTES;
            let of = &mut self.procedures[procedure as usize];
            of.forbidden.push(forbidden);
            self.unchecked.extend(of.callers.iter().map(|&call| (call, forbidden)));
        }
    }

    /// Checks that a call does not continue from a forbidden exit.
    fn check(&mut self, call: u32, forbidden: Forbidden) -> Outcome<()> {
        let (before, ended) = self.ending(forbidden.outcome);
        let ahead = self.ahead_of(call, ended)?;
        let within = self.calls[call as usize].within;
        self.tick(1)?;
        let Ok(byte) = u8::try_from(before) else {
            if ahead.accepting {
                return Err(self.may_end_with_text(call, forbidden.witness));
            }
            if ahead.ended_behind.is_empty() {
                return Ok(());
            }
            let outcome = self.outcome(before, &ahead.ended_behind);
            self.forbid(within, Forbidden { outcome, ..forbidden });
            return Ok(());
        };
        let (next, ended) = ahead.after(byte);
        if let Some(&other) = next.first() {
            let inner = forbidden.inner.and_then(|moved| self.moves.get(moved).get(3).copied());
            return Err(self.may_end_or_go_on(
                call,
                forbidden.procedure,
                inner.unwrap_or(other.node),
                forbidden.witness,
            ));
        }
        if ended.is_empty() {
            return Ok(());
        }
        let outcome = self.outcome(before, ended);
        self.forbid(within, Forbidden { outcome, ..forbidden });
        Ok(())
    }

    /// Computes the target of a call for an exit.
    fn returned(&mut self, call: u32, outcome: u32) -> Outcome<()> {
        let of = &self.calls[call as usize];
        let (within, procedure) = (of.within, &self.procedures[of.procedure as usize]);
        if of.returns.contains_key(&outcome) {
            return Ok(());
        }
        let at = procedure.outcomes.iter().position(|known| *known == outcome).unwrap_or(0);
        let (from, byte) = procedure.met[at];
        let witness = Witness::After { call, from, byte };
        let (before, ended) = self.ending(outcome);
        let target = if let Ok(byte) = u8::try_from(before) {
            let ahead = self.ahead_of(call, ended)?;
            let (mut next, ended) = ahead.after(byte);
            self.now = witness;
            self.read(within, byte, &mut next, ended, witness)?
        } else {
            let items = self.items_after(call, ended);
            self.target(within, &items, witness)?
        };
        if let Target::Return(outcome) = target {
            self.record_exit(within, outcome, from, byte);
        }
        self.calls[call as usize].returns.insert(outcome, target);
        self.exit_bytes += RETURN_BYTES;
        Ok(())
    }

    /// The items after a call, given the items that ended.
    fn items_after(&mut self, call: u32, ended: u32) -> Vec<Item> {
        let words = self.endings.get(ended).chunks_exact(3);
        let ended: Vec<Item> =
            words.map(|word| Item { tag: word[0], pending: word[1], node: word[2] }).collect();
        let mut items = Vec::new();
        for item in ended {
            let calls = self.calls[call as usize].frame[item.tag as usize].clone();
            match (self.early_return_of(&item), self.network.node(item.node)) {
                (Some(early_return), _) => {
                    let ahead = self.calls_of(item.pending);
                    let pending =
                        ahead.iter().try_fold(0, |pending, &call| self.longer(pending, call)).unwrap_or(0);
                    let calls = calls.iter().filter(|(_, node)| *node == early_return);
                    items.extend(calls.map(|&(tag, _)| Item { tag, pending, node: item.node }));
                }
                (None, Node::Return(outcome)) => {
                    items.extend(calls.iter().map(|&(tag, call)| Item {
                        tag,
                        pending: 0,
                        node: self.after(call, outcome),
                    }));
                }
                _ => {}
            }
        }
        items
    }

    /// The continuations after a call, given the items that ended.
    fn ahead_of(&mut self, call: u32, ended: u32) -> Outcome<Rc<Ahead>> {
        if let Some(known) = self.aheads.get(&(call, ended)) {
            return Ok(Rc::clone(known));
        }
        let within = self.calls[call as usize].within;
        let items = self.items_after(call, ended);
        let items = self.settled(within, &items)?;
        let ahead = Rc::new(self.ahead(within, &items)?);
        if self.aheads.len() == MAX_KEPT {
            self.aheads.clear();
            self.ahead_bytes = 0;
        }
        self.aheads.insert((call, ended), Rc::clone(&ahead));
        self.ahead_bytes += ahead.bytes();
        self.check_bytes()?;
        Ok(ahead)
    }
}

impl TransitionNetwork<'_> {
    /// The bytes, divided where the runs of any node start and end.
    pub(super) fn cuts(&self) -> Cuts {
        let mut cuts = Cuts::new();
        self.edges().all_runs().iter().for_each(|run| cuts.add(run.first, run.last));
        cuts
    }
}
