//! What is found out about a vocabulary when first asked for, once for all clones of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::length_class::representative;
use super::{Characters, ClassTokens, Fingerprint, Symbols, TokenId, TokenKind, Trie, Vocabulary, symbol};

/// What was found out so far.
#[derive(Default)]
pub(super) struct Derived {
    pub(super) trie: OnceLock<Trie>,
    by_length_class: OnceLock<Trie>,
    characters: OnceLock<Characters>,
    spelled_bytes: OnceLock<[bool; 256]>,
    class_tokens: OnceLock<Arc<ClassTokens>>,
    text_bytes: OnceLock<(usize, usize)>,
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

    /// The tokens by their characters. Found once.
    pub(crate) fn characters(&self) -> &Characters {
        self.derived.characters.get_or_init(|| Characters::of(self))
    }

    /// Finds now what masks on the CPU look up of the vocabulary, which the first of them finds otherwise: some milliseconds for
    /// 50,000 tokens. Clones share it.
    ///
    /// ```
    /// use burn_dfa::Vocabulary;
    ///
    /// let vocabulary = Vocabulary::from_chars("ab".chars())?;
    /// vocabulary.prepare();
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    pub fn prepare(&self) {
        self.characters();
        self.class_tokens();
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
