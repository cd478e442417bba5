//! [`DecoderError`]: the error of reading and writing models, tokenizers and chat templates.

use std::fmt;
use std::path::PathBuf;

use burn_dfa_gguf::GgufError;

use crate::family::Family;
use crate::folder_problem::FolderProblem;

/// The reason why a configuration, a checkpoint, a tokenizer or a chat template was refused.
///
/// Every message names the file, field or tensor at fault and, if there is one, the remedy.
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
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A folder, or a file in it, cannot be loaded.
    Folder {
        /// The folder or the file.
        path: PathBuf,
        /// The reason.
        problem: FolderProblem,
    },
    /// A GGUF file is damaged, or holds something that is not supported.
    Gguf {
        /// The file.
        path: PathBuf,
        /// The error of its reader.
        source: GgufError,
    },
    /// A GGUF file was read as the folder that it was made from, and a part of that folder was
    /// refused.
    GgufContent {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<DecoderError>,
    },
    /// A JSON file is malformed or lacks a field.
    Json {
        /// The file, such as `config.json`.
        file: String,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// `model_type` is not the type of a known [`Family`](crate::Family).
    Architecture {
        /// The `model_type` of the file.
        found: String,
    },
    /// This crate does not compute this kind of rotary embedding.
    RopeType {
        /// The `rope_type` of the file.
        found: String,
    },
    /// A field of the configuration has an invalid value, or one that this crate does not support.
    Config {
        /// The field of `config.json`.
        field: &'static str,
        /// The problem.
        message: String,
    },
    /// A safetensors file or its index is damaged or inconsistent.
    Checkpoint {
        /// The file, such as `model.safetensors`.
        file: String,
        /// The problem.
        message: String,
    },
    /// A tensor of the checkpoint is missing, superfluous, misshaped or of a wrong dtype.
    Tensor {
        /// The tensor's name in the Hugging Face layout.
        name: String,
        /// The problem.
        message: String,
    },
    /// The tokenizer could not be read.
    Tokenizer {
        /// The error of the `tokenizers` crate.
        message: String,
    },
    /// The vocabulary could not be read, or has no token that ends a sequence.
    Vocabulary {
        /// The error of the vocabulary reader.
        source: burn_dfa::Error,
    },
    /// The constraint was refused, or the generation failed.
    Generation {
        /// The error of the library.
        source: burn_dfa::Error,
    },
    /// The chat template is malformed, or rejected the messages.
    Template {
        /// The error of the template engine.
        message: String,
    },
}

impl DecoderError {
    pub(crate) fn config(field: &'static str, message: impl Into<String>) -> Self {
        Self::Config { field, message: message.into() }
    }

    pub(crate) fn config_json(source: serde_json::Error) -> Self {
        Self::Json { file: "config.json".into(), source }
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
            Self::Gguf { path, source } => write!(f, "{}: {source}", path.display()),
            Self::GgufContent { path, source } => write!(f, "{}, as {source}", path.display()),
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
            Self::Vocabulary { source } | Self::Generation { source } => source.fmt(f),
            Self::Template { message } => write!(f, "chat template: {message}"),
        }
    }
}

impl std::error::Error for DecoderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Gguf { source, .. } => Some(source),
            Self::GgufContent { source, .. } => Some(source),
            Self::Json { source, .. } => Some(source),
            Self::Vocabulary { source } | Self::Generation { source } => Some(source),
            _ => None,
        }
    }
}

impl From<burn_dfa::Error> for DecoderError {
    fn from(source: burn_dfa::Error) -> Self {
        Self::Vocabulary { source }
    }
}
