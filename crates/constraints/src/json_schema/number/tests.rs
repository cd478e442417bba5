use burn_dfa_common::{ErrorKind, Limits, random};
use std::time::Instant;

use super::*;

/// Digits after the point supported by the evaluator.
const PLACES: usize = 12;

/// The mantissa and the exponent of a number.
fn split(text: &str) -> (&str, &str) {
    text.split_once(['e', 'E']).unwrap_or((text, "0"))
}

/// The value of a text of W, times 10^12, if it is an integer below 10^38.
fn evaluated(text: &str) -> Option<i128> {
    let (mantissa, exponent) = split(text);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let value: i128 = digits.parse().ok()?;
    let shift = exponent.parse::<i64>().ok()? - fraction.len() as i64 + PLACES as i64;
    let power = 10i128.checked_pow(u32::try_from(shift.unsigned_abs()).ok()?);
    let value = match (value, power) {
        (0, _) => 0,
        (_, Some(power)) if shift >= 0 => value.checked_mul(power)?,
        (_, Some(power)) if value % power == 0 => value / power,
        _ => return None,
    };
    Some(if text.starts_with('-') { -value } else { value })
}

fn scaled(text: &str) -> i128 {
    evaluated(text).unwrap()
}

/// A number with one digit before the point, and an exponent.
fn scientific(number: &Decimal) -> String {
    let (digits, exponent) = number.scientific();
    let sign = if number.is_negative() { "-" } else { "" };
    let digits: String = digits.iter().map(|&digit| char::from(b'0' + digit)).collect();
    match digits.split_at_checked(1) {
        None => "0.0e3".to_owned(),
        Some((first, "")) => format!("{sign}{first}e{exponent}"),
        Some((first, rest)) => format!("{sign}{first}.{rest}e{exponent}"),
    }
}

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

/// Numbers from a seed.
struct Random(random::Random);

impl Random {
    fn new(seed: u64) -> Self {
        Self(random::Random(seed))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    /// A text of W.
    fn text(&mut self) -> String {
        let sign = if self.below(3) == 0 { "-" } else { "" };
        let size = 10u64.pow(self.below(8) as u32);
        let whole = self.below(size);
        let fraction: String =
            (0..self.below(6)).map(|_| ["0", "0", "1", "5", "9", "3"][self.below(6) as usize]).collect();
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{whole}{point}{fraction}")
    }

    /// A text of W, or of another mantissa with an exponent.
    fn spelled(&mut self) -> String {
        let mut text = self.text();
        if self.below(2) == 0 {
            let kept = text.len().min(1 + usize::from(text.starts_with('-')));
            if self.below(4) > 0 {
                // One digit before the point.
                text.truncate(kept);
                text += [".0", ".00", "", ".5", ".25", ".250", ".125", "", ""][self.below(9) as usize];
            }
            text += &self.exponent();
        }
        text
    }

    fn exponent(&mut self) -> String {
        let letter = ["e", "E"][self.below(2) as usize];
        let sign = ["", "+", "-"][self.below(3) as usize];
        match self.below(3) {
            0 => format!("{letter}{sign}0{}", self.below(10)),
            _ => format!("{letter}{sign}{}", self.below(9)),
        }
    }

    /// `text` with a change or two; often no text of W.
    fn near(&mut self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=self.below(2) {
            let at = self.below(bytes.len() as u64 + 1) as usize;
            let byte = b"0123456789.-eE+ "[self.below(14) as usize];
            match self.below(3) {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                _ if at < bytes.len() && bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.push(b'0'),
            }
        }
        String::from_utf8(bytes).unwrap()
    }
}

/// JSON's numbers with an exponent of two digits at most, by hand.
fn is_free(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) =
        text.split_once(['e', 'E']).map_or((text, None), |(mantissa, rest)| (mantissa, Some(rest)));
    let mantissa = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, fraction) =
        mantissa.split_once('.').map_or((mantissa, None), |(whole, rest)| (whole, Some(rest)));
    let size = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && size.is_none_or(|size| digits(size) && size.len() <= 2)
}

/// W, by hand.
fn is_wide(text: &str) -> bool {
    let (mantissa, _) = split(text);
    let is_plain = mantissa.len() == text.len();
    let whole = mantissa.trim_start_matches('-').split('.').next().unwrap_or_default();
    let is_zero = mantissa.bytes().all(|byte| b"-0.".contains(&byte));
    is_free(text) && (is_plain || whole.len() == 1 && (is_zero || whole != "0"))
}

