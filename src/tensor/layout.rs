//! The layouts of a table and the lookups in them, with Burn's built-in ops.

use burn::tensor::{Device, Int, Tensor};

use super::{Joined, ints};
use crate::automaton::StateId;
use crate::error::{Error, Limit, Result};
use crate::table::TokenTable;

/// How transitions lie in memory. The results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// The next state of every state and token, `[states, width]`: the fewest lookups, for small
    /// vocabularies. It is the tensor of Bumblebee's DFA processor.
    Dense,
    /// The next state of every state and token class, `[states, classes]`, and the class of every token,
    /// `[tables, width]`.
    Classes,
}

impl Layout {
    /// Bytes on the device.
    pub(super) fn bytes(self, tables: &[&TokenTable], states: usize, width: usize) -> usize {
        let cells = match self {
            Self::Dense => states.saturating_mul(width),
            Self::Classes => {
                let rows = states.saturating_mul(most_classes(tables));
                let owner = if tables.len() > 1 { states } else { 0 };
                rows.saturating_add(tables.len().saturating_mul(width)).saturating_add(owner)
            }
        };
        cells.saturating_add(states).saturating_mul(size_of::<i32>())
    }
}

/// Refuses a table that is too large for its options or for `i32` indices.
pub(super) fn check_size(
    layout: Layout,
    tables: &[&TokenTable],
    states: usize,
    width: usize,
    max_bytes: usize,
) -> Result<()> {
    let most = max_bytes.min(i32::MAX as usize);
    if layout.bytes(tables, states, width) > most {
        return Err(Error::limit(Limit::DeviceBytes(most)));
    }
    Ok(())
}

/// The transitions of all states, in one layout.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of them per table")]
pub(super) enum Transitions {
    Dense {
        /// `[states, width]`
        next: Tensor<2, Int>,
    },
    Classes {
        /// `[states, classes]`
        next: Tensor<2, Int>,
        /// `[tables, width]`
        class: Tensor<2, Int>,
        /// `[states]`: the table of a state; absent where there is one table only.
        owner: Option<Tensor<1, Int>>,
    },
}

impl Transitions {
    pub(super) fn upload(
        layout: Layout,
        tables: &[&TokenTable],
        joined: &Joined,
        width: usize,
        device: &Device,
    ) -> Self {
        match layout {
            Layout::Dense => {
                let mut next = Vec::with_capacity(joined.states * width);
                for (table, state) in rows(tables) {
                    let row = tables[table].row(state);
                    let own = tables[table].classes().iter();
                    let legal = own.map(|&class| joined.state(table, StateId(row[class as usize])).0 as i32);
                    next.extend(legal.chain(std::iter::repeat(0)).take(width));
                }
                Self::Dense { next: ints(next, device).reshape([joined.states, width]) }
            }
            Layout::Classes => {
                let classes = most_classes(tables);
                let mut next = Vec::with_capacity(joined.states * classes);
                for (table, state) in rows(tables) {
                    let row = tables[table].row(state).iter();
                    let own = row.map(|&next| joined.state(table, StateId(next)).0 as i32);
                    // Classes that a table lacks are never looked up, but for FREE's row, which all share.
                    let fill = if state == StateId::FREE { StateId::FREE.0 as i32 } else { 0 };
                    next.extend(own.chain(std::iter::repeat(fill)).take(classes));
                }
                let mut class = Vec::with_capacity(tables.len() * width);
                for table in tables {
                    let own = table.classes().iter().map(|&class| class as i32);
                    class.extend(own.chain(std::iter::repeat(TokenTable::NEVER as i32)).take(width));
                }
                let owner = (tables.len() > 1)
                    .then(|| ints(rows(tables).map(|(table, _)| table as i32).collect(), device));
                Self::Classes {
                    next: ints(next, device).reshape([joined.states, classes]),
                    class: ints(class, device).reshape([tables.len(), width]),
                    owner,
                }
            }
        }
    }

    /// The next state for every token, `[batch, width]`; with `spare`, 0 also where the end is too far.
    pub(super) fn next_of_all(
        &self,
        states: Tensor<1, Int>,
        spare: Option<(Tensor<1, Int>, Tensor<1, Int>)>,
    ) -> Tensor<2, Int> {
        match self {
            Self::Dense { next } => within(next.clone().select(0, states), spare),
            Self::Classes { next, class, owner } => {
                let [batch] = states.dims();
                let [_, width] = class.dims();
                let class = match owner {
                    Some(owner) => class.clone().select(0, owner.clone().select(0, states.clone())),
                    None => class.clone().expand([batch, width]),
                };
                within(next.clone().select(0, states), spare).gather(1, class)
            }
        }
    }

    /// The next state for one token a row, `[batch]`; tokens must be in range.
    pub(super) fn next(&self, states: Tensor<1, Int>, tokens: Tensor<1, Int>) -> Tensor<1, Int> {
        match self {
            Self::Dense { next } => at(next, states, tokens),
            Self::Classes { next, class, owner } => {
                let class = match owner {
                    Some(owner) => at(class, owner.clone().select(0, states.clone()), tokens),
                    None => class.clone().reshape([-1]).select(0, tokens),
                };
                at(next, states, class)
            }
        }
    }
}

/// `table[row[b], column[b]]` for each `b`.
fn at(table: &Tensor<2, Int>, row: Tensor<1, Int>, column: Tensor<1, Int>) -> Tensor<1, Int> {
    let [_, columns] = table.dims();
    table.clone().reshape([-1]).select(0, row * columns as i32 + column)
}

/// Puts 0 where the way from a next state to the end is longer than the row's spare tokens.
fn within(next: Tensor<2, Int>, spare: Option<(Tensor<1, Int>, Tensor<1, Int>)>) -> Tensor<2, Int> {
    let Some((tokens_to_end, spare)) = spare else {
        return next;
    };
    let [batch, columns] = next.dims();
    let to_end = tokens_to_end.select(0, next.clone().reshape([-1])).reshape([batch, columns]);
    let spare = spare.reshape([batch, 1]).expand([batch, columns]);
    next.mask_fill(to_end.greater(spare), StateId::DEAD.0 as i32)
}

/// The table and the own state of every joined state, in order.
fn rows<'a>(tables: &'a [&TokenTable]) -> impl Iterator<Item = (usize, StateId)> + 'a {
    let reserved = (0..StateId::RESERVED).map(|state| (0, StateId(state)));
    let own = tables.iter().enumerate().flat_map(|(index, table)| {
        (StateId::RESERVED..table.state_count() as u32).map(move |state| (index, StateId(state)))
    });
    reserved.chain(own)
}

fn most_classes(tables: &[&TokenTable]) -> usize {
    tables.iter().map(|table| table.class_count()).max().unwrap_or(0)
}
