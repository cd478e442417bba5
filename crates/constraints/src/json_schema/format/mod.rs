//! `format`: automata of the named formats, over the content of a string.
//!
//! The formats come from JSON Schema, drafts 7 and 2020-12, OpenAPI, and Pydantic.
//!
//! For some formats, the standard describes a language that is not regular or has a very large
//! automaton, or implementations disagree. Such a format has two automata, one of the strings that
//! are [`Surely`](Certainty::Surely) valid and one of the strings that are
//! [`Possibly`](Certainty::Possibly) valid. A string accepted only by the second one is undecided.
//! The output contains it neither if the format is required nor if the format is negated.

mod addresses;
mod dates;
mod names;
mod texts;
mod uris;

use std::sync::OnceLock;

use crate::Regex;
use burn_dfa_automata::{ByteDfa, Expr, Op};
use burn_dfa_common::{Result, limits::Meter};

/// A known format.
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
    Base64,
    Base64Url,
    Uuid1,
    Uuid3,
    Uuid4,
    Uuid5,
    Uuid6,
    Uuid7,
    Uuid8,
    IpAddress,
    IpInterface,
    IpNetwork,
    Ipv4Interface,
    Ipv4Network,
    Ipv6Interface,
    Ipv6Network,
    MultiHostUri,
    NameEmail,
    Fraction,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    /// A format without restrictions.
    Annotation,
    /// URLs written for [`Uri`](Self::Uri) and [`Iri`](Self::Iri) if their characters are counted.
    /// It has no name.
    CountedUrl,
}

/// The precision of a format's automata compared with its standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exactness {
    /// One automaton accepts exactly the valid strings.
    Exact,
    /// Some strings are undecided; the documentation of the grammar lists them.
    Bounded,
    /// The format does not restrict strings.
    Annotation,
}

/// The strings accepted by the automaton of a format. The surely valid strings are a subset of the
/// possibly valid ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Certainty {
    /// Strings that are valid by every reading of the standard.
    Surely,
    /// Strings that are valid by some reading of the standard.
    Possibly,
}

/// Every format by its name.
pub(crate) const NAMES: [(&str, Format); 63] = [
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
    ("base64", Format::Base64),
    ("base64url", Format::Base64Url),
    ("uuid1", Format::Uuid1),
    ("uuid3", Format::Uuid3),
    ("uuid4", Format::Uuid4),
    ("uuid5", Format::Uuid5),
    ("uuid6", Format::Uuid6),
    ("uuid7", Format::Uuid7),
    ("uuid8", Format::Uuid8),
    ("ipvanyaddress", Format::IpAddress),
    ("ipvanyinterface", Format::IpInterface),
    ("ipvanynetwork", Format::IpNetwork),
    ("ipv4interface", Format::Ipv4Interface),
    ("ipv4network", Format::Ipv4Network),
    ("ipv6interface", Format::Ipv6Interface),
    ("ipv6network", Format::Ipv6Network),
    ("multi-host-uri", Format::MultiHostUri),
    ("name-email", Format::NameEmail),
    ("fraction", Format::Fraction),
    ("int8", Format::Int8),
    ("int16", Format::Int16),
    ("int32", Format::Int32),
    ("int64", Format::Int64),
    ("uint8", Format::Uint8),
    ("uint16", Format::Uint16),
    ("uint32", Format::Uint32),
    ("uint64", Format::Uint64),
    ("regex", Format::Annotation),
    ("float", Format::Annotation),
    ("double", Format::Annotation),
    ("decimal", Format::Annotation),
    ("int", Format::Annotation),
    ("uint", Format::Annotation),
    ("int128", Format::Annotation),
    ("uint128", Format::Annotation),
    ("byte", Format::Annotation),
    ("binary", Format::Annotation),
    ("password", Format::Annotation),
    ("path", Format::Annotation),
    ("file-path", Format::Annotation),
    ("directory-path", Format::Annotation),
    ("json-string", Format::Annotation),
    ("color", Format::Annotation),
    ("zoneinfo", Format::Annotation),
    ("time-delta", Format::Annotation),
];

impl Format {
    /// More than the greatest number of a format.
    pub(crate) const COUNT: usize = Self::Annotation as usize + 1;

