//! Formats with a single regex: UUIDs, JSON pointers, Base64, fractions.

/// `UUID` of RFC 9562, section 4, of any version.
pub(super) const UUID: &str = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";

/// A UUID of a version, of the variant with versions.
pub(super) fn uuid(version: u8) -> String {
    format!(
        "[0-9A-Fa-f]{{8}}-[0-9A-Fa-f]{{4}}-{version}[0-9A-Fa-f]{{3}}-[89ABab][0-9A-Fa-f]{{3}}-[0-9A-Fa-f]{{12}}"
    )
}

/// RFC 6901, section 3.
pub(super) const JSON_POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";

/// Base64 of RFC 4648, section 4. The output of an encoder is surely valid: it is padded, and the
/// unused bits of the last letter are zero.
pub(super) const BASE64: &str =
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?";

/// Base64 without padding, or with any unused bits.
pub(super) const POSSIBLE_BASE64: &str =
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?";

/// Base64 of RFC 4648, section 5, with the letters that URLs allow, as [`BASE64`].
pub(super) const BASE64_URL: &str =
    "(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]==|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=)?";

/// The same without padding, or with any unused bits.
pub(super) const POSSIBLE_BASE64_URL: &str =
    "(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}(?:==)?|[A-Za-z0-9_-]{3}=?)?";

/// A number as a fraction or with decimals, as Python's `Fraction` reads it.
pub(super) const FRACTION: &str = r"-?[0-9]{1,15}(?:/[1-9][0-9]{0,14}|\.[0-9]{1,15})?";

/// Any text with a digit.
pub(super) const POSSIBLE_FRACTION: &str = "(?s:.*[0-9].*)";

/// Relative JSON pointers (draft-handrews-relative-json-pointer-01), at most 99 levels up: some
/// readers take no greater number with a zero inside.
pub(super) fn relative_json_pointer() -> String {
    format!("(?:0|[1-9][0-9]?)(?:#|{JSON_POINTER})")
}

/// The same with any number, and with the index shift (`1+2`) added by
/// draft-bhutton-relative-json-pointer-00.
pub(super) fn possible_relative_json_pointer() -> String {
    format!("(?:0|[1-9][0-9]*)(?:[+-][0-9]+)?(?:#|{JSON_POINTER})")
}
