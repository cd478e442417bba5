//! Token ids and their bytes.
//!
//! A [`Vocabulary`] describes each index of a row of logits:
//!
//! | [`TokenKind`] | [`bytes`](Vocabulary::bytes) | where it comes from |
//! |---|---|---|
//! | `Normal` | its text | an entry of the tokenizer's model |
//! | `Added` | its text | an added token that is not special |
//! | `Special` | `None` | an added token that is special, the model's unknown token |
//! | `Unused` | `None` | a hole between ids, a padded row of the output layer |
//!
//! Invariants:
//! - [`len`](Vocabulary::len) is the highest id plus one, at most [`Vocabulary::MAX_LEN`]; every
//!   end-of-sequence id is below it.
//! - A token is *text* if [`bytes`](Vocabulary::bytes) is `Some`. End-of-sequence ids are never
//!   text, regardless of their kind, and neither are tokens of zero length: emitting one would
//!   change nothing, so a model could repeat it forever.
//! - Several ids may have the same bytes (`a` and `<0x61>`); each of them is text.
//! - Bytes are those in the middle of a text: `▁Hello` is ` Hello`, although a tokenizer's own
//!   decoder drops a space at the very start of a text. A token may hold a part of a UTF-8
//!   character.
//!
//! Readers: a list of characters ([`from_chars`](Vocabulary::from_chars)), raw bytes
//! ([`from_bytes`](Vocabulary::from_bytes), [`from_tokens`](Vocabulary::from_tokens)), and Hugging
//! Face's `tokenizer.json` ([`from_tokenizer_json`](Vocabulary::from_tokenizer_json)), alone or
//! with the end-of-sequence ids of its folder ([`from_folder`](Vocabulary::from_folder)). A
//! vocabulary can be [saved](Vocabulary::save) and [loaded](Vocabulary::load) with its sorted
//! tokens, faster than from JSON.

mod byte_level;
mod character_set;
mod characters;
mod child_lists;
mod class_tokens;
#[doc(hidden)]
pub mod cutter;
mod decoder;
mod derived;
mod eos;
mod error;
mod file;
mod fingerprint;
mod folder;
mod json;
mod length_class;
mod spelled;
mod token;
mod token_bits;
mod token_set;
mod tokenizer_json;
mod trie;

pub use burn_dfa_common::{Error, ErrorKind, Result};
#[doc(hidden)]
pub use character_set::CharacterSet;
#[doc(hidden)]
pub use characters::{ANY_LENGTH, Characters, LONGEST};
#[doc(hidden)]
pub use class_tokens::ClassTokens;
pub use eos::eos_from_config;
pub use fingerprint::Fingerprint;
pub use folder::ModelFiles;
#[doc(hidden)]
pub use length_class::{CONTINUATION, LENGTH_CLASSES, LengthClass};
#[doc(hidden)]
pub use spelled::Spelled;
pub use token::{TokenId, TokenKind};
#[doc(hidden)]
pub use token_bits::{TokenBits, hash_folded};
#[doc(hidden)]
pub use token_set::TokenSet;
#[doc(hidden)]
pub use trie::{Children, Symbols, Trie, symbol};

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use self::derived::Derived;
use self::error::{check_bytes, too_wide};

/// Token ids, their bytes and the ids that end a sequence; see the [module](self).
///
/// ```
/// use burn_dfa_tokens::{TokenId, Vocabulary};
///
/// let vocabulary = Vocabulary::from_bytes([Some("a"), Some("bc"), None])?.with_eos([TokenId(2)])?;
/// assert_eq!(vocabulary.bytes(TokenId(1)), Some(&b"bc"[..]));
/// assert_eq!(vocabulary.bytes(TokenId(2)), None);
/// assert_eq!(vocabulary.decode(&[TokenId(0), TokenId(1), TokenId(2)]), b"abc");
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Vocabulary {
    /// The contents of all tokens, concatenated. Clones share the contents and the derived data.
    contents: Arc<Vec<u8>>,
    /// `[len]`: the end of each token in `contents`.
    ends: Arc<Vec<u32>>,
    /// `[len]`.
    kinds: Arc<Vec<TokenKind>>,
    eos: BTreeSet<TokenId>,
    derived: Arc<Derived>,
}

impl Vocabulary {
    /// The maximum number of ids of a vocabulary. The largest real vocabularies have about 2^18.
    pub const MAX_LEN: usize = 1 << 24;

