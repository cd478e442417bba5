//! Hash-consed columns: the effect of a token on every state.
//!
//! A column is the list of `(state, next)` for the states with a transition by a byte string, in
//! order of state. Equal columns have equal ids, so following a token through the automaton is a
//! memoized walk over ids: the transition monoid of the automaton, restricted to the prefixes of
//! the vocabulary.

use burn_dfa_automata::Interner;
use burn_dfa_vocabulary::{Symbols, symbol};

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

/// The symbols known to keep, or to change, a column or a state.
#[derive(Clone, Copy, Default)]
pub(super) struct Rests {
    yes: Symbols,
    no: Symbols,
}

impl Rests {
    /// Whether no byte with a symbol in `symbols` changes anything; `rests` answers for one byte.
    pub(super) fn all(&mut self, symbols: Symbols, mut rests: impl FnMut(u8) -> bool) -> bool {
        loop {
            if symbols & self.no != 0 {
                return false;
            }
            let open = symbols & !self.yes;
            if open == 0 {
                return true;
            }
            let next = open.trailing_zeros();
            let all = (0..=u8::MAX).filter(|&byte| symbol(byte) == next).all(&mut rests);
            *(if all { &mut self.yes } else { &mut self.no }) |= 1 << next;
        }
    }
}
