//! Selections of number texts: by spelling, by comparison with a bound, by divisibility.

use std::cmp::Ordering;

use super::text::{Part, Reading};
use super::{Decimal, Form};
use crate::error::{Error, Limit, Result};
use crate::limits::Meter;

/// Selects texts by their spelling.
pub(super) struct Spellings {
    pub(super) form: Form,
    /// Most digits of the whole part, and of the fraction.
    pub(super) max_digits: Option<usize>,
    pub(super) exponents: bool,
}

/// What is remembered about the digits of a part.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Spelt {
    negative: bool,
    /// Whether a digit of the part is not zero.
    nonzero: bool,
    /// The number of digits of the part, if it is bounded.
    digits: usize,
}

impl Reading for Spellings {
    type Value = Spelt;

    fn start(&self, negative: bool) -> Spelt {
        Spelt { negative: negative && self.form == Form::Plain, nonzero: false, digits: 0 }
    }

    fn digit(&self, mut value: Spelt, _: Part, digit: u8) -> Option<Spelt> {
        value.nonzero |= digit != 0;
        if let Some(max) = self.max_digits {
            value.digits += 1;
            return (value.digits <= max).then_some(value);
        }
        Some(value)
    }

    fn point(&self, _: Spelt) -> Option<Spelt> {
        Some(Spelt { negative: false, nonzero: false, digits: 0 })
    }

    fn keeps(&self, value: Spelt, part: Part) -> bool {
        match (self.form, part) {
            (Form::Any, _) => true,
            (Form::Plain, Part::Whole) => value.nonzero || !value.negative,
            (Form::Plain, Part::Fraction) => value.nonzero,
        }
    }

    fn exponents(&self) -> bool {
        self.exponents
    }
}

/// Selects texts by comparing their value with a bound.
pub(super) struct Comparison<'a> {
    bound: &'a Decimal,
    /// Digits of the bound before the point, `0` included.
    whole: Vec<u8>,
    /// Digits of the bound after the point.
    fraction: Vec<u8>,
    /// Whether to keep a value that compares so with the bound.
    keep: fn(Ordering) -> bool,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(bound: &'a Decimal, keep: fn(Ordering) -> bool) -> Self {
        let whole = bound.whole();
        let whole = if whole.is_empty() { vec![0] } else { whole };
        Self { bound, whole, fraction: bound.fraction(), keep }
    }
}

/// The comparison of the digits so far with the bound's digits in the same positions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Compared {
    /// The signs differ, which decides the comparison.
    Known(Ordering),
    Digits {
        /// Both numbers are negative.
        negative: bool,
        ordering: Ordering,
        /// The number of digits of the part so far, up to one more than the bound has.
        read: usize,
    },
}

impl Reading for Comparison<'_> {
    type Value = Compared;

    fn start(&self, negative: bool) -> Compared {
        match (negative, self.bound.is_negative()) {
            (false, true) => Compared::Known(Ordering::Greater),
            (true, false) if !self.bound.is_zero() => Compared::Known(Ordering::Less),
            _ => Compared::Digits { negative, ordering: Ordering::Equal, read: 0 },
        }
    }

    fn digit(&self, value: Compared, part: Part, digit: u8) -> Option<Compared> {
        let Compared::Digits { negative, ordering, read } = value else { return Some(value) };
        let (ordering, read) = match part {
            // A number with more digits before the point is greater.
            Part::Whole => match self.whole.get(read) {
                Some(same) => (ordering.then(digit.cmp(same)), read + 1),
                None => (Ordering::Greater, self.whole.len() + 1),
            },
            Part::Fraction if ordering.is_ne() => (ordering, 0),
            Part::Fraction => match self.fraction.get(read) {
                Some(same) => (digit.cmp(same), read + 1),
                None => (digit.cmp(&0), read),
            },
        };
        Some(Compared::Digits { negative, ordering, read })
    }

    fn point(&self, value: Compared) -> Option<Compared> {
        let Compared::Digits { negative, ordering, read } = value else { return Some(value) };
        Some(Compared::Digits { negative, ordering: read.cmp(&self.whole.len()).then(ordering), read: 0 })
    }

    fn keeps(&self, value: Compared, part: Part) -> bool {
        let ordering = match value {
            Compared::Known(ordering) => ordering,
            Compared::Digits { negative, ordering, read } => {
                // The last digit of a fraction is not zero.
                let fraction = self.fraction.len();
                let ordering = match part {
                    Part::Whole => read.cmp(&self.whole.len()).then(ordering).then(0.cmp(&fraction)),
                    Part::Fraction => ordering.then(read.cmp(&fraction)),
                };
                if negative { ordering.reverse() } else { ordering }
            }
        };
        (self.keep)(ordering)
    }
}