#[test]
fn decimals_are_exact_and_canonical() {
    let cases = [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("1.0", "1"),
        ("1e3", "1000"),
        ("-2.50", "-2.5"),
        ("0.1", "0.1"),
        ("1e-7", "0.0000001"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("100000000000000000000", "100000000000000000000"),
        ("123456.789e3", "123456789"),
    ];
    for (text, canonical) in cases {
        let decimal = decimal(text);
        assert_eq!(decimal.text(), canonical, "{text}");
    }
    assert_eq!(decimal("1e308").text(), format!("1{}", "0".repeat(308)));
    assert_eq!(decimal("5e-324").text(), format!("0.{}5", "0".repeat(323)));
    assert_eq!(decimal("1.0"), decimal("1"));
    assert!(
        decimal("-1e308") < decimal("-1") && decimal("9") < decimal("10") && decimal("0.09") < decimal("0.1")
    );
    let mut random = Random::new(1);
    for _ in 0..5000 {
        let (a, b) = (random.spelled(), random.spelled());
        if evaluated(&a).is_none() || evaluated(&b).is_none() {
            continue;
        }
        assert_eq!(decimal(&a).cmp(&decimal(&b)), scaled(&a).cmp(&scaled(&b)), "{a} {b}");
        assert_eq!(scaled(&decimal(&a).text()), scaled(&a));
    }
}

#[test]
fn comparisons_agree_with_integers() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let mut random = Random::new(2);
    let edges = ["0", "-0.0", "1", "-1", "10", "-10", "0.5", "-0.5", "9.99", "100.001", "-3.25", "99999"];
    let mut bounds: Vec<String> = edges.map(str::to_owned).to_vec();
    bounds.extend((0..200).map(|_| random.text()));
    let mut members = 0;
    for bound in bounds {
        let exact = decimal(&bound);
        let automata = [
            (at_least(&exact, false, &meter), Ordering::is_ge as fn(Ordering) -> bool),
            (at_least(&exact, true, &meter), Ordering::is_gt),
            (at_most(&exact, false, &meter), Ordering::is_le),
            (at_most(&exact, true, &meter), Ordering::is_lt),
            (one_of([&exact], &meter), Ordering::is_eq),
        ]
        .map(|(dfa, keep)| (dfa.unwrap(), keep));
        let mut texts =
            vec![bound.clone(), format!("{bound}0"), format!("-{bound}"), exact.text(), exact.text() + ".00"];
        texts.extend((0..60).map(|_| random.spelled()));
        texts.extend((0..60).map(|_| random.near(&exact.text())));
        let short = scientific(&exact);
        texts.extend((0..40).map(|_| random.near(&short)));
        texts.push(format!("-{short}"));
        texts.push(short);
        for text in texts {
            for (dfa, keep) in &automata {
                let expected = is_wide(&text) && keep(decimal(&text).cmp(&exact));
                members += usize::from(expected);
                assert_eq!(dfa.matches(text.as_bytes()), expected, "{text} beside {bound}");
            }
        }
    }
    assert!(members > 10_000);
}

#[test]
fn bounds_of_hundreds_of_digits_are_exact() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let huge = decimal("1e308");
    let dfa = at_most(&huge, false, &meter).unwrap();
    let text = huge.text();
    for (good, member) in [(true, text.clone()), (true, format!("{text}.0")), (true, format!("-{text}9"))] {
        assert_eq!(dfa.matches(member.as_bytes()), good);
    }
    assert!(!dfa.matches(format!("{text}.01").as_bytes()));
    assert!(!dfa.matches(format!("{text}0").as_bytes()));
    let tiny = at_least(&decimal("1e-300"), true, &meter).unwrap();
    assert!(tiny.matches(b"0.1") && tiny.matches(format!("0.{}2", "0".repeat(299)).as_bytes()));
    assert!(tiny.matches(b"1e-99") && !tiny.matches(b"-1e99") && !tiny.matches(b"0e9"));
    assert!(dfa.matches(b"9.9E99") && !at_least(&huge, false, &meter).unwrap().matches(b"9.9E99"));
    assert!(!tiny.matches(b"0.0") && !tiny.matches(format!("0.{}1", "0".repeat(299)).as_bytes()));
}

