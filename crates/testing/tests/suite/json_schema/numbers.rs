//! The spellings of numbers: no text of an invalid value is accepted, and every documented text of
//! a valid value is accepted.

use burn_dfa_tokens::{Constraint, ErrorKind, Limits, automaton::ByteAutomaton, constraint::Numbers};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Decimal places of a [`scaled`] value.
const PLACES: i64 = 12;

/// The value of a number's text, times 10^12; `None` if it is not a 128-bit integer.
fn scaled(text: &str) -> Option<i128> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i128 = format!("{}{fraction}", whole.trim_start_matches('-')).parse().ok()?;
    let shift = exponent.parse::<i64>().ok()? - fraction.len() as i64 + PLACES;
    let power = 10i128.checked_pow(u32::try_from(shift.unsigned_abs()).ok()?);
    let size = match (digits, power) {
        (0, _) => 0,
        (_, Some(power)) if shift >= 0 => digits.checked_mul(power)?,
        (_, Some(power)) if digits % power == 0 => digits / power,
        _ => return None,
    };
    Some(if text.starts_with('-') { -size } else { size })
}

/// A schema of numbers; bounds keep their spelling.
enum Schema {
    Any,
    Integer,
    Minimum(String, bool),
    Maximum(String, bool),
    MultipleOf(String),
    Enum(Vec<String>),
    Not(Box<Schema>),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
}

const BOUNDS: [&str; 14] =
    ["0", "1", "-1", "2", "10", "1e1", "100.0", "-4.0", "4.5", "0.25", "-0.001", "65535", "12.5e2", "1E-3"];
const STEPS: [&str; 8] = ["1", "0.01", "5", "2.5", "100", "0.125", "3", "1e-3"];

impl Schema {
    fn random(rng: &mut StdRng, depth: usize) -> Self {
        let bound = |rng: &mut StdRng| (*BOUNDS.choose(rng).unwrap()).to_owned();
        let some = |rng: &mut StdRng| -> Vec<Schema> {
            (0..rng.random_range(1..=3)).map(|_| Self::random(rng, depth - 1)).collect()
        };
        match rng.random_range(0..if depth == 0 { 6 } else { 11 }) {
            0 => Self::Any,
            1 => Self::Integer,
            2 => Self::Minimum(bound(rng), rng.random()),
            3 => Self::Maximum(bound(rng), rng.random()),
            4 => Self::MultipleOf((*STEPS.choose(rng).unwrap()).to_owned()),
            5 => Self::Enum((0..rng.random_range(1..=3)).map(|_| bound(rng)).collect()),
            6 => Self::Not(Self::random(rng, depth - 1).into()),
            7 | 8 => Self::AllOf(some(rng)),
            9 => Self::AnyOf(some(rng)),
            _ => Self::OneOf(some(rng)),
        }
    }

