//! Tokens by what they are from a character on.

use std::ops::Range;

use super::characters::{TAILS, Whole, characters_of, count_characters};
use super::{CharacterSet, TokenId, Trie};

/// The tokens of whole characters that have some character in their rests. The *tail* of a token begins with the first of these.
pub(crate) struct Tails {
    /// Of the tails, of which there are far fewer than tokens.
    trie: Trie,
    /// Of each of its tokens, in their order.
    before: Vec<Before>,
    /// The tokens that have the same tail, both behind a space or neither, and before it only characters of strings or others too.
    groups: Vec<Group>,
}

/// What is before a tail.
#[derive(Clone, Copy)]
struct Before {
    is_spaced: bool,
    first: CharacterSet,
    /// The characters between the first one and the tail, and how many they are.
    between: CharacterSet,
    length: usize,
}

impl Before {
    fn of(Whole { is_spaced, first, rest }: Whole<'_>, at: usize) -> Self {
        let between = &rest[..at];
        let first = CharacterSet::of([first]);
        Self { is_spaced, first, between: characters_of(between), length: count_characters(between) }
    }

    /// Whether they are all characters that strings have as they are: neither of control, nor of [`TAILS`].
    fn is_plain(&self) -> bool {
        let others = CharacterSet::between(0, 0x1f).or(CharacterSet::of(TAILS));
        self.first.or(self.between).and(others).is_empty()
    }
}

/// Tokens that follow one another.
struct Group {
    /// The place behind them.
    end: usize,
    /// The characters that any of them has, and the greatest length.
    before: Before,
}

impl Tails {
    /// Those of tokens, each with where its tail begins in its rest.
    pub(super) fn of(tokens: Vec<(Whole<'_>, usize, TokenId)>) -> Self {
        let mut tokens: Vec<(&[u8], Before, TokenId)> = tokens
            .into_iter()
            .map(|(whole, at, id)| (&whole.rest[at..], Before::of(whole, at), id))
            .collect();
        let kind = |&(tail, before, _): &(_, Before, _)| (tail, before.is_spaced, before.is_plain());
        tokens.sort_by_key(|token| (kind(token), token.2));
        let words: Vec<_> = tokens.iter().map(|&(tail, _, id)| (tail, id)).collect();
        let mut end = 0;
        let groups = tokens.chunk_by(|a, b| kind(a) == kind(b)).map(|group| {
            let united = group.iter().map(|&(_, before, _)| before).reduce(|all, own| Before {
                is_spaced: own.is_spaced,
                first: all.first.or(own.first),
                between: all.between.or(own.between),
                length: all.length.max(own.length),
            });
            end += group.len();
            Group { end, before: united.expect("no group is empty") }
        });
        let groups = groups.collect();
        Self { trie: Trie::of(&words), before: tokens.iter().map(|&(_, before, _)| before).collect(), groups }
    }

    /// Their trie.
    pub(crate) fn trie(&self) -> &Trie {
        &self.trie
    }

    /// Calls `found` with the tokens in these places of the trie that begin with one of the `first` characters, without a space before
    /// them and with one, and have only characters `within` a set between that and the tail, and at most so many.
    pub(crate) fn among(
        &self,
        places: Range<usize>,
        first: [CharacterSet; 2],
        within: CharacterSet,
        most: usize,
        mut found: impl FnMut(&[TokenId]),
    ) {
        let fits = |before: &Before| {
            before.first.is_within(first[usize::from(before.is_spaced)])
                && before.between.is_within(within)
                && before.length <= most
        };
        let tokens = self.trie.all_tokens();
        let mut start = places.start;
        for Group { end, before } in &self.groups[self.groups.partition_point(|group| group.end <= start)..] {
            let own = start..places.end.min(*end);
            if own.is_empty() {
                return;
            }
            start = own.end;
            if fits(before) {
                found(&tokens[own]);
            } else if !before.first.and(first[usize::from(before.is_spaced)]).is_empty() {
                own.filter(|&at| fits(&self.before[at])).for_each(|at| found(&tokens[at..=at]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;

    #[test]
    fn tokens_are_found_by_what_is_before_their_tails() {
        let words =
            ["a\"", " a\"", "ab\",", "é\"", "\"\"", "\"", "aéb\",\"", "b", " \"", "  \"", "abb\"", "b\""];
        let vocabulary = Vocabulary::from_bytes(words.map(Some)).unwrap();
        let tails = vocabulary.characters().tails(b'"').unwrap();
        let set = |text: &str| CharacterSet::of(text.bytes());
        let found_up_to = |most: usize, first: [&str; 2], within: &str| {
            let all = 0..tails.trie().all_tokens().len();
            let mut found: Vec<u32> = Vec::new();
            tails.among(all.clone(), first.map(set), set(within), most, |tokens| {
                found.extend(tokens.iter().map(|token| token.0));
            });
            let mut one_by_one: Vec<u32> = Vec::new();
            for at in all {
                tails.among(at..at + 1, first.map(set), set(within), most, |tokens| {
                    one_by_one.extend(tokens.iter().map(|token| token.0));
                });
            }
            assert_eq!(one_by_one, found);
            found.sort_unstable();
            found
        };
        let found = |first, within| found_up_to(usize::MAX, first, within);
        // Those that begin with it have no tail.
        assert_eq!(found(["abé\" ", "abé\" "], "abé"), [0, 1, 2, 3, 4, 6, 9, 10, 11]);
        assert_eq!(found(["a", ""], "ab"), [0, 2, 10]);
        assert_eq!(found(["a", "a"], ""), [0, 1]);
        assert_eq!(found(["abé ", "abé "], ""), [0, 1, 3, 9, 11]);
        assert_eq!(found_up_to(1, ["abé\" ", "abé\" "], "abé"), [0, 1, 2, 3, 4, 9, 11]);
        assert_eq!(found_up_to(0, ["abé\" ", "abé\" "], "abé"), [0, 1, 3, 4, 9, 11]);
        assert_eq!(tails.trie().len(), 3);
        assert!(vocabulary.characters().tails(b'a').is_none());
    }
}
