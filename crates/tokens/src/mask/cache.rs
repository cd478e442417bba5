//! A cache of masks, by position.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::TokenMask;
use crate::RowPosition;
use burn_dfa_automata::FastMap;

/// The masks of the most recent new positions.
#[derive(Debug)]
pub(super) struct MaskCache(Mutex<CachedMasks>);

#[derive(Debug, Default)]
struct CachedMasks {
    rows: FastMap<PositionKey, Row>,
    /// The cached positions, oldest first.
    order: VecDeque<PositionKey>,
    /// The masks, with the number of positions that share each: most positions in strings do.
    legal: FastMap<Arc<TokenMask>, usize>,
    bytes: usize,
    max_bytes: usize,
}

/// A position as a key: the frames on the stack, then the state.
pub(super) type PositionKey = Arc<[u32]>;

#[derive(Debug)]
struct Row {
    /// The budgets after the next token for which the mask holds.
    left: Range<u32>,
    legal: Arc<TokenMask>,
}

/// The key of a position.
pub(super) fn key_of(position: &RowPosition) -> PositionKey {
    position.frames.iter().copied().chain([position.state.0]).collect()
}

impl MaskCache {
    /// A cache of at most `max_bytes` bytes.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self(Mutex::new(CachedMasks { max_bytes, ..CachedMasks::default() }))
    }

    /// The mask of a position, and the budgets for which it holds, if the mask is cached and `left`
    /// tokens after the next one are among these budgets.
    pub(super) fn find(&self, key: &[u32], left: u32) -> Option<(Arc<TokenMask>, Range<u32>)> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let row = cached.rows.get(key).filter(|row| row.left.contains(&left))?;
        Some((Arc::clone(&row.legal), row.left.clone()))
    }

    /// Caches the mask of a position, and evicts the oldest positions.
    pub(super) fn keep(&self, key: PositionKey, left: Range<u32>, legal: Arc<TokenMask>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keep(key, left, legal);
    }
}

impl CachedMasks {
    fn keep(&mut self, key: PositionKey, left: Range<u32>, legal: Arc<TokenMask>) {
        let legal = match self.legal.entry(legal) {
            Entry::Occupied(mut known) => {
                *known.get_mut() += 1;
                Arc::clone(known.key())
            }
            Entry::Vacant(new) => {
                let legal = Arc::clone(new.key());
                self.bytes += of_legal(&legal);
                new.insert(1);
                legal
            }
        };
        self.bytes += bytes_of_key(&key);
        match self.rows.insert(Arc::clone(&key), Row { left, legal }) {
            Some(before) => self.forget(&key, &before.legal),
            None => self.order.push_back(key),
        }
        while self.bytes > self.max_bytes
            && let Some(first) = self.order.pop_front()
        {
            if let Some(row) = self.rows.remove(&first) {
                self.forget(&first, &row.legal);
            }
        }
    }

    /// Subtracts the bytes of a position, and of its mask if no other position shares it.
    fn forget(&mut self, key: &PositionKey, legal: &Arc<TokenMask>) {
        self.bytes -= bytes_of_key(key);
        if let Some(positions) = self.legal.get_mut(legal) {
            *positions -= 1;
            if *positions == 0 {
                self.legal.remove(legal);
                self.bytes -= of_legal(legal);
            }
        }
    }
}

/// The approximate bytes of a cached position.
fn bytes_of_key(key: &PositionKey) -> usize {
    size_of_val(&**key) + 2 * size_of::<(PositionKey, Row)>()
}

/// The approximate bytes of a mask.
fn of_legal(legal: &TokenMask) -> usize {
    legal.bytes() + 2 * size_of::<TokenMask>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_dfa_vocabulary::TokenSet;

    #[test]
    fn the_oldest_positions_are_evicted() {
        let legal = |token: u32| Arc::new(TokenMask::Alone(TokenSet::Few(vec![token; 100])));
        let key = |state: u32| PositionKey::from([7, state]);
        let [bytes_of_key, of_legal] = [bytes_of_key(&key(0)), of_legal(&legal(0))];
        let mut cached = CachedMasks { max_bytes: 3 * (bytes_of_key + of_legal), ..CachedMasks::default() };
        let positions = |cached: &CachedMasks| {
            let mut positions: Vec<u32> = cached.rows.keys().map(|key| key[1]).collect();
            positions.sort_unstable();
            assert_eq!(cached.order.len(), positions.len());
            assert_eq!(cached.legal.values().sum::<usize>(), positions.len());
            assert_eq!(cached.bytes, positions.len() * bytes_of_key + cached.legal.len() * of_legal);
            (positions, cached.legal.len())
        };
        for state in 0..5 {
            cached.keep(key(state), 2..9, legal(state));
        }
        assert_eq!(positions(&cached), (vec![2, 3, 4], 3));
        // An equal set of tokens is stored once for several states.
        cached.keep(key(3), 3..9, legal(4));
        assert_eq!(positions(&cached), (vec![2, 3, 4], 2));
        cached.keep(key(5), 2..9, legal(4));
        assert_eq!(positions(&cached), (vec![2, 3, 4, 5], 2));
        cached.keep(key(6), 2..9, legal(6));
        assert_eq!(positions(&cached), (vec![3, 4, 5, 6], 2));
        // Larger than the cache.
        cached.keep(key(7), 2..9, Arc::new(TokenMask::Alone(TokenSet::Few(vec![0; 1000]))));
        assert_eq!(positions(&cached), (vec![], 0));
    }

    #[test]
    fn a_row_is_found_with_the_budgets_that_it_holds_for() {
        let cached = MaskCache::new(1 << 10);
        cached.keep(PositionKey::from([7, 1]), 2..9, Arc::new(TokenMask::Alone(TokenSet::Few(vec![5]))));
        let found = |key: &[u32], left| cached.find(key, left).is_some();
        assert_eq!([1, 2, 8, 9].map(|left| found(&[7, 1], left)), [false, true, true, false]);
        assert!(!found(&[1], 5) && !found(&[7, 2], 5) && !found(&[7, 7, 1], 5));
    }
}