#[test]
fn multiples_agree_with_integers() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let multiples = |step: &str, certainty| multiple_of(&decimal(step), certainty, &meter).unwrap();
    let steps = [
        "1", "2", "3", "5", "7", "8", "10", "12", "16", "40", "100", "1000000", "3600", "0.01", "0.0001",
        "2.5", "0.3", "0.125", "0.75", "1.1", "0.05", "12.34", "97",
    ];
    let mut random = Random::new(3);
    let (mut members, mut undecided) = (0, 0);
    for step in steps {
        let [surely, possibly] =
            [Certainty::Surely, Certainty::Possibly].map(|certainty| multiples(step, certainty));
        let unit = scaled(step);
        let mut texts: Vec<String> = (0..3000).map(|_| random.spelled()).collect();
        for _ in 0..500 {
            // A written multiple, and close values.
            let value = unit * i128::from(random.below(100_000));
            let (whole, rest) = (value / 10i128.pow(PLACES as u32), value % 10i128.pow(PLACES as u32));
            let text = format!("{whole}.{rest:012}");
            texts.push(random.near(&text));
            texts.push(text.trim_end_matches('0').trim_end_matches('.').to_owned());
            texts.push(format!("-{text}"));
            // One digit of a multiple.
            texts.push(format!("{}{}", random.below(10), random.exponent()));
        }
        texts.extend(["0", "-0", "0.0", "-0.00", "0e9", "-0.0E-7"].map(str::to_owned));
        for text in &texts {
            let both = [&surely, &possibly].map(|dfa| dfa.matches(text.as_bytes()));
            if !is_wide(text) {
                assert_eq!(both, [false; 2], "{text} by {step}");
                continue;
            }
            let Some(value) = evaluated(text) else { continue };
            let expected = value % unit == 0;
            members += usize::from(expected);
            let (mantissa, _) = split(text);
            let fraction = mantissa.split_once('.').map_or("", |(_, fraction)| fraction);
            if mantissa != text && fraction.contains(|digit| digit != '0') {
                undecided += usize::from(both[1]);
                // A number below the step is no multiple.
                let is_small = value != 0 && value.abs() < unit;
                assert!(!both[0] && (both[1] || !expected && is_small), "{text} by {step}");
                assert!(!(both[1] && value.abs() * 10 <= unit), "{text} by {step}");
            } else {
                assert_eq!(both, [expected; 2], "{text} by {step}");
            }
        }
    }
    assert!(members > 20_000 && undecided > 1_000, "{members} {undecided}");
    for certainty in [Certainty::Surely, Certainty::Possibly] {
        let integers = integers(Notation::Wide, certainty, &meter).unwrap();
        assert_eq!(multiples("1", certainty), integers);
    }
    let huge = multiples("1e308", Certainty::Surely);
    assert!(huge.matches(format!("3{}", "0".repeat(308)).as_bytes()) && huge.matches(b"0.0"));
    assert!(!huge.matches(format!("3{}", "0".repeat(307)).as_bytes()) && !huge.matches(b"3e99"));
    let tiny = multiples("1e-300", Certainty::Surely);
    assert!(tiny.matches(b"0.25") && tiny.matches(b"1e-99"));
    let zero = multiples("0", Certainty::Surely);
    assert!(zero.matches(b"-0.0") && zero.matches(b"0e1") && !zero.matches(b"1"));
    for large in ["1234567.891", "12345678901234567890"] {
        let refused = multiple_of(&decimal(large), Certainty::Surely, &meter);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Limit, "{large}");
    }
}

#[test]
fn listed_values_have_all_their_texts() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let mut random = Random::new(5);
    let mut members = 0;
    for size in [0, 1, 2, 3, 20] {
        let values: Vec<Decimal> = (0..size).map(|_| decimal(&random.text())).collect();
        let dfa = one_of(&values, &meter).unwrap();
        let mut texts: Vec<String> = (0..200).map(|_| random.spelled()).collect();
        for value in &values {
            let (plain, short) = (value.text(), scientific(value));
            texts.extend((0..50).map(|_| random.near(&plain)));
            texts.extend((0..50).map(|_| random.near(&short)));
            texts.extend([plain, short]);
        }
        for text in texts {
            let expected = is_wide(&text) && values.contains(&decimal(&text));
            members += usize::from(expected);
            assert_eq!(dfa.matches(text.as_bytes()), expected, "{text}");
        }
    }
    assert!(members > 200, "{members}");
    let ten = one_of([&decimal("10")], &meter).unwrap();
    for text in ["10", "10.0", "10.000", "1e1", "1E1", "1e+1", "1e01", "1.0e1", "1.000E+01"] {
        assert!(ten.matches(text.as_bytes()), "{text}");
    }
    for text in ["10.", "10.01", "-10", "1e-1", "1e001", "1e11", "1.01e1", "01e1", "1"] {
        assert!(!ten.matches(text.as_bytes()), "{text}");
    }
}

