//! Tokens by what they are from a character on.

use std::ops::Range;

use super::characters::{Whole, characters_of, count_characters};
use super::{CharacterSet, TokenId, Trie};

/// The tokens of whole characters that have some character in their rests. The *tail* of a token begins with the first of these.
pub(crate) struct Tails {
    /// Of the tails, of which there are far fewer than tokens.
    trie: Trie,
    /// Of each of its tokens, in their order.
    before: Vec<Before>,
}

/// What is before a tail.
struct Before {
    is_spaced: bool,
    first: u8,
    /// The characters between the first one and the tail, and how many they are.
    between: CharacterSet,
    length: usize,
}

impl Tails {
    /// Those of tokens, each with where its tail begins in its rest.
    pub(super) fn of(mut tokens: Vec<(Whole<'_>, usize, TokenId)>) -> Self {
        tokens.sort_by_key(|&(whole, at, id)| (&whole.rest[at..], id));
        let words: Vec<_> = tokens.iter().map(|&(whole, at, id)| (&whole.rest[at..], id)).collect();
        let before = |&(whole, at, _): &(Whole<'_>, usize, TokenId)| {
            let Whole { is_spaced, first, rest } = whole;
            let between = &rest[..at];
            Before { is_spaced, first, between: characters_of(between), length: count_characters(between) }
        };
        Self { trie: Trie::of(&words), before: tokens.iter().map(before).collect() }
    }

    /// Their trie.
    pub(crate) fn trie(&self) -> &Trie {
        &self.trie
    }

    /// Of the tokens in these places of the trie, those that begin with one of the `first` characters, without a space before them and
    /// with one, and have only characters `within` a set between that and the tail, and at most so many.
    pub(crate) fn among(
        &self,
        places: Range<usize>,
        first: [CharacterSet; 2],
        within: CharacterSet,
        most: usize,
    ) -> impl Iterator<Item = TokenId> + '_ {
        let before = self.before[places.clone()].iter().zip(&self.trie.all_tokens()[places]);
        let found = before.filter(move |(before, _)| {
            first[usize::from(before.is_spaced)].contains(before.first)
                && before.between.is_within(within)
                && before.length <= most
        });
        found.map(|(_, &token)| token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;

    #[test]
    fn tokens_are_found_by_what_is_before_their_tails() {
        let words = ["a\"", " a\"", "ab\",", "é\"", "\"\"", "\"", "aéb\",\"", "b", " \"", "  \""];
        let vocabulary = Vocabulary::from_bytes(words.map(Some)).unwrap();
        let tails = vocabulary.characters().tails(b'"').unwrap();
        let set = |text: &str| CharacterSet::of(text.bytes());
        let found_up_to = |most: usize, first: [&str; 2], within: &str| {
            let all = 0..tails.trie().all_tokens().len();
            let mut found: Vec<u32> =
                tails.among(all, first.map(set), set(within), most).map(|token| token.0).collect();
            found.sort_unstable();
            found
        };
        let found = |first, within| found_up_to(usize::MAX, first, within);
        // Those that begin with it have no tail.
        assert_eq!(found(["abé\" ", "abé\" "], "abé"), [0, 1, 2, 3, 4, 6, 9]);
        assert_eq!(found(["a", ""], "ab"), [0, 2]);
        assert_eq!(found(["a", "a"], ""), [0, 1]);
        assert_eq!(found_up_to(1, ["abé\" ", "abé\" "], "abé"), [0, 1, 2, 3, 4, 9]);
        assert_eq!(found_up_to(0, ["abé\" ", "abé\" "], "abé"), [0, 1, 3, 4, 9]);
        assert_eq!(tails.trie().len(), 3);
        assert!(vocabulary.characters().tails(b'a').is_none());
    }
}
