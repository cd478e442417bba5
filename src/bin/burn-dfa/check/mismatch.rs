//! Where a text leaves a language, and what could follow there.

use burn_dfa::automaton::{ByteAutomaton, Configuration};
use burn_dfa::cli::classes::{of_bytes, of_chars};

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

/// Reads characters in the same place, one after another. What a character begins with is read once for all characters in a
/// row that begin so.
struct Characters<'a> {
    automaton: &'a ByteAutomaton,
    /// The bytes that were read last, and where each of them led.
    bytes: Vec<u8>,
    path: Vec<Configuration>,
}

impl<'a> Characters<'a> {
    fn after(automaton: &'a ByteAutomaton, start: Configuration) -> Self {
        Self { automaton, bytes: Vec::new(), path: vec![start] }
    }

    /// Where a character leads.
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
