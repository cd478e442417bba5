//! The bytes of one piece under a tokenizer's decoder.
//!
//! The decoders of `tokenizer.json` map a list of pieces to a text. A vocabulary needs
//! position-independent bytes of a piece, so only decoders that treat all pieces alike are
//! supported:
//!
//! | decoder | effect on a piece |
//! |---|---|
//! | `ByteLevel` | characters of the [alphabet](super::byte_level) are bytes; a piece with any other is itself |
//! | `Replace` of a string, `Metaspace` | replaces |
//! | `ByteFallback` | `<0xNN>` is a byte |
//! | `Fuse` | none |
//! | `Strip` of the start, after `Fuse` | none: it acts at the start of a text only, and a token continues one |
//! | `Sequence` | its parts in order |
//!
//! All other decoders are refused by name: `WordPiece`, `BPEDecoder` and `CTC` depend on
//! neighboring pieces.

use serde_json::Value;

use super::byte_level;
use super::error::check_bytes;
use burn_dfa_common::{Error, Result};

/// Maximum number of steps of a decoder. Real decoders have up to four.
const MAX_STEPS: usize = 32;

/// The mark of SentencePiece for a space.
const METASPACE: char = '▁';

#[derive(Clone, Debug, PartialEq)]
enum Step {
    ByteLevel,
    ByteFallback,
    Replace { from: String, to: String },
}

/// The steps from a piece to its bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Decoder {
    steps: Vec<Step>,
    /// Whether an earlier step joined the pieces: `Fuse`, or `ByteLevel`.
    joined: bool,
}

impl Decoder {
    /// Reads the `decoder` of a tokenizer, or infers it from the `pre_tokenizer` if it is missing.
    /// `byte_fallback` is the setting of the model.
    pub(super) fn new(decoder: &Value, pre_tokenizer: &Value, byte_fallback: bool) -> Result<Self> {
        let mut this = Self::default();
        if decoder.is_null() {
            this.invert(pre_tokenizer)?;
        } else {
            this.read(decoder)?;
        }
        if byte_fallback && !this.has(&Step::ByteLevel) && !this.has(&Step::ByteFallback) {
            this.steps.push(Step::ByteFallback);
        }
        this.check_steps()?;
        Ok(this)
    }

    fn check_steps(&self) -> Result<()> {
        if self.steps.len() > MAX_STEPS {
            return refuse(&format!("one of more than {MAX_STEPS} steps"));
        }
        Ok(())
    }

    fn has(&self, step: &Step) -> bool {
        self.steps.contains(step)
    }

    /// Appends a decoder.
    fn read(&mut self, decoder: &Value) -> Result<()> {
        let name = name(decoder, "decoder")?;
        self.check_steps()?;
        match name {
            "Sequence" => parts(decoder, "decoders")?.iter().try_for_each(|part| self.read(part)),
            "ByteLevel" if self.joined || self.has(&Step::ByteFallback) => {
                refuse("`ByteLevel` after a decoder that joins pieces")
            }
            "ByteLevel" => {
                self.steps.push(Step::ByteLevel);
                self.joined = true;
                Ok(())
            }
            "ByteFallback" if self.joined => refuse("`ByteFallback` after a decoder that joins pieces"),
            "ByteFallback" => {
                self.steps.push(Step::ByteFallback);
                Ok(())
            }
            "Fuse" => {
                self.joined = true;
                Ok(())
            }
            "Metaspace" => {
                let from = metaspace(decoder)?;
                self.replace(from, " ".to_owned())
            }
            "Replace" => {
                let from = literal(&decoder["pattern"])?;
                let Some(to) = decoder["content"].as_str() else {
                    return refuse("`Replace` whose `content` is not a string");
                };
                self.replace(from, to.to_owned())
            }
            "Strip" if !self.joined => refuse("`Strip` of each piece"),
            "Strip" if decoder["stop"].as_u64() != Some(0) => refuse("`Strip` of the end of the text"),
            "Strip" => Ok(()),
            "WordPiece" => refuse("`WordPiece`, where the bytes of a token depend on the one before it"),
            other => refuse(&format!("`{other}`")),
        }
    }

    fn replace(&mut self, from: String, to: String) -> Result<()> {
        // After pieces are joined, a pattern of several characters could match across two of them.
        if self.has(&Step::ByteLevel) || (self.joined && from.chars().count() > 1) {
            return refuse("`Replace` after a decoder that joins pieces");
        }
        self.steps.push(Step::Replace { from, to });
        Ok(())
    }

