//! Files named on the command line.

use std::io::Read;
use std::path::Path;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::error::Failure;

/// The text of a file, or of the standard input if `path` is `-`, without a leading byte order
/// mark.
///
/// # Errors
/// An unreadable file or invalid UTF-8, with the name of the file.
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

/// Whether an argument names a file or the standard input.
pub(super) fn is_file(argument: &Path) -> bool {
    argument == Path::new("-") || argument.exists()
}

/// The text of an argument, which is a text or names a file: an existing file takes precedence;
/// else the argument is the text, if `is_text` accepts it.
///
/// # Errors
/// As [`text`].
pub(super) fn text_or_file(argument: &Path, is_text: fn(&str) -> bool) -> Result<String, Failure> {
    match argument.to_str() {
        Some(given) if !is_file(argument) && is_text(given) => Ok(given.to_owned()),
        _ => text(argument),
    }
}

/// The text of a JSON object or of a JSON file, nested to any depth.
///
/// # Errors
/// As [`text`], and a text that is not JSON.
pub fn json_text(argument: &Path) -> Result<String, Failure> {
    let text = text_or_file(argument, |text| text.trim_start().starts_with('{'))?;
    serde_json::from_str::<IgnoredAny>(&text).map_err(|error| match is_file(argument) {
        true => format!("{} is not JSON: {error}", argument.display()),
        false => format!("the text is not JSON: {error}"),
    })?;
    Ok(text)
}

/// The value of a JSON file.
///
/// # Errors
/// As [`text`], and a file that is not JSON.
pub fn json(path: &Path) -> Result<Value, Failure> {
    let text = text(path)?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{} is not JSON: {error}", path.display()))?)
}
