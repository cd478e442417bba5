//! The grammar of number texts, and what is computed of a number's value while its digits are read.

use std::hash::Hash;

use crate::automaton::{ByteDfa, FastMap, RawDfa};
use crate::error::Result;
use crate::limits::Meter;

/// The part of a text that a digit is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Whole,
    Fraction,
}

/// Selects number texts: what to remember about a number's value while its digits are read, and which texts to keep.
pub(super) trait Reading {
    /// What is remembered.
    type Value: Copy + Eq + Hash;

    /// The value before the first digit, after `-` or without it.
    fn start(&self, negative: bool) -> Self::Value;

    /// The value after one more digit, 0 to 9; `None` if no text that continues so is kept.
    fn digit(&self, value: Self::Value, part: Part, digit: u8) -> Option<Self::Value>;

    /// The value after the point; `None` if no text that continues so is kept.
    fn point(&self, value: Self::Value) -> Option<Self::Value>;

    /// Whether to keep a text that ends here, after a digit of `part`.
    fn keeps(&self, value: Self::Value, part: Part) -> bool;

    /// Whether an exponent may follow a text that is kept.
    fn exponents(&self) -> bool {
        false
    }
}

/// The position in the grammar.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place<V> {
    Start,
    /// After `-`.
    Sign(V),
    /// After a digit. `open` says whether another digit may follow, which is not so after a leading `0`.
    Digit {
        value: V,
        part: Part,
        open: bool,
    },
    /// After the point.
    Point(V),
    /// After `e` or `E`.
    Exponent,
    /// After the sign of the exponent.
    ExponentSign,
    /// After one or two digits of it.
    ExponentDigit(u8),
}

/// The automaton of the texts that `reading` keeps.
///
/// # Errors
/// Where a limit is breached.
pub(super) fn determinize<R: Reading>(reading: &R, meter: &Meter) -> Result<ByteDfa> {
    let mut raw = RawDfa::over_bytes();
    let mut numbers = FastMap::default();
    let mut places = vec![Place::Start];
    numbers.insert(Place::Start, 1);
    raw.set_start(1);
    let mut at = 0;
    while let Some(&place) = places.get(at) {
        let mut runs = Vec::with_capacity(16);
        for &byte in b"+-.0123456789Ee" {
            if let Some(next) = place.next(byte, reading) {
                let number = *numbers.entry(next).or_insert_with(|| {
                    places.push(next);
                    places.len() as u32
                });
                runs.push((byte, byte, number));
            }
        }
        raw.push(place.accepts(reading), runs);
        at += 1;
        if at % 1024 == 0 {
            raw.check(meter)?;
            meter.states(places.len())?;
        }
    }
    raw.minimize(meter)
}

impl<V: Copy + Eq + Hash> Place<V> {
    fn next<R: Reading<Value = V>>(self, byte: u8, reading: &R) -> Option<Self> {
        let digit = |value, part| {
            let value = reading.digit(value, part, byte - b'0')?;
            Some(Self::Digit { value, part, open: true })
        };
        match (self, byte) {
            (Self::Start, b'-') => Some(Self::Sign(reading.start(true))),
            (Self::Start, b'0'..=b'9') => Self::Sign(reading.start(false)).next(byte, reading),
            (Self::Sign(value), b'0') => {
                let value = reading.digit(value, Part::Whole, 0)?;
                Some(Self::Digit { value, part: Part::Whole, open: false })
            }
            (Self::Sign(value), b'1'..=b'9') => digit(value, Part::Whole),
            (Self::Digit { value, part, open: true }, b'0'..=b'9') => digit(value, part),
            (Self::Digit { value, part: Part::Whole, .. }, b'.') => reading.point(value).map(Self::Point),
            (Self::Point(value), b'0'..=b'9') => digit(value, Part::Fraction),
            (Self::Digit { value, part, .. }, b'e' | b'E') => {
                (reading.exponents() && reading.keeps(value, part)).then_some(Self::Exponent)
            }
            (Self::Exponent, b'+' | b'-') => Some(Self::ExponentSign),
            (Self::Exponent | Self::ExponentSign, b'0'..=b'9') => Some(Self::ExponentDigit(1)),
            (Self::ExponentDigit(1), b'0'..=b'9') => Some(Self::ExponentDigit(2)),
            _ => None,
        }
    }

    fn accepts<R: Reading<Value = V>>(self, reading: &R) -> bool {
        match self {
            Self::Digit { value, part, .. } => reading.keeps(value, part),
            Self::ExponentDigit(_) => true,
            _ => false,
        }
    }
}
