//! A schema within another one, for values of some types, as JSON or as the text of its strings.

use std::fmt;
use std::sync::Arc;

use super::document::Facts;
use super::options::Escapes;
use super::read::{Clock, read_part};
use super::types::Types;
use super::{Json, JsonOptions, Note, Schema, Texts, text};
use crate::{Deferred, Unrolled};
use burn_dfa_automata::{ByteDfa, ByteStateId, FastMap, Op};
use burn_dfa_common::{Result, limits::Meter};

/// A whole schema that was read earlier, with the facts its parts need.
pub(crate) struct Whole {
    pub(crate) json: Json,
    facts: Facts,
}

impl Whole {
    pub(crate) fn new(json: Json) -> Self {
        Self { json, facts: Facts::default() }
    }
}

/// A schema within another one, for values of some types. It may have no values.
///
/// It is read when it is lowered: a part may refer to the whole surrounding schema, so reading the
/// parts of a schema takes longer than reading the schema, and has to be within the limits of a
/// request.
#[derive(Clone)]
pub(crate) struct Part {
    root: Arc<Whole>,
    /// The JSON pointer; `None` for the schema of all values.
    at: Option<String>,
    types: Types,
    options: Arc<JsonOptions>,
    /// The language of strings and names, without quotes; `None` if unrestricted.
    free: Option<Deferred>,
    /// The language of its strings, if they are written without quotes and escapes.
    plain: Option<Deferred>,
}

impl Part {
    /// The schema at the JSON pointer `at` of `root`; `None` for the schema of all values. Strings
    /// and names are words of `free`.
    pub(crate) fn new(
        root: &Arc<Whole>,
        at: Option<&str>,
        types: Types,
        free: Option<&Deferred>,
        options: &Arc<JsonOptions>,
    ) -> Self {
        let (at, free) = (at.map(str::to_owned), free.cloned());
        Self { root: Arc::clone(root), at, types, options: Arc::clone(options), free, plain: None }
    }

    /// The strings of such a schema without quotes and escapes, restricted to `plain`.
    pub(crate) fn plain(
        root: &Arc<Whole>,
        at: Option<&str>,
        plain: &Deferred,
        options: &Arc<JsonOptions>,
    ) -> Self {
        let options = JsonOptions { escapes: Escapes::Canonical, ascii: false, ..(**options).clone() };
        let part = Self::new(root, at, Types::STRING, None, &options.into());
        Self { plain: Some(plain.clone()), ..part }
    }

    fn read(&self, meter: &Meter) -> Result<Schema> {
        let any = Json::Boolean(true);
        let (at, part) = match &self.at {
            None => ("", &any),
            // The schema was read, and the pointer leads into it.
            Some(at) => (at.as_str(), self.root.json.at(at).unwrap_or(&any)),
        };
        let mut schema = read_part(
            &self.root.json,
            &self.root.facts,
            at,
            part,
            self.types,
            &self.options,
            Clock::Of(meter),
        )?;
        schema.free = self.free.as_ref().map(|free| free.lower(meter)).transpose()?;
        Ok(schema)
    }

    /// The automaton of JSON, with calls if they are better; not for unquoted strings.
    ///
    /// # Errors
    /// The schema has no such value, or a limit is exceeded.
    pub(crate) fn lower_called(&self, meter: &Meter) -> Result<(Texts, Unrolled)> {
        self.read(meter)?.lower_called(meter)
    }

    /// Remarks on the schema; see [`Schema::explain`].
    pub(crate) fn explain(&self, meter: &Meter) -> Vec<Note> {
        self.read(meter).map_or_else(|_| Vec::new(), |schema| schema.explain(meter))
    }

    /// Whether strings are written without quotes and escapes.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// The automaton of unquoted strings, or of JSON copied to a depth.
    ///
    /// # Errors
    /// See [`lower_called`](Self::lower_called).
    pub(crate) fn lower(&self, meter: &Meter) -> Result<ByteDfa> {
        let quoted = self.read(meter)?.lower(meter)?.0.to_dense(meter)?;
        match &self.plain {
            None => Ok(quoted),
            Some(plain) => unquoted(&quoted, meter)?.product(&*plain.lower(meter)?, Op::Intersection, meter),
        }
    }
}

/// Omits the whole schema, which every part has.
impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("at", &self.at).field("types", &self.types).finish_non_exhaustive()
    }
}

/// The text of a string in JSON.
pub(crate) fn quoted(string: &str) -> Vec<u8> {
    text::quoted(string, &JsonOptions::default())
}

/// The content of the strings in an automaton of JSON strings with only the shortest escape of each
/// character.
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
