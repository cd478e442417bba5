//! Incremental UTF-8 decoding.

/// Decodes UTF-8 incrementally: the last byte of a character completes it, and an invalid byte
/// sequence gives U+FFFD.
///
/// ```
/// use burn_dfa::generation::Utf8Stream;
///
/// let mut stream = Utf8Stream::default();
/// assert_eq!(stream.push(b"caf\xc3"), "caf");
/// assert_eq!(stream.push(b"\xa9"), "é");
/// assert_eq!(stream.finish(), "");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Utf8Stream {
    /// The first bytes of an incomplete character.
    held: Vec<u8>,
}

impl Utf8Stream {
    /// Takes bytes and returns the complete characters.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::new();
        let mut at = 0;
        loop {
            match std::str::from_utf8(&self.held[at..]) {
                Ok(rest) => {
                    text.push_str(rest);
                    at = self.held.len();
                    break;
                }
                Err(error) => {
                    let valid = &self.held[at..at + error.valid_up_to()];
                    text.push_str(&String::from_utf8_lossy(valid));
                    at += error.valid_up_to();
                    match error.error_len() {
                        Some(length) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            at += length;
                        }
                        None => break,
                    }
                }
            }
        }
        self.held.drain(..at);
        text
    }

    /// Ends the stream: U+FFFD for an incomplete character, else nothing.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.held).into_owned()
    }
}
