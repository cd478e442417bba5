//! The crate `jsonschema` as a judge, and samples of a language for it.

use burn_dfa::ByteDfa;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::Value;

/// A validator of a schema that may name its draft; the error is why it cannot be had.
///
/// The judge has `date` and `time` in every draft. Drafts 4 and 6 do not define them, so there they are annotations.
pub fn build(draft: Draft, schema: &Value, formats: bool) -> Result<Validator, String> {
    let draft = draft.detect(schema);
    let mut options = jsonschema::options().with_draft(draft).should_validate_formats(formats);
    if matches!(draft, Draft::Draft4 | Draft::Draft6) {
        options = options.with_format("date", |_: &str| true).with_format("time", |_: &str| true);
    }
    options.build(schema).map_err(|error| error.to_string())
}

/// Whether `text` is JSON and valid; the error says what it is instead.
///
/// The judge is not asked about what it cannot know, at the places where that stands and nowhere else: numbers that 64
/// bits do not hold, and strings and names on which its regexes differ from those of ECMA-262.
pub fn check(validator: &Validator, text: &[u8]) -> Result<(), String> {
    let value = serde_json::from_slice(text).map_err(|error| format!("no JSON: {error}"))?;
    let text = str::from_utf8(text).map_err(|error| error.to_string())?;
    let blind = Numbers::of(text).inexact;
    match validator.iter_errors(&value).find(|error| !is_blind(error, &blind)) {
        Some(error) => {
            Err(format!("at {:?}, {}: {error}", error.instance_path().as_str(), error.kind().keyword()))
        }
        None => Ok(()),
    }
}

