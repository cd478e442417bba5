//! A Hugging Face folder: `tokenizer.json` and what the files beside it say of the end of a sequence.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::refused::{cannot_read, in_file};
use super::{TokenId, TokenKind, Vocabulary, eos};
use crate::error::{Error, Result};

/// The files of a Hugging Face folder that describe a model's tokens: read from disk, or compiled in.
///
/// ```
/// use burn_dfa::vocabulary::ModelFiles;
/// use burn_dfa::{TokenId, Vocabulary};
///
/// let files = ModelFiles {
///     tokenizer: br#"{"model": {"type": "BPE", "vocab": {"a": 0, "</s>": 1}, "merges": []},
///         "decoder": {"type": "Fuse"}, "added_tokens": [{"id": 1, "content": "</s>", "special": true}]}"#
///         .into(),
///     generation_config: Some(r#"{"eos_token_id": 1}"#.into()),
///     ..ModelFiles::default()
/// };
/// assert!(Vocabulary::from_files(&files)?.eos().contains(&TokenId(1)));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ModelFiles<'a> {
    /// The folder, for messages; empty where the files are compiled in.
    pub folder: PathBuf,
    /// `tokenizer.json`.
    pub tokenizer: Cow<'a, [u8]>,
    /// `config.json`, where it is there.
    pub config: Option<Cow<'a, str>>,
    /// `generation_config.json`, where it is there.
    pub generation_config: Option<Cow<'a, str>>,
    /// `tokenizer_config.json`, where it is there.
    pub tokenizer_config: Option<Cow<'a, str>>,
    /// `chat_template.jinja`, where it is there.
    pub chat_template: Option<Cow<'a, str>>,
}

impl ModelFiles<'static> {
    /// Reads the files of a folder.
    ///
    /// # Errors
    /// [`Error::is_vocabulary`], naming the file: no `tokenizer.json`, or a file that cannot be read.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let path = folder.join("tokenizer.json");
        let tokenizer = std::fs::read(&path).map_err(|error| cannot_read(&path, &error))?;
        Ok(Self {
            folder: folder.to_owned(),
            tokenizer: tokenizer.into(),
            config: read(&folder.join("config.json"))?,
            generation_config: read(&folder.join("generation_config.json"))?,
            tokenizer_config: read(&folder.join("tokenizer_config.json"))?,
            chat_template: read(&folder.join("chat_template.jinja"))?,
        })
    }
}

impl Vocabulary {
    /// Reads the files of a folder, see [`from_files`](Self::from_files).
    ///
    /// # Errors
    /// As [`ModelFiles::read`] and [`from_files`](Self::from_files).
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        Self::from_files(&ModelFiles::read(folder)?)
    }

    /// Reads `tokenizer.json`, and from the files beside it:
    ///
    /// - the end-of-sequence ids: the `eos_token_id` of `generation_config.json`, else that of
    ///   `config.json`, else the `eos_token` of `tokenizer_config.json`;
    /// - the width of the logits: the `vocab_size` of `config.json`, see [`with_len`](Self::with_len).
    ///
    /// # Errors
    /// [`Error::is_vocabulary`], naming the file: a `tokenizer.json` that cannot be read, see
    /// [`from_tokenizer_json`](Self::from_tokenizer_json); a file beside it that is malformed; no
    /// end-of-sequence id anywhere, or one that is no token. Read `tokenizer.json` alone then, with
    /// [`from_tokenizer_file`](Self::from_tokenizer_file), and name the ids by hand.
    pub fn from_files(files: &ModelFiles) -> Result<Self> {
        let path = |name| files.folder.join(name);
        let tokenizer = Self::from_tokenizer_json(&files.tokenizer);
        let mut vocabulary = tokenizer.map_err(|error| in_file(&path("tokenizer.json"), &error))?;
        let config = (path("config.json"), &files.config);
        if let Some(width) = parse(&config, eos::width)?.flatten() {
            vocabulary = vocabulary.with_len(width).map_err(|error| in_file(&config.0, &error))?;
        }
        for file in [(path("generation_config.json"), &files.generation_config), config] {
            let ids = parse(&file, eos::eos_from_config)?.unwrap_or_default();
            if !ids.is_empty() {
                return vocabulary.with_eos(ids).map_err(|error| in_file(&file.0, &error));
            }
        }
        let file = (path("tokenizer_config.json"), &files.tokenizer_config);
        let Some(token) = parse(&file, eos::token)?.flatten() else {
            return Err(Error::vocabulary(format!(
                "{}: no file there names an end-of-sequence id: name it by hand, with `from_tokenizer_file` and `with_eos`",
                files.folder.display()
            )));
        };
        match vocabulary.find(&token) {
            Some(id) => vocabulary.with_eos([id]),
            None => {
                let error = Error::vocabulary(format!("its `eos_token` {token:?} is not in tokenizer.json"));
                Err(in_file(&file.0, &error))
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

/// What a file says; `None` where it is not there.
fn parse<T>((path, text): &(PathBuf, &Option<Cow<str>>), parser: fn(&str) -> Result<T>) -> Result<Option<T>> {
    text.as_deref().map(|text| parser(text).map_err(|error| in_file(path, &error))).transpose()
}

/// Reads a file; `None` where it does not exist.
fn read(path: &Path) -> Result<Option<Cow<'static, str>>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_read(path, &error)),
    }
}