    fn text(&self) -> String {
        let list = |of: &[Schema]| of.iter().map(Self::text).collect::<Vec<_>>().join(",");
        match self {
            Self::Any => r#"{"type":"number"}"#.to_owned(),
            Self::Integer => r#"{"type":"integer"}"#.to_owned(),
            Self::Minimum(bound, true) => format!(r#"{{"exclusiveMinimum":{bound}}}"#),
            Self::Minimum(bound, false) => format!(r#"{{"minimum":{bound}}}"#),
            Self::Maximum(bound, true) => format!(r#"{{"exclusiveMaximum":{bound}}}"#),
            Self::Maximum(bound, false) => format!(r#"{{"maximum":{bound}}}"#),
            Self::MultipleOf(step) => format!(r#"{{"multipleOf":{step}}}"#),
            Self::Enum(values) if values.len() == 1 => format!(r#"{{"const":{}}}"#, values[0]),
            Self::Enum(values) => format!(r#"{{"enum":[{}]}}"#, values.join(",")),
            Self::Not(of) => format!(r#"{{"not":{}}}"#, of.text()),
            Self::AllOf(of) => format!(r#"{{"allOf":[{}]}}"#, list(of)),
            Self::AnyOf(of) => format!(r#"{{"anyOf":[{}]}}"#, list(of)),
            Self::OneOf(of) => format!(r#"{{"oneOf":[{}]}}"#, list(of)),
        }
    }

    /// Whether the number is valid by the standard.
    fn holds(&self, value: i128) -> bool {
        let number = |text: &String| scaled(text).unwrap();
        match self {
            Self::Any => true,
            Self::Integer => value % 10i128.pow(PLACES as u32) == 0,
            Self::Minimum(bound, exclusive) => value > number(bound) || !exclusive && value == number(bound),
            Self::Maximum(bound, exclusive) => value < number(bound) || !exclusive && value == number(bound),
            Self::MultipleOf(step) => value % number(step) == 0,
            Self::Enum(values) => values.iter().any(|of| number(of) == value),
            Self::Not(of) => !of.holds(value),
            Self::AllOf(of) => of.iter().all(|of| of.holds(value)),
            Self::AnyOf(of) => of.iter().any(|of| of.holds(value)),
            Self::OneOf(of) => of.iter().filter(|of| of.holds(value)).count() == 1,
        }
    }

    /// Whether this schema or a schema within it satisfies `is`.
    fn has(&self, is: &dyn Fn(&Schema) -> bool) -> bool {
        is(self)
            || match self {
                Self::Not(of) => of.has(is),
                Self::AllOf(of) | Self::AnyOf(of) | Self::OneOf(of) => of.iter().any(|of| of.has(is)),
                _ => false,
            }
    }
}

/// Random texts of numbers, many of them valid.
fn texts(rng: &mut StdRng) -> Vec<String> {
    let mut texts = Vec::new();
    for bound in BOUNDS.iter().chain(&STEPS) {
        let value = scaled(bound).unwrap();
        for near in [value, -value, value + 10i128.pow(9), value * i128::from(rng.random_range(2..40)), 0] {
            let sign = if near < 0 || near == 0 && rng.random() { "-" } else { "" };
            let unit = 10u128.pow(PLACES as u32);
            let (whole, fraction) = (near.unsigned_abs() / unit, near.unsigned_abs() % unit);
            let plain = format!("{whole}.{fraction:012}");
            let plain = plain.trim_end_matches('0').trim_end_matches('.');
            let zeros = ".0".repeat(usize::from(!plain.contains('.'))) + &"0".repeat(rng.random_range(0..3));
            texts.extend([format!("{sign}{plain}"), format!("{sign}{plain}{zeros}")]);
            let digits = format!("{}", near.unsigned_abs());
            let exponent = digits.len() as i64 - 1 - PLACES;
            let (first, rest) = digits.split_at(1);
            let rest = rest.trim_end_matches('0');
            let (letter, plus) = (["e", "E"][rng.random_range(0..2)], ["", "+"][rng.random_range(0..2)]);
            let exponent = match (near, rng.random_range(0..4)) {
                (0, _) => format!("{}", rng.random_range(-9..9)),
                (_, 0) if exponent >= 0 => format!("{plus}{exponent:02}"),
                (_, 1) => format!("{}", exponent + rng.random_range(-1..2)),
                (_, _) if exponent >= 0 => format!("{plus}{exponent}"),
                _ => format!("{exponent}"),
            };
            let point = if rest.is_empty() { "" } else { "." };
            let zeros = if rest.is_empty() { ".0" } else { "0" }.repeat(usize::from(rng.random::<bool>()));
            texts.push(format!("{sign}{first}{point}{rest}{letter}{exponent}"));
            texts.push(format!("{sign}{first}{point}{rest}{zeros}{letter}{exponent}"));
        }
    }
    texts
}

/// Whether, according to the documentation, the text is written if its value is valid.
fn is_offered(schema: &Schema, text: &str, numbers: Numbers) -> bool {
    let (mantissa, _) = text.split_once(['e', 'E']).unwrap_or((text, ""));
    let is_plain = mantissa == text;
    let has_fraction = mantissa.split_once('.').is_some_and(|(_, fraction)| fraction.contains(|c| c != '0'));
    let has_integers = schema.has(&|schema| matches!(schema, Schema::Integer));
    let has_steps = schema.has(&|schema| matches!(schema, Schema::MultipleOf(_)));
    if !is_plain && has_fraction && (has_integers || has_steps) {
        return false;
    }
    // If a schema tests for integers, integers are written only as digits.
    let is_digits = is_plain && !mantissa.contains('.') && text != "-0";
    let is_whole = scaled(text).is_some_and(|value| Schema::Integer.holds(value));
    !has_integers || numbers == Numbers::Any || is_digits || !is_whole
}

#[test]
fn texts_of_numbers_are_judged_by_their_values() {
    let mut rng = StdRng::seed_from_u64(42);
    let (mut accepted, mut offered, mut unsatisfiable) = (0, 0, 0);
    for _ in 0..400 {
        // Exclude other types, so that only numbers are written.
        let schema = Schema::AllOf(vec![Schema::Any, Schema::random(&mut rng, 2)]);
        let texts = texts(&mut rng);
        for numbers in [Numbers::Plain, Numbers::Any] {
            let automaton = compiled(&schema.text(), numbers);
            unsatisfiable += usize::from(automaton.is_none());
            for text in &texts {
                let Some(value) = scaled(text) else { continue };
                let matches = automaton.as_ref().is_some_and(|automaton| automaton.matches(text.as_bytes()));
                let holds = schema.holds(value);
                assert!(!matches || holds, "{} accepts {text}, {numbers:?}", schema.text());
                if holds && is_offered(&schema, text, numbers) {
                    assert!(matches, "{} rejects {text}, {numbers:?}", schema.text());
                    offered += 1;
                }
                accepted += usize::from(matches);
            }
        }
    }
    println!("{accepted} accepted, {offered} offered, {unsatisfiable} schemas without a number");
    assert!(offered > 20_000 && unsatisfiable < 400);
}

/// The automaton, if some number is valid.
fn compiled(schema: &str, numbers: Numbers) -> Option<ByteAutomaton> {
    let options = super::compact().with_numbers(numbers);
    let constraint = Constraint::json_schema_from_str_with(schema, &options).unwrap();
    match constraint.to_automaton(&Limits::default()) {
        Ok(automaton) => automaton,
        Err(error) if error.kind() == ErrorKind::Unsatisfiable => None,
        Err(error) => panic!("{schema}: {error}"),
    }
}

/// Checks accepted and rejected texts.
#[track_caller]
fn case(schema: &str, numbers: Numbers, accepts: &[&str], rejects: &[&str]) {
    let automaton = compiled(schema, numbers);
    let matches = |text: &str| automaton.as_ref().is_some_and(|automaton| automaton.matches(text.as_bytes()));
    for text in accepts {
        assert!(matches(text), "{schema} rejects {text}");
    }
    for text in rejects {
        assert!(!matches(text), "{schema} accepts {text}");
    }
}

#[test]
fn whole_numbers_may_have_a_fraction() {
    let plain = Numbers::Plain;
    let all = ["10", "10.0", "0.0", "19.00", "1.0e2", "-0.0", "-0", "1E+16", "1e-07", "12.5e3", "0.1E1"];
    case(r#"{"type":"number"}"#, plain, &all, &["10.", "01", ".5", "+1", "1e", "1e100", "NaN", "1.e1"]);
    case(r#"{"type":["integer","number"]}"#, plain, &all, &["1."]);
    case(r#"{"anyOf":[{"type":"integer"},{"type":"number"}]}"#, plain, &all, &["1."]);
    case(
        r#"{"type":"object","properties":{"price":{"type":"number"}},"required":["price"],"additionalProperties":false}"#,
        plain,
        &[r#"{"price":10.0}"#, r#"{"price":1.0e2}"#, r#"{"price":-0.0}"#, r#"{"price":10}"#],
        &[r#"{"price":10.}"#],
    );
    case(
        r#"{"type":"number","multipleOf":0.01}"#,
        plain,
        &["10.00", "10.0", "10", "10.010", "1e2", "1.0E-2", "-0.0"],
        &["10.001", "1e-3", "1.0e-3", "1.255"],
    );
    case(
        r#"{"type":"number","minimum":2}"#,
        plain,
        &["2", "2.0", "2.00", "2e0", "1e1", "2.0E+00"],
        &["1.99", "2e-1", "-2", "1.9e0", "0"],
    );
    case(
        r#"{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":100}"#,
        plain,
        &["1.0", "1e-99", "9.9e1", "99.990"],
        &["0", "-0.0", "0e9", "100.0", "1e2", "1.00E+02", "1e99"],
    );
}

#[test]
fn listed_numbers_have_every_spelling() {
    let ten = ["10", "10.0", "10.00", "1e1", "1.0e1", "1E+01"];
    case(r#"{"const":10}"#, Numbers::Plain, &ten, &["10.01", "1e2", "-10", "1", "1e-1"]);
    case(r#"{"const":1e1}"#, Numbers::Plain, &ten, &["1"]);
    case(r#"{"type":"number","const":10}"#, Numbers::Plain, &ten, &["1"]);
    case(r#"{"type":"integer","const":10}"#, Numbers::Plain, &["10"], &ten[1..]);
    case(r#"{"type":"integer","const":10}"#, Numbers::Any, &ten, &["1"]);
    case(r#"{"const":0}"#, Numbers::Plain, &["0", "-0", "0.0", "-0.00", "0e5"], &["0.01", "1e-9"]);
    case(
        r#"{"enum":[1,2.5,"a",null,[3],{"b":4}]}"#,
        Numbers::Plain,
        &["1", "1.0", "2.50", "2.5e0", "\"a\"", "null", "[3]", "[3.0]", r#"{"b":4}"#, r#"{"b":4e0}"#],
        &["2", "\"b\"", "[4]", r#"{"b":3}"#, "true"],
    );
    // Enumerated items differ by their values.
    case(
        r#"{"type":"array","items":{"enum":[1,2]},"uniqueItems":true}"#,
        Numbers::Plain,
        &["[1,2.0]", "[2e0,1.0]"],
        &["[1,1.0]", "[2e0,2]"],
    );
}

#[test]
fn integers_are_told_apart_by_their_values() {
    let one = r#"{"oneOf":[{"type":"integer"},{"type":"number"}]}"#;
    let not = r#"{"type":"number","not":{"type":"integer"}}"#;
    for (schema, numbers) in
        [one, not].into_iter().flat_map(|s| [Numbers::Plain, Numbers::Any].map(|n| (s, n)))
    {
        case(
            schema,
            numbers,
            &["1.5", "-0.25", "1.50", "1e-3", "2.5e-1"],
            &["1", "0", "1.0", "2.00", "1e2", "-0", "0e-5", "1.5e1", "1.5e0"],
        );
    }
    case(r#"{"type":"integer"}"#, Numbers::Plain, &["1", "0", "-7"], &["1.0", "1e1", "-0", "1.5"]);
    let spellings = ["1", "1.0", "1e1", "1.0E+2", "-0", "-0.0", "0e-3"];
    case(r#"{"type":"integer"}"#, Numbers::Any, &spellings, &["1.5", "1e-1", "01"]);
    // In draft 4, a number with a fraction is no integer.
    let draft_4 = r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer"}"#;
    case(draft_4, Numbers::Any, &["1"], &["1.0", "1e1"]);
}
