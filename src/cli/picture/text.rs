//! Texts of pictures: shortened, and escaped for XML.

/// A text of at most `longest` characters; an ellipsis replaces the rest.
///
/// ```
/// use burn_dfa::cli::picture::shortened;
///
/// assert_eq!(shortened("[0-9]", 5), "[0-9]");
/// assert_eq!(shortened("[0-9a-f]", 5), "[0-9…");
/// ```
pub fn shortened(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}

/// Escapes text for XML; invalid or invisible characters get Rust escapes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\\' | '\'' => escaped.push(c),
            _ => escaped.extend(c.escape_debug()),
        }
    }
    escaped
}
