//! Sets of characters by their first bytes in UTF-8, and the tokens that have other characters.

use std::sync::{Arc, PoisonError};

use super::{Trie, Vocabulary};

/// The characters whose first byte is in a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstBytes([u128; 2]);

impl FirstBytes {
    /// Those of these bytes.
    pub(crate) fn new(bytes: impl IntoIterator<Item = u8>) -> Self {
        let mut all = Self::default();
        bytes.into_iter().for_each(|byte| all.0[usize::from(byte >> 7)] |= 1 << (byte & 127));
        all
    }

    /// Those that are in both sets.
    pub(crate) fn and(self, other: Self) -> Self {
        Self([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }

    /// Those that are in one of the sets.
    pub(crate) fn or(self, other: Self) -> Self {
        Self([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }

    pub(crate) fn contains(self, byte: u8) -> bool {
        self.0[usize::from(byte >> 7)] >> (byte & 127) & 1 == 1
    }

    /// How many of the characters are ASCII.
    pub(crate) fn ascii(self) -> u32 {
        self.0[0].count_ones()
    }

    /// Whether some bytes are whole characters, all of them of this set.
    fn spell(self, bytes: &[u8]) -> bool {
        let begins = |&byte: &u8| byte & 0xc0 != 0x80;
        let mut firsts = bytes.iter().copied().filter(begins);
        firsts.all(|byte| self.contains(byte)) && std::str::from_utf8(bytes).is_ok()
    }
}

impl Vocabulary {
    /// The tokens that are text, and not of such characters alone, as a trie. The last few are kept.
    pub(crate) fn trie_beyond(&self, characters: FirstBytes) -> Arc<Trie> {
        const KEPT: usize = 8;
        let mut kept = self.derived.beyond.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, trie)) = kept.iter().find(|(of, _)| *of == characters) {
            return Arc::clone(trie);
        }
        let trie = Arc::new(self.make_trie_beyond(characters));
        kept.truncate(KEPT - 1);
        kept.push_front((characters, Arc::clone(&trie)));
        trie
    }

    fn make_trie_beyond(&self, characters: FirstBytes) -> Trie {
        let text = self.iter().map(|(id, bytes)| (bytes, id));
        let mut beyond: Vec<_> = text.filter(|(bytes, _)| !characters.spell(bytes)).collect();
        beyond.sort_unstable();
        Trie::of(&beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_beyond_has_another_character_or_a_part_of_one() {
        let tokens: [&[u8]; 9] = [
            b"ab",
            b"a<b",
            b"\n",
            "é".as_bytes(),
            b"\xc3",
            b"\xa9",
            b"a\xc3",
            "aé".as_bytes(),
            "✓".as_bytes(),
        ];
        let vocabulary = Vocabulary::from_bytes(tokens.map(Some)).unwrap();
        let all = FirstBytes::new(0..=u8::MAX);
        let some = FirstBytes::new((0..=0xdf).filter(|&byte| byte != b'<'));
        let beyond = |characters| {
            let mut ids: Vec<u32> =
                vocabulary.trie_beyond(characters).all_tokens().iter().map(|id| id.0).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(beyond(all), [4, 5, 6]);
        assert_eq!(beyond(some), [1, 4, 5, 6, 8]);
        assert_eq!(beyond(some.and(FirstBytes::new(0..128))), [1, 3, 4, 5, 6, 7, 8]);
        assert_eq!(some.ascii(), 127);
    }
}
