//! Hash-consed columns: the effect of a token on every state.
//!
//! A column is the list of `(state, next)` for the states with a transition by a byte string, in
//! order of state. Equal columns have equal ids, so following a token through the automaton is a
//! memoized walk over ids: the transition monoid of the automaton, restricted to the prefixes of
//! the vocabulary.

use burn_dfa_automata::Interner;

/// The id of a column in a [`Columns`].
pub(super) type ColumnId = u32;

/// Columns without duplicates.
pub(super) struct Columns {
    pairs: Interner<(u32, u32)>,
}

impl Columns {
    /// The column without transitions.
    pub(super) const NOWHERE: ColumnId = 0;

    pub(super) fn new() -> Self {
        let mut pairs = Interner::new();
        let (nowhere, _) = pairs.intern(&[]);
        debug_assert_eq!(nowhere, Self::NOWHERE);
        Self { pairs }
    }

    /// The id of the column equal to `pairs`.
    pub(super) fn intern(&mut self, pairs: &[(u32, u32)]) -> ColumnId {
        self.pairs.intern(pairs).0
    }

    /// The pairs of column `id`.
    pub(super) fn get(&self, id: ColumnId) -> &[(u32, u32)] {
        self.pairs.get(id)
    }

    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.pairs.bytes()
    }
}
