//! The crate `jsonschema` as an independent validator, and samples of a language.

use std::sync::LazyLock;

use burn_dfa_tokens::ByteDfa;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{Value, json};

/// Formats from drafts after the fourth that the validator knows.
const LATER: [&str; 9] = [
    "duration",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// For each of these formats a validator in the latest draft.
static LATEST: LazyLock<[Validator; LATER.len()]> = LazyLock::new(|| {
    LATER.map(|name| {
        let latest = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
        latest.build(&json!({"format": name})).unwrap()
    })
});

/// A validator of a schema, in the draft that the schema names, with formats as assertions in every
/// draft if `formats` is set. The error is the reason for a failure.
pub fn build(draft: Draft, schema: &Value, formats: bool) -> Result<Validator, String> {
    let mut options = jsonschema::options().with_draft(draft.detect(schema)).should_validate_formats(formats);
    if formats {
        for (name, latest) in LATER.into_iter().zip(&*LATEST) {
            options = options.with_format(name, move |text: &str| latest.is_valid(&json!(text)));
        }
    }
    options.build(schema).map_err(|error| error.to_string())
}

/// Whether `text` is valid JSON and matches the schema; the error describes the violation.
///
/// Ignores errors that the validator cannot judge, only at their locations: numbers that do not fit
/// 64 bits, and strings and names on which its regexes differ from ECMA-262.
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

/// Whether the validator cannot judge an error: it concerns a number in `numbers` (given as
/// pointers), a value that contains one, or a string or name that the pattern matches in ECMA-262.
fn is_blind(error: &ValidationError, numbers: &[String]) -> bool {
    let location = error.instance_path().as_str();
    let within = |pointer: &String| {
        pointer.strip_prefix(location).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if is_misapplied(error) {
        return true;
    }
    match error.kind() {
        ValidationErrorKind::Pattern { pattern } => {
            error.instance().as_str().is_some_and(|text| matches(pattern, text))
        }
        // A bound is doubtful only if the number was rounded to it.
        ValidationErrorKind::Minimum { limit }
        | ValidationErrorKind::Maximum { limit }
        | ValidationErrorKind::ExclusiveMinimum { limit }
        | ValidationErrorKind::ExclusiveMaximum { limit } => {
            numbers.iter().any(within) && error.instance().as_f64() == limit.as_f64()
        }
        _ => numbers.iter().any(within),
    }
}

/// Whether the error comes from a schema in `patternProperties` that was applied to a name without
/// a match: in ECMA-262, `.` does not match U+000D, U+2028 and U+2029, but the validator's `.`
/// does.
fn is_misapplied(error: &ValidationError) -> bool {
    let names: Vec<String> = error.instance_path().as_str().split('/').map(unescaped).collect();
    let mut names = names.iter().filter(|name| name.contains(['\r', '\u{2028}', '\u{2029}']));
    let path: Vec<String> = error.schema_path().as_str().split('/').map(unescaped).collect();
    let patterns = || path.windows(2).filter(|two| two[0] == "patternProperties").map(|two| &two[1]);
    names.any(|name| patterns().any(|pattern| !matches(pattern, name)))
}

/// Decodes a part of a JSON pointer.
fn unescaped(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Whether a pattern matches in ECMA-262, by the crate `regress`.
fn matches(pattern: &str, text: &str) -> bool {
    let regex = regress::Regex::with_flags(pattern, "u").or_else(|_| regress::Regex::new(pattern));
    regex.is_ok_and(|regex| regex.find(text).is_some())
}

/// Finds the numbers of a JSON text that change if read as 64 bits.
struct Numbers<'t> {
    rest: &'t str,
    /// Their JSON pointers.
    inexact: Vec<String>,
}

impl<'t> Numbers<'t> {
    /// Collects the numbers of a JSON text.
    fn of(text: &'t str) -> Self {
        let mut numbers = Self { rest: text, inexact: Vec::new() };
        numbers.value("");
        numbers
    }

    /// Skips white space and one of these characters, if it is next.
    fn skip(&mut self, one_of: &[char]) -> bool {
        self.rest = self.rest.trim_start();
        let next = self.rest.strip_prefix(one_of);
        self.rest = next.unwrap_or(self.rest);
        next.is_some()
    }

    /// Skips a string and returns it.
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

/// Whether reading and writing a number keeps its digits and exponent.
fn is_exact(number: &str) -> bool {
    let read: Value = serde_json::from_str(number).expect("a number");
    // The validator computes with a float, which has more digits than its text.
    const EXACT: f64 = (1_u64 << 53) as f64;
    let written = match read.as_f64().filter(|float| read.is_f64() && float.abs() > EXACT) {
        Some(float) => format!("{float:.0}"),
        None => read.to_string(),
    };
    decimal(number) == decimal(&written)
}

/// The digits of a number without leading and trailing zeros, and the power of ten of the last
/// digit.
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

/// Random members of a language, not much longer than necessary.
pub fn draw(dfa: &ByteDfa, count: usize, seed: u64) -> Vec<Vec<u8>> {
    dfa.samples(seed, 300).take(count).collect()
}

#[test]
fn inexact_numbers_are_found_by_pointer() {
    let text = r#"{"a": [1, 0.1, 12345678901234567890123], "b/c": {"": 0.1000000000000000055511151231257827}, "d": 1e2, "e": "12345678901234567890123", "f": 1.5e-30, "g": 100000000000000000000}"#;
    assert_eq!(Numbers::of(text).inexact, ["/a/2", "/b~1c/"]);
    assert!(is_exact("-0.50") && is_exact("1E+3") && is_exact("0") && !is_exact("9007199254740993.0"));
    assert!(!is_exact("43532544552235020.0") && is_exact("43532544552235016.0"));
}

#[test]
fn an_excuse_holds_at_its_place_alone() {
    let schema = json!({
        "patternProperties": {"^e.$": {"type": "null"}, "^f": {"type": "null"}},
        "properties": {"a": {"maximum": 1}, "b": {"maximum": 1}, "c": {"pattern": "^.$"}, "d": {"maxLength": 1}}
    });
    let validator = build(Draft::Draft202012, &schema, false).unwrap();
    let check = |text: &str| check(&validator, text.as_bytes());
    check(r#"{"a": 1, "b": 0.5, "c": "x"}"#).unwrap();
    // A long number next to a wrong one, or a line end next to a string that is too long, excuses
    // no error.
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
