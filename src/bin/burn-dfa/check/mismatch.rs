//! Finds the first mismatch of a text, and the expected characters.

use burn_dfa::automaton::{ByteAutomaton, Configuration};
use burn_dfa::cli::classes::{of_bytes, of_chars};

/// The first character that does not fit.
pub struct Mismatch {
    /// Its offset in bytes and in characters.
    pub byte: usize,
    pub character: usize,
    /// The character; `None` at the end of the text.
    pub found: Option<char>,
    /// The possible characters instead, without the end; `None` if there are none.
    pub expected: Option<String>,
    /// The possible bytes instead; `None` if there are none.
    pub bytes: Option<String>,
    /// Whether the text could end before it.
    pub may_end: bool,
}

/// The first mismatch of `text`; `None` if `text` is in the language.
pub fn mismatch(automaton: &ByteAutomaton, text: &str) -> Option<Mismatch> {
    let mut at = automaton.start();
    let mut found = None;
    for (character, (byte, char)) in text.char_indices().enumerate() {
        let mut buffer = [0; 4];
        let bytes = char.encode_utf8(&mut buffer).bytes();
        let next = bytes.fold(at.clone(), |at, byte| automaton.next(&at, byte));
        if next.is_dead() {
            found = Some((byte, character, char));
            break;
        }
        at = next;
    }
    if found.is_none() && automaton.is_accepting(&at) {
        return None;
    }
    let (byte, character) =
        found.map_or_else(|| (text.len(), text.chars().count()), |(byte, character, _)| (byte, character));
    let bytes = of_bytes(|byte| !automaton.next(&at, byte).is_dead());
    let may_end = automaton.is_accepting(&at);
    let mut characters = Characters::after(automaton, at);
    let expected = of_chars(|char| !characters.read(char).is_dead());
    Some(Mismatch { byte, character, found: found.map(|(_, _, char)| char), expected, bytes, may_end })
}

/// Reads single characters from the same configuration. Consecutive characters with a common prefix
/// of bytes share the reading of the prefix.
struct Characters<'a> {
    automaton: &'a ByteAutomaton,
    /// The last read bytes, and the configuration after each.
    bytes: Vec<u8>,
    path: Vec<Configuration>,
}

impl<'a> Characters<'a> {
    fn after(automaton: &'a ByteAutomaton, start: Configuration) -> Self {
        Self { automaton, bytes: Vec::new(), path: vec![start] }
    }

    /// The configuration after a character.
    fn read(&mut self, char: char) -> &Configuration {
        let mut buffer = [0; 4];
        let bytes = char.encode_utf8(&mut buffer).as_bytes();
        let same = self.bytes.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        self.bytes.truncate(same);
        self.path.truncate(same + 1);
        for &byte in &bytes[same..] {
            let next = self.automaton.next(&self.path[self.path.len() - 1], byte);
            self.bytes.push(byte);
            self.path.push(next);
        }
        &self.path[self.path.len() - 1]
    }
}
