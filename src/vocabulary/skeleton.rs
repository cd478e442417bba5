//! Characters past ASCII by their length alone.
//!
//! Few automata tell them apart: to a JSON string without a pattern, `é` is any character of two bytes. Where that
//! is so, tokens can be compared by their [`skeleton`], and a trie of skeletons has few nodes, however many scripts
//! the vocabulary speaks.

/// The bytes that begin characters past ASCII, by what may follow them (Unicode 16, table 3-7: well-formed UTF-8).
pub(crate) const LEADS: [Lead; 8] = [
    Lead { first: 0xC2, last: 0xDF, second: LAST, length: 2 },
    Lead { first: 0xE0, last: 0xE0, second: (0xA0, 0xBF), length: 3 },
    Lead { first: 0xE1, last: 0xEC, second: LAST, length: 3 },
    Lead { first: 0xED, last: 0xED, second: (0x80, 0x9F), length: 3 },
    Lead { first: 0xEE, last: 0xEF, second: LAST, length: 3 },
    Lead { first: 0xF0, last: 0xF0, second: (0x90, 0xBF), length: 4 },
    Lead { first: 0xF1, last: 0xF3, second: LAST, length: 4 },
    Lead { first: 0xF4, last: 0xF4, second: (0x80, 0x8F), length: 4 },
];

/// The bytes that a character may end with.
pub(crate) const LAST: (u8, u8) = (0x80, 0xBF);

/// A row of [`LEADS`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lead {
    pub(crate) first: u8,
    pub(crate) last: u8,
    /// First and last of the second bytes; those after them are any of [`LAST`].
    pub(crate) second: (u8, u8),
    pub(crate) length: usize,
}

/// `bytes` with each well-formed character past ASCII, or the beginning of one, replaced by the first of its row.
pub(super) fn skeleton(bytes: &[u8]) -> Vec<u8> {
    let mut skeleton = bytes.to_vec();
    let mut rest = &mut skeleton[..];
    while let Some(&byte) = rest.first() {
        let mut read = 1;
        if let Some(lead) = LEADS.iter().find(|lead| (lead.first..=lead.last).contains(&byte)) {
            rest[0] = lead.first;
            let mut range = lead.second;
            while read < lead.length
                && let Some(next) = rest.get_mut(read).filter(|next| (range.0..=range.1).contains(next))
            {
                *next = range.0;
                range = LAST;
                read += 1;
            }
        }
        rest = &mut rest[read..];
    }
    skeleton
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skeletons_keep_lengths_only() {
        let same = |a: &[u8], b: &[u8]| assert_eq!(skeleton(a), skeleton(b), "{a:?} {b:?}");
        let other = |a: &[u8], b: &[u8]| assert_ne!(skeleton(a), skeleton(b), "{a:?} {b:?}");
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
            assert_eq!(skeleton(bytes.as_bytes())[0], first);
            assert!(std::str::from_utf8(&skeleton(bytes.as_bytes())).is_ok());
        }
    }
}
