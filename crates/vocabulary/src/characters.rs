//! The tokens of a vocabulary by their characters.
//!
//! Most tokens are whole characters, and most of these are words, many with a space before them.
//! Such a token has three parts: a space, if more follows it, the *first* character, and the
//! *rest*. Characters are distinguished by their first bytes. Often the state after a token depends
//! on the first character alone, and its legality on the set and the number of the characters of
//! the rest. Then a few passes over sets of tokens find all legal tokens without reading any of
//! them. The last character may lack its last bytes. All other tokens are *cut*: they begin within
//! a character. The idea of deciding tokens together comes from llguidance's slices (Moskal and
//! others, guidance-ai/llguidance, "Optimizations").

use std::sync::{Arc, OnceLock};

use super::spelled::SpelledSets;
use super::{CharacterSet, Spelled, TokenBits, TokenId, TokenSet, Trie, Vocabulary};

/// The maximum number of characters of a rest that is distinguished. Few tokens have longer rests,
/// mostly of spaces or line feeds.
pub const LONGEST: usize = 32;

/// Any number of characters of a rest.
pub const ANY_LENGTH: usize = LONGEST + 1;

/// A character has a trie of its tokens if these are at most 1/`FEW` of the vocabulary.
const FEW: usize = 16;

/// The tokens of a vocabulary by their characters.
pub struct Characters {
    /// By the first character, without a space before it and with one.
    first: [Groups; 2],
    /// By the characters of the rest.
    rest: Groups,
    /// `[256]`: the tokens with the character in their rests, if these are few.
    tries: Vec<OnceLock<Trie>>,
    /// The maximum number of tokens of such a trie.
    few: usize,
    /// By length: the tokens with at most that many characters in their rests; the last set has no
    /// limit.
    up_to: Vec<TokenBits>,
    /// The tokens with longer rests, shorter rests first.
    long: Vec<Long>,
    /// The same tokens as a trie.
    long_trie: Trie,
    /// The maximum number of bytes of a rest.
    longest: usize,
    cut: Trie,
    spelled: SpelledSets,
}

/// Ranges of first bytes that often occur together, larger ranges before parts of them: control
/// characters, digits, letters, letters after `f` (no hexadecimal digits), other ASCII characters,
/// non-ASCII characters, and characters of three bytes or more.
const UNIONS: [(u8, u8); 12] = [
    (0, 0x1f),
    (b'0', b'9'),
    (b'A', b'Z'),
    (b'G', b'Z'),
    (b'a', b'z'),
    (b'g', b'z'),
    (b'!', b'/'),
    (b':', b'@'),
    (b'[', b'`'),
    (b'{', 0x7f),
    (0xc2, 0xf4),
    (0xe0, 0xf4),
];

/// Sets of tokens by one of their characters.
struct Groups {
    /// `[256]`: empty if no token has the character.
    tokens: Vec<TokenBits>,
    counts: [u32; 256],
    /// `[257]`: prefix sums of the counts.
    before: [u32; 257],
    /// The characters of any token.
    present: CharacterSet,
    /// The tokens of each range of [`UNIONS`].
    unions: Vec<(CharacterSet, TokenBits)>,
    /// The tokens of all characters.
    all: TokenBits,
}

impl Groups {
    fn new() -> Self {
        Self {
            tokens: vec![TokenBits::none(0); 256],
            counts: [0; 256],
            before: [0; 257],
            present: CharacterSet::default(),
            unions: Vec::new(),
            all: TokenBits::none(0),
        }
    }

    fn insert(&mut self, byte: u8, token: TokenId, all: usize) {
        let (tokens, count) = (&mut self.tokens[byte as usize], &mut self.counts[byte as usize]);
        if *count == 0 {
            *tokens = TokenBits::none(all);
            self.present.insert(byte);
        }
        *count += 1;
        tokens.set(token.0);
    }

