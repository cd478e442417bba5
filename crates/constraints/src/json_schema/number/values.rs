//! Selections of number texts: by spelling, by comparison with a bound, by divisibility.

use std::cmp::Ordering;

use super::text::{Exponents, NumberPart, Reading};
use super::{Decimal, Notation};
use crate::json_schema::format::Certainty;
use burn_dfa_common::{Error, Limit, Result, limits::Meter};

/// Selects texts by their spelling.
pub(super) struct Spellings {
    pub(super) notation: Notation,
    /// Most digits of the whole part, and of the fraction.
    pub(super) max_digits: Option<usize>,
}

/// The remembered facts about the digits of a part.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Spelt {
    /// Whether a sign was read, which zero must not have.
    negative: bool,
    /// The number of digits of the part, if it is bounded.
    digits: usize,
}

impl Reading for Spellings {
    type Value = Spelt;

    fn start(&self, negative: bool) -> Spelt {
        Spelt { negative: negative && self.notation == Notation::Digits, digits: 0 }
    }

    fn digit(&self, mut value: Spelt, _: NumberPart, digit: u8) -> Option<Spelt> {
        value.negative &= digit == 0;
        if let Some(max) = self.max_digits {
            value.digits += 1;
            return (value.digits <= max).then_some(value);
        }
        Some(value)
    }

    fn point(&self, _: Spelt) -> Option<Spelt> {
        (self.notation != Notation::Digits).then_some(Spelt { negative: false, digits: 0 })
    }

    fn keeps(&self, value: Spelt, _: NumberPart) -> bool {
        !value.negative
    }

    fn exponents(&self, _: Spelt) -> Exponents {
        Exponents::ALL
    }

    fn notation(&self) -> Notation {
        self.notation
    }
}

/// Selects texts by comparing their value with a bound.
pub(super) struct Comparison<'a> {
    bound: &'a Decimal,
    /// Digits of the bound before the point, `0` included.
    whole: Vec<u8>,
    /// Digits of the bound after the point.
    fraction: Vec<u8>,
    /// Digits of the bound from the first non-zero one on, and the exponent that puts the first of
    /// them before the point.
    digits: &'a [u8],
    exponent: i64,
    /// Whether to keep a value with this order relative to the bound.
    keep: fn(Ordering) -> bool,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(bound: &'a Decimal, keep: fn(Ordering) -> bool) -> Self {
        let whole = bound.whole();
        let whole = if whole.is_empty() { vec![0] } else { whole };
        let (digits, exponent) = bound.scientific();
        Self { bound, whole, fraction: bound.fraction(), digits, exponent, keep }
    }
}

/// The comparison of the digits so far with the bound's.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Compared {
    /// The signs differ, which decides the comparison.
    Known(Ordering),
    Digits {
        /// Both numbers are negative.
        negative: bool,
        /// With the digits in the same positions.
        ordering: Ordering,
        /// The number of digits of the part so far, up to one more than the bound has.
        read: usize,
        /// From the first digit on, as if an exponent followed; `None` if no exponent may follow.
        scientific: Option<(Ordering, usize)>,
    },
}