#[test]
fn notations_pick_spellings() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let notations = [Notation::Digits, Notation::Wide, Notation::Free];
    let automata = notations.map(|notation| universe(notation, None, &meter).unwrap());
    let short = [1, 3].map(|max| notations.map(|notation| universe(notation, Some(max), &meter).unwrap()));
    let mut random = Random::new(4);
    for at in 0..5000 {
        let mut text = random.spelled();
        if at % 2 == 0 {
            text = random.near(&text);
        }
        let is_digits = is_free(&text) && !text.contains(['.', 'e', 'E']) && text != "-0";
        let expected = [is_digits, is_wide(&text), is_free(&text)];
        let found = automata.each_ref().map(|dfa| dfa.matches(text.as_bytes()));
        assert_eq!(found, expected, "{text}");
        for (max, short) in [1, 3].into_iter().zip(&short) {
            let (mantissa, _) = split(&text);
            let is_short = mantissa.trim_start_matches('-').split('.').all(|part| part.len() <= max);
            let found = short.each_ref().map(|dfa| dfa.matches(text.as_bytes()));
            assert_eq!(found, expected.map(|expected| expected && is_short), "{text}, {max}");
        }
    }
    for text in ["10.0", "0.0", "19.00", "1.0e2", "-0.0", "-0", "1E+16", "1e-07", "-0e00"] {
        assert!(automata[1].matches(text.as_bytes()), "{text}");
    }
}

/// Numbers are everywhere: their automata stay small.
#[test]
fn automata_of_bounds_have_few_states() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let states = |dfa: Result<ByteDfa>| dfa.unwrap().state_count();
    assert!(states(universe(Notation::Digits, None, &meter)) <= 5);
    assert!(states(universe(Notation::Free, None, &meter)) <= 11);
    assert!(states(universe(Notation::Wide, None, &meter)) <= 16);
    for (bound, max) in [("0", 20), ("1", 30), ("100", 50), ("-273.15", 60), ("65535", 60)] {
        let bound = decimal(bound);
        println!("{}: {}", bound.text(), states(at_least(&bound, false, &meter)));
        assert!(states(at_least(&bound, false, &meter)) <= max, "{}", bound.text());
        assert!(states(at_most(&bound, true, &meter)) <= max, "{}", bound.text());
        assert!(states(one_of([&bound], &meter)) <= 30, "{}", bound.text());
    }
    for (step, max) in [("1", 30), ("0.01", 40), ("0.25", 60), ("5", 60)] {
        let step = decimal(step);
        println!("{}: {}", step.text(), states(multiple_of(&step, Certainty::Surely, &meter)));
        for certainty in [Certainty::Surely, Certainty::Possibly] {
            assert!(states(multiple_of(&step, certainty, &meter)) <= max, "{}", step.text());
        }
    }
}

#[test]
fn numbers_beyond_the_limits_are_refused() {
    let limits = Limits { states: 10, ..Limits::default() };
    let meter = Meter::start(&limits);
    assert_eq!(universe(Notation::Wide, Some(1000), &meter).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(at_least(&decimal("123456789"), false, &meter).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(multiple_of(&decimal("97"), Certainty::Surely, &meter).unwrap_err().kind(), ErrorKind::Limit);
    let wide = Limits::default();
    assert!(
        universe(Notation::Wide, Some(usize::MAX), &Meter::start(&wide)).unwrap_err().kind()
            == ErrorKind::Limit
    );
}

#[test]
fn automata_are_made_fast() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let timed = |name: &str, make: &dyn Fn() -> ByteDfa| {
        let mut times: Vec<_> = (0..5)
            .map(|_| {
                let before = Instant::now();
                make();
                before.elapsed()
            })
            .collect();
        times.sort_unstable();
        println!("{name}: {} states, p50 {:?}", make().state_count(), times[2]);
        times[2]
    };
    for bound in ["0", "100", "-273.15", "65535", "9007199254740991", "1e308"] {
        let bound = decimal(bound);
        let name = bound.text().chars().take(20).collect::<String>();
        let time = timed(&format!("at least {name}"), &|| at_least(&bound, false, &meter).unwrap());
        assert!(time.as_millis() < 100);
        timed(&format!("equal to {name}"), &|| one_of([&bound], &meter).unwrap());
    }
    for step in ["1", "0.01", "0.0001", "2.5", "7", "1000000", "0.3", "3600", "12.34"] {
        let step = decimal(step);
        let time = timed(&format!("multiple of {}", step.text()), &|| {
            multiple_of(&step, Certainty::Surely, &meter).unwrap()
        });
        assert!(time.as_millis() < 100);
    }
    for digits in [9, 15] {
        timed(&format!("at most {digits} digits"), &|| {
            universe(Notation::Wide, Some(digits), &meter).unwrap()
        });
    }
}
