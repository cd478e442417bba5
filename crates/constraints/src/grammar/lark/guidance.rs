//! `x-guidance` at the root of a schema: llguidance's options for writing JSON.

use serde::Deserialize;

use crate::{Escapes, JsonOptions, Separators, Whitespace};

/// How llguidance's patterns for white space begin.
const BLANK: &str = r"[\x20\x0A\x0D\x09]";

/// The escapes that llguidance allows by default.
const ESCAPES: &str = "nrbtf\\\"u";

/// The root of a schema.
#[derive(Deserialize)]
struct Root {
    #[serde(rename = "x-guidance")]
    guidance: Option<Guidance>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Guidance {
    item_separator: Option<String>,
    key_separator: Option<String>,
    whitespace_flexible: Option<bool>,
    whitespace_pattern: Option<String>,
    json_allowed_escapes: Option<String>,
    /// Whether unrestricted strings and names (by patterns, formats or values) may have `\u`
    /// escapes.
    json_allow_general_unicode_escapes: Option<bool>,
    /// Allows an approximation that is not needed here, because `oneOf` is exact.
    #[serde(rename = "coerce_one_of")]
    _coerce_one_of: Option<bool>,
    /// Allows unknown keywords; also not needed here.
    #[serde(rename = "lenient")]
    _lenient: Option<bool>,
}

/// The JSON options of a schema; by default with blanks between any two of its tokens.
///
/// # Errors
/// The unsupported or malformed option of `x-guidance`.
pub(super) fn options(schema: &str) -> Result<JsonOptions, String> {
    let given = if schema.starts_with('{') {
        let root = serde_json::from_str::<Root>(schema).map_err(|error| format!("`x-guidance`: {error}"))?;
        root.guidance.unwrap_or_default()
    } else {
        Guidance::default()
    };
    if given.json_allowed_escapes.as_deref().is_some_and(|escapes| !same_characters(escapes, ESCAPES)) {
        return Err(format!("`json_allowed_escapes` of `x-guidance` may only be {ESCAPES:?}, the default"));
    }
    let escapes = match given.json_allow_general_unicode_escapes {
        Some(true) => Escapes::NumberedFree,
        _ => Escapes::Canonical,
    };
    let separators = Separators {
        item: given.item_separator.clone().unwrap_or_else(|| ",".into()),
        key: given.key_separator.clone().unwrap_or_else(|| ":".into()),
    };
    let options = JsonOptions::new().with_whitespace(whitespace(&given)?);
    Ok(options.with_separators(separators).with_escapes(escapes))
}

fn whitespace(given: &Guidance) -> Result<Whitespace, String> {
    match given.whitespace_pattern.as_deref() {
        Some(pattern) => bounded(pattern).ok_or_else(|| {
            format!(
                "`whitespace_pattern` of `x-guidance` may be `{BLANK}` with `+`, `*`, `{{0,n}}` or `{{1,n}}`, not `{pattern}`"
            )
        }),
        None if given.whitespace_flexible == Some(false) => Ok(Whitespace::Compact),
        None => Ok(Whitespace::FLEXIBLE),
    }
}

/// The white space of a pattern for a number of blanks.
fn bounded(pattern: &str) -> Option<Whitespace> {
    match pattern.strip_prefix(BLANK)? {
        "+" | "*" => Some(Whitespace::FLEXIBLE),
        counts => {
            let max = counts.strip_prefix("{1,").or_else(|| counts.strip_prefix("{0,"))?.strip_suffix('}')?;
            let max = Some(max).filter(|max| max.bytes().all(|byte| byte.is_ascii_digit()))?;
            Some(Whitespace::Flexible(max.parse().ok()?))
        }
    }
}

fn same_characters(one: &str, other: &str) -> bool {
    one.chars().all(|c| other.contains(c)) && other.chars().all(|c| one.contains(c))
}
