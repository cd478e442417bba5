//! Where a text leaves a language, and what could follow there.

use burn_dfa::automaton::{ByteDfa, ByteStateId};

use crate::classes::{of_bytes, of_chars};

/// The first character that does not fit.
pub struct Mismatch {
    /// Where it begins, in bytes and in characters.
    pub byte: usize,
    pub character: usize,
    /// The character; `None` at the end of the text.
    pub found: Option<char>,
    /// The characters that could come instead, the end left out; `None` where none could.
    pub expected: Option<String>,
    /// The bytes that could; `None` where none could.
    pub bytes: Option<String>,
    /// Whether the text could end there.
    pub may_end: bool,
}

/// Where `text` stops being the beginning of a text of the language; `None` where it is one.
pub fn mismatch(dfa: &ByteDfa, text: &str) -> Option<Mismatch> {
    let after = |state: ByteStateId, char: char| {
        let mut buffer = [0; 4];
        char.encode_utf8(&mut buffer).bytes().fold(state, |state, byte| dfa.next(state, byte))
    };
    let mut state = dfa.start();
    let mut found = None;
    for (character, (byte, char)) in text.char_indices().enumerate() {
        let next = after(state, char);
        if next == ByteStateId::DEAD {
            found = Some((byte, character, char));
            break;
        }
        state = next;
    }
    if found.is_none() && dfa.is_accepting(state) {
        return None;
    }
    let (byte, character) =
        found.map_or_else(|| (text.len(), text.chars().count()), |(byte, character, _)| (byte, character));
    let expected = of_chars(|char| after(state, char) != ByteStateId::DEAD);
    let bytes = of_bytes(|byte| dfa.next(state, byte) != ByteStateId::DEAD);
    let may_end = dfa.is_accepting(state);
    Some(Mismatch { byte, character, found: found.map(|(_, _, char)| char), expected, bytes, may_end })
}
