//! A token's id and kind.

use std::fmt;

/// The id of a token: an index into a row of logits.
///
/// ```
/// assert_eq!(burn_dfa_tokens::vocabulary::TokenId(7).index(), 7);
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

/// The kind of a token id; see the [module](super).
///
/// ```
/// use burn_dfa_tokens::vocabulary::TokenKind;
/// use burn_dfa_tokens::{TokenId, Vocabulary};
///
/// let vocabulary = Vocabulary::from_chars("ab".chars())?.pad_to(4)?;
/// assert_eq!(vocabulary.kind(TokenId(1)), TokenKind::Normal);
/// assert_eq!(vocabulary.kind(TokenId(3)), TokenKind::Unused);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A piece of text.
    Normal,
    /// A piece of text added to the tokenizer after its training.
    Added,
    /// A control token (begin of text, role, padding …), never text.
    Special,
    /// Not a token: a hole between ids, or a padded row of the output layer.
    Unused,
}
