//! Tables on the CPU backend, where they already are.

use std::sync::Arc;

use super::kept_rows::KeptRows;
use super::placement::{Joined, Paged, Placement};
use crate::table::{RowPosition, StateId, TokenTable};
use crate::vocabulary::TokenId;

/// The tables of a batch, and where their states lie among those of all.
#[derive(Clone, Debug)]
pub(crate) struct HostTable {
    tables: Vec<Arc<Entry>>,
    placement: Placement,
    /// The numbers of a frame of the stack.
    frame: usize,
    /// Most bytes of what is kept of a table.
    kept_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    table: TokenTable,
    kept: KeptRows,
}

impl Entry {
    fn new(table: &TokenTable, kept_bytes: usize) -> Arc<Self> {
        Arc::new(Self { table: table.clone(), kept: KeptRows::new(kept_bytes) })
    }
}

/// A row of a batch, in its own table.
#[derive(Clone)]
pub(crate) struct HostRow<'a> {
    index: usize,
    pub(crate) table: &'a TokenTable,
    pub(crate) position: RowPosition,
    /// What is known of places of the table.
    pub(crate) kept: &'a KeptRows,
}

impl HostRow<'_> {
    /// Whether it is at the same place as another row, whatever tokens are left.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        std::ptr::eq(self.kept, other.kept)
            && self.position.state == other.position.state
            && self.position.frames == other.position.frames
    }

    /// The tokens that are left behind the next one. To the budget of no token only the end of the sequence is left, as to that of one.
    pub(crate) fn left(&self) -> u32 {
        self.position.remaining.max(1) - 1
    }
}

impl HostTable {
    pub(super) fn joined(tables: &[&TokenTable], frame: usize, kept_bytes: usize) -> Self {
        let placement = Placement::Joined(Joined::new(tables));
        let tables = tables.iter().map(|&table| Entry::new(table, kept_bytes)).collect();
        Self { tables, placement, frame, kept_bytes }
    }

    /// An arena of `tables` tables on pages, of which there is only the first, `free`.
    pub(super) fn paged(
        free: &TokenTable,
        tables: usize,
        pages: usize,
        frame: usize,
        kept_bytes: usize,
    ) -> Self {
        Self {
            tables: vec![Entry::new(free, kept_bytes); tables],
            placement: Placement::Paged(Paged::new(tables, pages)),
            frame,
            kept_bytes,
        }
    }

    /// Puts a table on pages.
    pub(super) fn put(&mut self, index: usize, table: &TokenTable, pages: &[u32]) {
        self.place(index, Entry::new(table, self.kept_bytes), pages);
    }

    /// Forgets a table.
    pub(super) fn take_out(&mut self, index: usize) {
        self.place(index, self.tables[0].clone(), &[]);
    }

    fn place(&mut self, index: usize, entry: Arc<Entry>, pages: &[u32]) {
        if let Placement::Paged(paged) = &mut self.placement {
            paged.set(index, pages);
            self.tables[index] = entry;
        }
    }

    /// The table that a row follows, and its position there; what is out of range is clamped.
    fn own(&self, position: &[i32]) -> (usize, RowPosition) {
        let [state, remaining, stack @ ..] = position else { return (0, RowPosition::new(StateId::DEAD, 0)) };
        let (index, state) = self.own_state(*state);
        let mut own = RowPosition::new(state, (*remaining).max(0) as u32);
        if let ([depth, frames @ ..], Some(calls)) = (stack, &self.tables[index].table.parts().calls) {
            let depth = (*depth).clamp(0, calls.depth as i32) as usize;
            own.frames.reserve_exact(depth * calls.frame());
            for frame in frames.chunks_exact(self.frame.max(1)).take(depth) {
                own.frames.push(self.own_state(frame[0]).1.0);
                own.frames.extend(
                    frame[1..=calls.ends]
                        .iter()
                        .map(|&cost| if cost == i32::MAX { u32::MAX } else { cost as u32 }),
                );
            }
        }
        (index, own)
    }

