//! `format`: automata of the named formats, over the content of a string.
//!
//! The formats are those of JSON Schema, drafts 7 and 2020-12, and of OpenAPI.
//!
//! For some formats the standard describes a language that is not regular or has a very large automaton, or
//! implementations disagree. Such a format has two automata, one of the strings that are [`Surely`](Certainty::Surely)
//! valid and one of the strings that are [`Possibly`](Certainty::Possibly) valid. A string that only the second accepts
//! is undecided. It is not written where the format is required, and not where the format is negated.

mod dates;
mod names;
mod texts;
mod uris;

use std::sync::OnceLock;

use super::draft::Draft;
use crate::automaton::{ByteDfa, Expr};
use crate::constraint::Regex;
use crate::error::Result;
use crate::limits::Meter;

/// A format that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Format {
    DateTime,
    Date,
    Time,
    Duration,
    Email,
    IdnEmail,
    Hostname,
    IdnHostname,
    Ipv4,
    Ipv6,
    Uri,
    UriReference,
    Iri,
    IriReference,
    Uuid,
    UriTemplate,
    JsonPointer,
    RelativeJsonPointer,
    Regex,
    Base64,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float,
    Double,
}

/// How the automata of a format compare to the standard behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exactness {
    /// One automaton accepts the strings that are valid.
    Exact,
    /// Some strings are undecided; the documentation of the grammar says which.
    Bounded,
    /// The format does not restrict strings.
    Annotation,
}

/// Which strings the automaton of a format accepts. The strings that surely are valid are among those that possibly
/// are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Certainty {
    /// Strings that are valid by every reading of the standard.
    Surely,
    /// Strings that are not invalid by every reading of the standard.
    Possibly,
}

/// Every format by its name.
pub(crate) const NAMES: [(&str, Format); 30] = [
    ("date-time", Format::DateTime),
    ("date", Format::Date),
    ("time", Format::Time),
    ("duration", Format::Duration),
    ("email", Format::Email),
    ("idn-email", Format::IdnEmail),
    ("hostname", Format::Hostname),
    ("idn-hostname", Format::IdnHostname),
    ("ipv4", Format::Ipv4),
    ("ipv6", Format::Ipv6),
    ("uri", Format::Uri),
    ("uri-reference", Format::UriReference),
    ("iri", Format::Iri),
    ("iri-reference", Format::IriReference),
    ("uuid", Format::Uuid),
    ("uri-template", Format::UriTemplate),
    ("json-pointer", Format::JsonPointer),
    ("relative-json-pointer", Format::RelativeJsonPointer),
    ("regex", Format::Regex),
    ("base64", Format::Base64),
    ("int8", Format::Int8),
    ("int16", Format::Int16),
    ("int32", Format::Int32),
    ("int64", Format::Int64),
    ("uint8", Format::Uint8),
    ("uint16", Format::Uint16),
    ("uint32", Format::Uint32),
    ("uint64", Format::Uint64),
    ("float", Format::Float),
    ("double", Format::Double),
];

impl Format {
    /// More than the greatest number of a format.
    pub(crate) const COUNT: usize = NAMES.len();

