//! [`GgufError`]: the error of reading a GGUF file.

use std::fmt;

/// The reason why a GGUF file was refused.
///
/// Every message names the offset, key or tensor at fault and, if there is one, the remedy.
///
/// ```
/// use burn_dfa_gguf::{GgufError, GgufFile};
///
/// let error = GgufFile::read(&b"GGUF\x03\0\0\0"[..], 8).unwrap_err();
/// assert!(matches!(error, GgufError::Malformed { offset: 8, .. }));
/// assert_eq!(error.to_string(), "at byte 8: the file ends early; download it again");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum GgufError {
    /// The file could not be read.
    Io(std::io::Error),
    /// The file is truncated, damaged, or of another format.
    Malformed {
        /// The offset of the damage.
        offset: u64,
        /// The problem.
        message: String,
    },
    /// A value of the metadata is missing, invalid, or not supported.
    Metadata {
        /// The key.
        key: String,
        /// The problem.
        message: String,
    },
    /// A tensor is missing, lies outside the file, or has a type that is not supported.
    Tensor {
        /// The name of the tensor in the file.
        name: String,
        /// The problem.
        message: String,
    },
}

impl GgufError {
    pub(crate) fn malformed(offset: u64, message: impl Into<String>) -> Self {
        Self::Malformed { offset, message: message.into() }
    }

    pub(crate) fn metadata(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Metadata { key: key.into(), message: message.into() }
    }

    pub(crate) fn tensor(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Tensor { name: name.into(), message: message.into() }
    }
}

impl fmt::Display for GgufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(source) => source.fmt(f),
            Self::Malformed { offset, message } => write!(f, "at byte {offset}: {message}"),
            Self::Metadata { key, message } => write!(f, "{key} {message}"),
            Self::Tensor { name, message } => write!(f, "tensor {name} {message}"),
        }
    }
}

impl std::error::Error for GgufError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(source) => Some(source),
            _ => None,
        }
    }
}
