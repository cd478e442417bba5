//! The arrays of one table of an arena.

use super::layout::Sizes;
use super::placement::{PAGE, placed};
use crate::table::StateId;
use crate::table::TokenTable;

/// What one table writes, in the order of its own pages; rows that fill up a page are dead.
pub(super) struct Part {
    /// `[states, columns]`
    pub(super) next: Vec<i32>,
    /// `[states]`
    pub(super) tokens_to_end: Vec<i32>,
    /// `[width]`: the class of every token; empty where it has none.
    pub(super) classes: Vec<i32>,
    /// `[alphabet]`: the column of every symbol.
    pub(super) columns: Vec<i32>,
    /// How tokens are read.
    pub(super) reading: i32,
}

impl Part {
    pub(super) fn new(sizes: &Sizes, index: usize, table: &TokenTable, pages: &[u32]) -> Self {
        let rows = pages.len() * PAGE;
        let own = (StateId::RESERVED..table.state_count() as u32).map(StateId);
        let to = |next| placed(pages, StateId(next)).0 as i32;
        let mut next = Vec::with_capacity(rows * sizes.columns);
        own.clone().for_each(|state| sizes.row(table, state, to, &mut next));
        next.resize(rows * sizes.columns, StateId::DEAD.0 as i32);
        let distance = |state| i32::try_from(table.tokens_to_end(state)).unwrap_or(i32::MAX);
        let mut tokens_to_end: Vec<i32> = own.map(distance).collect();
        tokens_to_end.resize(rows, i32::MAX);
        Self {
            next,
            tokens_to_end,
            classes: sizes.classes(table),
            columns: sizes.columns_of(table),
            reading: sizes.reading(index, table),
        }
    }
}