    /// Computes the unions and the prefix sums.
    fn unite(&mut self, all: usize) {
        let united = |characters: CharacterSet| {
            let mut tokens = TokenBits::none(all);
            characters.bytes().for_each(|byte| tokens.unite(&self.tokens[byte as usize]));
            (characters, tokens)
        };
        let unions = UNIONS.iter().map(|&(first, last)| CharacterSet::of(first..=last).and(self.present));
        let unions = unions.filter(|characters| !characters.is_empty()).map(united).collect();
        (self.unions, self.all) = (unions, united(self.present).1);
        for (byte, count) in self.counts.iter().enumerate() {
            self.before[byte + 1] = self.before[byte] + count;
        }
    }

    /// Adds sets whose union is the tokens of `characters`.
    fn add_to<'a>(&'a self, found: &mut Vec<&'a TokenBits>, characters: CharacterSet) {
        let mut characters = characters.and(self.present);
        for (set, tokens) in &self.unions {
            if set.is_within(characters) {
                found.push(tokens);
                characters = characters.without(*set);
            }
        }
        found.extend(characters.bytes().map(|byte| &self.tokens[byte as usize]));
    }

    /// The number of tokens with each of `characters`, summed.
    fn count(&self, characters: CharacterSet) -> usize {
        characters.and(self.present).bytes().map(|byte| self.counts[byte as usize] as usize).sum()
    }
}

/// A token with a long rest.
struct Long {
    is_spaced: bool,
    first: u8,
    /// The characters of the rest, and their number.
    rest: CharacterSet,
    length: usize,
    token: TokenId,
}

/// A token of whole characters; the last one may lack bytes.
struct Whole<'a> {
    is_spaced: bool,
    first: u8,
    rest: &'a [u8],
}

impl<'a> Whole<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        // Invalid sequences are refused, an incomplete last character is not.
        std::str::from_utf8(bytes).or_else(|error| error.error_len().map_or(Ok(""), |_| Err(error))).ok()?;
        let behind = bytes.strip_prefix(b" ").filter(|behind| !behind.is_empty());
        let own = behind.unwrap_or(bytes);
        let first = *own.first()?;
        let rest = &own[1..];
        let continued = rest.iter().take_while(|&&byte| !begins(byte)).count();
        Some(Self { is_spaced: behind.is_some(), first, rest: &rest[continued..] })
    }

    /// The number of characters of the rest.
    fn length(&self) -> usize {
        self.rest.iter().filter(|&&byte| begins(byte)).count()
    }
}

/// The characters of a text; the last one may lack bytes.
fn characters_of(text: &[u8]) -> CharacterSet {
    CharacterSet::of(text.iter().copied().filter(|&byte| begins(byte)))
}

