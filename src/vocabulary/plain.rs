//! Plain tokens: at most [`LONGEST`] whole characters, none of them a control character, `"` or `\`, so that they may stand
//! anywhere in a JSON string.
//!
//! Most tokens of a vocabulary are plain, and where an automaton takes any of them, as within a string, a walk can
//! take them all at once and follow only the rest. Strings of a pattern often take letters and digits at least. The idea is that of llguidance's slices (Moskal and others,
//! guidance-ai/llguidance, "Optimizations").

/// The number of characters of the longest plain token.
pub(super) const LONGEST: usize = 128;

/// How plain a token is. A state that takes all tokens of a kind takes those of the kinds before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Plainness {
    /// Letters and digits of ASCII.
    Word,
    /// Plain, of printable ASCII.
    Ascii,
    /// Plain, with characters beyond ASCII.
    Wide,
    /// Not plain.
    Other,
}

/// The bytes of plain characters of one byte.
pub(crate) fn is_plain_byte(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// Control characters of ASCII that no JSON string takes.
pub(crate) fn is_control_byte(byte: u8) -> bool {
    byte < b' '
}

/// The bytes of longer characters, from the first to the last: the well-formed sequences of the Unicode Standard, table 3-7.
pub(crate) const WIDE: [&[(u8, u8)]; 8] = [
    &[(0xc2, 0xdf), (0x80, 0xbf)],
    &[(0xe0, 0xe0), (0xa0, 0xbf), (0x80, 0xbf)],
    &[(0xe1, 0xec), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xed, 0xed), (0x80, 0x9f), (0x80, 0xbf)],
    &[(0xee, 0xef), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf0, 0xf0), (0x90, 0xbf), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf1, 0xf3), (0x80, 0xbf), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf4, 0xf4), (0x80, 0x8f), (0x80, 0xbf), (0x80, 0xbf)],
];

/// How plain a token is, and its number of characters, 0 where it is not plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainToken {
    pub(crate) kind: Plainness,
    pub(crate) characters: u8,
}

impl PlainToken {
    pub(super) const OTHER: Self = Self { kind: Plainness::Other, characters: 0 };

    /// Of the bytes of a token.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).ok();
        let text = text.filter(|text| text.bytes().all(|byte| byte >= 0x80 || is_plain_byte(byte)));
        let Some(text) = text else { return Self::OTHER };
        let kind = if !text.is_ascii() {
            Plainness::Wide
        } else if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            Plainness::Word
        } else {
            Plainness::Ascii
        };
        match text.chars().count() {
            characters @ 0..=LONGEST => Self { kind, characters: characters as u8 },
            _ => Self::OTHER,
        }
    }

    /// What stands before the first control character of a token.
    pub(super) fn before_control(bytes: &[u8]) -> Option<Self> {
        bytes.iter().position(|&byte| is_control_byte(byte)).map(|at| Self::of(&bytes[..at]))
    }
}
