//! The scalars that schemas ask for most: any string, a string of one format, any number and any integer.
//!
//! Their texts are made once for all schemas. In the spellings that the options have by default they are not made at all: to make
//! those of an address takes milliseconds, as long as all the rest of a schema, so `common.bin` holds their automata. A test
//! holds it against what the grammars make, and writes it anew where it is asked to.

use std::sync::{Arc, OnceLock};

use super::Planner;
use super::labelled::Texts;
use super::scalar::any_string;
use crate::automaton::{Op, Rows, Run};
use crate::constraint::json_schema::format::{Certainty, Format};
use crate::constraint::json_schema::number::{self, Form};
use crate::constraint::json_schema::options::JsonOptions;
use crate::constraint::json_schema::string::{self, Spelling};
use crate::error::Result;
use crate::limits::Meter;

/// A scalar whose texts are made once for all schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Common {
    Integer(Form),
    Number(Form),
    String(Spelling),
    Format(Format, Spelling),
}

/// The ways to spell strings.
const SPELLINGS: usize = 6;

/// The number of scalars.
const COUNT: usize = 4 + (1 + Format::COUNT) * SPELLINGS;

/// The formats of which `common.bin` has the texts: those that are met most.
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

impl Common {
    /// A number from 0 to [`COUNT`].
    fn index(self) -> usize {
        let spelled = |Spelling { ascii, escapes }: Spelling, content: usize| {
            4 + content * SPELLINGS + 2 * escapes as usize + usize::from(ascii)
        };
        match self {
            Self::Integer(form) => form as usize,
            Self::Number(form) => 2 + form as usize,
            Self::String(spelling) => spelled(spelling, 0),
            Self::Format(format, spelling) => spelled(spelling, 1 + format as usize),
        }
    }

    /// Those of which `common.bin` has the texts, in its order.
    fn stored() -> impl Iterator<Item = Self> {
        let spelling = JsonOptions::default().spelling();
        let formats = STORED.into_iter().map(move |format| Self::Format(format, spelling));
        [Self::Integer(Form::Plain), Self::Number(Form::Plain), Self::String(spelling)]
            .into_iter()
            .chain(formats)
    }

    /// The states of its texts, from the start on, where `common.bin` has them.
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
            Self::Integer(form) => {
                let universe = number::universe(form, None, meter)?;
                return Ok(universe.product(&number::integers(meter)?, Op::Intersection, meter)?.into());
            }
            Self::Number(form) => return Ok(number::exponential(form, None, meter)?.into()),
            Self::String(_) => any_string(meter)?,
            Self::Format(format, _) => format.lower(Certainty::Surely, meter)?.into(),
        };
        let (Self::String(spelling) | Self::Format(_, spelling)) = self else { unreachable!("no number") };
        Ok(string::quote(&content, 0, None, spelling, meter)?.into())
    }
}

/// Reads the states that [`encode`] wrote; `None` where it wrote something else.
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

/// In front of the runs of a state is their number, and this where it accepts.
const ACCEPTING: u8 = 1 << 7;

impl Planner<'_> {
    /// The texts of a scalar, which are made once for all schemas.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn common(&self, scalar: Common) -> Result<Arc<Texts>> {
        static KNOWN: [OnceLock<Arc<Texts>>; COUNT] = [const { OnceLock::new() }; COUNT];
        let place = &KNOWN[scalar.index()];
        let texts = match place.get() {
            Some(texts) => texts,
            None => {
                let texts = match scalar.read() {
                    Some(rows) => rows.into(),
                    None => scalar.make(self.meter)?,
                };
                place.get_or_init(|| Arc::new(texts))
            }
        };
        self.meter.states(texts.state_count())?;
        Ok(Arc::clone(texts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    /// The states behind the dead one, which have few runs, and targets of 16 bits.
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

    /// What the file should hold.
    fn made() -> Vec<u8> {
        let limits = Limits::default();
        let mut bytes = Vec::new();
        for scalar in Common::stored() {
            let texts = scalar.make(&Meter::start(&limits)).unwrap();
            assert_eq!(texts.start(), 1);
            let own = encode(texts.rows());
            bytes.extend((own.len() as u32).to_le_bytes());
            bytes.extend(own);
        }
        bytes
    }

    #[test]
    fn what_is_stored_is_what_the_grammars_make() {
        let limits = Limits::default();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/constraint/json_schema/plan/common.bin");
        if std::env::var_os("BURN_DFA_WRITE").is_some() {
            std::fs::write(file, made()).unwrap();
        }
        let same = std::fs::read(file).unwrap() == made();
        assert!(same, "write it anew: BURN_DFA_WRITE=1 cargo test --lib what_is_stored, and build again");
        for scalar in Common::stored() {
            let (read, made) = (scalar.read().unwrap(), scalar.make(&Meter::start(&limits)).unwrap());
            assert_eq!(Texts::from(read).dfa(), made.dfa(), "{scalar:?}");
        }
    }

    #[test]
    fn numbers_of_scalars_are_their_own() {
        let mut seen = vec![false; COUNT];
        let formats = crate::constraint::json_schema::format::NAMES.map(|(_, format)| format);
        let escapes = [string::Escapes::Canonical, string::Escapes::Any, string::Escapes::Numbered];
        let spellings =
            escapes.into_iter().flat_map(|escapes| [false, true].map(|ascii| Spelling { ascii, escapes }));
        let strings = spellings.flat_map(|spelling| {
            formats
                .map(|format| Common::Format(format, spelling))
                .into_iter()
                .chain([Common::String(spelling)])
        });
        let numbers = [Form::Plain, Form::Any]
            .into_iter()
            .flat_map(|form| [Common::Integer(form), Common::Number(form)]);
        strings
            .chain(numbers)
            .for_each(|scalar| assert!(!std::mem::replace(&mut seen[scalar.index()], true), "{scalar:?}"));
        assert!(seen.into_iter().all(|seen| seen));
    }
}
