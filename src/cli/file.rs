//! Files that the command line names.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::error::Failure;

/// The text of a file, or of the standard input where `path` is `-`, without a byte order mark at its beginning.
///
/// # Errors
/// A file that cannot be read or is not UTF-8, with its name.
pub fn text(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match path.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text),
        _ => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    // RFC 8259, section 8.1: a parser may ignore the mark.
    if text.starts_with('\u{FEFF}') {
        text.drain(..'\u{FEFF}'.len_utf8());
    }
    Ok(text)
}

/// The value of a file of JSON.
///
/// # Errors
/// As [`text`], and a file that is not JSON.
pub fn json(path: &Path) -> Result<Value, Failure> {
    let text = text(path)?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{} is not JSON: {error}", path.display()))?)
}
