//! The most common scalars of schemas: any string, a string of one format, any number and any
//! integer.
//!
//! Their texts are made once for all schemas. With the default spellings, they are loaded from the
//! automata in `common.bin`: computing the texts of an address takes milliseconds, as long as the
//! rest of a schema. A test compares the file with the grammars, and rewrites it on request.

use std::sync::{Arc, OnceLock};

use super::Planner;
use super::labeled::Texts;
use crate::json_schema::format::{Certainty, Format};
use crate::json_schema::number::{self, Notation};
use crate::json_schema::options::{Escapes, JsonOptions};
use crate::json_schema::string::{self, Spelling};
use burn_dfa_automata::{ByteDfa, Expr, Rows, Run};
use burn_dfa_common::{Result, limits::Meter};

/// A scalar with texts made once for all schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrebuiltScalar {
    Number(Notation),
    String(Spelling),
    Format(Format, Spelling),
}

/// The number of spellings of strings; [`Escapes::NumberedFree`], the last kind of escapes, is no
/// spelling.
const SPELLINGS: usize = 2 * Escapes::NumberedFree as usize;

/// The number of scalars.
const COUNT: usize = 3 + (1 + Format::COUNT) * SPELLINGS;

/// The most common formats; `common.bin` has their texts.
const STORED: [Format; 14] = [
    Format::DateTime,
    Format::Date,
    Format::Time,
    Format::Duration,
    Format::Email,
    Format::Hostname,
    Format::Ipv4,
    Format::Ipv6,
    Format::Uri,
    Format::UriReference,
    Format::Uuid,
    Format::JsonPointer,
    Format::RelativeJsonPointer,
    Format::Base64,
];

impl PrebuiltScalar {
    /// A number from 0 to [`COUNT`].
    fn index(self) -> usize {
        let spelled = |Spelling { ascii, escapes }: Spelling, content: usize| {
            3 + content * SPELLINGS + 2 * escapes as usize + usize::from(ascii)
        };
        match self {
            Self::Number(notation) => notation as usize,
            Self::String(spelling) => spelled(spelling, 0),
            Self::Format(format, spelling) => spelled(spelling, 1 + format as usize),
        }
    }

    /// The scalars in `common.bin`, in order.
    fn stored() -> impl Iterator<Item = Self> {
        let spelling = JsonOptions::default().spelling();
        let formats = STORED.into_iter().map(move |format| Self::Format(format, spelling));
        [Self::Number(Notation::Digits), Self::Number(Notation::Free), Self::String(spelling)]
            .into_iter()
            .chain(formats)
    }

    /// The states of its texts, from the start on, if `common.bin` has them.
    fn read(self) -> Option<Rows> {
        let mut rest: &[u8] = include_bytes!("common.bin");
        for scalar in Self::stored() {
            let (length, more) = rest.split_first_chunk()?;
            let (own, others) = more.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            if scalar == self {
                return decode(own);
            }
            rest = others;
        }
        None
    }

    /// Makes its texts.
    fn make(self, meter: &Meter) -> Result<Texts> {
        let content = match self {
            Self::Number(notation) => return Ok(number::universe(notation, None, meter)?.into()),
            Self::String(_) => any_string(meter)?,
            Self::Format(format, _) => format.lower(Certainty::Surely, meter)?.into(),
        };
        let (Self::String(spelling) | Self::Format(_, spelling)) = self else { unreachable!("no number") };
        Ok(string::quote(&content, 0, None, spelling, meter)?.into())
    }
}

/// Reads the states written by [`encode`]; `None` for other input.
fn decode(mut bytes: &[u8]) -> Option<Rows> {
    let mut rows = Rows::new();
    while let Some((&head, mut rest)) = bytes.split_first() {
        let mut runs = Vec::with_capacity(usize::from(head & !ACCEPTING));
        for _ in 0..head & !ACCEPTING {
            let (&[first, last, low, high], more) = rest.split_first_chunk()?;
            runs.push(Run { first, last, target: u16::from_le_bytes([low, high]).into() });
            rest = more;
        }
        rows.push(head & ACCEPTING != 0, runs);
        bytes = rest;
    }
    Some(rows)
}

