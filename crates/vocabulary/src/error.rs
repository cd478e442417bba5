//! The errors and limits that all readers share.

use std::fmt::Display;
use std::path::Path;

use burn_dfa_common::{Error, Result};

use super::Vocabulary;

/// The error for too many ids.
pub(super) fn too_wide(len: usize) -> Error {
    Error::vocabulary(format!("{len} ids are more than the limit of {}", Vocabulary::MAX_LEN))
}

/// Refuses a token of too many bytes, and too many bytes in total.
pub(super) fn check_bytes(token: usize, all: usize) -> Result<()> {
    let (what, bytes, max) = match token > Vocabulary::MAX_TOKEN_BYTES {
        true => ("a token", token, Vocabulary::MAX_TOKEN_BYTES),
        false => ("all tokens", all, Vocabulary::MAX_BYTES),
    };
    if bytes <= max {
        return Ok(());
    }
    Err(Error::vocabulary(format!("{what} of {bytes} bytes, the limit is {max}")))
}

/// `error`, attributed to the file at `path`.
pub(super) fn in_file(path: &Path, error: &Error) -> Error {
    let reason = error.to_string();
    let reason = reason.strip_prefix("vocabulary: ").unwrap_or(&reason);
    Error::vocabulary(format!("{}: {reason}", path.display()))
}

/// The error for a file that is no tokenizer at all.
pub(super) fn not_json(reason: impl Display) -> Error {
    Error::vocabulary(format!(
        "{reason}: download the file again, or name another tokenizer.json, a GGUF file or the folder of a model"
    ))
}

/// The error for an unreadable file.
pub(super) fn cannot_read(path: &Path, error: &std::io::Error) -> Error {
    let remedy = match path.ends_with("tokenizer.json") && error.kind() == std::io::ErrorKind::NotFound {
        true => ": name the folder of a model, which holds one",
        false => "",
    };
    Error::vocabulary(format!("cannot read {}: {error}{remedy}", path.display()))
}
