//! What is found out about a vocabulary when first asked for, once for all clones of it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::length_class::representative;
use super::plain::{LONGEST, PlainToken, Plainness};
#[cfg(feature = "flex")]
use super::{ClassTokens, TokenBits};
use super::{Fingerprint, FirstBytes, Symbols, TokenId, TokenKind, Trie, Vocabulary, symbol};

/// A set of tokens and their number, once they were asked for.
#[cfg(feature = "flex")]
type CountedBits = OnceLock<(TokenBits, usize)>;

/// What was found out so far.
#[derive(Default)]
pub(super) struct Derived {
    pub(super) trie: OnceLock<Trie>,
    by_length_class: OnceLock<Trie>,
    less_plain: [[OnceLock<Trie>; 2]; 3],
    plain_tokens: OnceLock<Vec<PlainToken>>,
    plain_lengths: OnceLock<[Vec<u8>; 3]>,
    #[cfg(feature = "flex")]
    plain_bits: [OnceLock<Vec<CountedBits>>; 3],
    spelled_bytes: OnceLock<[bool; 256]>,
    #[cfg(feature = "flex")]
    class_tokens: OnceLock<Arc<ClassTokens>>,
    text_bytes: OnceLock<(usize, usize)>,
    /// The last ones that were asked for, the latest first.
    pub(super) beyond: Mutex<VecDeque<(FirstBytes, Arc<Trie>)>>,
    most_bytes_of: Mutex<HashMap<[bool; 256], u32>>,
    pub(super) fingerprint: OnceLock<Fingerprint>,
}

impl Vocabulary {
    /// The tokens that are text as a trie. Built once.
    pub(crate) fn trie(&self) -> &Trie {
        self.derived.trie.get_or_init(|| {
            let mut words: Vec<_> = self.iter().map(|(id, bytes)| (bytes, id)).collect();
            words.sort_unstable();
            Trie::of(&words)
        })
    }

    /// The trie of the same tokens with every character past ASCII replaced by one of its [`LengthClass`]. Built
    /// once.
    pub(crate) fn length_class_trie(&self) -> &Trie {
        self.derived.by_length_class.get_or_init(|| {
            let tokens = self.trie().all_tokens().iter();
            let mut words: Vec<_> =
                tokens.map(|&id| (representative(self.bytes(id).unwrap_or_default()), id)).collect();
            // Sorted already for the most part, which this sort makes use of.
            words.sort();
            Trie::of(&words)
        })
    }

    /// The tokens that are text, and less plain than `kind`: tries, each with the first bytes of those of its tokens that are meant. Without
    /// `control` those may be left out that begin with plain characters of that kind, no more than its longest token has, and then
    /// a control character.
    pub(crate) fn less_plain(
        &self,
        kind: Plainness,
        control: bool,
    ) -> impl Iterator<Item = (&Trie, fn(u8) -> bool)> {
        let own: (&Trie, fn(u8) -> bool) = (self.less_plain_trie(kind, control), |_| true);
        // What does not begin as a word is none.
        let others: (&Trie, fn(u8) -> bool) = (self.trie(), |byte| !byte.is_ascii_alphanumeric());
        [own].into_iter().chain((kind == Plainness::Word).then_some(others))
    }

    /// The tokens of [`less_plain`](Self::less_plain), of words those alone that begin as one. Built once.
    fn less_plain_trie(&self, kind: Plainness, control: bool) -> &Trie {
        self.derived.less_plain[kind as usize][usize::from(control)].get_or_init(|| {
            let plain = self.plain_tokens();
            let less = self.trie().all_tokens().iter().filter(|id| plain[id.index()].kind > kind);
            let words = less.map(|&id| (self.bytes(id).unwrap_or_default(), id));
            let longest = self.plain_lengths(kind).len() - 1;
            let is_left_out = |bytes: &[u8]| {
                PlainToken::before_control(bytes)
                    .is_some_and(|begun| begun.kind <= kind && usize::from(begun.characters) <= longest)
            };
            let begins =
                |bytes: &[u8]| kind > Plainness::Word || bytes.first().is_some_and(u8::is_ascii_alphanumeric);
            let words = words.filter(|(bytes, _)| begins(bytes) && (control || !is_left_out(bytes)));
            let words: Vec<_> = words.collect();
            Trie::of(&words)
        })
    }

    /// Of every token, how plain it is. Found once.
    pub(crate) fn plain_tokens(&self) -> &[PlainToken] {
        self.derived.plain_tokens.get_or_init(|| {
            let mut plain = vec![PlainToken::OTHER; self.len()];
            for (id, bytes) in self.iter() {
                plain[id.index()] = PlainToken::of(bytes);
            }
            plain
        })
    }

