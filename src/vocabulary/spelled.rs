//! Tokens by how they are spelled: which character they begin with, and of which others the rest is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{CharacterSet, TokenBits, TokenSet};

/// The most sets that a vocabulary keeps: about two megabytes for 200,000 tokens.
const MOST_SETS: usize = 32;

/// The tokens of whole characters that begin with some, have others behind them, and are no longer than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spelled {
    /// The first characters, without a space before them and with one.
    pub(crate) first: [CharacterSet; 2],
    /// The characters of the rest,
    pub(crate) within: CharacterSet,
    /// and how many of them there are at most.
    pub(crate) most: usize,
}

/// Sets of tokens that are spelled in one of some ways, kept for all tables of a vocabulary: places of many tables have the same
/// ones, as in strings.
#[derive(Default)]
pub(super) struct SpelledSets(Mutex<HashMap<Box<[Spelled]>, Arc<TokenSet>>>);

impl SpelledSets {
    /// The tokens that are spelled in one of these ways; where they are not known, `find` finds them. Gives what it found where there is
    /// no room for more sets, since all that are kept are in use.
    pub(super) fn of(
        &self,
        spelled: &[Spelled],
        find: impl FnOnce() -> TokenBits,
    ) -> Result<Arc<TokenSet>, TokenBits> {
        let sets = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sets().get(spelled) {
            return Ok(Arc::clone(known));
        }
        let found = find();
        let mut sets = sets();
        if sets.len() >= MOST_SETS {
            sets.retain(|_, set| Arc::strong_count(set) > 1);
        }
        if sets.len() >= MOST_SETS {
            return Err(found);
        }
        let count = found.count();
        let set = sets.entry(spelled.into()).or_insert_with(|| Arc::new(TokenSet::of(found, count)));
        Ok(Arc::clone(set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_that_nobody_uses_make_room() {
        let sets = SpelledSets::default();
        let spelled = |most| {
            [Spelled { first: [CharacterSet::ALL, CharacterSet::ASCII], within: CharacterSet::ALL, most }]
        };
        let bits = || {
            let mut bits = TokenBits::none(100);
            (0..50).for_each(|token| bits.set(token));
            bits
        };
        let mut used = Vec::new();
        for most in 0..MOST_SETS {
            used.push(sets.of(&spelled(most), bits).unwrap());
        }
        let again = sets.of(&spelled(3), || unreachable!("it is kept")).unwrap();
        assert!(Arc::ptr_eq(&again, &used[3]));
        assert_eq!(*again.to_bits(100), bits());
        assert_eq!(sets.of(&spelled(MOST_SETS), bits), Err(bits()));
        used.truncate(MOST_SETS - 1);
        assert!(sets.of(&spelled(MOST_SETS), bits).is_ok());
        assert!(sets.of(&spelled(0), || unreachable!("it is kept")).is_ok());
    }
}
