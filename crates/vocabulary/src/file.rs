//! A vocabulary as a file with sorted tokens: loading needs no JSON parser and no sorting.
//!
//! | bytes | content |
//! |---|---|
//! | 22 | `burn-dfa vocabulary 1` and a line feed |
//! | 4 each | number of ids `n`, of bytes of all contents `b`, of end-of-sequence ids `e`, of text tokens `t` |
//! | `n` | the kind of each id: 0 normal, 1 added, 2 special, 3 unused |
//! | 4 `n` | where the content of each id ends |
//! | `b` | the contents, one after the other |
//! | 4 `e` | the end-of-sequence ids, rising |
//! | 4 `t` | the text tokens in the order of their bytes, then of their ids |
//! | 32 | SHA-256 of all before |
//!
//! Integers are little-endian. A reader MUST refuse a file of any other length, with another
//! digest, or with impossible contents.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::error::{cannot_read, check_bytes, in_file, too_wide};
use super::trie::Trie;
use super::{TokenId, TokenKind, Vocabulary};
use burn_dfa_common::{Error, Result};

const MAGIC: &[u8] = b"burn-dfa vocabulary 1\n";
const DIGEST: usize = 32;

impl Vocabulary {
    /// Writes the vocabulary, and the order of its tokens, to a file for [`load`](Self::load).
    ///
    /// ```
    /// use burn_dfa_tokens::{TokenId, Vocabulary};
    ///
    /// let vocabulary =
    ///     Vocabulary::from_bytes([Some("a"), Some("bc"), None])?.with_eos([TokenId(2)])?;
    /// let path = std::env::temp_dir().join(format!("burn-dfa-doc-{}", std::process::id()));
    /// vocabulary.save(&path)?;
    /// assert_eq!(Vocabulary::load(&path)?, vocabulary);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary): the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        std::fs::write(path, self.to_file())
            .map_err(|error| Error::vocabulary(format!("cannot write {}: {error}", path.display())))
    }

    /// Reads a vocabulary written by [`save`](Self::save).
    ///
    /// The digest and every number in the file are checked, so the result is as valid as a
    /// vocabulary from any other reader.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary): the file cannot be read, is of
    /// another format or version, or is damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| cannot_read(path, &error))?;
        Self::from_file(&bytes).map_err(|error| in_file(path, &error))
    }

    #[doc(hidden)]
    pub fn to_file(&self) -> Vec<u8> {
        let order = self.trie().all_tokens();
        let mut file = MAGIC.to_vec();
        let numbers = [self.len(), self.contents.len(), self.eos.len(), order.len()].map(|n| n as u32);
        put(&mut file, numbers);
        file.extend(self.kinds.iter().map(|kind| match kind {
            TokenKind::Normal => 0u8,
            TokenKind::Added => 1,
            TokenKind::Special => 2,
            TokenKind::Unused => 3,
        }));
        put(&mut file, self.ends.iter().copied());
        file.extend_from_slice(&self.contents);
        put(&mut file, self.eos.iter().map(|id| id.0));
        put(&mut file, order.iter().map(|id| id.0));
        let digest = Sha256::digest(&file);
        file.extend_from_slice(&digest);
        file
    }

    #[doc(hidden)]
    pub fn from_file(file: &[u8]) -> Result<Self> {
        let damaged = |what: &str| Error::vocabulary(format!("the file is damaged: {what}"));
        let Some(rest) = file.strip_prefix(MAGIC) else {
            return Err(Error::vocabulary("not a saved vocabulary, or one of another version"));
        };
        let Some((body, digest)) = file.split_last_chunk::<DIGEST>() else {
            return Err(damaged("it ends early"));
        };
        if Sha256::digest(body)[..] != digest[..] {
            return Err(damaged("its digest is another"));
        }
        let mut rest = &rest[..rest.len().saturating_sub(DIGEST)];
        let mut take = |bytes: usize| rest.split_off(..bytes).ok_or_else(|| damaged("it ends early"));
        let numbers = integers(take(16)?);
        let [len, bytes, eos, text] = std::array::from_fn(|at| numbers[at] as usize);
        let kinds = take(len)?;
        let ends = integers(take(len.saturating_mul(4))?);
        let contents = take(bytes)?;
        let eos = integers(take(eos.saturating_mul(4))?);
        let order = integers(take(text.saturating_mul(4))?);
        if !rest.is_empty() {
            return Err(damaged("it goes on past its end"));
        }

        let kind = |&kind: &u8| match kind {
            0 => Ok(TokenKind::Normal),
            1 => Ok(TokenKind::Added),
            2 => Ok(TokenKind::Special),
            3 => Ok(TokenKind::Unused),
            _ => Err(damaged("an id is of no known kind")),
        };
        if len > Self::MAX_LEN {
            return Err(too_wide(len));
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let longest = starts.zip(&ends).map(|(start, &end)| end.saturating_sub(start)).max().unwrap_or(0);
        check_bytes(longest as usize, bytes)?;
        if !ends.is_sorted() || ends.last().map_or(0, |&end| end as usize) != bytes {
            return Err(damaged("the contents of its ids overlap"));
        }
        if !eos.is_sorted_by(|a, b| a < b) || eos.last().is_some_and(|&id| id as usize >= len) {
            return Err(damaged("its end-of-sequence ids are not among its ids"));
        }
        let vocabulary = Self {
            contents: contents.to_vec().into(),
            ends: ends.into(),
            kinds: kinds.iter().map(kind).collect::<Result<Vec<_>>>()?.into(),
            eos: eos.into_iter().map(TokenId).collect(),
            derived: Default::default(),
        };
        let unused = |id: usize| vocabulary.kinds[id] == TokenKind::Unused;
        if (0..len).any(|id| unused(id) && !vocabulary.stored(id).is_empty()) {
            return Err(damaged("an unused id has a content"));
        }
        let mut words = Vec::with_capacity(order.len());
        for id in order.into_iter().map(TokenId) {
            words.push((vocabulary.bytes(id).ok_or_else(|| damaged("its tokens are not all text"))?, id));
        }
        // Strictly rising, and the right count: each token occurs once.
        if !words.is_sorted_by(|a, b| a < b) || vocabulary.iter().count() != words.len() {
            return Err(damaged("its tokens are out of order"));
        }
        let trie = Trie::of(&words);
        // The cell is new and empty.
        let _ = vocabulary.derived.trie.set(trie);
        Ok(vocabulary)
    }
}

