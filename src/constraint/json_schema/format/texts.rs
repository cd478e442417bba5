//! Formats of a line or two.

/// `UUID` of RFC 9562, section 4, whatever its version.
pub(super) const UUID: &str = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";

/// RFC 6901, section 3.
pub(super) const JSON_POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";

/// Base64 of RFC 4648, section 4, as an encoder writes it: padded, and what is left of the last letter zero.
pub(super) const BASE64: &str =
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?";

/// Relative JSON pointers (draft-handrews-relative-json-pointer-01).
///
/// Bounded: without the shift of an index (`1+2`) that draft-bhutton-relative-json-pointer-00 added.
pub(super) fn relative_json_pointer() -> String {
    format!("(?:0|[1-9][0-9]*)(?:#|{JSON_POINTER})")
}
