//! Emits arrays with counted items.
//!
//! An array of at most n items is emitted like strings of many [`characters`](super::characters): a
//! block of b items and their commas is a procedure, called n/b times. It returns when it is full,
//! after the comma of its last item, or when the array is closed. The first item is separate,
//! because the array may be closed before it, and so is the last, which no comma follows.

use std::rc::Rc;

use super::Emitter;
use crate::json_schema::plan::{Array, Counts, PlanId};
use burn_dfa_automata::FastMap;
use burn_dfa_common::Result;

/// The blocks of items, by their plan, whether they can close, and their size: the state for each
/// number of items left, from 0.
pub(super) type ItemBlocks = FastMap<(PlanId, bool, u64), Rc<[u32]>>;

/// The items of an array.
#[derive(Clone, Copy)]
struct Items {
    plan: PlanId,
    level: usize,
}

impl Emitter<'_, '_> {
    /// The start of an array with counted items, after the opening bracket.
    pub(super) fn counted_items(
        &mut self,
        array: &Array,
        counts: Counts,
        exits: &[u32],
        level: usize,
    ) -> Result<u32> {
        let end =
            array.states.iter().find_map(|state| state.end).map_or(0, |outcome| exits[outcome as usize]);
        let Some(step) = array.states.iter().find_map(|state| state.item.as_ref()) else {
            return Ok(self.opened(level + 1, 0, b']', end));
        };
        let items = Items { plan: step.child, level: level + 1 };
        let Counts { min, max } = counts;
        // From the second item on.
        let needed = min.max(2);
        let mut more = match max {
            Some(max) => {
                let last = self.item(items, 0, end)?;
                self.items(items, max - needed, end, last)?
            }
            None => {
                let separator = self.separator(items.level);
                let item = self.first_item(items, separator.head, end)?;
                self.fill(&separator, item);
                separator.head
            }
        };
        more = self.items(items, needed - 2, 0, more)?;
        let first = self.first_item(items, more, if min <= 1 { end } else { 0 })?;
        Ok(self.opened(items.level, first, b']', if min == 0 { end } else { 0 }))
    }

    /// The start after a comma: `count` items, each followed by a comma and finally `more`. If
    /// `closed` is not 0, a closing bracket after any of them leads to `closed`.
    fn items(&mut self, items: Items, mut count: u64, closed: u32, mut more: u32) -> Result<u32> {
        // The second item shows the number of states per item. The first may copy parts that are
        // called later.
        let mut states = 1;
        for _ in 0..count.min(2) {
            let before = self.rows.state_count();
            more = self.item(items, more, closed)?;
            count -= 1;
            states = (self.rows.state_count() - before).max(1) as u64;
        }
        let copied =
            self.calls.is_none() || count.saturating_mul(states) <= self.planner.preferred_copies().items;
        if copied {
            for _ in 0..count {
                more = self.item(items, more, closed)?;
            }
            return Ok(more);
        }
        let size = (count / states).isqrt().next_power_of_two();
        let block = self.item_block(items, closed != 0, size)?;
        let returns = |more: u32| (closed != 0).then_some(closed).into_iter().chain([more]).collect();
        for at in 0..count / size {
            more = self.rows.call(block[size as usize], returns(more));
            if at % 1024 == 0 {
                self.check()?;
            }
        }
        Ok(match count % size {
            0 => more,
            left => self.rows.call(block[left as usize], returns(more)),
        })
    }

    /// A block of `size` items.
    fn item_block(&mut self, items: Items, closes: bool, size: u64) -> Result<Rc<[u32]>> {
        let key = (items.plan, closes, size);
        if let Some(block) = self.item_blocks.get(&key) {
            return Ok(Rc::clone(block));
        }
        let closed = if closes { self.rows.returning(0) } else { 0 };
        let mut block = vec![self.rows.returning(usize::from(closes))];
        for left in 0..size as usize {
            let state = self.item(items, block[left], closed)?;
            block.push(state);
        }
        let block: Rc<[u32]> = block.into();
        self.item_blocks.insert(key, Rc::clone(&block));
        Ok(block)
    }

    /// The start of an item after a comma, with the continuations of
    /// [`first_item`](Self::first_item).
    fn item(&mut self, items: Items, more: u32, closed: u32) -> Result<u32> {
        let item = self.first_item(items, more, closed)?;
        Ok(self.after_comma(items.level, item))
    }

    /// An item; a comma after it leads to `more`, a closing bracket to `closed`.
    fn first_item(&mut self, items: Items, more: u32, closed: u32) -> Result<u32> {
        let after = self.after_part(items.level, more, b']', closed);
        let exits = vec![after; self.planner.get(items.plan).outcomes.len()];
        self.plan(items.plan, &exits, items.level)
    }
}