/// Whether a byte begins a character.
fn begins(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

impl Characters {
    pub(super) fn of(vocabulary: &Vocabulary) -> Self {
        let all = vocabulary.len();
        let few = all / FEW;
        let mut up_to = vec![TokenBits::none(all); ANY_LENGTH + 1];
        let (mut first, mut rest) = ([Groups::new(), Groups::new()], Groups::new());
        // In the order of the ids, so that memory is written in order.
        for (id, bytes) in vocabulary.iter() {
            let Some(whole) = Whole::of(bytes) else { continue };
            up_to[whole.length().min(ANY_LENGTH)].set(id.0);
            first[usize::from(whole.is_spaced)].insert(whole.first, id, all);
            characters_of(whole.rest).bytes().for_each(|byte| rest.insert(byte, id, all));
        }
        let is_few = |byte: u8| byte < 128 && rest.counts[byte as usize] as usize <= few;
        let of_few = CharacterSet::of((0..128).filter(|&byte| is_few(byte)));
        let (mut cut, mut words) = (Vec::new(), vec![Vec::new(); 128]);
        let (mut long, mut long_words) = (Vec::new(), Vec::new());
        let mut longest = 0;
        for &id in vocabulary.trie().all_tokens() {
            let bytes = vocabulary.bytes(id).unwrap_or_default();
            let Some(whole) = Whole::of(bytes) else {
                cut.push((bytes, id));
                continue;
            };
            characters_of(whole.rest)
                .and(of_few)
                .bytes()
                .for_each(|byte| words[byte as usize].push((bytes, id)));
            longest = longest.max(whole.rest.len());
            let length = whole.length();
            if length > LONGEST {
                let Whole { is_spaced, first, rest } = whole;
                long.push(Long { is_spaced, first, rest: characters_of(rest), length, token: id });
                long_words.push((bytes, id));
            }
        }
        long.sort_by_key(|long| long.length);
        first.iter_mut().chain([&mut rest]).for_each(|groups| groups.unite(all));
        for length in 1..=ANY_LENGTH {
            let (less, own) = up_to.split_at_mut(length);
            own[0].unite(&less[length - 1]);
        }
        let tries: Vec<OnceLock<Trie>> = (0..256).map(|_| OnceLock::new()).collect();
        // Tries of ASCII characters are built at once: most constraints need some of them.
        for (trie, words) in tries.iter().zip(&words).filter(|(_, words)| !words.is_empty()) {
            let _ = trie.set(Trie::of(words));
        }
        Self {
            first,
            rest,
            tries,
            few,
            up_to,
            long,
            long_trie: Trie::of(&long_words),
            longest,
            cut: Trie::of(&cut),
            spelled: SpelledSets::default(),
        }
    }

    /// The tokens with more than [`LONGEST`] characters in their rests.
    pub fn long(&self) -> &Trie {
        &self.long_trie
    }

    /// Of these, the tokens with at most `max_rest` characters in their rests, with these `first`
    /// characters, without a space before them and with one, and with rests `within` a set.
    pub fn long_up_to(
        &self,
        max_rest: usize,
        first: [CharacterSet; 2],
        within: CharacterSet,
    ) -> impl Iterator<Item = TokenId> + '_ {
        let long = self.long.iter().take_while(move |long| long.length <= max_rest);
        let found = long.filter(move |long| {
            first[usize::from(long.is_spaced)].contains(long.first) && long.rest.is_within(within)
        });
        found.map(|long| long.token)
    }

    /// An upper bound on the characters of a rest.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The tokens that begin within a character, or are not UTF-8.
    pub fn cut(&self) -> &Trie {
        &self.cut
    }

    /// Whether a token has such a first character, without a space before it or with one.
    pub fn begin_any(&self, first: [CharacterSet; 2]) -> bool {
        self.first.iter().zip(first).any(|(groups, set)| !set.and(groups.present).is_empty())
    }

    /// The number of tokens with each of `characters` in their rests, summed.
    pub fn count_rest(&self, characters: CharacterSet) -> usize {
        self.rest.count(characters)
    }

    /// The same for a range of characters.
    pub fn count_rest_between(&self, first: u8, last: u8) -> usize {
        let before = &self.rest.before;
        (before[usize::from(last) + 1] - before[usize::from(first)]) as usize
    }

    /// Whether each of `characters` is in the rests of few tokens.
    pub fn are_few(&self, characters: CharacterSet) -> bool {
        characters.bytes().all(|byte| self.rest.counts[byte as usize] as usize <= self.few)
    }

    /// The tokens with a character of this first byte in their rests. These must be
    /// [few](Self::are_few).
    pub fn with(&self, byte: u8, vocabulary: &Vocabulary) -> &Trie {
        self.tries[byte as usize].get_or_init(|| {
            let tokens = vocabulary.trie().all_tokens().iter().filter(|id| {
                self.rest.counts[byte as usize] > 0 && self.rest.tokens[byte as usize].has(id.0)
            });
            let words = tokens.map(|&id| (vocabulary.bytes(id).unwrap_or_default(), id));
            Trie::of(&words.collect::<Vec<_>>())
        })
    }

    /// The tokens that are spelled in one of these ways, shared by all compiled constraints. `find`
    /// computes them on the first request; its bits are returned as the error if no more sets can
    /// be kept.
    pub fn spelled(
        &self,
        spelled: &[Spelled],
        find: impl FnOnce() -> TokenBits,
    ) -> Result<Arc<TokenSet>, TokenBits> {
        self.spelled.of(spelled, find)
    }

    /// Sets the bits of the tokens that are spelled in a way.
    #[inline(always)]
    pub fn add(&self, bits: &mut TokenBits, spelled: &Spelled) {
        let &Spelled { first, within, max_rest } = spelled;
        let mut beyond = Vec::new();
        self.rest.add_to(&mut beyond, CharacterSet::ALL.without(within));
        let up_to = &self.up_to[max_rest.min(ANY_LENGTH)];
        // The smaller set: the missing characters or the present ones.
        let others = [0, 1].map(|is_spaced| self.first[is_spaced].present.without(first[is_spaced]));
        let are_most = |is_spaced: usize| {
            let there = first[is_spaced].and(self.first[is_spaced].present);
            others[is_spaced].bytes().count() <= there.bytes().count()
        };
        if are_most(0) && are_most(1) {
            (0..2).for_each(|is_spaced| self.first[is_spaced].add_to(&mut beyond, others[is_spaced]));
            return bits.unite_between(&[up_to], &[], &beyond);
        }
        for (is_spaced, groups) in self.first.iter().enumerate() {
            let (mut begun, shared) = (Vec::new(), beyond.len());
            if are_most(is_spaced) {
                groups.add_to(&mut beyond, others[is_spaced]);
                bits.unite_between(&[up_to, &groups.all], &[], &beyond);
                beyond.truncate(shared);
            } else {
                groups.add_to(&mut begun, first[is_spaced]);
                if !begun.is_empty() {
                    bits.unite_between(&[up_to], &begun, &beyond);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_dfa_common::random::Random;

    #[test]
    fn tokens_are_known_by_their_first_characters_and_their_rests() {
        let long = format!("x{}", "y".repeat(LONGEST + 1));
        let words: [&[u8]; 20] = [
            b"a",
            b" a",
            b" ",
            b"  ",
            b"ab",
            b" ab",
            b"aB",
            b"a b",
            "é".as_bytes(),
            "aé".as_bytes(),
            " éa".as_bytes(),
            // Without the last byte.
            b"a\xc3",
            b"\xc3",
            // Cut.
            b"\xa9",
            b"\xa9a",
            b"a\xff",
            long.as_bytes(),
            &long.as_bytes()[..LONGEST + 1],
            b"\n",
            b"a\n",
        ];
        let vocabulary = Vocabulary::from_bytes(words.map(Some)).unwrap();
        let characters = vocabulary.characters();
        let mut cut: Vec<u32> = characters.cut().all_tokens().iter().map(|id| id.0).collect();
        cut.sort_unstable();
        assert_eq!(cut, [13, 14, 15]);
        assert_eq!(characters.long().all_tokens(), [TokenId(16)]);
        let set = |bytes: &[u8]| CharacterSet::of(bytes.iter().copied());
        let long = |max_rest, first: &[u8], within: &[u8]| {
            characters.long_up_to(max_rest, [set(first), set(b"")], set(within)).collect::<Vec<_>>()
        };
        assert_eq!(long(LONGEST + 1, b"ax", b"yz"), [TokenId(16)]);
        let others: [(_, &[u8], &[u8]); 3] =
            [(LONGEST, b"ax", b"yz"), (LONGEST + 1, b"y", b"yz"), (LONGEST + 1, b"x", b"x")];
        assert!(others.into_iter().all(|(max_rest, first, within)| long(max_rest, first, within).is_empty()));
        let known = |first: [&[u8]; 2], within: CharacterSet, max_rest| {
            let mut bits = TokenBits::none(words.len());
            characters.add(&mut bits, &Spelled { first: first.map(set), within, max_rest });
            bits.ones().collect::<Vec<_>>()
        };
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let every = [&all[..], &all];
        let whole: Vec<u32> = (0..20).filter(|id| !cut.contains(id)).collect();
        assert_eq!(known(every, CharacterSet::ALL, ANY_LENGTH), whole);
        let shorter: Vec<u32> = whole.iter().copied().filter(|&id| id != 16).collect();
        assert_eq!(known(every, CharacterSet::ALL, LONGEST), shorter);
        assert_eq!(known(every, CharacterSet::ALL, 0), [0, 1, 2, 3, 8, 12, 18]);
        assert_eq!(known(every, set(b"b"), LONGEST), [0, 1, 2, 3, 4, 5, 8, 12, 18]);
        assert_eq!(known([b"a", b""], CharacterSet::ALL, LONGEST), [0, 4, 6, 7, 9, 11, 19]);
        assert_eq!(known([b"", b"a \xc3"], CharacterSet::ALL, LONGEST), [1, 3, 5, 10]);
        assert_eq!(known([b"a", b"a"], set(b"b\xc3"), 1), [0, 1, 4, 5, 9, 11]);
        assert_eq!(characters.count_rest(set(b"b \n")), 5);
        for (first, last) in [(0, b' '), (b'b', b'b'), (b'\n', 0xff)] {
            let count = characters.count_rest(CharacterSet::between(first, last));
            assert_eq!(characters.count_rest_between(first, last), count);
        }
        assert!(
            characters.begin_any([set(b"q"), set(b"a")]) && !characters.begin_any([set(b"q"), set(b"q")])
        );
        let with = |byte| {
            let mut ids: Vec<u32> =
                characters.with(byte, &vocabulary).all_tokens().iter().map(|id| id.0).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!([b'b', b'\n', 0xc3, b'q'].map(with), [vec![4, 5, 7], vec![19], vec![9, 11], vec![]]);
    }

    /// Some characters are in the rests of few tokens, others of many. Sets have most or few of the
    /// present characters.
    #[test]
    fn random_sets_have_the_tokens_that_are_spelled_so() {
        // Later characters are rarer.
        const LETTERS: [char; 14] =
            [' ', 'a', 'é', '漢', 'b', 'q', '0', '\n', '"', '🙂', 'ß', '7', 'c', '字'];
        let mut random = Random(7);
        let words: Vec<Option<Vec<u8>>> = (0..600)
            .map(|_| {
                let mut word = String::new();
                for _ in 0..1 + random.below(5) {
                    let end = 1 + random.below(LETTERS.len());
                    word.push(LETTERS[random.below(end)]);
                }
                let word = word.into_bytes();
                // Some are cut: they lack their first byte.
                Some(if random.below(9) == 0 { word[1..].to_vec() } else { word })
            })
            .collect();
        let vocabulary = Vocabulary::from_bytes(words).unwrap();
        let characters = vocabulary.characters();
        let whole = vocabulary.iter().filter_map(|(id, bytes)| Some((id, Whole::of(bytes)?)));
        let whole: Vec<(TokenId, Whole)> = whole.collect();
        let mut met = [0; 2];
        for byte in 0..=u8::MAX {
            let mut found = characters.with(byte, &vocabulary).all_tokens().to_vec();
            found.sort_unstable();
            let with = whole.iter().filter(|(_, whole)| characters_of(whole.rest).contains(byte));
            let expected: Vec<TokenId> = with.map(|&(id, _)| id).collect();
            assert_eq!(found, expected, "{byte}");
            let is_few = characters.are_few(CharacterSet::of([byte]));
            met[usize::from(is_few)] += usize::from(!expected.is_empty());
        }
        assert!(met.iter().all(|&met| met > 2), "{met:?}");
        for _ in 0..500 {
            let [bare, spaced, within] = [0; 3].map(|_| {
                let share = random.below(11);
                CharacterSet::of((0..=u8::MAX).filter(|_| random.below(10) < share))
            });
            let spelled = Spelled {
                first: [bare, spaced],
                within,
                max_rest: [0, 1, 2, 3, LONGEST, ANY_LENGTH][random.below(6)],
            };
            let mut bits = TokenBits::none(vocabulary.len());
            characters.add(&mut bits, &spelled);
            let is_spelled = |whole: &Whole| {
                spelled.first[usize::from(whole.is_spaced)].contains(whole.first)
                    && characters_of(whole.rest).is_within(within)
                    && whole.length() <= spelled.max_rest
            };
            let expected = whole.iter().filter(|(_, whole)| is_spelled(whole)).map(|(id, _)| id.0);
            assert!(bits.ones().eq(expected), "{spelled:?}");
        }
    }
}