    /// For each number of characters up to that of the longest plain token of `kind`, which is not [`Other`](Plainness::Other), or of one
    /// before it: the greatest number up to it that such a token has. Found once.
    pub(crate) fn plain_lengths(&self, kind: Plainness) -> &[u8] {
        let lengths = self.derived.plain_lengths.get_or_init(|| {
            let mut met = [[false; LONGEST + 1]; 3];
            for token in self.plain_tokens().iter().filter(|token| token.kind < Plainness::Other) {
                met[token.kind as usize..].iter_mut().for_each(|met| met[token.characters as usize] = true);
            }
            met.map(|met| {
                let longest = met.iter().rposition(|&met| met).unwrap_or(0);
                let mut last = 0;
                (0..=longest as u8)
                    .map(|length| {
                        if met[length as usize] {
                            last = length;
                        }
                        last
                    })
                    .collect()
            })
        });
        &lengths[kind as usize]
    }

    /// The plain tokens of `kind`, which is not [`Other`](Plainness::Other), and of those before it, that have at most so many
    /// characters; and how many these are. Found once.
    #[cfg(feature = "flex")]
    pub(crate) fn plain_bits(&self, kind: Plainness, characters: usize) -> &(TokenBits, usize) {
        let lengths = self.plain_lengths(kind);
        let characters = lengths[characters.min(lengths.len() - 1)];
        let all = self.derived.plain_bits[kind as usize]
            .get_or_init(|| lengths.iter().map(|_| OnceLock::new()).collect());
        all[characters as usize].get_or_init(|| {
            let is_among = |token: &PlainToken| token.kind <= kind && token.characters <= characters;
            let bits = TokenBits::of(self.plain_tokens(), is_among);
            let count = bits.count();
            (bits, count)
        })
    }

    /// Of every byte, whether it alone is a token. Found once.
    pub(crate) fn spelled_bytes(&self) -> &[bool; 256] {
        self.derived.spelled_bytes.get_or_init(|| {
            let mut spelled = [false; 256];
            for (_, bytes) in self.iter() {
                if let [byte] = bytes {
                    spelled[*byte as usize] = true;
                }
            }
            spelled
        })
    }

    /// The tokens of each of the classes that a walk tells apart: 0 unused ids, 1 those that end the sequence, 2 other
    /// tokens that are not text, 3 text. Found once.
    #[cfg(feature = "flex")]
    pub(crate) fn class_tokens(&self) -> &Arc<ClassTokens> {
        self.derived.class_tokens.get_or_init(|| {
            let class = |id: TokenId| match self.kind(id) {
                _ if self.bytes(id).is_some() => 3,
                _ if self.eos().contains(&id) => 1,
                TokenKind::Unused => 0,
                _ => 2,
            };
            let classes: Vec<u32> = (0..self.len() as u32).map(|id| class(TokenId(id))).collect();
            Arc::new(ClassTokens::by_class(&classes, 4))
        })
    }

    /// The most bytes of a token that are among `bytes`. Counted once for the same bytes; there are few such sets, since
    /// they are those that open and close the parts of a language.
    pub(crate) fn most_bytes_of(&self, bytes: &[bool; 256]) -> u32 {
        const KEPT: usize = 1024;
        let mut known = self.derived.most_bytes_of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&most) = known.get(bytes) {
            return most;
        }
        let symbols = (0..=u8::MAX).filter(|&byte| bytes[byte as usize]);
        let symbols = symbols.fold(0, |symbols: Symbols, byte| symbols | 1 << symbol(byte));
        let trie = self.trie();
        // `path[d]` is the count of the first `d` bytes of the node at hand.
        let mut path = vec![0; trie.max_depth() + 1];
        let (mut node, mut most) = (0, 0);
        while node < trie.len() {
            let depth = trie.depth(node);
            path[depth] = path[depth - 1] + u32::from(bytes[trie.byte(node) as usize]);
            most = most.max(path[depth]);
            let more = trie.below(node) & symbols != 0;
            node = if more { node + 1 } else { trie.end(node) as usize };
        }
        if known.len() < KEPT {
            known.insert(*bytes, most);
        }
        most
    }

    /// How many tokens are text, and the bytes of all of them. Counted once.
    pub(crate) fn text_bytes(&self) -> (usize, usize) {
        let count = || self.iter().fold((0, 0), |(count, sum), (_, bytes)| (count + 1, sum + bytes.len()));
        *self.derived.text_bytes.get_or_init(count)
    }
}
