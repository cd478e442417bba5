//! Formats that one regex describes: UUIDs, JSON pointers, Base64.

/// `UUID` of RFC 9562, section 4, whatever its version.
pub(super) const UUID: &str = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";

/// RFC 6901, section 3.
pub(super) const JSON_POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";

/// Base64 of RFC 4648, section 4. What an encoder writes is surely valid: it is padded, and the unused bits of the last
/// letter are zero.
pub(super) const BASE64: &str =
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?";

/// Base64 without padding, or with any unused bits.
pub(super) const POSSIBLE_BASE64: &str =
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?";

/// Relative JSON pointers (draft-handrews-relative-json-pointer-01).
pub(super) fn relative_json_pointer() -> String {
    format!("(?:0|[1-9][0-9]*)(?:#|{JSON_POINTER})")
}

/// The same with the shift of an index (`1+2`) that draft-bhutton-relative-json-pointer-00 added.
pub(super) fn possible_relative_json_pointer() -> String {
    format!("(?:0|[1-9][0-9]*)(?:[+-][0-9]+)?(?:#|{JSON_POINTER})")
}
