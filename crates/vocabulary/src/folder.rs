//! A Hugging Face folder: `tokenizer.json`, and the end-of-sequence ids of the other files. A GGUF
//! file is read as such a folder.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::{cannot_read, in_file};
use super::{TokenId, TokenKind, Vocabulary, eos};
use burn_dfa_common::{Error, Result};
use burn_dfa_gguf::{GgufError, GgufFile};

/// The files of a Hugging Face folder that describe a model's tokens: read from disk, or compiled
/// in.
///
/// ```
/// use burn_dfa_tokens::vocabulary::ModelFiles;
/// use burn_dfa_tokens::{TokenId, Vocabulary};
///
/// let files = ModelFiles {
///     tokenizer: br#"{"model": {"type": "BPE", "vocab": {"a": 0, "</s>": 1}, "merges": []},
///         "decoder": {"type": "Fuse"},
///         "added_tokens": [{"id": 1, "content": "</s>", "special": true}]}"#
///         .into(),
///     generation_config: Some(r#"{"eos_token_id": 1}"#.into()),
///     ..ModelFiles::default()
/// };
/// assert!(Vocabulary::from_files(&files)?.eos().contains(&TokenId(1)));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ModelFiles<'a> {
    /// The folder, for messages; empty if the files are compiled in.
    pub folder: PathBuf,
    /// `tokenizer.json`.
    pub tokenizer: Cow<'a, [u8]>,
    /// `config.json`, if present.
    pub config: Option<Cow<'a, str>>,
    /// `generation_config.json`, if present.
    pub generation_config: Option<Cow<'a, str>>,
    /// `tokenizer_config.json`, if present.
    pub tokenizer_config: Option<Cow<'a, str>>,
    /// `chat_template.jinja`, if present.
    pub chat_template: Option<Cow<'a, str>>,
}

impl ModelFiles<'static> {
    /// Reads the files of a folder, or the files that a GGUF file holds.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary), naming the file: no
    /// `tokenizer.json`, or a file that cannot be read.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        if GgufFile::is_gguf(folder) {
            let file = GgufFile::open(folder).map_err(|error| in_gguf(folder, &error))?;
            return Self::from_gguf(folder, &file);
        }
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

    /// The files that a GGUF file holds: the tokenizer, its chat template, the ids that end a
    /// sequence, and the width of the logits. `path` is for messages.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary), naming the file: a key of the
    /// tokenizer is missing, or its kind is not supported.
    pub fn from_gguf(path: impl AsRef<Path>, file: &GgufFile) -> Result<Self> {
        let path = path.as_ref();
        let files = file.tokenizer_files().map_err(|error| in_gguf(path, &error))?;
        // A file of a tokenizer alone has no embedding matrix.
        let vocab_size = file.vocab_size().ok();
        Ok(Self {
            folder: path.to_owned(),
            tokenizer: files.tokenizer.into_bytes().into(),
            config: vocab_size.map(|vocab_size| format!(r#"{{"vocab_size": {vocab_size}}}"#).into()),
            generation_config: Some(files.generation_config.into()),
            tokenizer_config: Some(files.tokenizer_config.into()),
            chat_template: None,
        })
    }

    /// Whether a path is a GGUF file, which [`read`](Self::read) reads.
    pub fn is_gguf(path: impl AsRef<Path>) -> bool {
        GgufFile::is_gguf(path)
    }
}

impl Vocabulary {
    /// Reads the files of a folder or of a GGUF file, see [`from_files`](Self::from_files).
    ///
    /// # Errors
    /// As [`ModelFiles::read`] and [`from_files`](Self::from_files).
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        Self::from_files(&ModelFiles::read(folder)?)
    }

    /// Reads `tokenizer.json`, and from the other files:
    ///
    /// - the end-of-sequence ids: the `eos_token_id` of `generation_config.json`, else of
    ///   `config.json`, else the `eos_token` of `tokenizer_config.json`;
    /// - the width of the logits: the `vocab_size` of `config.json`, see
    ///   [`with_len`](Self::with_len).
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary), naming the file: an unreadable
    /// `tokenizer.json`, see [`from_tokenizer_json`](Self::from_tokenizer_json); a malformed other
    /// file; no end-of-sequence id in any file, or an id without a token. In the last two cases set
    /// the ids with [`from_files_without_eos`](Self::from_files_without_eos) and
    /// [`with_eos`](Self::with_eos).
    pub fn from_files(files: &ModelFiles) -> Result<Self> {
        let path = |name| files.folder.join(name);
        let vocabulary = Self::from_files_without_eos(files)?;
        let config = (path("config.json"), &files.config);
        for file in [(path("generation_config.json"), &files.generation_config), config] {
            let ids = parse(&file, eos::eos_from_config)?.unwrap_or_default();
            if !ids.is_empty() {
                return vocabulary.with_eos(ids).map_err(|error| in_file(&file.0, &error));
            }
        }
        let file = (path("tokenizer_config.json"), &files.tokenizer_config);
        let Some(token) = parse(&file, eos::token)?.flatten() else {
            return Err(Error::vocabulary(format!(
                "{}: no file there names an end-of-sequence id: name it by hand, with `from_files_without_eos` and `with_eos`",
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

    /// The tokens of `tokenizer.json`, with as many ids as the `vocab_size` of `config.json`; no id
    /// ends a sequence until [`with_eos`](Self::with_eos) sets it.
    ///
    /// # Errors
    /// As [`from_files`](Self::from_files), except for errors about end-of-sequence ids.
    pub fn from_files_without_eos(files: &ModelFiles) -> Result<Self> {
        let path = |name| files.folder.join(name);
        let tokenizer = Self::from_tokenizer_json(&files.tokenizer);
        let vocabulary = tokenizer.map_err(|error| in_file(&path("tokenizer.json"), &error))?;
        let config = (path("config.json"), &files.config);
        match parse(&config, eos::vocab_size)?.flatten() {
            Some(vocab_size) => vocabulary.with_len(vocab_size).map_err(|error| in_file(&config.0, &error)),
            None => Ok(vocabulary),
        }
    }

    /// The id of `token`, preferring a special token.
    fn find(&self, token: &str) -> Option<TokenId> {
        let spells = |id: &TokenId| self.content(*id) == Some(token.as_bytes());
        let ids = || (0..self.len() as u32).map(TokenId).filter(spells);
        ids().find(|&id| self.kind(id) == TokenKind::Special).or_else(|| ids().next())
    }
}

/// The error of a GGUF file.
fn in_gguf(path: &Path, error: &GgufError) -> Error {
    Error::vocabulary(format!("{}: {error}", path.display()))
}

/// A text without the byte order mark added by some editors.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The parsed content of a file; `None` if the file is missing.
fn parse<T>((path, text): &(PathBuf, &Option<Cow<str>>), parser: fn(&str) -> Result<T>) -> Result<Option<T>> {
    text.as_deref().map(|text| parser(text).map_err(|error| in_file(path, &error))).transpose()
}

/// Reads a file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Cow<'static, str>>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(without_mark(&text).to_owned().into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_read(path, &error)),
    }
}