    /// The format with this name; `None` if it is unknown.
    pub(crate) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|&(_, format)| format)
    }

    /// How the automata of [`lower`](Self::lower) compare to the standard.
    pub(crate) fn is_exact(self) -> Exactness {
        match self {
            Self::Ipv4
            | Self::Ipv6
            | Self::Uuid
            | Self::Uuid1
            | Self::Uuid3
            | Self::Uuid4
            | Self::Uuid5
            | Self::Uuid6
            | Self::Uuid7
            | Self::Uuid8
            | Self::JsonPointer => Exactness::Exact,
            Self::Annotation => Exactness::Annotation,
            _ if self.range().is_some() => Exactness::Annotation,
            _ => Exactness::Bounded,
        }
    }

    /// The least and the greatest integer, for a format of integers.
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

    /// The automaton of the strings, in UTF-8 and without quotes; of all strings if the format does
    /// not restrict them.
    ///
    /// # Errors
    /// A limit is exceeded.
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
            Self::Time => regex(dates::TIME, meter),
            Self::Duration => regex(&dates::duration(), meter),
            Self::Email => names::email(meter),
            Self::IdnEmail => names::idn_email(meter),
            Self::NameEmail => names::name_email(meter),
            Self::Hostname | Self::IdnHostname => names::hostname(meter),
            Self::Ipv4 => regex(addresses::IPV4, meter),
            Self::Ipv6 => regex(&addresses::ipv6(), meter),
            Self::Ipv4Interface => regex(&addresses::ipv4_interface(), meter),
            Self::Ipv4Network => regex(&addresses::ipv4_network(), meter),
            Self::Ipv6Interface => regex(&addresses::ipv6_interface(), meter),
            Self::Ipv6Network => regex(&addresses::ipv6_network(), meter),
            Self::IpAddress => either([Self::Ipv4, Self::Ipv6], meter),
            Self::IpInterface => either([Self::Ipv4Interface, Self::Ipv6Interface], meter),
            Self::IpNetwork => either([Self::Ipv4Network, Self::Ipv6Network], meter),
            Self::Uri => uris::Kind::Uri.url(meter),
            Self::CountedUrl => uris::counted(meter),
            Self::UriReference => uris::Kind::Uri.url_reference(meter),
            Self::Iri => uris::Kind::Iri.url(meter),
            Self::IriReference => uris::Kind::Iri.url_reference(meter),
            Self::MultiHostUri => uris::Kind::hosts(meter),
            Self::UriTemplate => regex(&uris::template(), meter),
            Self::Uuid => regex(texts::UUID, meter),
            Self::Uuid1 => regex(&texts::uuid(1), meter),
            Self::Uuid3 => regex(&texts::uuid(3), meter),
            Self::Uuid4 => regex(&texts::uuid(4), meter),
            Self::Uuid5 => regex(&texts::uuid(5), meter),
            Self::Uuid6 => regex(&texts::uuid(6), meter),
            Self::Uuid7 => regex(&texts::uuid(7), meter),
            Self::Uuid8 => regex(&texts::uuid(8), meter),
            Self::JsonPointer => regex(texts::JSON_POINTER, meter),
            Self::RelativeJsonPointer => regex(&texts::relative_json_pointer(), meter),
            Self::Base64 => regex(texts::BASE64, meter),
            Self::Base64Url => regex(texts::BASE64_URL, meter),
            Self::Fraction => regex(texts::FRACTION, meter),
            _ => {
                let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
                Expr::Repeat { expr: any.into(), min: 0, max: None }.determinize(meter)
            }
        }
    }

    /// The automaton of possibly valid strings, for an inexact format.
    fn possibly(self, meter: &Meter) -> Result<ByteDfa> {
        let grammar = match self {
            Self::DateTime => dates::possible_date_time(),
            Self::Date => dates::possible_date(),
            Self::Time => dates::POSSIBLE_TIME.to_owned(),
            Self::Duration => dates::possible_duration(),
            Self::Email => names::possible_email(""),
            Self::IdnEmail | Self::NameEmail => names::possible_email(names::BEYOND_ASCII),
            Self::Hostname => names::POSSIBLE_HOSTNAME.to_owned(),
            Self::IdnHostname => names::possible_idn_hostname(),
            Self::IpAddress
            | Self::IpInterface
            | Self::IpNetwork
            | Self::Ipv4Interface
            | Self::Ipv4Network
            | Self::Ipv6Interface
            | Self::Ipv6Network => addresses::POSSIBLE_NETWORK.to_owned(),
            Self::Uri => uris::Kind::Uri.absolute(),
            Self::UriReference => uris::Kind::Uri.reference(),
            Self::Iri => uris::Kind::Iri.absolute(),
            Self::IriReference => uris::Kind::Iri.reference(),
            Self::MultiHostUri => "(?s:.*:.*)".to_owned(),
            Self::UriTemplate => uris::possible_template(),
            Self::RelativeJsonPointer => texts::possible_relative_json_pointer(),
            Self::Base64 => texts::POSSIBLE_BASE64.to_owned(),
            Self::Base64Url => texts::POSSIBLE_BASE64_URL.to_owned(),
            Self::Fraction => texts::POSSIBLE_FRACTION.to_owned(),
            _ => return self.surely(meter),
        };
        regex(&grammar, meter)
    }
}

/// The automaton of strings of one of two formats.
fn either(formats: [Format; 2], meter: &Meter) -> Result<ByteDfa> {
    let [one, other] = formats.map(|format| format.surely(meter));
    one?.product(&other?, Op::Union, meter)
}

/// The automaton of a regex of the crate `regex`, matched as a whole.
fn regex(grammar: &str, meter: &Meter) -> Result<ByteDfa> {
    Regex::parse(grammar)?.lower(meter)
}

#[cfg(test)]
mod tests;
