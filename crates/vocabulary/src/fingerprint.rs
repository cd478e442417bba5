//! The digest of a vocabulary, stored in compiled constraints to identify their vocabulary.

use std::fmt;

use sha2::{Digest, Sha256};

use super::{TokenId, TokenKind, Vocabulary};

/// SHA-256 over all data of a [`Vocabulary`]: ids, contents, kinds and end-of-sequence ids.
///
/// Two vocabularies have the same fingerprint exactly if they are equal. It is displayed in
/// hexadecimal.
///
/// ```
/// use burn_dfa_tokens::{TokenId, Vocabulary};
///
/// let vocabulary = Vocabulary::from_chars("ab".chars())?;
/// let fingerprint = vocabulary.fingerprint();
/// assert_eq!(fingerprint.to_string().len(), 64);
/// assert_ne!(vocabulary.with_eos([TokenId(1)])?.fingerprint(), fingerprint);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The hash covers, with all integers little-endian: a name with a version; the number of ids
    /// (`u64`); per id its kind (`u8`), the length of its content (`u32`) and the content; the
    /// number of end-of-sequence ids (`u64`) and the ids (`u32`) in rising order.
    pub(super) fn of(vocabulary: &Vocabulary) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"burn-dfa vocabulary 1\0");
        hasher.update((vocabulary.len() as u64).to_le_bytes());
        for id in (0..vocabulary.len() as u32).map(TokenId) {
            let kind = match vocabulary.kind(id) {
                TokenKind::Normal => 0u8,
                TokenKind::Added => 1,
                TokenKind::Special => 2,
                TokenKind::Unused => 3,
            };
            let content = vocabulary.content(id).unwrap_or_default();
            hasher.update([kind]);
            hasher.update((content.len() as u32).to_le_bytes());
            hasher.update(content);
        }
        hasher.update((vocabulary.eos().len() as u64).to_le_bytes());
        for id in vocabulary.eos() {
            hasher.update(id.0.to_le_bytes());
        }
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}
