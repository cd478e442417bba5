//! Rules with a parameter of 64 bits: `perm::_ : "a" perm::set_bit(0) %if bit_clear(0)`.
//!
//! A rule defined as `name::_` is one rule per value. A *step*, after `::` at a use of the rule,
//! selects the value of its parameter; a *condition*, after `%if`, selects the values for which an
//! alternative counts.

use super::cursor::Cursor;
use burn_dfa_common::Result;

/// Bits of a parameter, from the first to the end (exclusive).
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits {
    first: u32,
    end: u32,
}

/// The value of a parameter at a use of a rule, as a function of the current value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Value(u64),
    /// The same value.
    Same,
    /// The bitwise and with a number.
    And(u64),
    /// The bitwise or with a number.
    Or(u64),
    /// Adds one to the number in these bits, saturating at their maximum.
    Increment(Bits),
    /// Subtracts one from the number in these bits, saturating at 0.
    Decrement(Bits),
}

type Comparison = fn(&u64, &u64) -> bool;

/// The condition on the parameter of an alternative.
#[derive(Debug)]
pub(super) enum Condition {
    True,
    /// Compares the number in these bits with another number.
    Number(Bits, Comparison, u64),
    /// Compares the number of ones in these bits with another number.
    Ones(Bits, Comparison, u64),
    Both(Box<[Self; 2]>),
    Either(Box<[Self; 2]>),
    Not(Box<Self>),
}

const COMPARISONS: [(&str, Comparison); 6] =
    [("eq", u64::eq), ("ne", u64::ne), ("lt", u64::lt), ("le", u64::le), ("gt", u64::gt), ("ge", u64::ge)];

impl Bits {
    const ALL: Self = Self { first: 0, end: 64 };

    fn bit(bit: u32) -> Self {
        Self { first: bit, end: bit + 1 }
    }

    /// The maximum of the number in these bits.
    fn max_value(self) -> u64 {
        u64::MAX >> (64 - (self.end - self.first))
    }

    fn of(self, value: u64) -> u64 {
        value >> self.first & self.max_value()
    }
}

impl Step {
    /// The new value of the parameter, from the current `value`; `None` if a value is needed but
    /// missing.
    pub(super) fn apply(self, value: Option<u64>) -> Option<u64> {
        Some(match self {
            Self::Value(value) => value,
            Self::Same => value?,
            Self::And(mask) => value? & mask,
            Self::Or(mask) => value? | mask,
            Self::Increment(bits) if bits.of(value?) < bits.max_value() => value? + (1 << bits.first),
            Self::Decrement(bits) if bits.of(value?) > 0 => value? - (1 << bits.first),
            Self::Increment(_) | Self::Decrement(_) => value?,
        })
    }
}

impl Condition {
    /// Whether the condition holds for a value; `None` if a value is needed but missing.
    pub(super) fn holds(&self, value: Option<u64>) -> Option<bool> {
        Some(match self {
            Self::True => true,
            Self::Number(bits, compare, other) => compare(&bits.of(value?), other),
            Self::Ones(bits, compare, other) => compare(&u64::from(bits.of(value?).count_ones()), other),
            Self::Both(both) => both[0].holds(value)? & both[1].holds(value)?,
            Self::Either(both) => both[0].holds(value)? | both[1].holds(value)?,
            Self::Not(inner) => !inner.holds(value)?,
        })
    }
}

