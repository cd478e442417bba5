//! Sets of tokens, as one bit for each token.

use std::hash::{Hash, Hasher};

/// A bit for each token of a vocabulary, the lowest of each word first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBits {
    words: Vec<u64>,
    /// Number of tokens; later bits are 0.
    len: usize,
}

impl TokenBits {
    /// The empty set of `len` tokens.
    pub fn none(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// The set of all tokens.
    pub fn all(len: usize) -> Self {
        let mut words = vec![u64::MAX; len.div_ceil(64)];
        if let (Some(last), rest @ 1..) = (words.last_mut(), len % 64) {
            *last = u64::MAX >> (64 - rest);
        }
        Self { words, len }
    }

    /// Number of tokens.
    #[allow(clippy::len_without_is_empty, reason = "no caller asks")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// The number of set bits.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether `token` is in the set.
    #[inline]
    pub fn has(&self, token: u32) -> bool {
        self.words[token as usize / 64] >> (token % 64) & 1 == 1
    }

    /// Adds `token`.
    #[inline]
    pub fn set(&mut self, token: u32) {
        self.words[token as usize / 64] |= 1 << (token % 64);
    }

    /// Removes `token`.
    #[inline]
    pub fn clear(&mut self, token: u32) {
        self.words[token as usize / 64] &= !(1 << (token % 64));
    }

    /// Adds the tokens of `other`, which is empty or has the same length.
    #[inline(always)]
    pub fn unite(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    /// Sets the bits that are in every set of `all`, in some set of `some` (unless `some` is
    /// empty), and in no set of `none`. All sets have the same length.
    #[inline(always)]
    pub fn unite_between(&mut self, all: &[&Self], some: &[&Self], none: &[&Self]) {
        const BLOCK: usize = 16;
        let (blocks, last) = self.words.as_chunks_mut::<BLOCK>();
        for (at, words) in blocks.iter_mut().enumerate() {
            let block = |set: &Self| -> [u64; BLOCK] { set.words.as_chunks().0[at] };
            let mut own = [if some.is_empty() { u64::MAX } else { 0 }; BLOCK];
            some.iter().for_each(|set| own.iter_mut().zip(block(set)).for_each(|(own, word)| *own |= word));
            all.iter().for_each(|set| own.iter_mut().zip(block(set)).for_each(|(own, word)| *own &= word));
            none.iter().for_each(|set| own.iter_mut().zip(block(set)).for_each(|(own, word)| *own &= !word));
            words.iter_mut().zip(own).for_each(|(word, own)| *word |= own);
        }
        for (at, word) in (BLOCK * blocks.len()..).zip(last) {
            let begun = if some.is_empty() { u64::MAX } else { 0 };
            let own = some.iter().fold(begun, |own, set| own | set.words[at]);
            let own = all.iter().fold(own, |own, set| own & set.words[at]);
            *word |= none.iter().fold(own, |own, set| own & !set.words[at]);
        }
    }

    /// The bits, 64 tokens in each word.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The tokens in the set, in order; `count` is their number.
    #[inline(always)]
    pub fn list(&self, count: usize) -> Vec<u32> {
        list(self.words.iter().copied(), count)
    }

    /// The tokens not in the set, in order; `count` is their number.
    #[inline(always)]
    pub fn list_of_zeros(&self, count: usize) -> Vec<u32> {
        list(self.words.iter().map(|word| !word), count)
    }

    /// The tokens in the set, in order.
    pub fn ones(&self) -> impl Iterator<Item = u32> + '_ {
        ones(self.words.iter().copied())
    }
}

impl Hash for TokenBits {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len.hash(state);
        hash_folded(&self.words, state);
    }
}

/// Hashes thousands of words or tokens: every eighth item is folded into one of eight numbers.
pub fn hash_folded<T: Copy + Hash + Into<u64>, H: Hasher>(items: &[T], state: &mut H) {
    let (eights, rest) = items.as_chunks::<8>();
    let mut folded = [0u64; 8];
    for items in eights {
        for (folded, &item) in folded.iter_mut().zip(items) {
            let item: u64 = item.into();
            *folded = folded.rotate_left(1) ^ item;
        }
    }
    (items.len(), folded, rest).hash(state);
}

/// The first `count` set bits; faster than [`ones`].
#[inline(always)]
fn list(words: impl Iterator<Item = u64>, count: usize) -> Vec<u32> {
    let mut list = Vec::with_capacity(count + 64);
    for (mut word, first) in words.zip((0..).step_by(64)) {
        while word != 0 {
            list.push(first + word.trailing_zeros());
            word &= word - 1;
        }
    }
    list.truncate(count);
    list.shrink_to_fit();
    list
}

fn ones(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u32> {
    words.zip((0..).step_by(64)).flat_map(|(mut word, first)| {
        std::iter::from_fn(move || {
            let bit = (word != 0).then(|| word.trailing_zeros())?;
            word &= word - 1;
            Some(first + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_that_were_set() {
        for len in [0, 1, 63, 64, 65, 128, 200] {
            let (mut set, mut cleared) = (TokenBits::none(len), TokenBits::none(len));
            (0..len as u32).for_each(|token| cleared.set(token));
            assert_eq!(cleared, TokenBits::all(len));
            assert_eq!(cleared.ones().count(), len);
            assert!(cleared.list_of_zeros(0).is_empty());
            let tokens: Vec<u32> =
                (0..len as u32).filter(|token| token % 3 == 0 || token % 64 == 63).collect();
            tokens.iter().for_each(|&token| set.set(token));
            tokens.iter().for_each(|&token| cleared.clear(token));
            assert_eq!(set.ones().collect::<Vec<_>>(), tokens);
            assert!(cleared.ones().eq(set.list_of_zeros(len - tokens.len())));
            assert_eq!(set.list(tokens.len()), tokens);
            assert_eq!(cleared.list_of_zeros(tokens.len()), tokens);
            let ids: Vec<u32> = (0..len as u32).collect();
            assert_eq!((set.count(), set.len()), (tokens.len(), len));
            assert!(ids.iter().all(|&id| set.has(id) == tokens.contains(&id)));
        }
    }
}