/// Whether an error stands where the judge cannot know: at a number among `numbers`, by pointers, or around one; or at
/// a string, or a name, that the pattern matches after all.
fn is_blind(error: &ValidationError, numbers: &[String]) -> bool {
    let place = error.instance_path().as_str();
    let within = |pointer: &String| {
        pointer.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if is_misapplied(error) {
        return true;
    }
    match error.kind() {
        ValidationErrorKind::Pattern { pattern } => {
            error.instance().as_str().is_some_and(|text| matches(pattern, text))
        }
        // A bound is in doubt only where the number was rounded to it.
        ValidationErrorKind::Minimum { limit }
        | ValidationErrorKind::Maximum { limit }
        | ValidationErrorKind::ExclusiveMinimum { limit }
        | ValidationErrorKind::ExclusiveMaximum { limit } => {
            numbers.iter().any(within) && error.instance().as_f64() == limit.as_f64()
        }
        _ => numbers.iter().any(within),
    }
}

/// Whether the error is of a schema in `patternProperties` that was applied to a name which its pattern does not match:
/// the `.` of ECMA-262 matches no U+000D, U+2028 and U+2029, that of the judge does.
fn is_misapplied(error: &ValidationError) -> bool {
    let names: Vec<String> = error.instance_path().as_str().split('/').map(unescaped).collect();
    let mut names = names.iter().filter(|name| name.contains(['\r', '\u{2028}', '\u{2029}']));
    let path: Vec<String> = error.schema_path().as_str().split('/').map(unescaped).collect();
    let patterns = || path.windows(2).filter(|two| two[0] == "patternProperties").map(|two| &two[1]);
    names.any(|name| patterns().any(|pattern| !matches(pattern, name)))
}

/// A part of a JSON pointer as it is meant.
fn unescaped(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// What ECMA-262 says, by the crate `regress`.
fn matches(pattern: &str, text: &str) -> bool {
    let regex = regress::Regex::with_flags(pattern, "u").or_else(|_| regress::Regex::new(pattern));
    regex.is_ok_and(|regex| regex.find(text).is_some())
}

/// The numbers of a JSON text that change when they are read as 64 bits.
struct Numbers<'t> {
    rest: &'t str,
    /// Their JSON pointers.
    inexact: Vec<String>,
}

impl<'t> Numbers<'t> {
    /// Those of a text that is JSON.
    fn of(text: &'t str) -> Self {
        let mut numbers = Self { rest: text, inexact: Vec::new() };
        numbers.value("");
        numbers
    }

    /// Goes past white space and one of these characters, if it comes next.
    fn skip(&mut self, one_of: &[char]) -> bool {
        self.rest = self.rest.trim_start();
        let next = self.rest.strip_prefix(one_of);
        self.rest = next.unwrap_or(self.rest);
        next.is_some()
    }

    /// Goes past a string.
    fn string(&mut self) -> String {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
        let string = values.next().expect("a string").expect("a string");
        self.rest = &self.rest[values.byte_offset()..];
        string
    }

    fn value(&mut self, pointer: &str) {
        if self.skip(&['{']) {
            while !self.skip(&['}']) {
                self.skip(&[',']);
                self.rest = self.rest.trim_start();
                let name = self.string().replace('~', "~0").replace('/', "~1");
                self.skip(&[':']);
                self.value(&format!("{pointer}/{name}"));
            }
        } else if self.skip(&['[']) {
            for index in 0.. {
                if self.skip(&[']']) {
                    break;
                }
                self.skip(&[',']);
                self.value(&format!("{pointer}/{index}"));
            }
        } else if self.rest.starts_with('"') {
            self.string();
        } else {
            let end = self.rest.find([',', ']', '}', ' ', '\n', '\t', '\r']).unwrap_or(self.rest.len());
            let (scalar, rest) = self.rest.split_at(end);
            self.rest = rest;
            if scalar.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
                && !is_exact(scalar)
            {
                self.inexact.push(pointer.to_owned());
            }
        }
    }
}

/// Whether a number is the same after it was read and written: digits, without zeros around them, and exponent.
fn is_exact(number: &str) -> bool {
    let read: Value = serde_json::from_str(number).expect("a number");
    decimal(number) == decimal(&read.to_string())
}

/// The digits of a number, without zeros around them, and the power of ten of the last.
fn decimal(number: &str) -> (String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let significant = digits.trim_end_matches('0');
    let power = exponent.parse::<i64>().expect("an exponent") - fraction.len() as i64
        + (digits.len() - significant.len()) as i64;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() { (String::new(), 0) } else { (significant.to_owned(), power) }
}

/// Words of a language, drawn at random, not much longer than need be.
pub fn draw(dfa: &ByteDfa, count: usize, seed: u64) -> Vec<Vec<u8>> {
    dfa.samples(seed, 300).take(count).collect()
}

#[test]
fn numbers_are_told_by_their_places() {
    let text = r#"{"a": [1, 0.1, 12345678901234567890123], "b/c": {"": 0.1000000000000000055511151231257827}, "d": 1e2, "e": "12345678901234567890123", "f": 1.5e-30, "g": 100000000000000000000}"#;
    assert_eq!(Numbers::of(text).inexact, ["/a/2", "/b~1c/"]);
    assert!(is_exact("-0.50") && is_exact("1E+3") && is_exact("0") && !is_exact("9007199254740993.0"));
}

#[test]
fn an_excuse_holds_at_its_place_alone() {
    let schema = serde_json::json!({
        "patternProperties": {"^e.$": {"type": "null"}, "^f": {"type": "null"}},
        "properties": {"a": {"maximum": 1}, "b": {"maximum": 1}, "c": {"pattern": "^.$"}, "d": {"maxLength": 1}}
    });
    let validator = build(Draft::Draft202012, &schema, false).unwrap();
    let check = |text: &str| check(&validator, text.as_bytes());
    check(r#"{"a": 1, "b": 0.5, "c": "x"}"#).unwrap();
    // A long number beside a wrong one, or a line end beside a string that is too long, excuse nothing.
    for wrong in [
        r#"{"a": 0.12345678901234567890123, "b": 2}"#,
        r#"{"a": 1e0, "b": 2e0}"#,
        r#"{"c": "\n", "d": "\r\r"}"#,
        r#"{"a": 12345678901234567890123, "b": 1}"#,
        r#"{"c": "ab"}"#,
        r#"{"ea": 1}"#,
        r#"{"f\r": 1}"#,
        r#"{"e\r": 1, "ea": 1}"#,
        "{",
    ] {
        check(wrong).expect_err(wrong);
    }
    check(r#"{"e\r": 1, "ea": null}"#).unwrap();
    check(r#"{"a": 1.00000000000000000000000001, "b": 1}"#).unwrap();
}
