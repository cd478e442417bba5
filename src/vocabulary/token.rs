//! A token's id, and what it is for.

use std::fmt;

/// The id of a token: an index into a row of logits.
///
/// ```
/// assert_eq!(burn_dfa::TokenId(7).index(), 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub u32);

impl TokenId {
    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a token id is for; see the [module](super).
///
/// ```
/// use burn_dfa::{TokenId, Vocabulary, vocabulary::TokenKind};
///
/// let vocabulary = Vocabulary::from_chars("ab".chars())?.pad_to(4)?;
/// assert_eq!(vocabulary.kind(TokenId(1)), TokenKind::Normal);
/// assert_eq!(vocabulary.kind(TokenId(3)), TokenKind::Unused);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A piece of text.
    Normal,
    /// A piece of text that was added to the tokenizer after its training.
    Added,
    /// A control token (begin of text, role, padding …), never text.
    Special,
    /// No token at all: a hole between ids, or a padded row of the output layer.
    Unused,
}
