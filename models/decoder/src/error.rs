//! [`DecoderError`]: the error of reading and writing models, tokenizers and chat templates.

use std::fmt;
use std::path::PathBuf;

use crate::family::Family;
use crate::folder::FolderProblem;

/// Why a configuration, a checkpoint, a tokenizer or a chat template was refused.
///
/// Every message names the file, field or tensor at fault and, where there is one, the remedy.
///
/// ```
/// use burn_dfa_decoder::{DecoderConfig, DecoderError};
///
/// let error = DecoderConfig::from_json(r#"{"model_type": "gpt2"}"#).unwrap_err();
/// assert!(matches!(&error, DecoderError::Architecture { found } if found == "gpt2"));
/// assert!(error.to_string().starts_with("config.json: model_type is \"gpt2\""));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum DecoderError {
    /// A file could not be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// A folder, or a file of it, is not what can be loaded.
    Folder {
        /// The folder or the file.
        path: PathBuf,
        /// What it is instead, or lacks.
        problem: FolderProblem,
    },
    /// A JSON file is malformed or lacks a field.
    Json {
        /// The file, such as `config.json`.
        file: String,
        /// What the parser answered.
        source: serde_json::Error,
    },
    /// `model_type` is not that of a known [`Family`](crate::Family).
    Architecture {
        /// The `model_type` that was found.
        found: String,
    },
    /// The rotary embedding is of a kind that this crate does not compute.
    RopeType {
        /// The `rope_type` that was found.
        found: String,
    },
    /// A field of the configuration has a value that makes no model, or one this crate lacks.
    Config {
        /// The field of `config.json`.
        field: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// A safetensors file or its index is damaged or inconsistent.
    Checkpoint {
        /// The file, such as `model.safetensors`.
        file: String,
        /// What is wrong with it.
        message: String,
    },
    /// A tensor of the checkpoint is missing, superfluous, misshaped or of a wrong dtype.
    Tensor {
        /// The tensor's name in the Hugging Face layout.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// The tokenizer could not be read.
    Tokenizer {
        /// What the `tokenizers` crate answered.
        message: String,
    },
    /// The vocabulary could not be read, or names no end of a sequence.
    Vocabulary {
        /// What the reader of vocabularies answered.
        source: burn_dfa::Error,
    },
    /// The chat template is malformed, or refused the messages.
    Template {
        /// What the template engine answered.
        message: String,
    },
}

impl DecoderError {
    pub(crate) fn config(field: &'static str, message: impl Into<String>) -> Self {
        Self::Config { field, message: message.into() }
    }
}

impl fmt::Display for DecoderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Folder { path, problem: problem @ FolderProblem::Shards { .. } } => {
                write!(f, "{}: {problem}", path.display())
            }
            Self::Folder { path, problem: FolderProblem::Missing } => {
                write!(f, "{}: {}", path.display(), FolderProblem::Missing)
            }
            Self::Folder { path, problem } => write!(f, "{} {problem}", path.display()),
            Self::Json { file, source } => write!(f, "{file} is not valid: {source}"),
            Self::Architecture { found } => {
                let known = Family::ALL.map(Family::model_type).join(", ");
                write!(f, "config.json: model_type is {found:?}; known are {known}")
            }
            Self::RopeType { found } => write!(
                f,
                "config.json: rope type {found:?} is not supported; \
                 \"default\", \"linear\", \"llama3\" and \"yarn\" are"
            ),
            Self::Config { field, message } => write!(f, "config.json: {field} {message}"),
            Self::Checkpoint { file, message } => write!(f, "{file}: {message}"),
            Self::Tensor { name, message } => write!(f, "tensor {name}: {message}"),
            Self::Tokenizer { message } => write!(f, "tokenizer.json: {message}"),
            Self::Vocabulary { source } => source.fmt(f),
            Self::Template { message } => write!(f, "chat template: {message}"),
        }
    }
}

impl std::error::Error for DecoderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Json { source, .. } => Some(source),
            Self::Vocabulary { source } => Some(source),
            _ => None,
        }
    }
}

impl From<burn_dfa::Error> for DecoderError {
    fn from(source: burn_dfa::Error) -> Self {
        Self::Vocabulary { source }
    }
}