    /// The maximum number of bytes of one token. The longest real tokens have about 2^9.
    pub const MAX_TOKEN_BYTES: usize = 1 << 16;

    /// The maximum number of bytes of all tokens together. The largest real vocabularies have about
    /// 2^21.
    pub const MAX_BYTES: usize = 1 << 26;

    /// A vocabulary of characters: id *i* is the *i*-th character. A character may occur several
    /// times.
    ///
    /// It has no end-of-sequence id, and every id is a character: append an id for the end with
    /// [`pad_to`](Self::pad_to) and declare it with [`with_eos`](Self::with_eos).
    ///
    /// ```
    /// use burn_dfa_tokens::{TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::from_chars("aé".chars())?.pad_to(3)?.with_eos([TokenId(2)])?;
    /// assert_eq!(vocabulary.bytes(TokenId(1)), Some("é".as_bytes()));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`]: more than [`MAX_LEN`](Self::MAX_LEN) characters.
    pub fn from_chars(chars: impl IntoIterator<Item = char>) -> Result<Self> {
        let mut buffer = [0; 4];
        let mut vocabulary = Self::default();
        for char in chars {
            vocabulary.push(TokenKind::Normal, char.encode_utf8(&mut buffer).as_bytes())?;
        }
        Ok(vocabulary)
    }

    /// A vocabulary of byte strings: id *i* is the *i*-th string; `None` is never text
    /// ([`TokenKind::Unused`]).
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`]: more than [`MAX_LEN`](Self::MAX_LEN) tokens, a token of more than
    /// [`MAX_TOKEN_BYTES`](Self::MAX_TOKEN_BYTES), or more than [`MAX_BYTES`](Self::MAX_BYTES) in
    /// all.
    pub fn from_bytes<B: AsRef<[u8]>>(tokens: impl IntoIterator<Item = Option<B>>) -> Result<Self> {
        let mut vocabulary = Self::default();
        for token in tokens {
            match token {
                Some(bytes) => vocabulary.push(TokenKind::Normal, bytes.as_ref())?,
                None => vocabulary.push(TokenKind::Unused, &[])?,
            }
        }
        Ok(vocabulary)
    }

    /// A vocabulary of pairs of a kind and a content: id *i* is the *i*-th pair. The content of a
    /// special token is its name; the content of an unused id is ignored.
    ///
    /// ```
    /// use burn_dfa_tokens::vocabulary::TokenKind;
    /// use burn_dfa_tokens::{TokenId, Vocabulary};
    ///
    /// let tokens = [(TokenKind::Special, "<s>"), (TokenKind::Normal, "a")];
    /// let vocabulary = Vocabulary::from_tokens(tokens)?;
    /// assert_eq!(vocabulary.bytes(TokenId(0)), None);
    /// assert_eq!(vocabulary.content(TokenId(0)), Some(&b"<s>"[..]));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`]: more than [`MAX_LEN`](Self::MAX_LEN) tokens, a token of more than
    /// [`MAX_TOKEN_BYTES`](Self::MAX_TOKEN_BYTES), or more than [`MAX_BYTES`](Self::MAX_BYTES) in
    /// all.
    pub fn from_tokens<B: AsRef<[u8]>>(tokens: impl IntoIterator<Item = (TokenKind, B)>) -> Result<Self> {
        let mut vocabulary = Self::default();
        for (kind, content) in tokens {
            vocabulary.push(kind, content.as_ref())?;
        }
        Ok(vocabulary)
    }

    /// Appends a token.
    fn push(&mut self, kind: TokenKind, content: &[u8]) -> Result<()> {
        let content = if kind == TokenKind::Unused { &[] } else { content };
        if self.kinds.len() == Self::MAX_LEN {
            return Err(too_wide(Self::MAX_LEN + 1));
        }
        check_bytes(content.len(), self.contents.len() + content.len())?;
        Arc::make_mut(&mut self.contents).extend_from_slice(content);
        Arc::make_mut(&mut self.ends).push(self.contents.len() as u32);
        Arc::make_mut(&mut self.kinds).push(kind);
        Ok(())
    }

    /// The same tokens with `ids` as the end-of-sequence ids, replacing the previous ids.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`]: an id is not below [`len`](Self::len). If the output layer has
    /// more rows than the tokenizer has tokens, call [`pad_to`](Self::pad_to) first.
    pub fn with_eos(mut self, ids: impl IntoIterator<Item = TokenId>) -> Result<Self> {
        let eos: BTreeSet<_> = ids.into_iter().collect();
        if let Some(last) = eos.last().filter(|id| id.index() >= self.len()) {
            return Err(Error::vocabulary(format!(
                "end-of-sequence id {last} is not one of its {} ids: pad it to the width of the logits first, with `pad_to`",
                self.len()
            )));
        }
        self.eos = eos;
        self.forget();
        Ok(self)
    }

