//! The grammar of number texts, and the computation on a number's value while its digits are read.

use std::hash::Hash;

use super::Notation;
use burn_dfa_automata::{ByteDfa, Rows, Run};
use burn_dfa_common::{Result, limits::Meter};

/// The part of a number with the current digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum NumberPart {
    Whole,
    Fraction,
}

/// Selects number texts: what to remember about a number's value while its digits are read, and
/// which texts to keep.
pub(super) trait Reading {
    /// The remembered value.
    type Value: Copy + Eq + Hash;

    /// The value before the first digit, after `-` or without it.
    fn start(&self, negative: bool) -> Self::Value;

    /// The value after one more digit, 0 to 9; `None` if no continuation is kept.
    fn digit(&self, value: Self::Value, part: NumberPart, digit: u8) -> Option<Self::Value>;

    /// The value after the point; `None` if no continuation is kept.
    fn point(&self, value: Self::Value) -> Option<Self::Value>;

    /// Whether to keep a text that ends here, after a digit of `part`.
    fn keeps(&self, value: Self::Value, part: NumberPart) -> bool;

    /// The exponents that may follow a number with one non-zero digit before the point.
    fn exponents(&self, value: Self::Value) -> Exponents;

    /// The accepted spellings.
    fn notation(&self) -> Notation {
        Notation::Wide
    }
}

/// Exponents from a first one to a last one; none if the first is greater. They have at most two
/// digits, because implementations with 64-bit floats reject `1e400`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Exponents {
    first: i8,
    last: i8,
}

impl Exponents {
    /// The greatest exponent.
    pub(super) const MAX: i64 = 99;
    pub(super) const ALL: Self = Self { first: -(Self::MAX as i8), last: Self::MAX as i8 };
    pub(super) const NONE: Self = Self { first: 1, last: 0 };

    /// The exponents of two digits at most from `first` to `last`.
    pub(super) fn new(first: i64, last: i64) -> Self {
        let (first, last) = (first.max(-Self::MAX), last.min(Self::MAX));
        if first > last { Self::NONE } else { Self { first: first as i8, last: last as i8 } }
    }

    /// The absolute values of the exponents with this sign.
    fn signed(self, negative: bool) -> Self {
        let (first, last) = if negative { (-self.last, -self.first) } else { (self.first, self.last) };
        if self.is_empty() { Self::NONE } else { Self::new(first.max(0).into(), last.into()) }
    }

    /// The second digits of the exponents with first digit `digit`.
    fn behind(self, digit: i8) -> Self {
        let ten = 10 * digit;
        if self.is_empty() {
            return Self::NONE;
        }
        Self::new(i64::from(self.first - ten).max(0), i64::from(self.last - ten).min(9))
    }

    fn contain(self, exponent: i8) -> bool {
        (self.first..=self.last).contains(&exponent)
    }

    fn is_empty(self) -> bool {
        self.first > self.last
    }
}

/// The digits before an exponent.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Mantissa {
    /// Zeros.
    Zero,
    /// One non-zero digit before the point.
    Normal,
    /// Any other number.
    Other,
}

/// The state of a number in its grammar.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum NumberState<V> {
    Start,
    /// After `-`.
    Sign(V),
    /// After a digit. `open`: another digit may follow, unlike after a leading `0`.
    Digit {
        value: V,
        part: NumberPart,
        open: bool,
        mantissa: Mantissa,
    },
    /// After the point.
    Point(V, Mantissa),
    /// After `e` or `E`.
    Exponent(Exponents),
    /// After the sign of the exponent, with the possible absolute values.
    ExponentSign(Exponents),
    /// After the first digit of the exponent: whether the text may end, and the possible second
    /// digits.
    ExponentDigit(bool, Exponents),
}

/// The automaton of the texts kept by `reading`.
///
/// # Errors
/// A limit is exceeded.
pub(super) fn determinize<R: Reading>(reading: &R, meter: &Meter) -> Result<ByteDfa> {
    let rows = Rows::explore(NumberState::Start, meter, |state, states, runs| {
        for &byte in b"+-.0123456789Ee" {
            if let Some(next) = state.next(byte, reading) {
                runs.push(Run { first: byte, last: byte, target: states.state(next) });
            }
        }
        state.accepts(reading)
    })?;
    rows.minimize(1, meter)
}

impl<V: Copy + Eq + Hash> NumberState<V> {
    fn next<R: Reading<Value = V>>(self, byte: u8, reading: &R) -> Option<Self> {
        let digit = |value, part, mantissa| {
            let value = reading.digit(value, part, byte - b'0')?;
            let mantissa =
                if mantissa == Mantissa::Zero && byte != b'0' { Mantissa::Other } else { mantissa };
            Some(Self::Digit { value, part, open: true, mantissa })
        };
        match (self, byte) {
            (Self::Start, b'-') => Some(Self::Sign(reading.start(true))),
            (Self::Start, b'0'..=b'9') => Self::Sign(reading.start(false)).next(byte, reading),
            (Self::Sign(value), b'0') => {
                let value = reading.digit(value, NumberPart::Whole, 0)?;
                Some(Self::Digit { value, part: NumberPart::Whole, open: false, mantissa: Mantissa::Zero })
            }
            (Self::Sign(value), b'1'..=b'9') => digit(value, NumberPart::Whole, Mantissa::Normal),
            (Self::Digit { value, part: NumberPart::Whole, open: true, .. }, b'0'..=b'9') => {
                digit(value, NumberPart::Whole, Mantissa::Other)
            }
            (Self::Digit { value, part: NumberPart::Fraction, mantissa, .. }, b'0'..=b'9') => {
                digit(value, NumberPart::Fraction, mantissa)
            }
            (Self::Digit { value, part: NumberPart::Whole, mantissa, .. }, b'.') => {
                Some(Self::Point(reading.point(value)?, mantissa))
            }
            (Self::Point(value, mantissa), b'0'..=b'9') => digit(value, NumberPart::Fraction, mantissa),
            (Self::Digit { value, part, mantissa, .. }, b'e' | b'E') => {
                let exponents = match (reading.notation(), mantissa) {
                    (Notation::Digits, _) | (Notation::Wide, Mantissa::Other) => Exponents::NONE,
                    (Notation::Wide, Mantissa::Normal) => reading.exponents(value),
                    (Notation::Wide, Mantissa::Zero) | (Notation::Free, _) if reading.keeps(value, part) => {
                        Exponents::ALL
                    }
                    _ => Exponents::NONE,
                };
                (!exponents.is_empty()).then_some(Self::Exponent(exponents))
            }
            (Self::Exponent(exponents), b'+' | b'-') => {
                let exponents = exponents.signed(byte == b'-');
                (!exponents.is_empty()).then_some(Self::ExponentSign(exponents))
            }
            (Self::Exponent(exponents), b'0'..=b'9') => {
                Self::ExponentSign(exponents.signed(false)).next(byte, reading)
            }
            (Self::ExponentSign(exponents), b'0'..=b'9') => {
                let digit = (byte - b'0') as i8;
                Some(Self::ExponentDigit(exponents.contain(digit), exponents.behind(digit)))
            }
            (Self::ExponentDigit(_, second), b'0'..=b'9') => {
                second.contain((byte - b'0') as i8).then_some(Self::ExponentDigit(true, Exponents::NONE))
            }
            _ => None,
        }
    }

    fn accepts<R: Reading<Value = V>>(self, reading: &R) -> bool {
        match self {
            Self::Digit { value, part, .. } => reading.keeps(value, part),
            Self::ExponentDigit(ends, _) => ends,
            _ => false,
        }
    }
}
