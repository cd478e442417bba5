//! A schema within another one, for values of some types, as JSON or as the text of its strings.

use std::sync::Arc;

use super::options::Escapes;
use super::read::read_part;
use super::types::Types;
use super::{Json, JsonOptions, Schema, Texts, text};
use crate::automaton::{ByteDfa, ByteStateId, FastMap, Op};
use crate::constraint::Unrolled;
use crate::error::Result;
use crate::limits::Meter;

/// A schema within another one, for values of some types. There may be no such value.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    schema: Schema,
    /// If its strings are written as they are, without quotes and escapes, what they are words of.
    plain: Option<Arc<ByteDfa>>,
}

impl Part {
    /// Reads the schema `part` of `root`, whose JSON pointer is `at`. Strings and names are words of `free`.
    ///
    /// # Errors
    /// A schema error with the JSON pointer of what is malformed or cannot be honoured.
    pub(in crate::constraint) fn read(
        (root, at, part): (&Json, &str, &Json),
        types: Types,
        free: Option<Arc<ByteDfa>>,
        options: &JsonOptions,
    ) -> Result<Self> {
        let mut schema = read_part(root, at, part, types, options)?;
        schema.free = free;
        Ok(Self { schema, plain: None })
    }

    /// The strings of such a schema, as they are, so far as they are words of `plain`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(in crate::constraint) fn plain(
        place: (&Json, &str, &Json),
        plain: Arc<ByteDfa>,
        options: &JsonOptions,
    ) -> Result<Self> {
        let options = JsonOptions { escapes: Escapes::Canonical, ascii: false, ..options.clone() };
        Ok(Self { plain: Some(plain), ..Self::read(place, Types::STRING, None, &options)? })
    }

    /// The automaton of JSON, with calls where that is better; not for strings that are written as they are.
    ///
    /// # Errors
    /// Where there is no such value, where a limit is breached.
    pub(in crate::constraint) fn lower_called(&self, meter: &Meter) -> Result<(Texts, Unrolled)> {
        self.schema.lower_called(meter)
    }

    /// Whether strings are written as they are.
    pub(in crate::constraint) fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// The automaton of strings that are written as they are, or of JSON that is copied to a depth.
    ///
    /// # Errors
    /// As there.
    pub(in crate::constraint) fn lower(&self, meter: &Meter) -> Result<ByteDfa> {
        let quoted = self.schema.lower(meter)?.0.spread(meter)?;
        match &self.plain {
            None => Ok(quoted),
            Some(plain) => unquoted(&quoted, meter)?.product(plain, Op::Intersection, meter),
        }
    }
}

/// The text of a string in JSON.
pub(in crate::constraint) fn quoted(string: &str) -> Vec<u8> {
    text::quoted(string, &JsonOptions::default())
}

/// The strings of an automaton of JSON strings, which has the shortest escape of each character.
fn unquoted(quoted: &ByteDfa, meter: &Meter) -> Result<ByteDfa> {
    let mut known = FastMap::default();
    let mut samples: Vec<u8> = Vec::new();
    let classes = std::array::from_fn(|byte| {
        let byte = byte as u8;
        let key = (quoted.classes()[byte as usize], escape(byte).map(|_| byte));
        *known.entry(key).or_insert_with(|| {
            samples.push(byte);
            (samples.len() - 1) as u8
        })
    });
    let width = samples.len();
    let mut states = vec![ByteStateId::DEAD, quoted.next(quoted.start(), b'"')];
    let mut numbers: FastMap<u32, u32> = FastMap::default();
    numbers.insert(0, 0);
    numbers.insert(states[1].0, 1);
    let mut next = vec![0; width];
    let mut accepting = vec![false];
    let mut at = 1;
    while at < states.len() {
        meter.bytes(next.len().saturating_mul(size_of::<u32>()))?;
        let state = states[at];
        accepting.push(quoted.is_accepting(quoted.next(state, b'"')));
        for &byte in &samples {
            let to = match escape(byte) {
                Some(escape) => escape.iter().fold(state, |state, &byte| quoted.next(state, byte)),
                None => quoted.next(state, byte),
            };
            next.push(*numbers.entry(to.0).or_insert_with(|| {
                states.push(to);
                states.len() as u32 - 1
            }));
        }
        at += 1;
    }
    let dfa = ByteDfa::from_parts(classes, width, next, accepting, ByteStateId::START);
    dfa.product(&dfa, Op::Intersection, meter)
}

/// How a byte is written in a JSON string, if not as it is.
fn escape(byte: u8) -> Option<Vec<u8>> {
    let short = |letter| Some(vec![b'\\', letter]);
    match byte {
        b'"' | b'\\' => short(byte),
        0x08 => short(b'b'),
        0x09 => short(b't'),
        0x0A => short(b'n'),
        0x0C => short(b'f'),
        0x0D => short(b'r'),
        0..0x20 => Some(format!("\\u{byte:04x}").into_bytes()),
        _ => None,
    }
}