    /// The same tokens in exactly `len` ids, the width of the logits: missing ids are
    /// [`Unused`](TokenKind::Unused), ids from `len` on are dropped, because they have no logit.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`]: `len` is more than [`MAX_LEN`](Self::MAX_LEN), or all
    /// end-of-sequence ids would be dropped.
    pub fn with_len(mut self, len: usize) -> Result<Self> {
        if len > Self::MAX_LEN {
            return Err(too_wide(len));
        }
        let had_eos = !self.eos.is_empty();
        self.eos.retain(|id| id.index() < len);
        if had_eos && self.eos.is_empty() {
            return Err(Error::vocabulary(format!("none of its end-of-sequence ids is below {len}")));
        }
        Arc::make_mut(&mut self.kinds).resize(len, TokenKind::Unused);
        let ends = Arc::make_mut(&mut self.ends);
        ends.resize(len, self.contents.len() as u32);
        let used = ends.last().map_or(0, |&end| end as usize);
        Arc::make_mut(&mut self.contents).truncate(used);
        self.forget();
        Ok(self)
    }

    /// The same tokens in `len` ids or more: [`with_len`](Self::with_len) without dropping ids.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`]: `len` is more than [`MAX_LEN`](Self::MAX_LEN).
    pub fn pad_to(self, len: usize) -> Result<Self> {
        let len = len.max(self.len());
        self.with_len(len)
    }

    /// Drops the derived data.
    fn forget(&mut self) {
        self.derived = Arc::default();
    }

    /// Number of ids: the highest id plus one.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The ids that end a sequence.
    pub fn eos(&self) -> &BTreeSet<TokenId> {
        &self.eos
    }

    /// The kind of `id`; [`Unused`](TokenKind::Unused) for ids past the end. An end-of-sequence id
    /// keeps its kind from the tokenizer.
    pub fn kind(&self, id: TokenId) -> TokenKind {
        self.kinds.get(id.index()).copied().unwrap_or(TokenKind::Unused)
    }

    /// The kind of each id.
    #[doc(hidden)]
    pub fn kinds(&self) -> &[TokenKind] {
        &self.kinds
    }

    /// The bytes that `id` adds to the text, at least one; `None` if it is never text: special and
    /// unused ids, end-of-sequence ids, tokens of zero length.
    pub fn bytes(&self, id: TokenId) -> Option<&[u8]> {
        let text = matches!(self.kind(id), TokenKind::Normal | TokenKind::Added) && !self.eos.contains(&id);
        text.then(|| self.stored(id.index())).filter(|bytes| !bytes.is_empty())
    }

    /// The bytes written by a decoder that does not skip special tokens: [`bytes`](Self::bytes), or
    /// the name of a special token. `None` for unused ids.
    pub fn content(&self, id: TokenId) -> Option<&[u8]> {
        (self.kind(id) != TokenKind::Unused).then(|| self.stored(id.index()))
    }

    fn stored(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.contents[start..self.ends[index] as usize]
    }

    /// The text tokens with their bytes, in the order of their ids.
    ///
    /// ```
    /// use burn_dfa_tokens::{TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::from_bytes([None, Some("a"), Some("")])?;
    /// assert_eq!(vocabulary.iter().collect::<Vec<_>>(), [(TokenId(1), &b"a"[..])]);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (TokenId, &[u8])> {
        (0..self.len() as u32).map(TokenId).filter_map(|id| Some((id, self.bytes(id)?)))
    }

    /// The bytes of the text tokens; all other ids are skipped.
    pub fn decode(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens.iter().filter_map(|&id| self.bytes(id)).flatten().copied().collect()
    }

    /// The digest of ids, contents, kinds and end-of-sequence ids. Computed once.
    pub fn fingerprint(&self) -> Fingerprint {
        *self.derived.fingerprint.get_or_init(|| Fingerprint::of(self))
    }
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.contents == other.contents
            && self.ends == other.ends
            && self.kinds == other.kinds
            && self.eos == other.eos
    }
}

impl Eq for Vocabulary {}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary")
            .field("len", &self.len())
            .field("text", &self.iter().count())
            .field("eos", &self.eos)
            .finish_non_exhaustive()
    }
}
