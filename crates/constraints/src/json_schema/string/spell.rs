//! The spellings of one character.

use super::{Escapes, Spelling};

/// The letters of short escapes and their characters, sorted by letter.
const SHORT: [(u8, u8); 7] =
    [(b'"', b'"'), (b'\\', b'\\'), (b'b', 8), (b'f', 12), (b'n', 10), (b'r', 13), (b't', 9)];

impl Spelling {
    /// The letters after `\` and their characters.
    pub(super) fn short(self) -> impl Iterator<Item = (u8, u8)> {
        let slash = (self.escapes == Escapes::Any).then_some((b'/', b'/'));
        SHORT.into_iter().chain(slash)
    }

    /// Whether a character may be written unescaped.
    pub(super) fn is_raw(self, code: u32) -> bool {
        code >= 0x20 && code != u32::from(b'"') && code != u32::from(b'\\') && (code < 0x80 || !self.ascii)
    }

    /// Whether a character is always written unescaped.
    pub(in super::super) fn is_plain(self, code: u32) -> bool {
        let is_short = self.short().any(|(_, meaning)| u32::from(meaning) == code);
        let is_numbered = self.numbered().iter().any(|&(first, last)| (first..=last).contains(&code));
        self.is_raw(code) && !is_short && !is_numbered
    }

    /// The characters that may be written as `\u` with a number, as ranges in order.
    pub(super) fn numbered(self) -> &'static [(u32, u32)] {
        const LAST: u32 = char::MAX as u32;
        match (self.escapes, self.ascii) {
            (Escapes::Any | Escapes::Numbered, _) => &[(0, LAST)],
            (Escapes::Canonical | Escapes::NumberedFree, true) => &[(0, 0x1f), (0x80, LAST)],
            (Escapes::Canonical | Escapes::NumberedFree, false) => &[(0, 0x1f)],
        }
    }
}

/// The spellings of each character of `text` in bytes, the same as in [`quote`](super::quote).
pub(in super::super) fn spellings(text: &str, spelling: Spelling) -> Vec<Vec<Vec<u8>>> {
    text.chars().map(|character| of_char(character, spelling)).collect()
}

/// Appends `text`, each character in its first spelling.
pub(in super::super) fn write(text: &str, spelling: Spelling, written: &mut Vec<u8>) {
    for character in text.chars() {
        if spelling.is_raw(character.into()) {
            written.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        } else if let Some(first) = of_char(character, spelling).first() {
            written.extend_from_slice(first);
        }
    }
}

fn of_char(character: char, spelling: Spelling) -> Vec<Vec<u8>> {
    let code = u32::from(character);
    let mut all = Vec::new();
    if spelling.is_raw(code) {
        all.push(character.to_string().into_bytes());
    }
    let short = spelling.short().filter(|&(_, meaning)| u32::from(meaning) == code);
    all.extend(short.map(|(letter, _)| vec![b'\\', letter]));
    if spelling.numbered().iter().any(|&(first, last)| (first..=last).contains(&code)) {
        let mut long = vec![Vec::new()];
        for unit in character.encode_utf16(&mut [0; 2]) {
            long.iter_mut().for_each(|text| text.extend(b"\\u"));
            for digit in format!("{unit:04x}").bytes() {
                let upper = digit.to_ascii_uppercase();
                let other = if upper == digit { Vec::new() } else { long.clone() };
                long.iter_mut().for_each(|text| text.push(digit));
                long.extend(other.into_iter().map(|text| [text, vec![upper]].concat()));
            }
        }
        all.extend(long);
    }
    all
}
