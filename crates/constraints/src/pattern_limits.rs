//! The limits of the patterns that a user writes, in both syntaxes.

/// Most bytes of a pattern.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Most named classes, such as `\w`, in a pattern: two bytes of pattern are 6 KB of ranges here.
pub(super) const MAX_NAMED: usize = 4096;

/// Most items between the brackets of one class; parsing takes quadratic time.
pub(super) const MAX_ITEMS: usize = 4096;

/// The error message for a pattern with more than `max` of something.
pub(super) fn too_many(what: &str, max: usize) -> String {
    format!("more than {max} {what}; split the pattern, or list strings with `Constraint::choice` or `enum`")
}
