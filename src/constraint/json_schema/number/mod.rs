//! Languages of the texts of JSON numbers.
//!
//! The largest of them, here called W, is `-?(0|[1-9][0-9]*)(\.[0-9]+)?`: the numbers of JSON without exponents. A keyword
//! such as `minimum` selects texts of W by their exact decimal value; `-0`, `0` and `0.00` have one value, `1.5` and
//! `1.50` another. The spellings that a value may have are a second language, a [`universe`], which is intersected with
//! those of the keywords.

mod decimal;
#[cfg(test)]
mod tests;
mod text;
mod values;

use std::cmp::Ordering;
use std::sync::OnceLock;

pub(super) use self::decimal::Decimal;
use self::text::determinize;
use self::values::{Comparison, Multiples, Spellings};
use crate::automaton::ByteDfa;
use crate::error::Result;
use crate::limits::Meter;

/// The spellings that a value may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// An integer has no fraction and is never `-0`; other values have a fraction with a digit that is not zero,
    /// `1.50` included.
    Plain,
    /// Whatever JSON allows: `1.0`, `-0` and `-0.0` too.
    Any,
}

/// The texts of W of values above `bound`, and of `bound` itself unless it is `exclusive`.
///
/// # Errors
/// Where a limit is breached.
pub(super) fn at_least(bound: &Decimal, exclusive: bool, meter: &Meter) -> Result<ByteDfa> {
    let keep = if exclusive { Ordering::is_gt } else { Ordering::is_ge };
    determinize(&Comparison::new(bound, keep), meter)
}

/// The texts of W of values below `bound`, and of `bound` itself unless it is `exclusive`.
///
/// # Errors
/// Where a limit is breached.
pub(super) fn at_most(bound: &Decimal, exclusive: bool, meter: &Meter) -> Result<ByteDfa> {
    let keep = if exclusive { Ordering::is_lt } else { Ordering::is_le };
    determinize(&Comparison::new(bound, keep), meter)
}

/// All texts of W of this one value.
///
/// # Errors
/// Where a limit is breached.
pub(super) fn equal_to(value: &Decimal, meter: &Meter) -> Result<ByteDfa> {
    determinize(&Comparison::new(value, Ordering::is_eq), meter)
}

/// The texts of W of the values that are an integer times `step`; where `step` is zero that is zero alone.
///
/// The number of states grows with the digits of `step` without zeros at either end, read as a number: `0.001` and
/// `1000000` take few states, `1.234567` takes more than a million.
///
/// # Errors
/// Where a limit is breached.
pub(super) fn multiple_of(step: &Decimal, meter: &Meter) -> Result<ByteDfa> {
    if step.is_zero() {
        return equal_to(step, meter);
    }
    determinize(&Multiples::new(step, meter)?, meter)
}

/// The texts of W of integers: `7`, `7.00` and `-0` alike.
///
/// # Errors
/// Where a limit is breached.
pub(super) fn integers(meter: &Meter) -> Result<ByteDfa> {
    static INTEGERS: OnceLock<ByteDfa> = OnceLock::new();
    common(&INTEGERS, || multiple_of(&Decimal::from(1), meter), meter)
}

/// The texts of W of this form, with at most `max_digits` before the point and after it.
///
/// # Errors
/// Where a limit is breached.
pub(super) fn universe(form: Form, max_digits: Option<usize>, meter: &Meter) -> Result<ByteDfa> {
    static UNIVERSES: [OnceLock<ByteDfa>; 2] = [const { OnceLock::new() }; 2];
    spellings(&UNIVERSES, Spellings { form, max_digits, exponents: false }, meter)
}

/// The [`universe`], each text of it also with an exponent of one or two digits.
///
/// It is used if the schema does not restrict the value of numbers, since the languages of keywords have no exponents.
/// Exponents have at most two digits because implementations with 64-bit floats refuse `1e400`.
///
/// # Errors
/// Where a limit is breached.
pub(super) fn exponential(form: Form, max_digits: Option<usize>, meter: &Meter) -> Result<ByteDfa> {
    static EXPONENTIAL: [OnceLock<ByteDfa>; 2] = [const { OnceLock::new() }; 2];
    spellings(&EXPONENTIAL, Spellings { form, max_digits, exponents: true }, meter)
}

fn spellings(places: &[OnceLock<ByteDfa>; 2], spellings: Spellings, meter: &Meter) -> Result<ByteDfa> {
    let make = || determinize(&spellings, meter);
    match spellings.max_digits {
        None => common(&places[spellings.form as usize], make, meter),
        Some(_) => make(),
    }
}

/// An automaton without arguments, made once.
fn common(place: &OnceLock<ByteDfa>, make: impl Fn() -> Result<ByteDfa>, meter: &Meter) -> Result<ByteDfa> {
    let dfa = match place.get() {
        Some(dfa) => dfa,
        None => {
            let dfa = make()?;
            place.get_or_init(|| dfa)
        }
    };
    meter.states(dfa.state_count())?;
    Ok(dfa.clone())
}
