//! Resolution of URI references (RFC 3986, section 5.2).

/// Decodes percent-encoded UTF-8; `None` if it is not valid.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// The parts of a URI reference: scheme with `:`, authority with `//`, path, query with `?`,
/// fragment with `#`.
fn parts(uri: &str) -> [&str; 5] {
    let (rest, fragment) = uri.split_at(uri.find('#').unwrap_or(uri.len()));
    let (rest, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
    let scheme =
        rest.find([':', '/']).filter(|&at| at > 0 && rest.as_bytes()[at] == b':').map_or(0, |at| at + 1);
    let (scheme, rest) = rest.split_at(scheme);
    let authority = match rest.strip_prefix("//") {
        Some(after) => 2 + after.find('/').unwrap_or(after.len()),
        None => 0,
    };
    let (authority, path) = rest.split_at(authority);
    [scheme, authority, path, query, fragment]
}

/// `reference`, resolved against `base`; an empty fragment is left out.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let of_base = parts(base);
    let [scheme, authority, path, query, fragment] = parts(reference);
    let fragment = if fragment == "#" { "" } else { fragment };
    if !scheme.is_empty() {
        return [scheme, authority, &without_dots(path), query, fragment].concat();
    }
    if !authority.is_empty() {
        return [of_base[0], authority, &without_dots(path), query, fragment].concat();
    }
    if path.is_empty() {
        let query = if query.is_empty() { of_base[3] } else { query };
        return [of_base[0], of_base[1], of_base[2], query, fragment].concat();
    }
    let merged = if path.starts_with('/') {
        path.to_owned()
    } else {
        let folder = of_base[2].rfind('/').map_or("", |end| &of_base[2][..=end]);
        let folder = if folder.is_empty() && !of_base[1].is_empty() { "/" } else { folder };
        format!("{folder}{path}")
    };
    [of_base[0], of_base[1], &without_dots(&merged), query, fragment].concat()
}

/// A path without its segments `.` and `..`.
fn without_dots(path: &str) -> String {
    if !path.contains("./") && !path.ends_with("/.") && !path.ends_with("/..") {
        return path.to_owned();
    }
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').collect();
    for (i, &segment) in segments.iter().enumerate() {
        let last = i + 1 == segments.len();
        match segment {
            "." if last => kept.push(""),
            "." => {}
            ".." => {
                if kept.len() > 1 || kept.first().is_some_and(|first| !first.is_empty()) {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::resolve;

    /// Examples of RFC 3986, section 5.4.
    #[test]
    fn references_resolve_as_the_standard_has_it() {
        let base = "http://a/b/c/d;p?q";
        for (reference, resolved) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y#s", "http://a/b/c/g?y#s"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("", "http://a/b/c/d;p?q"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"),
        ] {
            assert_eq!(resolve(base, reference), resolved, "{reference}");
        }
        assert_eq!(resolve("urn:uuid:1", "#x"), "urn:uuid:1#x");
    }
}
