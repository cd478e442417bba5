//! UTF-8 length classes: characters past ASCII by the form of their encoding alone.
//!
//! Few automata tell such characters apart: to a JSON string without a pattern, `é` is any character of two bytes. Where
//! that is so a token does what its [`representative`] does, and the representatives of a vocabulary have a trie of few
//! nodes, however many scripts its tokens are of.

/// Characters whose encodings have the same length and the same ranges of bytes: a row of Unicode's table of
/// well-formed UTF-8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LengthClass {
    /// The least and the greatest first byte.
    pub(crate) first: u8,
    pub(crate) last: u8,
    /// The least and the greatest second byte; the bytes after it are any of [`CONTINUATION`].
    pub(crate) second: (u8, u8),
    /// Number of bytes.
    pub(crate) length: usize,
}

/// The classes of all characters past ASCII (Unicode 16, table 3-7).
pub(crate) const LENGTH_CLASSES: [LengthClass; 8] = [
    LengthClass { first: 0xC2, last: 0xDF, second: CONTINUATION, length: 2 },
    LengthClass { first: 0xE0, last: 0xE0, second: (0xA0, 0xBF), length: 3 },
    LengthClass { first: 0xE1, last: 0xEC, second: CONTINUATION, length: 3 },
    LengthClass { first: 0xED, last: 0xED, second: (0x80, 0x9F), length: 3 },
    LengthClass { first: 0xEE, last: 0xEF, second: CONTINUATION, length: 3 },
    LengthClass { first: 0xF0, last: 0xF0, second: (0x90, 0xBF), length: 4 },
    LengthClass { first: 0xF1, last: 0xF3, second: CONTINUATION, length: 4 },
    LengthClass { first: 0xF4, last: 0xF4, second: (0x80, 0x8F), length: 4 },
];

/// The least and the greatest byte that continues a character.
pub(crate) const CONTINUATION: (u8, u8) = (0x80, 0xBF);

/// `bytes` with each well-formed character past ASCII, or the beginning of one, replaced by the least of its class.
pub(super) fn representative(bytes: &[u8]) -> Vec<u8> {
    let mut representative = bytes.to_vec();
    let mut rest = &mut representative[..];
    while let Some(&byte) = rest.first() {
        let mut read = 1;
        if let Some(class) = LENGTH_CLASSES.iter().find(|class| (class.first..=class.last).contains(&byte)) {
            rest[0] = class.first;
            let mut range = class.second;
            while read < class.length
                && let Some(next) = rest.get_mut(read).filter(|next| (range.0..=range.1).contains(next))
            {
                *next = range.0;
                range = CONTINUATION;
                read += 1;
            }
        }
        rest = &mut rest[read..];
    }
    representative
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn representatives_keep_lengths_only() {
        let same = |a: &[u8], b: &[u8]| assert_eq!(representative(a), representative(b), "{a:?} {b:?}");
        let other = |a: &[u8], b: &[u8]| assert_ne!(representative(a), representative(b), "{a:?} {b:?}");
        same("é".as_bytes(), "Я".as_bytes());
        same("x中文".as_bytes(), "x日本".as_bytes());
        same(b"\xE4\xB8", b"\xE6\x97");
        same(b"a\xE4", b"a\xE6");
        other("a".as_bytes(), "b".as_bytes());
        other("é".as_bytes(), "中".as_bytes());
        other(b"\x80", b"\x81");
        other(b"\xED\xA0\x80", b"\xED\x80\x80");
        for (bytes, first) in
            [("\u{800}", 0xE0), ("\u{FFFD}", 0xEE), ("\u{10000}", 0xF0), ("\u{10FFFF}", 0xF4)]
        {
            assert_eq!(representative(bytes.as_bytes())[0], first);
            assert!(std::str::from_utf8(&representative(bytes.as_bytes())).is_ok());
        }
    }
}
