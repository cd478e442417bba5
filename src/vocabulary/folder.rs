//! Reads a Hugging Face folder: `tokenizer.json` and what the files beside it say of the end.

use std::io::ErrorKind;
use std::path::Path;

use super::refused::{cannot_read, in_file};
use super::{TokenId, TokenKind, Vocabulary, eos};
use crate::error::{Error, Result};

impl Vocabulary {
    /// Reads `tokenizer.json` in `folder`, and from the files beside it:
    ///
    /// - the end-of-sequence ids: the `eos_token_id` of `generation_config.json`, else that of
    ///   `config.json`, else the `eos_token` of `tokenizer_config.json`;
    /// - the width of the logits: the `vocab_size` of `config.json`, see [`with_len`](Self::with_len).
    ///
    /// # Errors
    /// [`Error::is_vocabulary`], naming the file: no `tokenizer.json`, or one that cannot be read, see
    /// [`from_tokenizer_json`](Self::from_tokenizer_json); a file beside it that is malformed; no
    /// end-of-sequence id anywhere, or one that is no token. Read `tokenizer.json` alone then, with
    /// [`from_tokenizer_file`](Self::from_tokenizer_file), and name the ids by hand.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let mut vocabulary = Self::from_tokenizer_file(folder.join("tokenizer.json"))?;
        let config = folder.join("config.json");
        if let Some(width) = read(&config, eos::width)?.flatten() {
            vocabulary = vocabulary.with_len(width).map_err(|error| in_file(&config, &error))?;
        }
        for path in [folder.join("generation_config.json"), config] {
            let ids = read(&path, eos::eos_from_config)?.unwrap_or_default();
            if !ids.is_empty() {
                return vocabulary.with_eos(ids).map_err(|error| in_file(&path, &error));
            }
        }
        let path = folder.join("tokenizer_config.json");
        let Some(token) = read(&path, eos::token)?.flatten() else {
            return Err(Error::vocabulary(format!(
                "{}: no file there names an end-of-sequence id: name it by hand, with `from_tokenizer_file` and `with_eos`",
                folder.display()
            )));
        };
        match vocabulary.find(&token) {
            Some(id) => vocabulary.with_eos([id]),
            None => {
                let error = Error::vocabulary(format!("its `eos_token` {token:?} is not in tokenizer.json"));
                Err(in_file(&path, &error))
            }
        }
    }

    /// The id that spells `token`, a special one before others.
    fn find(&self, token: &str) -> Option<TokenId> {
        let spells = |id: &TokenId| self.content(*id) == Some(token.as_bytes());
        let ids = || (0..self.len() as u32).map(TokenId).filter(spells);
        ids().find(|&id| self.kind(id) == TokenKind::Special).or_else(|| ids().next())
    }
}

/// Reads a file; `None` where it does not exist.
fn read<T>(path: &Path, reader: fn(&str) -> Result<T>) -> Result<Option<T>> {
    match std::fs::read_to_string(path) {
        Ok(json) => reader(&json).map(Some).map_err(|error| in_file(path, &error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_read(path, &error)),
    }
}
