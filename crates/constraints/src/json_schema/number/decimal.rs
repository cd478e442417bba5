//! Exact decimal numbers.

use std::cmp::Ordering;
use std::fmt;

/// Most digits of a number, before and after its point together, if its exponent gives it more
/// digits than its text has characters.
const MAX_PLACES: u64 = 4_096;

/// An exact decimal number: a sign, digits and the position of the point. It holds any JSON number
/// without rounding.
///
/// Equal values are equal: `1.0` is `1`, `10e-1` too, and `-0` is `0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    /// False for zero.
    negative: bool,
    /// Digits, 0 to 9, without zeros at either end; empty for zero.
    digits: Vec<u8>,
    /// The number of digits before the point. It is negative if zeros follow the point before the
    /// first digit, and greater than the number of digits if zeros follow the last one. 0 for zero.
    point: i64,
}

/// A number with too many digits because of its exponent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TooLong(String);

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 40;
        let number = if self.0.len() > SHOWN { "the number" } else { &self.0 };
        write!(
            f,
            "{number} has more than {MAX_PLACES} places once it is written without its exponent, the most that are read; use a smaller exponent"
        )
    }
}

impl Decimal {
    /// The value of a JSON number's text.
    ///
    /// # Errors
    /// The exponent produces too many digits.
    pub(in super::super) fn parse(text: &str) -> Result<Self, TooLong> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
        let Some(first) = digits.iter().position(|&digit| digit != 0) else {
            return Ok(Self::from(0));
        };
        digits.drain(..first);
        let last = digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1);
        digits.truncate(last);
        let too_long = || TooLong(text.to_owned());
        let exponent: i64 = exponent.parse().map_err(|_| too_long())?;
        let point = exponent.checked_add(whole.len() as i64 - first as i64).ok_or_else(too_long)?;
        let places = point.max(0).saturating_add((digits.len() as i64).saturating_sub(point).max(0));
        if places.unsigned_abs() > MAX_PLACES.max(text.len() as u64) {
            return Err(too_long());
        }
        Ok(Self { negative, digits, point })
    }

    /// The number of its digits without zeros at either end.
    pub(in super::super) fn len(&self) -> usize {
        self.digits.len()
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(in super::super) fn is_negative(&self) -> bool {
        self.negative
    }

    pub(in super::super) fn is_positive(&self) -> bool {
        !self.negative && !self.is_zero()
    }

    /// Whether it has no digits after the point.
    pub(in super::super) fn is_integer(&self) -> bool {
        self.digits.len() as i64 <= self.point
    }

    /// The number as a count, if it is a nonnegative integer; saturated to 64 bits.
    pub(in super::super) fn as_count(&self) -> Option<u64> {
        if self.negative || !self.is_integer() {
            return None;
        }
        let shift = |count: u64, digit: u8| count.saturating_mul(10).saturating_add(digit.into());
        Some(self.whole().into_iter().fold(0, shift))
    }

    /// The greatest integer not above the number, if it fits.
    pub(in super::super) fn floor(&self) -> Option<i64> {
        let toward_zero = self
            .whole()
            .into_iter()
            .try_fold(0i64, |value, digit| value.checked_mul(10)?.checked_add(digit.into()))?;
        match self.negative {
            true => (-toward_zero).checked_sub(i64::from(!self.is_integer())),
            false => Some(toward_zero),
        }
    }

    /// Digits before the point, 0 to 9, without leading zeros.
    pub(super) fn whole(&self) -> Vec<u8> {
        let Ok(places) = usize::try_from(self.point) else { return Vec::new() };
        let mut whole = self.digits[..places.min(self.digits.len())].to_vec();
        whole.resize(places, 0);
        whole
    }

    /// Digits after the point, 0 to 9, without trailing zeros.
    pub(super) fn fraction(&self) -> Vec<u8> {
        match usize::try_from(self.point) {
            Ok(places) => self.digits.get(places..).unwrap_or_default().to_vec(),
            Err(_) => {
                let zeros = self.point.unsigned_abs() as usize;
                let mut fraction = vec![0; zeros];
                fraction.extend(&self.digits);
                fraction
            }
        }
    }

    /// Its digits without zeros at either end, and the exponent that puts the first digit before
    /// the point.
    pub(super) fn scientific(&self) -> (&[u8], i64) {
        (&self.digits, self.point - 1)
    }

    /// The text without an exponent and without needless zeros.
    pub(in super::super) fn text(&self) -> String {
        let (whole, fraction) = (self.whole(), self.fraction());
        let mut text = String::from(if self.negative { "-" } else { "" });
        let zero = if whole.is_empty() { &[0u8][..] } else { &[] };
        text.extend(zero.iter().chain(&whole).map(|&digit| char::from(b'0' + digit)));
        if !fraction.is_empty() {
            text.push('.');
            text.extend(fraction.iter().map(|&digit| char::from(b'0' + digit)));
        }
        text
    }

    /// A text with about as many characters as the number has digits: without an exponent, unless
    /// the text would be mostly zeros.
    pub(in super::super) fn short_text(&self) -> String {
        const ZEROS: i64 = 20;
        let exponent = self.point - self.digits.len() as i64;
        if exponent <= ZEROS && self.point >= -ZEROS {
            return self.text();
        }
        let sign = if self.negative { "-" } else { "" };
        let digits: String = self.digits.iter().map(|&digit| char::from(b'0' + digit)).collect();
        format!("{sign}{digits}e{exponent}")
    }

    /// Compares the absolute values.
    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        let by_zero = other.is_zero().cmp(&self.is_zero());
        by_zero.then(self.point.cmp(&other.point)).then_with(|| self.digits.cmp(&other.digits))
    }
}

impl From<i128> for Decimal {
    fn from(value: i128) -> Self {
        let digits: Vec<u8> = value.unsigned_abs().to_string().bytes().map(|byte| byte - b'0').collect();
        let significant = digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1);
        let point = if significant == 0 { 0 } else { digits.len() as i64 };
        Self { negative: value < 0, digits: digits[..significant].to_vec(), point }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
            (negative, _) => negative.cmp(&other.negative).reverse(),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
