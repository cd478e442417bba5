//! Hash-consed columns: what a token does to every state.
//!
//! A column is the list of `(state, next)` for the states that a byte string leads somewhere, in order of
//! state. Equal columns have equal ids, so following a token through the automaton is a walk over ids with
//! a memo: the transition monoid of the automaton, restricted to the prefixes of the vocabulary.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// The id of a column in a [`Columns`].
pub(super) type ColumnId = u32;

/// Columns without duplicates.
pub(super) struct Columns {
    pairs: Vec<(u32, u32)>,
    ends: Vec<usize>,
    by_hash: HashMap<u64, Vec<ColumnId>>,
    hasher: RandomState,
}

impl Columns {
    /// The column that leads nowhere.
    pub(super) const NOWHERE: ColumnId = 0;

    pub(super) fn new() -> Self {
        let mut columns =
            Self { pairs: Vec::new(), ends: Vec::new(), by_hash: HashMap::new(), hasher: RandomState::new() };
        let nowhere = columns.intern(&[]);
        debug_assert_eq!(nowhere, Self::NOWHERE);
        columns
    }

    /// The id of the column that equals `pairs`.
    pub(super) fn intern(&mut self, pairs: &[(u32, u32)]) -> ColumnId {
        let hash = self.hasher.hash_one(pairs);
        let bucket = self.by_hash.entry(hash).or_default();
        let same = |&&id: &&ColumnId| {
            let from = if id == 0 { 0 } else { self.ends[id as usize - 1] };
            self.pairs[from..self.ends[id as usize]] == *pairs
        };
        if let Some(&id) = bucket.iter().find(same) {
            return id;
        }
        let id = self.ends.len() as ColumnId;
        bucket.push(id);
        self.pairs.extend_from_slice(pairs);
        self.ends.push(self.pairs.len());
        id
    }

    /// The pairs of column `id`.
    pub(super) fn get(&self, id: ColumnId) -> &[(u32, u32)] {
        let from = if id == 0 { 0 } else { self.ends[id as usize - 1] };
        &self.pairs[from..self.ends[id as usize]]
    }

    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.pairs.len() * 8 + self.ends.len() * 32
    }
}
