//! Sets of tokens, in the fastest form for masking a row.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use super::{TokenBits, hash_folded};

/// The maximum length of a list, as a fraction of the vocabulary: at this length, a list takes as
/// much memory as the bits.
const LIST: usize = 32;

/// The same for a list of the other tokens: it takes up to three times the memory of the bits, and
/// masking a row takes half the time.
const LIST_OF_OTHERS: usize = 12;

/// A set of tokens of a vocabulary; lists converted from bits are sorted.
#[derive(Debug, PartialEq, Eq)]
pub enum TokenSet {
    /// The listed tokens.
    Few(Vec<u32>),
    /// All tokens except the listed ones.
    Most(Vec<u32>),
    /// The tokens with set bits.
    Bits(TokenBits),
}

impl TokenSet {
    /// The longest list of tokens for a vocabulary of `all` tokens.
    pub fn longest_list(all: usize) -> usize {
        all / LIST
    }

    /// The set of `bits`, with `count` of them set.
    #[inline(always)]
    pub fn of(bits: TokenBits, count: usize) -> Self {
        let few = Self::longest_list(bits.len());
        if count <= few {
            Self::Few(bits.list(count))
        } else if bits.len() - count <= bits.len() / LIST_OF_OTHERS {
            Self::Most(bits.list_of_zeros(bits.len() - count))
        } else {
            Self::Bits(bits)
        }
    }

    /// A bit for each of `all` tokens.
    pub fn to_bits(&self, all: usize) -> Cow<'_, TokenBits> {
        match self {
            Self::Few(tokens) => {
                let mut bits = TokenBits::none(all);
                tokens.iter().for_each(|&token| bits.set(token));
                Cow::Owned(bits)
            }
            Self::Most(tokens) => {
                let mut bits = TokenBits::all(all);
                tokens.iter().for_each(|&token| bits.clear(token));
                Cow::Owned(bits)
            }
            Self::Bits(bits) => Cow::Borrowed(bits),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Few(tokens) | Self::Most(tokens) => tokens.capacity() * size_of::<u32>(),
            Self::Bits(bits) => bits.bytes(),
        }
    }
}

impl Hash for TokenSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Few(tokens) | Self::Most(tokens) => hash_folded(tokens, state),
            Self::Bits(bits) => bits.hash(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_become_bits() {
        const ALL: usize = 1000;
        for count in [0, 1, 31, 32, 500, ALL - 84, ALL - 83, ALL - 31, ALL] {
            let mut bits = TokenBits::none(ALL);
            (0..count as u32).for_each(|token| bits.set(token));
            let bytes = bits.bytes();
            let set = TokenSet::of(bits.clone(), count);
            assert_eq!(*set.to_bits(ALL), bits);
            match set {
                TokenSet::Few(tokens) => {
                    assert!(count <= 31 && tokens.iter().copied().eq(0..count as u32));
                    assert!(tokens.len() * size_of::<u32>() <= bytes);
                }
                TokenSet::Most(tokens) => {
                    assert!(count >= ALL - 83 && tokens.iter().copied().eq(count as u32..ALL as u32));
                    assert!(tokens.len() * size_of::<u32>() <= 3 * bytes);
                }
                TokenSet::Bits(_) => assert!((32..=ALL - 84).contains(&count)),
            }
        }
    }
}
