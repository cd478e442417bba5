//! Constraints in memory, which Flex reads in place.

use std::iter::repeat_n;
use std::sync::Arc;

use super::placement::{Joined, Paged, Placement};
use crate::vocabulary::TokenId;
use burn_dfa_tokens::{CompiledConstraint, Masker, RowPosition, StateId};

/// The constraints of a batch, and the placement of their states.
#[derive(Clone, Debug)]
pub(crate) struct CpuConstraints {
    constraints: Vec<Arc<Masker>>,
    placement: Placement,
    /// The size of a stack frame in numbers.
    frame: usize,
    /// The maximum size of the mask cache of each constraint, in bytes.
    mask_cache_bytes: usize,
}

/// A row of a batch with its constraint.
#[derive(Clone)]
pub(crate) struct CpuRow<'a> {
    index: usize,
    pub(crate) masker: &'a Masker,
    pub(crate) position: RowPosition,
}

impl CpuRow<'_> {
    /// Whether both rows have the same constraint, state and stack, with any budgets.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        std::ptr::eq(self.masker, other.masker)
            && self.position.state == other.position.state
            && self.position.frames == other.position.frames
    }

    /// The budget after the next token. A budget of 0 allows only the end of the sequence, like a
    /// budget of 1.
    pub(crate) fn left(&self) -> u32 {
        self.position.remaining.max(1) - 1
    }
}

impl CpuConstraints {
    pub(crate) fn joined(constraints: &[&CompiledConstraint], frame: usize, mask_cache_bytes: usize) -> Self {
        let placement = Placement::Joined(Joined::new(constraints));
        let constraints = constraints
            .iter()
            .map(|&constraint| Arc::new(Masker::with_cache_bytes(constraint, mask_cache_bytes)))
            .collect();
        Self { constraints, placement, frame, mask_cache_bytes }
    }

    /// A paged arena for `count` constraints, with only the first, `free`, loaded.
    pub(crate) fn paged(
        free: &CompiledConstraint,
        count: usize,
        pages: usize,
        frame: usize,
        mask_cache_bytes: usize,
    ) -> Self {
        Self {
            constraints: repeat_n(Arc::new(Masker::with_cache_bytes(free, mask_cache_bytes)), count)
                .collect(),
            placement: Placement::Paged(Paged::new(count, pages)),
            frame,
            mask_cache_bytes,
        }
    }

    /// Loads a constraint into pages.
    pub(crate) fn put(&mut self, index: usize, constraint: &CompiledConstraint, pages: &[u32]) {
        self.place(index, Arc::new(Masker::with_cache_bytes(constraint, self.mask_cache_bytes)), pages);
    }

    /// Unloads a constraint.
    pub(crate) fn take_out(&mut self, index: usize) {
        self.place(index, self.constraints[0].clone(), &[]);
    }

    fn place(&mut self, index: usize, masker: Arc<Masker>, pages: &[u32]) {
        if let Placement::Paged(paged) = &mut self.placement {
            paged.set(index, pages);
            self.constraints[index] = masker;
        }
    }

    /// The constraint of a row, and the row's position in it. States out of range are dead, other
    /// values are clamped.
    fn own(&self, position: &[i32]) -> (usize, RowPosition) {
        let [state, remaining, stack @ ..] = position else { return (0, RowPosition::new(StateId::DEAD, 0)) };
        let (index, state) = self.own_state(*state);
        let mut own = RowPosition::new(state, (*remaining).max(0) as u32);
        if let ([depth, frames @ ..], Some(calls)) =
            (stack, &self.constraints[index].constraint().parts().calls)
        {
            let depth = (*depth).clamp(0, calls.depth as i32) as usize;
            own.frames.reserve_exact(depth * calls.frame());
            for frame in frames.chunks_exact(self.frame.max(1)).take(depth) {
                own.frames.push(self.own_state(frame[0]).1.0);
                own.frames.extend(
                    frame[1..=calls.exits]
                        .iter()
                        .map(|&cost| if cost == i32::MAX { u32::MAX } else { cost as u32 }),
                );
            }
        }
        (index, own)
    }

    /// The size of the largest vocabulary.
    #[cfg(feature = "remote-server")]
    pub(crate) fn vocabulary_len(&self) -> usize {
        self.constraints.iter().map(|masker| masker.constraint().vocabulary_len()).max().unwrap_or(0)
    }

