//! The byte-level alphabet of GPT-2: 256 printable characters that stand for the 256 bytes.
//!
//! The printable bytes of Latin-1 (`!`–`~`, `¡`–`¬`, `®`–`ÿ`) stand for themselves. The others, in
//! rising order, are U+0100, U+0101 …: the space is `Ġ`, the line feed `Ċ`.

/// Whether `byte` is printable in Latin-1, and so stands for itself.
const fn is_printed(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The bytes represented by U+0100 and up.
const SHIFTED: [u8; 68] = {
    let mut shifted = [0; 68];
    let (mut byte, mut count) = (0, 0);
    while byte < 256 {
        if !is_printed(byte as u8) {
            shifted[count] = byte as u8;
            count += 1;
        }
        byte += 1;
    }
    shifted
};

/// The byte represented by `char`; `None` if `char` is not in the alphabet.
fn byte(char: char) -> Option<u8> {
    match u32::from(char) {
        code @ 0..0x100 => Some(code as u8).filter(|&byte| is_printed(byte)),
        code => SHIFTED.get(code as usize - 0x100).copied(),
    }
}

/// The bytes of `piece`; `None` if one of its characters is not in the alphabet.
pub(super) fn bytes(piece: &str) -> Option<Vec<u8>> {
    piece.chars().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_has_one_character_per_byte() {
        let mut bytes: Vec<_> = ('\0'..'\u{2000}').filter_map(byte).collect();
        assert_eq!(bytes.len(), 256);
        bytes.sort_unstable();
        bytes.dedup();
        assert_eq!(bytes.len(), 256);
        let known = [('Ġ', b' '), ('Ċ', b'\n'), ('Ā', 0), ('Ń', 0xAD), ('ł', 0xA0), ('ÿ', 0xFF)];
        known.iter().for_each(|&(char, expected)| assert_eq!(byte(char), Some(expected)));
    }
}
