//! The tokens of a vocabulary by the characters that they have.
//!
//! Most tokens are whole characters, and most of these are words, many of them behind a space. So such a token is cut in three: a space, if
//! it begins with one and goes on, its *first* character, and the *rest*. Characters are told apart by their first bytes. Where it
//! depends on the first character where an automaton comes to, and of the rest only matters which characters it has and how
//! many, a few passes over sets of tokens find all tokens that may follow, and none of them is read. The last character may be without
//! its last bytes. Other tokens are *cut*: they begin amid a character. The idea of taking tokens together that are read alike is that of
//! llguidance's slices (Moskal and others, guidance-ai/llguidance, "Optimizations").

use std::sync::{Arc, OnceLock};

use super::spelled::SpelledSets;
use super::{CharacterSet, Spelled, Tails, TokenBits, TokenId, TokenSet, Trie, Vocabulary};

/// So many characters of a rest are followed. Few tokens have more, most of them are spaces or lines; what has to be followed is so much shorter.
pub(crate) const LONGEST: usize = 32;

/// Any number of characters of a rest.
pub(crate) const ANY_LENGTH: usize = LONGEST + 1;

/// Of the tokens that have some character in their rests a trie is made where these are at most this part of the vocabulary.
const FEW: usize = 16;

/// The tokens of a vocabulary by their characters.
pub(crate) struct Characters {
    /// By its first character, without a space before it and with one.
    first: [Groups; 2],
    /// By the characters of the rest.
    rest: Groups,
    /// `[256]`: the tokens that have such a character in their rests, where they are few.
    tries: Vec<OnceLock<Trie>>,
    /// The most tokens of which that is.
    few: usize,
    /// The tokens that have such a character in their rests by their tails.
    tails: [Tails; TAILS.len()],
    /// The tokens whose rests have at most so many characters, the last of them of any length.
    up_to: Vec<TokenBits>,
    /// The tokens whose rests are longer than that, shorter ones first.
    long: Vec<Long>,
    /// The same as a trie.
    long_trie: Trie,
    /// The most bytes of a rest.
    longest: usize,
    cut: Trie,
    spelled: SpelledSets,
}

/// The characters of whose tails there are tries: those by which strings end, and others begin in them.
pub(crate) const TAILS: [u8; 2] = *b"\"\\";

/// The first bytes of characters that often go together, larger sets before parts of them: control characters, digits, letters, those
/// beyond `f`, which is where hexadecimal digits end, other characters of ASCII, and all others, of two bytes and of more.
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

/// Sets of tokens by a character that they have.
struct Groups {
    /// `[256]`: empty where there are none.
    tokens: Vec<TokenBits>,
    counts: [u32; 256],
    /// `[257]`: the sums of the counts before each, and of all.
    before: [u32; 257],
    /// The characters that some tokens have.
    present: CharacterSet,
    /// The tokens of several characters that often go together.
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

    /// Unites what was inserted.
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

    /// Adds sets that the tokens of some characters are in, and no other tokens.
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

    /// How many tokens have one of some characters, those that have several counted several times.
    fn count(&self, characters: CharacterSet) -> usize {
        characters.and(self.present).bytes().map(|byte| self.counts[byte as usize] as usize).sum()
    }
}

/// A token whose rest is long.
struct Long {
    is_spaced: bool,
    first: u8,
    /// The characters of the rest, and how many they are.
    rest: CharacterSet,
    length: usize,
    token: TokenId,
}

/// A token of whole characters, the last of which may lack bytes.
#[derive(Clone, Copy)]
pub(super) struct Whole<'a> {
    pub(super) is_spaced: bool,
    pub(super) first: u8,
    pub(super) rest: &'a [u8],
}

impl<'a> Whole<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        // Whether an invalid sequence stands somewhere, or the last character is not complete.
        std::str::from_utf8(bytes).or_else(|error| error.error_len().map_or(Ok(""), |_| Err(error))).ok()?;
        let behind = bytes.strip_prefix(b" ").filter(|behind| !behind.is_empty());
        let own = behind.unwrap_or(bytes);
        let first = *own.first()?;
        let rest = &own[1..];
        let continued = rest.iter().take_while(|&&byte| !begins(byte)).count();
        Some(Self { is_spaced: behind.is_some(), first, rest: &rest[continued..] })
    }

    /// How many characters the rest has.
    fn length(&self) -> usize {
        count_characters(self.rest)
    }
}

/// How many whole characters there are, the last of which may lack bytes.
pub(super) fn count_characters(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| begins(byte)).count()
}