impl Reading for Comparison<'_> {
    type Value = Compared;

    fn start(&self, negative: bool) -> Compared {
        match (negative, self.bound.is_negative()) {
            (false, true) => Compared::Known(Ordering::Greater),
            (true, false) if !self.bound.is_zero() => Compared::Known(Ordering::Less),
            _ => Compared::Digits { negative, ordering: Ordering::Equal, read: 0, scientific: None },
        }
    }

    fn digit(&self, value: Compared, part: NumberPart, digit: u8) -> Option<Compared> {
        let Compared::Digits { negative, ordering, read, scientific } = value else { return Some(value) };
        let scientific = match (part, scientific) {
            (NumberPart::Whole, _) if read == 0 && digit != 0 => Some((Ordering::Equal, 0)),
            (NumberPart::Whole, _) => None,
            (NumberPart::Fraction, scientific) => scientific,
        };
        let scientific = scientific.map(|(ordering, read)| match self.digits.get(read) {
            _ if ordering.is_ne() => (ordering, 0),
            Some(same) => (digit.cmp(same), if digit == *same { read + 1 } else { 0 }),
            None => (digit.cmp(&0), if digit == 0 { read } else { 0 }),
        });
        let (ordering, read) = match part {
            // A number with more digits before the point is greater.
            NumberPart::Whole => match self.whole.get(read) {
                Some(same) => (ordering.then(digit.cmp(same)), read + 1),
                None => (Ordering::Greater, self.whole.len() + 1),
            },
            NumberPart::Fraction if ordering.is_ne() => (ordering, 0),
            NumberPart::Fraction => match self.fraction.get(read) {
                Some(same) => (digit.cmp(same), read + 1),
                None => (digit.cmp(&0), read),
            },
        };
        Some(Compared::Digits { negative, ordering, read, scientific })
    }

    fn point(&self, value: Compared) -> Option<Compared> {
        let Compared::Digits { negative, ordering, read, scientific } = value else { return Some(value) };
        let ordering = read.cmp(&self.whole.len()).then(ordering);
        Some(Compared::Digits { negative, ordering, read: 0, scientific })
    }

    fn keeps(&self, value: Compared, part: NumberPart) -> bool {
        let ordering = match value {
            Compared::Known(ordering) => ordering,
            Compared::Digits { negative, ordering, read, .. } => {
                // The last digit of a fraction is not zero.
                let fraction = self.fraction.len();
                let ordering = match part {
                    NumberPart::Whole => read.cmp(&self.whole.len()).then(ordering).then(0.cmp(&fraction)),
                    NumberPart::Fraction => ordering.then(read.cmp(&fraction)),
                };
                if negative { ordering.reverse() } else { ordering }
            }
        };
        (self.keep)(ordering)
    }

    fn exponents(&self, value: Compared) -> Exponents {
        let (negative, ordering) = match value {
            Compared::Known(ordering) if (self.keep)(ordering) => return Exponents::ALL,
            Compared::Digits { negative, scientific: Some((ordering, read)), .. } => {
                // The last digit of the bound is not zero.
                (negative, ordering.then(read.cmp(&self.digits.len())))
            }
            _ => return Exponents::NONE,
        };
        let keeps = |ordering: Ordering| (self.keep)(if negative { ordering.reverse() } else { ordering });
        if self.bound.is_zero() {
            return if keeps(Ordering::Greater) { Exponents::ALL } else { Exponents::NONE };
        }
        // Greater exponents make greater numbers, so the kept exponents are a range.
        let same = self.exponent;
        let ranges = [
            (Ordering::Less, -Exponents::MAX, same - 1),
            (ordering, same, same),
            (Ordering::Greater, same + 1, Exponents::MAX),
        ];
        let mut kept = ranges.iter().filter(|(ordering, ..)| keeps(*ordering));
        match (kept.clone().next(), kept.next_back()) {
            (Some((_, first, _)), Some((.., last))) => Exponents::new(*first, *last),
            _ => Exponents::NONE,
        }
    }
}

/// Selects the texts of integer multiples of a step.
///
/// The step is `factor` · 10^`zeros` or `factor` / 10^`places`, where `factor` is not a multiple of
/// ten.
///
/// Before an exponent, a fraction of zeros is decided. Other fractions are possibly multiples,
/// unless the number is smaller than the step.
pub(super) struct Multiples {
    factor: u64,
    /// The number of zeros at the end of the step, and of every multiple, before the point.
    zeros: usize,
    /// 10^i modulo the factor: up to the digits of the step's fraction, or up to one more than its
    /// zeros.
    powers: Vec<u64>,
    /// The number of digits of the step's fraction; 0 if `zeros` is not.
    places: usize,
    /// The exponent of the step with one digit before the point.
    exponent: i64,
    certainty: Certainty,
}

impl Multiples {
    /// The multiples of a non-zero step; its sign does not matter.
    pub(super) fn new(step: &Decimal, certainty: Certainty, meter: &Meter) -> Result<Self> {
        let mut digits = [step.whole(), step.fraction()].concat();
        let places = step.fraction().len();
        let significant = digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1);
        let zeros = digits.len() - significant;
        digits.truncate(significant);
        // The number of states grows with the factor, so a large factor is rejected before states
        // are made.
        let factor = digits.iter().try_fold(0u64, |factor, &digit| {
            factor.checked_mul(10)?.checked_add(digit.into()).filter(|&factor| u32::try_from(factor).is_ok())
        });
        let Some(factor) = factor else {
            return Err(Error::limit(Limit::States(meter.limits().states)));
        };
        let powers = std::iter::successors(Some(1 % factor), |power| Some(power * 10 % factor));
        let powers = powers.take(zeros.max(places) + 2).collect();
        let (_, exponent) = step.scientific();
        Ok(Self { factor, zeros, places, powers, exponent, certainty })
    }

    /// The least exponent that makes `digit` a multiple.
    fn least_exponent(&self, digit: u8) -> Option<i64> {
        let last = self.zeros as i64 - self.places as i64;
        // A factor has as many factors of 2 or 5 at most as it has bits.
        let powers = std::iter::successors(Some(u64::from(digit)), |power| Some(power * 10 % self.factor));
        let at = powers.take(u64::BITS as usize).position(|power| power % self.factor == 0)?;
        Some(last + at as i64)
    }
}