impl Cursor<'_> {
    /// Reads the value of a parameter, after `::`.
    pub(super) fn step(&mut self) -> Result<Step> {
        self.blanks();
        if self.peek().is_some_and(|next| next.is_ascii_digit()) {
            return Ok(Step::Value(self.number(u64::MAX)?));
        }
        self.depends = true;
        if self.underscore() {
            return Ok(Step::Same);
        }
        let name = self.name("a number, `_` or a function of the parameter after `::`")?;
        self.expect("(", &format!("after `{}`", name.text))?;
        let step = match name.text {
            "set_bit" => Step::Or(1 << self.bit()?),
            "clear_bit" => Step::And(!(1 << self.bit()?)),
            "bit_and" => Step::And(self.number(u64::MAX)?),
            "bit_or" => Step::Or(self.number(u64::MAX)?),
            "incr" => Step::Increment(self.bits()?),
            "decr" => Step::Decrement(self.bits()?),
            other => {
                let known = "set_bit, clear_bit, bit_and, bit_or, incr, decr";
                let reason = format!("there is no function `{other}` of a parameter; there are: {known}");
                return Err(self.error_at(name.at, reason));
            }
        };
        self.expect(")", &format!("after the argument of `{}`", name.text))?;
        Ok(step)
    }

    /// Reads a condition, after `%if`.
    pub(super) fn condition(&mut self) -> Result<Condition> {
        let name = self.name("a condition on the parameter after `%if`")?;
        if name.text == "true" {
            if self.eat("(") {
                self.expect(")", "after `true(`")?;
            }
            return Ok(Condition::True);
        }
        self.expect("(", &format!("after `{}`", name.text))?;
        let condition = self.deeper(|cursor| cursor.function(name.text, name.at))?;
        self.expect(")", &format!("after the arguments of `{}`", name.text))?;
        Ok(condition)
    }

    fn function(&mut self, name: &str, at: usize) -> Result<Condition> {
        let both = |cursor: &mut Self| {
            let first = cursor.condition()?;
            cursor.comma(name)?;
            Ok::<_, burn_dfa_common::error::Error>(Box::new([first, cursor.condition()?]))
        };
        match name {
            "and" => return Ok(Condition::Both(both(self)?)),
            "or" => return Ok(Condition::Either(both(self)?)),
            "not" => return Ok(Condition::Not(Box::new(self.condition()?))),
            _ => {}
        }
        self.depends = true;
        let comparison =
            |name: &str| COMPARISONS.iter().find(|(known, _)| *known == name).map(|(_, compare)| *compare);
        Ok(match name {
            "bit_clear" => Condition::Number(Bits::bit(self.bit()?), u64::eq, 0),
            "bit_set" => Condition::Number(Bits::bit(self.bit()?), u64::eq, 1),
            "is_zeros" => Condition::Number(self.bits()?, u64::eq, 0),
            "is_ones" => {
                let bits = self.bits()?;
                Condition::Number(bits, u64::eq, bits.max_value())
            }
            _ => {
                let ones = name.strip_prefix("bit_count_");
                let Some(compare) = comparison(ones.unwrap_or(name)) else {
                    let known = "true, bit_clear, bit_set, is_ones, is_zeros, eq, ne, lt, le, gt, ge, \
                                 bit_count_eq and so on, and, or, not";
                    return Err(
                        self.error_at(at, format!("there is no condition `{name}`; there are: {known}"))
                    );
                };
                let bits = self.bits()?;
                self.comma(name)?;
                match ones {
                    Some(_) => Condition::Ones(bits, compare, self.number(63)?),
                    None => Condition::Number(bits, compare, self.number(u64::MAX)?),
                }
            }
        })
    }

    fn comma(&mut self, name: &str) -> Result<()> {
        self.expect(",", &format!("between the arguments of `{name}`"))
    }

    /// Reads `[x:y]`, or `_` for all bits.
    fn bits(&mut self) -> Result<Bits> {
        if self.underscore() {
            return Ok(Bits::ALL);
        }
        self.expect("[", "or `_`, for bits of the parameter")?;
        let at = self.at;
        let first = self.bit()?;
        self.expect(":", "after the first bit")?;
        let end = self.number(64)? as u32;
        if end <= first {
            return Err(self.error_at(
                at,
                format!("the bits from {first} up to {end} are none: the end is greater than the first"),
            ));
        }
        self.expect("]", "after the end of the bits")?;
        Ok(Bits { first, end })
    }

    /// Reads the number of a bit.
    fn bit(&mut self) -> Result<u32> {
        Ok(self.number(63)? as u32)
    }

    /// Reads a number, decimal or hexadecimal with `0x`.
    fn number(&mut self, max: u64) -> Result<u64> {
        self.blanks();
        let rest = self.rest();
        let (prefix, radix) =
            if rest.starts_with("0x") || rest.starts_with("0X") { (2, 16) } else { (0, 10) };
        let digits = &rest[prefix..];
        let digits = &digits[..digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len())];
        if digits.is_empty() {
            return Err(self.error(format!("expected a number, found {}", self.found())));
        }
        let number = u64::from_str_radix(digits, radix).ok().filter(|&number| number <= max);
        let number = number.ok_or_else(|| self.error(format!("the number is greater than {max}")))?;
        self.at += prefix + digits.len();
        Ok(number)
    }

    /// Skips `_`, if it comes next and no name begins with it.
    pub(super) fn underscore(&mut self) -> bool {
        self.blanks();
        let mut next = self.rest().chars();
        let found = next.next() == Some('_')
            && !next.next().is_some_and(|next| next.is_ascii_alphanumeric() || "_-".contains(next));
        self.at += usize::from(found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::source::Source;
    use super::*;

    fn cursor(text: &str) -> Cursor<'_> {
        Cursor::new(Source::new(text).unwrap())
    }

    #[test]
    fn steps_change_only_their_bits() {
        for (text, from, to) in [
            ("0x1f", 7, 31),
            ("18446744073709551615", 7, u64::MAX),
            ("_", 7, 7),
            ("set_bit(63)", 1, 1 << 63 | 1),
            ("clear_bit(0)", 7, 6),
            ("bit_and(0x5)", 7, 5),
            ("bit_or(8)", 7, 15),
            ("incr([0:3])", 6, 7),
            ("incr([0:3])", 7, 7),
            ("incr([0:3])", 8, 9),
            ("incr([2:4])", 7, 11),
            ("incr(_)", u64::MAX, u64::MAX),
            ("decr([0:3])", 8, 8),
            ("decr([3:4])", 9, 1),
            ("decr(_)", 0, 0),
        ] {
            assert_eq!(cursor(text).step().unwrap().apply(Some(from)), Some(to), "{text} of {from}");
        }
        for text in [
            "incr",
            "incr()",
            "incr([3:3])",
            "incr([0:65])",
            "incr([64:65])",
            "set_bit(64)",
            "x(1)",
            "18446744073709551616",
            "0x",
        ] {
            assert!(cursor(text).step().is_err(), "{text}");
        }
        assert_eq!(cursor("_").step().unwrap().apply(None), None);
        assert_eq!(cursor("7").step().unwrap().apply(None), Some(7));
    }

    #[test]
    fn conditions_test_bits() {
        for (text, value, holds) in [
            ("true", 0, true),
            ("true()", 0, true),
            ("bit_clear(1)", 5, true),
            ("bit_set(1)", 5, false),
            ("is_ones([0:3])", 0xf, true),
            ("is_ones([0:5])", 0xf, false),
            ("is_ones(_)", u64::MAX, true),
            ("is_zeros([4:8])", 0xf, true),
            ("eq([4:8], 2)", 0x2f, true),
            ("ne([4:8], 2)", 0x2f, false),
            ("lt(_, 3)", 3, false),
            ("le(_, 3)", 3, true),
            ("gt(_, 0x3)", 3, false),
            ("ge(_, 3)", 3, true),
            ("bit_count_eq([1:4], 2)", 0b11101, true),
            ("bit_count_lt(_, 4)", 0b11101, false),
            ("and(true, bit_set(0))", 1, true),
            ("or(bit_set(1), not(bit_set(0)))", 1, false),
        ] {
            assert_eq!(
                cursor(text).condition().unwrap().holds(Some(value)),
                Some(holds),
                "{text} of {value}"
            );
        }
        for text in
            ["false", "eq(_)", "bit_count_eq(_, 64)", "and(true)", "and(true, true, true)", "bit_clear(_)"]
        {
            assert!(cursor(text).condition().is_err(), "{text}");
        }
        assert!(cursor(&"not(".repeat(100_000)).condition().unwrap_err().to_string().contains("levels"));
    }
}
