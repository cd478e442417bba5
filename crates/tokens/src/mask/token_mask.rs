//! The legal tokens of a position.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use burn_dfa_vocabulary::{TokenBits, TokenSet, hash_folded};

/// The legal tokens of a position, in one of three forms.
#[derive(Debug)]
pub enum TokenMask {
    /// One set.
    Alone(TokenSet),
    /// A set that the vocabulary shares, plus `added`, minus the tokens of `removed` that are not
    /// in `added`. Both lists are unsorted; `added` may repeat tokens and may contain tokens of the
    /// set.
    SetDelta {
        /// The set.
        base: Arc<TokenSet>,
        /// Tokens that are added.
        added: Vec<u32>,
        /// Tokens that are removed.
        removed: Vec<u32>,
    },
    /// The mask of another position, plus `added`, minus `removed`, as in `SetDelta`.
    MaskDelta {
        /// The mask of the other position.
        base: Arc<TokenMask>,
        /// Tokens that are added.
        added: Vec<u32>,
        /// Tokens that are removed.
        removed: Vec<u32>,
    },
}

impl TokenMask {
    /// The mask as bits of `all` tokens.
    pub fn to_bits(&self, all: usize) -> Cow<'_, TokenBits> {
        let (bits, added, removed) = match self {
            Self::Alone(set) => return set.to_bits(all),
            Self::SetDelta { base, added, removed } => (base.to_bits(all), added, removed),
            Self::MaskDelta { base, added, removed } => (base.to_bits(all), added, removed),
        };
        let mut bits = bits.into_owned();
        removed.iter().for_each(|&token| bits.clear(token));
        added.iter().for_each(|&token| bits.set(token));
        Cow::Owned(bits)
    }

    /// The bytes of the mask without the sets that the vocabulary shares.
    pub(crate) fn bytes(&self) -> usize {
        let lists = self.difference().into_iter().flat_map(|(_, lists)| lists);
        let lists: usize = lists.map(|list| list.capacity() * size_of::<u32>()).sum();
        match self {
            Self::Alone(set) => set.bytes(),
            Self::SetDelta { .. } => lists,
            // The cache may evict the other position first.
            Self::MaskDelta { base, .. } => base.bytes() + lists,
        }
    }

    /// The address of the set or the mask that is changed, and the tokens that are added and
    /// removed.
    fn difference(&self) -> Option<(*const (), [&Vec<u32>; 2])> {
        match self {
            Self::Alone(_) => None,
            Self::SetDelta { base, added, removed } => Some((Arc::as_ptr(base).cast(), [added, removed])),
            Self::MaskDelta { base, added, removed } => Some((Arc::as_ptr(base).cast(), [added, removed])),
        }
    }
}

impl PartialEq for TokenMask {
    /// Whether both have the same form and the same lists.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Alone(set), Self::Alone(other)) => set == other,
            _ => self.difference() == other.difference(),
        }
    }
}

impl Eq for TokenMask {}

impl Hash for TokenMask {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if let Self::Alone(set) = self {
            set.hash(state);
        }
        if let Some((changed, lists)) = self.difference() {
            changed.hash(state);
            lists.iter().for_each(|tokens| hash_folded(tokens.as_slice(), state));
        }
    }
}