/// Selects the texts of integer multiples of a step.
///
/// The step is `factor` · 10^`zeros` or `factor` / 10^`places`, where `factor` is not a multiple of ten.
pub(super) struct Multiples {
    factor: u64,
    /// The number of zeros that the step ends with before the point, as every multiple does.
    zeros: usize,
    /// 10^i modulo the factor: up to the digits of the step's fraction, or up to one more than its zeros.
    powers: Vec<u64>,
    /// The number of digits of the step's fraction; 0 if `zeros` is not.
    places: usize,
}

impl Multiples {
    /// The multiples of a step that is not zero; its sign does not matter.
    pub(super) fn new(step: &Decimal, meter: &Meter) -> Result<Self> {
        let mut digits = [step.whole(), step.fraction()].concat();
        let places = step.fraction().len();
        let significant = digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1);
        let zeros = digits.len() - significant;
        digits.truncate(significant);
        // The number of states grows with the factor, so a large factor is refused before states are made.
        let factor = digits.iter().try_fold(0u64, |factor, &digit| {
            factor.checked_mul(10)?.checked_add(digit.into()).filter(|&factor| u32::try_from(factor).is_ok())
        });
        let Some(factor) = factor else {
            return Err(Error::limit(Limit::States(meter.limits().states)));
        };
        let powers = std::iter::successors(Some(1 % factor), |power| Some(power * 10 % factor));
        Ok(Self { factor, zeros, places, powers: powers.take(zeros.max(places) + 2).collect() })
    }
}

/// What is remembered of the value so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Remainder {
    /// The remainder modulo the factor: of the digits without the zeros that `at` counts, times 10^`places`.
    remainder: u64,
    /// Before the point the number of zeros at the end, up to `zeros`. After the point the number of digits, up to
    /// `places`; further digits have to be 0.
    at: usize,
}

impl Reading for Multiples {
    type Value = Remainder;

    fn start(&self, _: bool) -> Remainder {
        Remainder { remainder: 0, at: self.zeros }
    }

    fn digit(&self, Remainder { remainder, at }: Remainder, part: Part, digit: u8) -> Option<Remainder> {
        let digit = u64::from(digit);
        // Factors are below 2^32, so that products of remainders fit.
        let reduced = |value: u64| value % self.factor;
        Some(match part {
            Part::Whole if digit == 0 && at < self.zeros => Remainder { remainder, at: at + 1 },
            Part::Whole if digit == 0 => Remainder { remainder: reduced(remainder * 10), at },
            Part::Whole => {
                let before = reduced(remainder * self.powers[1 + at]);
                Remainder { remainder: reduced(before + digit * self.powers[self.places]), at: 0 }
            }
            Part::Fraction if at < self.places => {
                let place = self.places - at - 1;
                Remainder { remainder: reduced(remainder + digit * self.powers[place]), at: at + 1 }
            }
            Part::Fraction if digit == 0 => Remainder { remainder, at },
            Part::Fraction => return None,
        })
    }

    fn point(&self, Remainder { remainder, at }: Remainder) -> Option<Remainder> {
        // Digits after the point cannot make up for missing zeros before it.
        (at == self.zeros).then_some(Remainder { remainder, at: 0 })
    }

    fn keeps(&self, Remainder { remainder, at }: Remainder, part: Part) -> bool {
        remainder == 0 && (part == Part::Fraction || at == self.zeros)
    }
}