    /// Inverts the pre-tokenizer of a tokenizer without a decoder.
    fn invert(&mut self, pre_tokenizer: &Value) -> Result<()> {
        if let Some(metaspace) = find(pre_tokenizer, "Metaspace") {
            return self.read(metaspace);
        }
        if find(pre_tokenizer, "ByteLevel").is_some() {
            self.steps.push(Step::ByteLevel);
            return Ok(());
        }
        Err(Error::vocabulary(
            "the tokenizer has no `decoder`, so its tokens are joined by spaces and their bytes depend on where they stand",
        ))
    }

    /// The bytes of an entry of the model.
    ///
    /// # Errors
    /// If there are too many, before they are allocated.
    pub(super) fn piece(&self, piece: &str) -> Result<Vec<u8>> {
        check_bytes(piece.len(), 0)?;
        let mut text = piece.to_owned();
        for step in &self.steps {
            match step {
                Step::ByteLevel => {
                    return Ok(byte_level::bytes(&text).unwrap_or_else(|| text.into_bytes()));
                }
                Step::ByteFallback => {
                    if let Some(byte) = fallback(&text) {
                        return Ok(vec![byte]);
                    }
                }
                Step::Replace { from, to } => {
                    let count = text.matches(from.as_str()).count();
                    if count > 0 {
                        let kept = text.len() - count * from.len();
                        check_bytes(count.saturating_mul(to.len()).saturating_add(kept), 0)?;
                        text = text.replace(from.as_str(), to);
                    }
                }
            }
        }
        Ok(text.into_bytes())
    }

    /// The bytes of an added text token. In a byte-level tokenizer, an added token is plain text;
    /// in other tokenizers it is decoded like a piece (Gemma adds `▁▁`, two spaces).
    pub(super) fn added(&self, content: &str) -> Result<Vec<u8>> {
        if self.has(&Step::ByteLevel) { Ok(content.as_bytes().to_vec()) } else { self.piece(content) }
    }
}

/// The byte of `<0xNN>`.
fn fallback(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let valid = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    valid.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

fn refuse<T>(what: &str) -> Result<T> {
    Err(Error::vocabulary(format!("the tokenizer's decoder is not supported: {what}")))
}

/// The `type` of a part of the tokenizer.
fn name<'a>(part: &'a Value, what: &str) -> Result<&'a str> {
    part["type"].as_str().ok_or_else(|| Error::vocabulary(format!("a `{what}` without a `type`")))
}

fn parts<'a>(sequence: &'a Value, key: &str) -> Result<&'a [Value]> {
    match &sequence[key] {
        Value::Array(parts) => Ok(parts),
        _ => Err(Error::vocabulary(format!("a `Sequence` whose `{key}` is not a list"))),
    }
}

/// The part of `pre_tokenizer` with a type, inside a `Sequence` or not.
fn find<'a>(pre_tokenizer: &'a Value, name: &str) -> Option<&'a Value> {
    match pre_tokenizer["type"].as_str()? {
        "Sequence" => pre_tokenizer["pretokenizers"].as_array()?.iter().find_map(|part| find(part, name)),
        own => (own == name).then_some(pre_tokenizer),
    }
}

/// The character of a `Metaspace` for a space.
fn metaspace(decoder: &Value) -> Result<String> {
    match &decoder["replacement"] {
        Value::Null => Ok(METASPACE.to_string()),
        Value::String(char) if char.chars().count() == 1 => Ok(char.clone()),
        _ => refuse("`Metaspace` whose `replacement` is not one character"),
    }
}

/// The pattern of a `Replace`, if it is a plain string.
fn literal(pattern: &Value) -> Result<String> {
    let plain =
        |pattern: &str| !pattern.is_empty() && !pattern.contains(|c: char| r"\.+*?()|[]{}^$".contains(c));
    if let Some(string) = pattern["String"].as_str().filter(|string| !string.is_empty()) {
        return Ok(string.to_owned());
    }
    match pattern["Regex"].as_str() {
        Some(regex) if plain(regex) => Ok(regex.to_owned()),
        _ => refuse(&format!("`Replace` of the pattern {pattern}")),
    }
}