    /// The format of this name; `None` where it is not known.
    pub(crate) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|&(_, format)| format)
    }

    /// The first draft that has the format; `None` for those of OpenAPI, which no draft has.
    pub(super) fn first_draft(self) -> Option<Draft> {
        Some(match self {
            Self::DateTime | Self::Email | Self::Hostname | Self::Ipv4 | Self::Ipv6 | Self::Uri => Draft::D4,
            Self::UriReference | Self::UriTemplate | Self::JsonPointer => Draft::D6,
            Self::Date
            | Self::Time
            | Self::IdnEmail
            | Self::IdnHostname
            | Self::Iri
            | Self::IriReference
            | Self::RelativeJsonPointer
            | Self::Regex => Draft::D7,
            Self::Duration | Self::Uuid => Draft::D2019,
            _ => return None,
        })
    }

    /// How the automata of [`lower`](Self::lower) compare to the standard.
    pub(crate) fn is_exact(self) -> Exactness {
        match self {
            Self::DateTime
            | Self::Time
            | Self::Email
            | Self::IdnEmail
            | Self::Hostname
            | Self::IdnHostname
            | Self::RelativeJsonPointer
            | Self::Base64 => Exactness::Bounded,
            Self::Regex | Self::Float | Self::Double => Exactness::Annotation,
            _ if self.range().is_some() => Exactness::Annotation,
            _ => Exactness::Exact,
        }
    }

    /// The least and the greatest integer, where the format is one of integers.
    pub(crate) fn range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::Int8 => (i8::MIN.into(), i8::MAX.into()),
            Self::Int16 => (i16::MIN.into(), i16::MAX.into()),
            Self::Int32 => (i32::MIN.into(), i32::MAX.into()),
            Self::Int64 => (i64::MIN.into(), i64::MAX.into()),
            Self::Uint8 => (0, u8::MAX.into()),
            Self::Uint16 => (0, u16::MAX.into()),
            Self::Uint32 => (0, u32::MAX.into()),
            Self::Uint64 => (0, u64::MAX.into()),
            _ => return None,
        })
    }

    /// The automaton of the strings, in UTF-8 and without quotes; of all strings if the format does not restrict them.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn lower(self, certainty: Certainty, meter: &Meter) -> Result<ByteDfa> {
        static KNOWN: [[OnceLock<ByteDfa>; 2]; NAMES.len()] =
            [const { [const { OnceLock::new() }; 2] }; NAMES.len()];
        let certainty = if self.is_exact() == Exactness::Bounded { certainty } else { Certainty::Surely };
        let known = &KNOWN[self as usize][certainty as usize];
        let dfa = match known.get() {
            Some(dfa) => dfa.clone(),
            None => {
                let dfa = match certainty {
                    Certainty::Surely => self.surely(meter)?,
                    Certainty::Possibly => self.possibly(meter)?,
                };
                known.get_or_init(|| dfa).clone()
            }
        };
        meter.states(dfa.state_count())?;
        Ok(dfa)
    }

    fn surely(self, meter: &Meter) -> Result<ByteDfa> {
        match self {
            Self::DateTime => regex(&dates::date_time(), meter),
            Self::Date => regex(&dates::date(), meter),
            Self::Time => regex(&dates::time(), meter),
            Self::Duration => regex(&dates::duration(), meter),
            Self::Email => names::email(meter),
            Self::IdnEmail => names::idn_email(meter),
            Self::Hostname | Self::IdnHostname => names::hostname(meter),
            Self::Ipv4 => regex(names::IPV4, meter),
            Self::Ipv6 => regex(&names::ipv6(), meter),
            Self::Uri => regex(&uris::Kind::Uri.absolute(), meter),
            Self::UriReference => regex(&uris::Kind::Uri.reference(), meter),
            Self::Iri => regex(&uris::Kind::Iri.absolute(), meter),
            Self::IriReference => regex(&uris::Kind::Iri.reference(), meter),
            Self::UriTemplate => regex(&uris::template(), meter),
            Self::Uuid => regex(texts::UUID, meter),
            Self::JsonPointer => regex(texts::JSON_POINTER, meter),
            Self::RelativeJsonPointer => regex(&texts::relative_json_pointer(), meter),
            Self::Base64 => regex(texts::BASE64, meter),
            _ => {
                let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
                Expr::Repeat { expr: any.into(), min: 0, max: None }.determinize(meter)
            }
        }
    }

    /// The automaton of possibly valid strings, for a format that is not exact.
    fn possibly(self, meter: &Meter) -> Result<ByteDfa> {
        let grammar = match self {
            Self::DateTime => dates::possible_date_time(),
            Self::Time => dates::possible_time(),
            Self::Email => names::possible_email(""),
            Self::IdnEmail => names::possible_email(names::BEYOND_ASCII),
            Self::Hostname => names::POSSIBLE_HOSTNAME.to_owned(),
            Self::IdnHostname => names::possible_idn_hostname(),
            Self::RelativeJsonPointer => texts::possible_relative_json_pointer(),
            Self::Base64 => texts::POSSIBLE_BASE64.to_owned(),
            _ => return self.surely(meter),
        };
        regex(&grammar, meter)
    }
}

/// The automaton of what a regex of the crate `regex` matches as a whole.
fn regex(grammar: &str, meter: &Meter) -> Result<ByteDfa> {
    Regex::parse(grammar)?.lower(meter)
}

#[cfg(test)]
mod tests;
