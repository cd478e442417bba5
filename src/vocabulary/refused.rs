//! What is refused of a vocabulary, whichever reader it comes from.

use std::path::Path;

use super::Vocabulary;
use crate::error::{Error, Result};

/// More ids than a vocabulary may have.
pub(super) fn too_wide(len: usize) -> Error {
    Error::vocabulary(format!("{len} ids are more than the limit of {}", Vocabulary::MAX_LEN))
}

/// Refuses a token of too many bytes, and too many bytes of all tokens.
pub(super) fn check_bytes(token: usize, all: usize) -> Result<()> {
    let (what, bytes, most) = match token > Vocabulary::MAX_TOKEN_BYTES {
        true => ("a token", token, Vocabulary::MAX_TOKEN_BYTES),
        false => ("all tokens", all, Vocabulary::MAX_BYTES),
    };
    if bytes <= most {
        return Ok(());
    }
    Err(Error::vocabulary(format!("{what} of {bytes} bytes, the limit is {most}")))
}

/// `error`, said of the file at `path`.
pub(super) fn in_file(path: &Path, error: &Error) -> Error {
    let reason = error.to_string();
    let reason = reason.strip_prefix("vocabulary: ").unwrap_or(&reason);
    Error::vocabulary(format!("{}: {reason}", path.display()))
}

/// A file at `path` that cannot be read.
pub(super) fn cannot_read(path: &Path, error: &std::io::Error) -> Error {
    let way_out = match path.ends_with("tokenizer.json") && error.kind() == std::io::ErrorKind::NotFound {
        true => ": name the folder of a model, which holds one",
        false => "",
    };
    Error::vocabulary(format!("cannot read {}: {error}{way_out}", path.display()))
}
