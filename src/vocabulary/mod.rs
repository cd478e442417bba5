//! Token ids and their bytes.

use std::collections::BTreeSet;
use std::fmt;

/// The id of a token: an index into a row of logits.
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

/// Token ids, their bytes and the ids that end a sequence.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    tokens: Vec<Option<Vec<u8>>>,
    eos: BTreeSet<TokenId>,
}
