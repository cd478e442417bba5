//! The escapes of JSON pointers (RFC 6901).

/// Appends a reference token to a JSON pointer.
pub(crate) fn push(pointer: &mut String, token: &str) {
    pointer.reserve(1 + token.len());
    pointer.push('/');
    let mut rest = token;
    while let Some(at) = rest.find(['~', '/']) {
        pointer.push_str(&rest[..at]);
        pointer.push_str(if rest.as_bytes()[at] == b'~' { "~0" } else { "~1" });
        rest = &rest[at + 1..];
    }
    pointer.push_str(rest);
}

/// The reference tokens of a JSON pointer, which is empty or begins with `/`.
pub(crate) fn tokens(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_that_were_appended() {
        let names = ["", "a", "/", "~", "~1", "a/b~0c", "é"];
        let mut pointer = String::new();
        names.iter().for_each(|name| push(&mut pointer, name));
        assert_eq!(pointer, "//a/~1/~0/~01/a~1b~00c/é");
        assert!(tokens(&pointer).eq(names));
        assert_eq!(tokens("").count(), 0);
    }
}