/// Flag of an accepting state, in the byte with the number of its runs.
const ACCEPTING: u8 = 1 << 7;

impl Planner<'_> {
    /// The texts of a scalar, made once for all schemas.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(super) fn common(&self, scalar: PrebuiltScalar) -> Result<Arc<Texts>> {
        static KNOWN: [OnceLock<Arc<Texts>>; COUNT] = [const { OnceLock::new() }; COUNT];
        let cell = &KNOWN[scalar.index()];
        let texts = match cell.get() {
            Some(texts) => texts,
            None => {
                let texts = match scalar.read() {
                    Some(rows) => rows.into(),
                    None => scalar.make(self.meter)?,
                };
                cell.get_or_init(|| Arc::new(texts))
            }
        };
        self.meter.states(texts.state_count())?;
        Ok(Arc::clone(texts))
    }
}

/// All strings.
pub(super) fn any_string(meter: &Meter) -> Result<Arc<ByteDfa>> {
    static ANY: OnceLock<Arc<ByteDfa>> = OnceLock::new();
    if let Some(dfa) = ANY.get() {
        return Ok(Arc::clone(dfa));
    }
    let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
    let dfa = Expr::Repeat { expr: any.into(), min: 0, max: None }.determinize(meter)?;
    Ok(Arc::clone(ANY.get_or_init(|| dfa.into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    /// Encodes the states after the dead state, which have few runs and 16-bit targets.
    fn encode(rows: &Rows) -> Vec<u8> {
        let mut bytes = Vec::new();
        for state in 1..rows.state_count() as u32 {
            let row = rows.row(state);
            assert!(row.len() < usize::from(ACCEPTING) && rows.state_count() < 1 << 16);
            bytes.push(row.len() as u8 | if rows.is_accepting(state) { ACCEPTING } else { 0 });
            for run in row {
                let [low, high] = (run.target as u16).to_le_bytes();
                bytes.extend([run.first, run.last, low, high]);
            }
        }
        bytes
    }

    /// The expected content of the file.
    fn made() -> Vec<u8> {
        let limits = Limits::default();
        let mut bytes = Vec::new();
        for scalar in PrebuiltScalar::stored() {
            let texts = scalar.make(&Meter::start(&limits)).unwrap();
            assert_eq!(texts.start(), 1);
            let own = encode(texts.rows());
            bytes.extend((own.len() as u32).to_le_bytes());
            bytes.extend(own);
        }
        bytes
    }

    #[test]
    fn stored_scalars_equal_the_compiled_grammars() {
        let limits = Limits::default();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/json_schema/plan/common.bin");
        if std::env::var_os("BURN_DFA_WRITE").is_some() {
            std::fs::write(file, made()).unwrap();
        }
        let same = std::fs::read(file).unwrap() == made();
        assert!(
            same,
            "write it anew: BURN_DFA_WRITE=1 cargo test-core --lib stored_scalars_equal, and build again"
        );
        for scalar in PrebuiltScalar::stored() {
            let (read, made) = (scalar.read().unwrap(), scalar.make(&Meter::start(&limits)).unwrap());
            assert_eq!(Texts::from(read).dfa(), made.dfa(), "{scalar:?}");
        }
    }

    #[test]
    fn numbers_of_scalars_are_their_own() {
        let mut seen = vec![false; COUNT];
        let mut formats = crate::json_schema::format::NAMES.map(|(_, format)| format).to_vec();
        // All annotations are one.
        formats.dedup();
        let escapes = [Escapes::Canonical, Escapes::Any, Escapes::Numbered];
        let spellings =
            escapes.into_iter().flat_map(|escapes| [false, true].map(|ascii| Spelling { ascii, escapes }));
        let strings = spellings.flat_map(|spelling| {
            formats
                .iter()
                .map(move |&format| PrebuiltScalar::Format(format, spelling))
                .chain([PrebuiltScalar::String(spelling)])
        });
        let numbers = [Notation::Digits, Notation::Wide, Notation::Free].map(PrebuiltScalar::Number);
        strings
            .chain(numbers)
            .for_each(|scalar| assert!(!std::mem::replace(&mut seen[scalar.index()], true), "{scalar:?}"));
        assert!(seen.into_iter().all(|seen| seen));
    }
}
