//! The tokens that may follow at a place, in the form in which a row is masked soonest.

/// Most tokens of a list, as a part of the vocabulary: as many take the memory of a bit for each token.
const LIST: usize = 32;

/// The tokens of a vocabulary that may follow.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Legal {
    /// These.
    Few(Vec<u32>),
    /// All but these.
    Most(Vec<u32>),
    /// Those whose bits are set, and how many these are.
    Bits(Bits, usize),
}

impl Legal {
    /// The longest list of tokens of a vocabulary of so many.
    pub(crate) fn longest_list(all: usize) -> usize {
        all / LIST
    }

    /// Those whose bits are set.
    pub(crate) fn of(bits: Bits, count: usize) -> Self {
        let few = Self::longest_list(bits.len);
        if count <= few {
            Self::Few(bits.ones().collect())
        } else if bits.len - count <= few {
            Self::Most(bits.zeros().collect())
        } else {
            Self::Bits(bits, count)
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Few(tokens) | Self::Most(tokens) => tokens.capacity() * size_of::<u32>(),
            Self::Bits(bits, _) => bits.words.capacity() * size_of::<u64>(),
        }
    }
}

/// A bit for each token of a vocabulary, the lowest of each word first.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bits {
    words: Vec<u64>,
    /// Number of tokens; the bits behind them are 0.
    len: usize,
}

impl Bits {
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
            let (mut set, mut cleared) = (Bits::none(len), Bits::all(len));
            assert_eq!(cleared.ones().count(), len);
            assert_eq!((set.zeros().count(), cleared.zeros().count()), (len, 0));
            let tokens: Vec<u32> =
                (0..len as u32).filter(|token| token % 3 == 0 || token % 64 == 63).collect();
            tokens.iter().for_each(|&token| set.set(token));
            tokens.iter().for_each(|&token| cleared.clear(token));
            assert_eq!(set.ones().collect::<Vec<_>>(), tokens);
            assert_eq!(cleared.zeros().collect::<Vec<_>>(), tokens);
            assert!(set.zeros().eq(cleared.ones()));
        }
    }

    #[test]
    fn lists_are_no_longer_than_bits() {
        const ALL: usize = 1000;
        for count in [0, 1, 31, 32, 500, ALL - 32, ALL - 31, ALL] {
            let mut bits = Bits::none(ALL);
            (0..count as u32).for_each(|token| bits.set(token));
            let bytes = bits.words.len() * 8;
            let legal = Legal::of(bits, count);
            match &legal {
                Legal::Few(tokens) => assert!(count <= 31 && tokens.iter().copied().eq(0..count as u32)),
                Legal::Most(tokens) => {
                    assert!(count >= ALL - 31 && tokens.iter().copied().eq(count as u32..ALL as u32));
                }
                Legal::Bits(_, known) => assert!((32..=ALL - 32).contains(&count) && *known == count),
            }
            if let Legal::Few(tokens) | Legal::Most(tokens) = legal {
                assert!(tokens.len() * 4 <= bytes);
            }
        }
    }
}
