//! Token sets by spelling: a first character, and a rest of some characters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{CharacterSet, TokenBits, TokenSet};

/// Maximum number of cached sets: about two megabytes for 200,000 tokens.
const MAX_SETS: usize = 32;

/// The tokens of whole characters with a first character in `first`, a rest of characters in
/// `within`, and at most `max_rest` characters in the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spelled {
    /// The first characters, without a space before them and with one.
    pub first: [CharacterSet; 2],
    /// The characters of the rest.
    pub within: CharacterSet,
    /// The maximum number of characters in the rest.
    pub max_rest: usize,
}

/// A cache of token sets for all constraints of a vocabulary: positions of many constraints, such
/// as positions in strings, have the same set.
#[derive(Default)]
pub(super) struct SpelledSets(Mutex<HashMap<Box<[Spelled]>, Arc<TokenSet>>>);

impl SpelledSets {
    /// The set of the tokens with one of these spellings; `find` finds it if it is unknown. Returns
    /// the result of `find` as an error if there is no space for more sets, because all stored sets
    /// are in use.
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
        if sets.len() >= MAX_SETS {
            sets.retain(|_, set| Arc::strong_count(set) > 1);
        }
        if sets.len() >= MAX_SETS {
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
        let spelled = |max_rest| {
            [Spelled { first: [CharacterSet::ALL, CharacterSet::ASCII], within: CharacterSet::ALL, max_rest }]
        };
        let bits = || {
            let mut bits = TokenBits::none(100);
            (0..50).for_each(|token| bits.set(token));
            bits
        };
        let mut used = Vec::new();
        for max_rest in 0..MAX_SETS {
            used.push(sets.of(&spelled(max_rest), bits).unwrap());
        }
        let again = sets.of(&spelled(3), || unreachable!("it is kept")).unwrap();
        assert!(Arc::ptr_eq(&again, &used[3]));
        assert_eq!(*again.to_bits(100), bits());
        assert_eq!(sets.of(&spelled(MAX_SETS), bits), Err(bits()));
        used.truncate(MAX_SETS - 1);
        assert!(sets.of(&spelled(MAX_SETS), bits).is_ok());
        assert!(sets.of(&spelled(0), || unreachable!("it is kept")).is_ok());
    }
}