/// The remembered facts about the value so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Remainder {
    /// `None` if the value without an exponent is no multiple, regardless of the next digits.
    plain: Option<Plain>,
    first: First,
}

/// The state of a number without an exponent.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Plain {
    /// The remainder modulo the factor: of the digits without the zeros counted by `at`, times
    /// 10^`places`.
    remainder: u64,
    /// Before the point the number of zeros at the end, up to `zeros`. After the point the number
    /// of digits, up to `places`; further digits have to be 0.
    at: usize,
}

/// The state of a number before its exponent, if an exponent follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum First {
    /// No digit yet.
    Start,
    /// One digit before the point, and zeros after it: the least exponent that makes a multiple.
    Only(Option<i64>),
    /// With a fraction.
    Fraction,
    /// Any other digits.
    Other,
}

impl Multiples {
    fn plain(&self, Plain { remainder, at }: Plain, part: NumberPart, digit: u64) -> Option<Plain> {
        // Factors are below 2^32, so products of remainders fit.
        let reduced = |value: u64| value % self.factor;
        Some(match part {
            NumberPart::Whole if digit == 0 && at < self.zeros => Plain { remainder, at: at + 1 },
            NumberPart::Whole if digit == 0 => Plain { remainder: reduced(remainder * 10), at },
            NumberPart::Whole => {
                let before = reduced(remainder * self.powers[1 + at]);
                Plain { remainder: reduced(before + digit * self.powers[self.places]), at: 0 }
            }
            NumberPart::Fraction if at < self.places => {
                let place = self.places - at - 1;
                Plain { remainder: reduced(remainder + digit * self.powers[place]), at: at + 1 }
            }
            NumberPart::Fraction if digit == 0 => Plain { remainder, at },
            NumberPart::Fraction => return None,
        })
    }
}

impl Reading for Multiples {
    type Value = Remainder;

    fn start(&self, _: bool) -> Remainder {
        Remainder { plain: Some(Plain { remainder: 0, at: self.zeros }), first: First::Start }
    }

    fn digit(&self, value: Remainder, part: NumberPart, digit: u8) -> Option<Remainder> {
        let plain = value.plain.and_then(|plain| self.plain(plain, part, digit.into()));
        let first = match (value.first, part) {
            (First::Start, _) if digit == 0 => First::Other,
            (First::Start, _) => First::Only(self.least_exponent(digit)),
            (_, NumberPart::Whole) => First::Other,
            (First::Only(_), _) if digit != 0 && self.certainty == Certainty::Surely => First::Other,
            (First::Only(_), _) if digit != 0 => First::Fraction,
            (first, _) => first,
        };
        (plain.is_some() || first != First::Other).then_some(Remainder { plain, first })
    }

    fn point(&self, value: Remainder) -> Option<Remainder> {
        // Digits after the point cannot make up for missing zeros before it.
        let plain = value.plain.filter(|plain| plain.at == self.zeros);
        let plain = plain.map(|plain| Plain { at: 0, ..plain });
        (plain.is_some() || value.first != First::Other).then_some(Remainder { plain, ..value })
    }

    fn keeps(&self, value: Remainder, part: NumberPart) -> bool {
        let is_multiple =
            |plain: Plain| plain.remainder == 0 && (part == NumberPart::Fraction || plain.at == self.zeros);
        value.plain.is_some_and(is_multiple)
    }

    fn exponents(&self, value: Remainder) -> Exponents {
        match value.first {
            First::Only(Some(least)) => Exponents::new(least, Exponents::MAX),
            First::Fraction => Exponents::new(self.exponent, Exponents::MAX),
            _ => Exponents::NONE,
        }
    }
}
