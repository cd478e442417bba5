//! Emits arrays whose items are counted.
//!
//! An array of at most n items is emitted as strings of many [`characters`](super::characters) are: a block of b items and the
//! commas behind them is a piece, which is called n/b times. It returns when it is full, which is behind the comma of its
//! last item, or when the array is closed. The first item is apart, since the array may be closed before it, and so is the
//! last, which no comma follows.

use std::rc::Rc;

use super::Emitter;
use crate::automaton::FastMap;
use crate::constraint::json_schema::plan::{Array, Counts, PlanId};
use crate::error::Result;

/// The blocks of items, by their plan, whether they can close, and their size: the state with a number of items left, from none
/// on.
pub(super) type ItemBlocks = FastMap<(PlanId, bool, u64), Rc<[u32]>>;

/// The items of an array.
#[derive(Clone, Copy)]
struct Items {
    plan: PlanId,
    level: usize,
}

impl Emitter<'_, '_> {
    /// An array of so many items, from behind the opening bracket on.
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

    /// Behind a comma: `count` items with a comma behind each and on to `more`, and with a closing bracket behind any of them
    /// on to `closed` if that is not 0.
    fn items(&mut self, items: Items, mut count: u64, closed: u32, mut more: u32) -> Result<u32> {
        // The states of an item are known by the second one. In the first, what is called from then on may be copied.
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

    /// Behind a comma: an item, and what follows it as for [`first_item`](Self::first_item).
    fn item(&mut self, items: Items, more: u32, closed: u32) -> Result<u32> {
        let item = self.first_item(items, more, closed)?;
        Ok(self.after_comma(items.level, item))
    }

    /// An item, with a comma behind it and on to `more`, or a closing bracket and on to `closed`.
    fn first_item(&mut self, items: Items, more: u32, closed: u32) -> Result<u32> {
        let after = self.after_part(items.level, more, b']', closed);
        let exits = vec![after; self.planner.get(items.plan).outcomes.len()];
        self.plan(items.plan, &exits, items.level)
    }
}
