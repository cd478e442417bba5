//! The tokens that may follow at a place.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::vocabulary::{TokenBits, TokenSet};

/// The tokens of a vocabulary that may follow.
#[derive(Debug)]
pub(crate) enum Legal {
    /// These.
    Alone(TokenSet),
    /// Those of a set that the vocabulary holds, with `more` of them, in no order and of which some may be in the set or given twice, and
    /// without those that are in `less` alone.
    Beside { set: Arc<TokenSet>, more: Vec<u32>, less: Vec<u32> },
    /// As at another place, in the same way.
    Near { place: Arc<Legal>, more: Vec<u32>, less: Vec<u32> },
}

impl Legal {
    /// A bit for each of `all` tokens.
    pub(crate) fn to_bits(&self, all: usize) -> Cow<'_, TokenBits> {
        let (bits, more, less) = match self {
            Self::Alone(set) => return set.to_bits(all),
            Self::Beside { set, more, less } => (set.to_bits(all), more, less),
            Self::Near { place, more, less } => (place.to_bits(all), more, less),
        };
        let mut bits = bits.into_owned();
        less.iter().for_each(|&token| bits.clear(token));
        more.iter().for_each(|&token| bits.set(token));
        Cow::Owned(bits)
    }

    /// Bytes held, beside what the vocabulary holds.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Alone(set) => set.bytes(),
            Self::Beside { more, less, .. } => of_lists([more, less]),
            // The other place may be forgotten before.
            Self::Near { place, more, less } => place.bytes() + of_lists([more, less]),
        }
    }
}

/// Bytes held by lists.
fn of_lists(lists: [&Vec<u32>; 2]) -> usize {
    lists.map(|list| list.capacity() * size_of::<u32>()).iter().sum()
}

impl PartialEq for Legal {
    /// Whether it is given in the same way.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Alone(set), Self::Alone(other)) => set == other,
            (
                Self::Beside { set, more, less },
                Self::Beside { set: other, more: other_more, less: other_less },
            ) => Arc::ptr_eq(set, other) && more == other_more && less == other_less,
            (
                Self::Near { place, more, less },
                Self::Near { place: other, more: other_more, less: other_less },
            ) => Arc::ptr_eq(place, other) && more == other_more && less == other_less,
            _ => false,
        }
    }
}

impl Eq for Legal {}

impl Hash for Legal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Alone(set) => set.hash(state),
            Self::Beside { set, more, less } => hash_lists(Arc::as_ptr(set), [more, less], state),
            Self::Near { place, more, less } => hash_lists(Arc::as_ptr(place), [more, less], state),
        }
    }
}

fn hash_lists<H: Hasher>(of: *const impl Sized, lists: [&Vec<u32>; 2], state: &mut H) {
    of.hash(state);
    lists.iter().for_each(|tokens| (tokens.len(), tokens.iter().fold(0, fold)).hash(state));
}

/// Folds a token of a list into the number of those before.
fn fold(folded: u32, &token: &u32) -> u32 {
    folded.rotate_left(1) ^ token
}