fn put(file: &mut Vec<u8>, numbers: impl IntoIterator<Item = u32>) {
    file.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
}

fn integers(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|&chunk| u32::from_le_bytes(chunk)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_dfa_common::ErrorKind;

    fn vocabulary() -> Vocabulary {
        let tokens = [
            (TokenKind::Normal, "ab"),
            (TokenKind::Special, "<s>"),
            (TokenKind::Added, "a"),
            (TokenKind::Unused, ""),
            (TokenKind::Normal, "a"),
            (TokenKind::Normal, ""),
        ];
        Vocabulary::from_tokens(tokens).unwrap().with_eos([TokenId(1), TokenId(3)]).unwrap()
    }

    #[test]
    fn what_is_saved_is_loaded() {
        for vocabulary in [vocabulary(), Vocabulary::default()] {
            let loaded = Vocabulary::from_file(&vocabulary.to_file()).unwrap();
            assert_eq!(loaded, vocabulary);
            assert_eq!(loaded.fingerprint(), vocabulary.fingerprint());
            assert_eq!(loaded.trie().all_tokens(), vocabulary.trie().all_tokens());
            assert_eq!(loaded.trie().len(), vocabulary.trie().len());
        }
    }

    #[test]
    fn damage_is_refused() {
        let file = vocabulary().to_file();
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(
                Vocabulary::from_file(&damaged).unwrap_err().kind() == ErrorKind::Vocabulary,
                "byte {at}"
            );
            assert!(
                Vocabulary::from_file(&file[..at]).unwrap_err().kind() == ErrorKind::Vocabulary,
                "cut at {at}"
            );
        }
    }

    /// A file with a right digest and wrong contents is also checked, and never panics.
    #[test]
    fn lies_with_a_right_digest_are_refused_or_sound() {
        let file = vocabulary().to_file();
        let body = file.len() - DIGEST;
        let mut sound = 0;
        for at in MAGIC.len()..body {
            for bit in 0..8 {
                let mut lie = file[..body].to_vec();
                lie[at] ^= 1 << bit;
                let digest = Sha256::digest(&lie);
                lie.extend_from_slice(&digest);
                match Vocabulary::from_file(&lie) {
                    Ok(vocabulary) => {
                        sound += 1;
                        let mut words: Vec<_> = vocabulary.iter().map(|(id, bytes)| (bytes, id)).collect();
                        words.sort_unstable();
                        let trie = Trie::of(&words);
                        assert_eq!(vocabulary.trie().all_tokens(), trie.all_tokens(), "byte {at}, bit {bit}");
                        assert_eq!(vocabulary.to_file(), lie);
                    }
                    Err(error) => assert!(error.kind() == ErrorKind::Vocabulary, "byte {at}, bit {bit}"),
                }
            }
        }
        assert!(sound > 0, "a letter may change");
    }
}