    /// The tokens of the largest vocabulary.
    #[cfg(feature = "remote-server")]
    pub(super) fn vocabulary_len(&self) -> usize {
        self.tables.iter().map(|entry| entry.table.vocabulary_len()).max().unwrap_or(0)
    }

    /// The numbers of a frame of the stack.
    pub(super) fn frame(&self) -> usize {
        self.frame
    }

    /// Most bytes of what is kept of a table.
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    fn own_state(&self, state: i32) -> (usize, StateId) {
        let state = (state.max(0) as u32).min(self.placement.states() as u32 - 1);
        self.placement.own(StateId(state))
    }

    /// Writes the position of a row of table `index`.
    fn write(&self, index: usize, own: &RowPosition, position: &mut [i32]) {
        let state = |state: u32| self.placement.state(index, StateId(state)).0 as i32;
        let [place, remaining, stack @ ..] = position else { return };
        (*place, *remaining) = (state(own.state.0), own.remaining as i32);
        if let ([depth, frames @ ..], Some(calls)) = (stack, &self.tables[index].table.parts().calls) {
            *depth = (own.frames.len() / calls.frame()) as i32;
            for (place, frame) in
                frames.chunks_exact_mut(self.frame.max(1)).zip(own.frames.chunks_exact(calls.frame()))
            {
                place[0] = state(frame[0]);
                for (place, &cost) in place[1..].iter_mut().zip(&frame[1..]) {
                    *place = i32::try_from(cost).unwrap_or(i32::MAX);
                }
            }
        }
    }

    /// The row of a position; in a reserved state it follows the first table.
    pub(crate) fn row(&self, position: &[i32]) -> HostRow<'_> {
        let (index, position) = self.own(position);
        self.row_of(index, position)
    }

    fn row_of(&self, index: usize, position: RowPosition) -> HostRow<'_> {
        let Entry { table, kept } = &*self.tables[index];
        HostRow { index, table, position, kept }
    }

    /// Moves a position on, see [`TokenTable::after`]; `no_token` leaves it as it is. Gives the row there.
    pub(crate) fn advance(&self, position: &mut [i32], token: i32, no_token: usize) -> HostRow<'_> {
        let row = self.row(position);
        let after = Self::after(&row, token, no_token);
        self.moved(row.index, after, position)
    }

    /// Moves the start of a tree on by the first of its tokens, and each other node on from its parent by its own token; one whose token
    /// may not follow stays where its parent is. Gives the row of each node.
    pub(crate) fn follow(
        &self,
        parents: &[usize],
        start: &[i32],
        tokens: &[i32],
        nodes: &mut [i32],
        no_token: usize,
    ) -> Vec<HostRow<'_>> {
        let count = start.len();
        nodes[..count].copy_from_slice(start);
        let mut rows = Vec::with_capacity(parents.len());
        rows.push(self.advance(&mut nodes[..count], tokens[0], no_token));
        for node in 1..parents.len() {
            let parent = parents[node];
            nodes.copy_within(parent * count..(parent + 1) * count, node * count);
            let row: &HostRow<'_> = &rows[parent];
            let after = Self::after(row, tokens[node], no_token);
            let row = match row.table.can_end(&after) {
                true => self.moved(row.index, after, &mut nodes[node * count..][..count]),
                false => row.clone(),
            };
            rows.push(row);
        }
        rows
    }

    /// Where a row is behind a token.
    fn after(row: &HostRow<'_>, token: i32, no_token: usize) -> RowPosition {
        match u32::try_from(token) {
            Ok(token) if token as usize == no_token => row.position.clone(),
            token => row.table.after(&row.position, TokenId(token.unwrap_or(u32::MAX))),
        }
    }

    /// Writes a position of table `index`, and gives the row there.
    fn moved(&self, index: usize, own: RowPosition, position: &mut [i32]) -> HostRow<'_> {
        self.write(index, &own, position);
        // All tables share these.
        let is_reserved = own.state.0 < StateId::RESERVED;
        if is_reserved { self.row(position) } else { self.row_of(index, own) }
    }
}
