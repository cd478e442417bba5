//! Languages of the texts of JSON numbers.
//!
//! The largest language, here called W, is
//!
//! ```text
//! -?(0|[1-9][0-9]*)(\.[0-9]+)?  |  -?(0(\.0+)?|[1-9](\.[0-9]+)?)[eE][+-]?[0-9][0-9]?
//! ```
//!
//! W has the numbers of JSON without exponents, and the numbers with one digit before the point and
//! an exponent of at most two digits. A keyword such as `minimum` selects texts of W by their exact
//! decimal value; `-0`, `0` and `0.00` have one value, `1.5`, `1.50` and `15e-1` another. Other
//! mantissas before an exponent would take a state for each exponent and each number of digits;
//! they are written only if the value does not matter, see [`Notation::Free`].
//!
//! The allowed spellings of a value are a second language, a [`universe`], which is intersected
//! with the languages of the keywords.

mod decimal;
#[cfg(test)]
mod tests;
mod text;
mod values;

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

pub(super) use self::decimal::Decimal;
use self::text::{Exponents, determinize};
use self::values::{Comparison, Multiples, Spellings};
use super::format::Certainty;
use burn_dfa_automata::{ByteDfa, Expr};
use burn_dfa_common::{Result, limits::Meter};

/// The allowed spellings of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Notation {
    /// Digits alone, and a sign unless the number is zero.
    Digits,
    /// All of W.
    Wide,
    /// Every spelling of JSON with an exponent of at most two digits. For numbers of any value.
    Free,
}

/// The texts of W with values above `bound`, and `bound` itself unless `exclusive`.
///
/// # Errors
/// A limit is exceeded.
pub(super) fn at_least(bound: &Decimal, exclusive: bool, meter: &Meter) -> Result<ByteDfa> {
    let keep = if exclusive { Ordering::is_gt } else { Ordering::is_ge };
    determinize(&Comparison::new(bound, keep), meter)
}

/// The texts of W with values below `bound`, and `bound` itself unless `exclusive`.
///
/// # Errors
/// A limit is exceeded.
pub(super) fn at_most(bound: &Decimal, exclusive: bool, meter: &Meter) -> Result<ByteDfa> {
    let keep = if exclusive { Ordering::is_lt } else { Ordering::is_le };
    determinize(&Comparison::new(bound, keep), meter)
}

/// The texts of W with one of the values.
///
/// # Errors
/// A limit is exceeded.
pub(super) fn one_of<'a>(values: impl IntoIterator<Item = &'a Decimal>, meter: &Meter) -> Result<ByteDfa> {
    Expr::Union(values.into_iter().map(texts_of).collect()).determinize(meter)
}

/// The texts of W of one value.
fn texts_of(value: &Decimal) -> Expr {
    let literals = |texts: Vec<String>| Expr::Literals(texts.into_iter().map(String::into_bytes).collect());
    let literal = |text: &str| literals(vec![text.to_owned()]);
    let zeros = |min| Expr::Repeat { expr: Arc::new(literal("0")), min, max: None };
    // A point and zeros may follow digits, and more zeros a fraction.
    let padded = |text: String| {
        let has_point = text.contains('.');
        let rest = if has_point { zeros(0) } else { Expr::Concat(vec![literal("."), zeros(1)]) };
        let text = literal(&text);
        match has_point {
            true => Expr::Concat(vec![text, rest]),
            false => Expr::Concat(vec![text, Expr::Union(vec![literal(""), rest])]),
        }
    };
    let exponents = |written: &dyn Fn(i64) -> bool| {
        let mut texts = Vec::new();
        for (sign, negative) in [("", false), ("+", false), ("-", true)] {
            let kept = (0..=Exponents::MAX).filter(|&size| written(if negative { -size } else { size }));
            for size in kept {
                for digits in [format!("{size}"), format!("{size:02}")] {
                    texts.extend(["e", "E"].map(|letter| format!("{letter}{sign}{digits}")));
                }
            }
        }
        literals(texts)
    };
    if value.is_zero() {
        let exponent = Expr::Union(vec![literal(""), exponents(&|_| true)]);
        let sign = Expr::Union(vec![literal(""), literal("-")]);
        return Expr::Concat(vec![sign, padded("0".to_owned()), exponent]);
    }
    let (digits, own) = value.scientific();
    let mut mantissa = String::from(if value.is_negative() { "-" } else { "" });
    for (at, digit) in digits.iter().enumerate() {
        mantissa.extend((at == 1).then_some('.'));
        mantissa.push(char::from(b'0' + digit));
    }
    let scientific = Expr::Concat(vec![padded(mantissa), exponents(&|exponent| exponent == own)]);
    Expr::Union(vec![padded(value.text()), scientific])
}

/// The texts of W whose values are surely, or possibly, an integer times `step`; only zero if
/// `step` is zero. The two differ in texts with an exponent after a non-zero fraction.
///
/// The number of states grows with the digits of `step` without zeros at either end, read as a
/// number: `0.001` and `1000000` take few states, `1.234567` takes more than a million.
///
/// # Errors
/// A limit is exceeded.
pub(super) fn multiple_of(step: &Decimal, certainty: Certainty, meter: &Meter) -> Result<ByteDfa> {
    if step.is_zero() {
        return one_of([step], meter);
    }
    determinize(&Multiples::new(step, certainty, meter)?, meter)
}

/// The texts of W that are surely, or possibly, integers in the spellings of `notation`: for
/// [`Notation::Digits`], `7` and `-7` are surely integers, `7.00`, `7e2` and `-0` possibly; for the
/// other notations all of these surely.
///
/// # Errors
/// A limit is exceeded.
pub(super) fn integers(notation: Notation, certainty: Certainty, meter: &Meter) -> Result<ByteDfa> {
    static INTEGERS: [OnceLock<ByteDfa>; 2] = [const { OnceLock::new() }; 2];
    if (notation, certainty) == (Notation::Digits, Certainty::Surely) {
        return universe(notation, None, meter);
    }
    let make = || multiple_of(&Decimal::from(1), certainty, meter);
    common(&INTEGERS[usize::from(certainty == Certainty::Possibly)], make, meter)
}

/// The texts of a notation, with at most `max_digits` digits before the point and after it.
///
/// # Errors
/// A limit is exceeded.
pub(super) fn universe(notation: Notation, max_digits: Option<usize>, meter: &Meter) -> Result<ByteDfa> {
    static UNIVERSES: [OnceLock<ByteDfa>; 3] = [const { OnceLock::new() }; 3];
    let make = || determinize(&Spellings { notation, max_digits }, meter);
    match max_digits {
        None => common(&UNIVERSES[notation as usize], make, meter),
        Some(_) => make(),
    }
}

/// An automaton without arguments, made once.
fn common(cell: &OnceLock<ByteDfa>, make: impl Fn() -> Result<ByteDfa>, meter: &Meter) -> Result<ByteDfa> {
    let dfa = match cell.get() {
        Some(dfa) => dfa,
        None => {
            let dfa = make()?;
            cell.get_or_init(|| dfa)
        }
    };
    meter.states(dfa.state_count())?;
    Ok(dfa.clone())
}