    /// The size of a stack frame in numbers.
    pub(super) fn frame(&self) -> usize {
        self.frame
    }

    /// The maximum size of the mask cache of each constraint, in bytes.
    pub(super) fn mask_cache_bytes(&self) -> usize {
        self.mask_cache_bytes
    }

    /// The constraint of a state. A state beyond all constraints is dead, as the states of reserved
    /// space are on other devices.
    fn own_state(&self, state: i32) -> (usize, StateId) {
        let known = u32::try_from(state).ok().filter(|&state| (state as usize) < self.placement.states());
        self.placement.own(known.map_or(StateId::DEAD, StateId))
    }

    /// Writes the position of a row under constraint `index`.
    fn write(&self, index: usize, own: &RowPosition, position: &mut [i32]) {
        let state = |state: u32| self.placement.state(index, StateId(state)).0 as i32;
        let [out, remaining, stack @ ..] = position else { return };
        (*out, *remaining) = (state(own.state.0), own.remaining as i32);
        if let ([depth, frames @ ..], Some(calls)) =
            (stack, &self.constraints[index].constraint().parts().calls)
        {
            *depth = (own.frames.len() / calls.frame()) as i32;
            for (out, frame) in
                frames.chunks_exact_mut(self.frame.max(1)).zip(own.frames.chunks_exact(calls.frame()))
            {
                out[0] = state(frame[0]);
                for (out, &cost) in out[1..].iter_mut().zip(&frame[1..]) {
                    *out = i32::try_from(cost).unwrap_or(i32::MAX);
                }
            }
        }
    }

    /// The row of a position; a row in a reserved state belongs to the first constraint.
    pub(crate) fn row(&self, position: &[i32]) -> CpuRow<'_> {
        let (index, position) = self.own(position);
        self.row_of(index, position)
    }

    fn row_of(&self, index: usize, position: RowPosition) -> CpuRow<'_> {
        CpuRow { index, masker: &self.constraints[index], position }
    }

    /// Advances a position by a token, see [`CompiledConstraint::after`]; `no_token` does not
    /// change it. Returns the row at the new position.
    pub(crate) fn advance(&self, position: &mut [i32], token: i32, no_token: usize) -> CpuRow<'_> {
        let row = self.row(position);
        let after = Self::after(&row, token, no_token);
        self.moved(row.index, after, position)
    }

    /// Advances the start of a tree by the first token, and every other node from its parent's
    /// position by its own token. A node with an illegal token keeps its parent's position. Returns
    /// the row of each node.
    pub(crate) fn follow(
        &self,
        parents: &[usize],
        start: &[i32],
        tokens: &[i32],
        nodes: &mut [i32],
        no_token: usize,
    ) -> Vec<CpuRow<'_>> {
        let count = start.len();
        nodes[..count].copy_from_slice(start);
        let mut rows = Vec::with_capacity(parents.len());
        rows.push(self.advance(&mut nodes[..count], tokens[0], no_token));
        for node in 1..parents.len() {
            let parent = parents[node];
            nodes.copy_within(parent * count..(parent + 1) * count, node * count);
            let row: &CpuRow<'_> = &rows[parent];
            let after = Self::after(row, tokens[node], no_token);
            let row = match row.masker.constraint().can_end(&after) {
                true => self.moved(row.index, after, &mut nodes[node * count..][..count]),
                false => row.clone(),
            };
            rows.push(row);
        }
        rows
    }

    /// The position of a row after a token.
    fn after(row: &CpuRow<'_>, token: i32, no_token: usize) -> RowPosition {
        match u32::try_from(token) {
            Ok(token) if token as usize == no_token => row.position.clone(),
            token => row.masker.constraint().after(&row.position, TokenId(token.unwrap_or(u32::MAX))),
        }
    }

    /// Writes a position under constraint `index`, and returns its row.
    fn moved(&self, index: usize, own: RowPosition, position: &mut [i32]) -> CpuRow<'_> {
        self.write(index, &own, position);
        // All constraints share the reserved states.
        let is_reserved = own.state.0 < StateId::RESERVED;
        if is_reserved { self.row(position) } else { self.row_of(index, own) }
    }
}
