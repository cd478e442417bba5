//! Exact decimal numbers.

use std::cmp::Ordering;

use serde_json::Number;

/// An exact decimal number: a sign and digits, so that any JSON number fits and nothing is rounded.
///
/// Equal values are equal: `1.0` is `1`, and `-0` is `0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Decimal {
    /// Never of zero.
    negative: bool,
    /// Digits before the point, 0 to 9, without leading zeros.
    whole: Vec<u8>,
    /// Digits after the point, without trailing zeros.
    fraction: Vec<u8>,
}

impl Decimal {
    /// The value of a JSON number: of an integer exactly, of a float the shortest decimal that reads back as
    /// the same float.
    pub(in super::super) fn new(number: &Number) -> Self {
        let text = number.to_string();
        if text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) {
            return Self::read(&text);
        }
        // Beyond the floats there is nothing, unless another crate turns on arbitrary precision.
        let beyond = if text.starts_with('-') { f64::MIN } else { f64::MAX };
        // Floats are displayed by their shortest decimal, without exponent.
        Self::read(&number.as_f64().unwrap_or(beyond).to_string())
    }

    /// The value of a text without exponent.
    fn read(text: &str) -> Self {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let digits = |text: &str| text.bytes().map(|byte| byte - b'0').collect::<Vec<u8>>();
        let whole = digits(whole.trim_start_matches('0'));
        let fraction = digits(fraction.trim_end_matches('0'));
        let zero = whole.is_empty() && fraction.is_empty();
        Self { negative: negative && !zero, whole, fraction }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    pub(super) fn is_negative(&self) -> bool {
        self.negative
    }

    /// Digits before the point, 0 to 9, without leading zeros.
    pub(super) fn whole(&self) -> &[u8] {
        &self.whole
    }

    /// Digits after the point, 0 to 9, without trailing zeros.
    pub(super) fn fraction(&self) -> &[u8] {
        &self.fraction
    }

    /// The one plain text: no exponent, no needless zeros.
    pub(in super::super) fn text(&self) -> String {
        let mut text = String::from(if self.negative { "-" } else { "" });
        let zero = if self.whole.is_empty() { &[0u8][..] } else { &[] };
        text.extend(zero.iter().chain(&self.whole).map(|&digit| char::from(b'0' + digit)));
        if !self.fraction.is_empty() {
            text.push('.');
            text.extend(self.fraction.iter().map(|&digit| char::from(b'0' + digit)));
        }
        text
    }

    /// By distance from zero.
    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        let by_length = self.whole.len().cmp(&other.whole.len());
        by_length.then_with(|| self.whole.cmp(&other.whole)).then_with(|| self.fraction.cmp(&other.fraction))
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self::read(&value.to_string())
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
