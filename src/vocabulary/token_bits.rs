//! Sets of tokens.

use std::hash::{Hash, Hasher};

/// A bit for each token of a vocabulary, the lowest of each word first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenBits {
    words: Vec<u64>,
    /// Number of tokens; the bits behind them are 0.
    len: usize,
}

impl TokenBits {
    pub(crate) fn none(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    pub(crate) fn all(len: usize) -> Self {
        let mut words = vec![u64::MAX; len.div_ceil(64)];
        if let Some(last) = words.last_mut() {
            *last >>= 64 * len.div_ceil(64) - len;
        }
        Self { words, len }
    }

    /// Those of which `is_set` holds.
    pub(crate) fn of<T>(tokens: &[T], is_set: impl Fn(&T) -> bool) -> Self {
        let word = |tokens: &[T]| {
            tokens.iter().enumerate().fold(0, |word, (at, token)| word | u64::from(is_set(token)) << at)
        };
        Self { words: tokens.chunks(64).map(word).collect(), len: tokens.len() }
    }

    /// Number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// The number of bits that are set.
    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    #[inline]
    pub(crate) fn has(&self, token: u32) -> bool {
        self.words[token as usize / 64] >> (token % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn set(&mut self, token: u32) {
        self.words[token as usize / 64] |= 1 << (token % 64);
    }

    #[inline]
    pub(crate) fn clear(&mut self, token: u32) {
        self.words[token as usize / 64] &= !(1 << (token % 64));
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// The tokens whose bits are set, in order.
    pub(crate) fn ones(&self) -> impl Iterator<Item = u32> + '_ {
        ones(self.words.iter().copied())
    }

    /// The tokens whose bits are not, in order.
    pub(crate) fn zeros(&self) -> impl Iterator<Item = u32> + '_ {
        ones(self.words.iter().map(|word| !word)).take_while(|&token| (token as usize) < self.len)
    }
}

impl Hash for TokenBits {
    /// Hashes eight words for all of them, since there are thousands.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (eights, rest) = self.words.as_chunks::<8>();
        let mut folded = [0u64; 8];
        for words in eights {
            folded.iter_mut().zip(words).for_each(|(folded, word)| *folded = folded.rotate_left(1) ^ word);
        }
        (self.len, folded, rest).hash(state);
    }
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
            let (mut set, mut cleared) = (TokenBits::none(len), TokenBits::all(len));
            assert_eq!(cleared.ones().count(), len);
            assert_eq!((set.zeros().count(), cleared.zeros().count()), (len, 0));
            let tokens: Vec<u32> =
                (0..len as u32).filter(|token| token % 3 == 0 || token % 64 == 63).collect();
            tokens.iter().for_each(|&token| set.set(token));
            tokens.iter().for_each(|&token| cleared.clear(token));
            assert_eq!(set.ones().collect::<Vec<_>>(), tokens);
            assert_eq!(cleared.zeros().collect::<Vec<_>>(), tokens);
            assert!(set.zeros().eq(cleared.ones()));
            let ids: Vec<u32> = (0..len as u32).collect();
            assert_eq!(TokenBits::of(&ids, |id| tokens.contains(id)), set);
            assert_eq!((set.count(), set.len()), (tokens.len(), len));
            assert!(ids.iter().all(|&id| set.has(id) == tokens.contains(&id)));
        }
    }
}
