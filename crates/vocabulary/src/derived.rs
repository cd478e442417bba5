//! Data derived from a vocabulary on first use, shared by all its clones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::length_class::representative;
use super::{Characters, ClassTokens, Fingerprint, Symbols, TokenId, TokenKind, Trie, Vocabulary, symbol};

/// The data derived so far.
#[derive(Default)]
pub(super) struct Derived {
    pub(super) trie: OnceLock<Trie>,
    by_length_class: OnceLock<Trie>,
    characters: OnceLock<Characters>,
    spelled_bytes: OnceLock<[bool; 256]>,
    class_tokens: OnceLock<Arc<ClassTokens>>,
    text_bytes: OnceLock<(usize, usize)>,
    max_bytes_of: Mutex<HashMap<[bool; 256], u32>>,
    pub(super) fingerprint: OnceLock<Fingerprint>,
}

impl Vocabulary {
    /// The trie of the text tokens. Built once.
    #[doc(hidden)]
    pub fn trie(&self) -> &Trie {
        self.derived.trie.get_or_init(|| {
            let mut words: Vec<_> = self.iter().map(|(id, bytes)| (bytes, id)).collect();
            words.sort_unstable();
            Trie::of(&words)
        })
    }

    /// The trie of the same tokens with every non-ASCII character replaced by the representative of
    /// its [`LengthClass`](super::LengthClass). Built once.
    #[doc(hidden)]
    pub fn length_class_trie(&self) -> &Trie {
        self.derived.by_length_class.get_or_init(|| {
            let tokens = self.trie().all_tokens().iter();
            let mut words: Vec<_> =
                tokens.map(|&id| (representative(self.bytes(id).unwrap_or_default()), id)).collect();
            // Mostly sorted already, which the sort exploits.
            words.sort();
            Trie::of(&words)
        })
    }

    /// The tokens by their characters. Computed once.
    #[doc(hidden)]
    pub fn characters(&self) -> &Characters {
        self.derived.characters.get_or_init(|| Characters::of(self))
    }

    /// Computes the lookup data for masks on the CPU in advance; otherwise the first mask computes
    /// it, in some milliseconds for 50,000 tokens. Clones share the data.
    ///
    /// ```
    /// use burn_dfa_tokens::Vocabulary;
    ///
    /// let vocabulary = Vocabulary::from_chars("ab".chars())?;
    /// vocabulary.prepare();
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn prepare(&self) {
        self.characters();
        self.class_tokens();
    }

    /// For every byte, whether it alone is a token. Computed once.
    #[doc(hidden)]
    pub fn spelled_bytes(&self) -> &[bool; 256] {
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

    /// The tokens of each class in the byte-level form: 0 unused ids, 1 end-of-sequence tokens, 2
    /// other non-text tokens, 3 text. Computed once.
    #[doc(hidden)]
    pub fn class_tokens(&self) -> &Arc<ClassTokens> {
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

    /// The maximum number of bytes of one token that are in `bytes`. Cached by `bytes`; there are
    /// few distinct sets, the bytes that open and close the parts of a language.
    #[doc(hidden)]
    pub fn max_bytes_of(&self, bytes: &[bool; 256]) -> u32 {
        const KEPT: usize = 1024;
        let mut known = self.derived.max_bytes_of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&max) = known.get(bytes) {
            return max;
        }
        let symbols = (0..=u8::MAX).filter(|&byte| bytes[byte as usize]);
        let symbols = symbols.fold(0, |symbols: Symbols, byte| symbols | 1 << symbol(byte));
        let trie = self.trie();
        // `path[d]` is the count in the first `d` bytes of the current node.
        let mut path = vec![0; trie.max_depth() + 1];
        let (mut node, mut max) = (0, 0);
        while node < trie.len() {
            let depth = trie.depth(node);
            path[depth] = path[depth - 1] + u32::from(bytes[trie.byte(node) as usize]);
            max = max.max(path[depth]);
            let more = trie.below(node) & symbols != 0;
            node = if more { node + 1 } else { trie.end(node) as usize };
        }
        if known.len() < KEPT {
            known.insert(*bytes, max);
        }
        max
    }

    /// The number of text tokens, and their total number of bytes. Counted once.
    #[doc(hidden)]
    pub fn text_bytes(&self) -> (usize, usize) {
        let count = || self.iter().fold((0, 0), |(count, sum), (_, bytes)| (count + 1, sum + bytes.len()));
        *self.derived.text_bytes.get_or_init(count)
    }
}