/// The characters of whole ones, the last of which may lack bytes.
pub(super) fn characters_of(text: &[u8]) -> CharacterSet {
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
        // In the order of the ids, so that bits are set one after the other.
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
        let mut with_tails = TAILS.map(|_| Vec::new());
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
            for (byte, words) in TAILS.iter().zip(&mut with_tails) {
                words.extend(whole.rest.iter().position(|other| other == byte).map(|at| (whole, at, id)));
            }
        }
        long.sort_by_key(|long| long.length);
        first.iter_mut().chain([&mut rest]).for_each(|groups| groups.unite(all));
        for length in 1..=ANY_LENGTH {
            let (less, own) = up_to.split_at_mut(length);
            own[0].unite(&less[length - 1]);
        }
        let tries: Vec<OnceLock<Trie>> = (0..256).map(|_| OnceLock::new()).collect();
        // Those of ASCII are made at once, since most constraints ask for some of them.
        for (trie, words) in tries.iter().zip(&words).filter(|(_, words)| !words.is_empty()) {
            let _ = trie.set(Trie::of(words));
        }
        Self {
            first,
            rest,
            tries,
            few,
            tails: with_tails.map(Tails::of),
            up_to,
            long,
            long_trie: Trie::of(&long_words),
            longest,
            cut: Trie::of(&cut),
            spelled: SpelledSets::default(),
        }
    }

    /// The tokens whose rests have more characters than [`LONGEST`].
    pub(crate) fn long(&self) -> &Trie {
        &self.long_trie
    }

    /// Those of them whose rests have at most so many, with these `first` characters, without a space before them and with one, and
    /// rests `within` a set.
    pub(crate) fn long_up_to(
        &self,
        most: usize,
        first: [CharacterSet; 2],
        within: CharacterSet,
    ) -> impl Iterator<Item = TokenId> + '_ {
        let long = self.long.iter().take_while(move |long| long.length <= most);
        let found = long.filter(move |long| {
            first[usize::from(long.is_spaced)].contains(long.first) && long.rest.is_within(within)
        });
        found.map(|long| long.token)
    }

    /// No rest has more characters than this.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// The tokens that are cut.
    pub(crate) fn cut(&self) -> &Trie {
        &self.cut
    }

    /// Whether more tokens than this have such a first character, without a space before it and with one.
    pub(crate) fn begin_more(&self, first: [CharacterSet; 2], than: usize) -> bool {
        let counts = self.first.iter().zip(first).flat_map(|(groups, set)| {
            set.and(groups.present).bytes().map(|byte| groups.counts[byte as usize] as usize)
        });
        let sums = counts.scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        sums.into_iter().any(|sum| sum > than)
    }

    /// How many tokens have one of some characters in their rests, those that have several counted several times.
    pub(crate) fn count_rest(&self, characters: CharacterSet) -> usize {
        self.rest.count(characters)
    }

    /// The same of the characters of a range.
    pub(crate) fn count_rest_between(&self, first: u8, last: u8) -> usize {
        let before = &self.rest.before;
        (before[usize::from(last) + 1] - before[usize::from(first)]) as usize
    }

    /// Whether no single one of some characters is in the rests of many tokens.
    pub(crate) fn are_few(&self, characters: CharacterSet) -> bool {
        characters.bytes().all(|byte| self.rest.counts[byte as usize] as usize <= self.few)
    }

    /// The tokens that have a character with this first byte in their rests, which are [few](Self::are_few).
    pub(crate) fn with(&self, byte: u8, vocabulary: &Vocabulary) -> &Trie {
        self.tries[byte as usize].get_or_init(|| {
            let tokens = vocabulary.trie().all_tokens().iter().filter(|id| {
                self.rest.counts[byte as usize] > 0 && self.rest.tokens[byte as usize].has(id.0)
            });
            let words = tokens.map(|&id| (vocabulary.bytes(id).unwrap_or_default(), id));
            Trie::of(&words.collect::<Vec<_>>())
        })
    }

    /// The tokens that have a character in their rests by what they are from there on, where that is known.
    pub(crate) fn tails(&self, byte: u8) -> Option<&Tails> {
        TAILS.iter().position(|&known| known == byte).map(|at| &self.tails[at])
    }

    /// The tokens that are spelled in one of these ways, held for all tables; where they were not asked for before, `find` makes a bit
    /// for each token, which it is given back where no more can be held.
    pub(crate) fn spelled(
        &self,
        spelled: &[Spelled],
        find: impl FnOnce() -> TokenBits,
    ) -> Result<Arc<TokenSet>, TokenBits> {
        self.spelled.of(spelled, find)
    }

    /// Sets the bits of the tokens that are spelled in a way.
    #[inline(always)]
    pub(crate) fn add(&self, bits: &mut TokenBits, spelled: &Spelled) {
        let &Spelled { first, within, most } = spelled;
        let mut beyond = Vec::new();
        self.rest.add_to(&mut beyond, CharacterSet::ALL.without(within));
        let up_to = &self.up_to[most.min(ANY_LENGTH)];
        // Characters that are missing, or those that are there, whichever are fewer.
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
        let long = |most, first: &[u8], within: &[u8]| {
            characters.long_up_to(most, [set(first), set(b"")], set(within)).collect::<Vec<_>>()
        };
        assert_eq!(long(LONGEST + 1, b"ax", b"yz"), [TokenId(16)]);
        let others: [(_, &[u8], &[u8]); 3] =
            [(LONGEST, b"ax", b"yz"), (LONGEST + 1, b"y", b"yz"), (LONGEST + 1, b"x", b"x")];
        assert!(others.into_iter().all(|(most, first, within)| long(most, first, within).is_empty()));
        let known = |first: [&[u8]; 2], within: CharacterSet, most| {
            let mut bits = TokenBits::none(words.len());
            characters.add(&mut bits, &Spelled { first: first.map(set), within, most });
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
            characters.begin_more([set(b"a"), set(b"a")], 8)
                && !characters.begin_more([set(b"a"), set(b"a")], 9)
        );
        let with = |byte| {
            let mut ids: Vec<u32> =
                characters.with(byte, &vocabulary).all_tokens().iter().map(|id| id.0).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!([b'b', b'\n', 0xc3, b'q'].map(with), [vec![4, 5, 7], vec![19], vec![9, 11], vec![]]);
    }
}
