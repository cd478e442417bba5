//! UTF-8 length classes: non-ASCII characters by the form of their encoding alone.
//!
//! Few automata distinguish such characters: to a JSON string without a pattern, `é` is any
//! character of two bytes. In such an automaton a token acts like its [`representative`], and the
//! representatives of a vocabulary have a small trie, regardless of the number of scripts.

/// Characters with encodings of the same length and the same byte ranges: a row of Unicode's table
/// of well-formed UTF-8.
#[derive(Clone, Copy, Debug)]
pub struct LengthClass {
    /// The least first byte.
    pub first: u8,
    /// The greatest first byte.
    pub last: u8,
    /// The least and the greatest second byte; later bytes are any of [`CONTINUATION`].
    pub second: (u8, u8),
    /// Number of bytes.
    pub length: usize,
}

/// The classes of all non-ASCII characters (Unicode 16, table 3-7).
pub const LENGTH_CLASSES: [LengthClass; 8] = [
    LengthClass { first: 0xC2, last: 0xDF, second: CONTINUATION, length: 2 },
    LengthClass { first: 0xE0, last: 0xE0, second: (0xA0, 0xBF), length: 3 },
    LengthClass { first: 0xE1, last: 0xEC, second: CONTINUATION, length: 3 },
    LengthClass { first: 0xED, last: 0xED, second: (0x80, 0x9F), length: 3 },
    LengthClass { first: 0xEE, last: 0xEF, second: CONTINUATION, length: 3 },
    LengthClass { first: 0xF0, last: 0xF0, second: (0x90, 0xBF), length: 4 },
    LengthClass { first: 0xF1, last: 0xF3, second: CONTINUATION, length: 4 },
    LengthClass { first: 0xF4, last: 0xF4, second: (0x80, 0x8F), length: 4 },
];

/// The least and the greatest continuation byte.
pub const CONTINUATION: (u8, u8) = (0x80, 0xBF);

/// `bytes` with each well-formed non-ASCII character, or prefix of one, replaced by the least
/// character of its class.
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
