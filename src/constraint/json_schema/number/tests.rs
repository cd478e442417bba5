use std::time::Instant;

use super::*;
use crate::limits::Limits;

/// Digits after the point that the evaluator knows.
const PLACES: usize = 12;

/// The value of a text of W, times 10^12.
fn scaled(text: &str) -> i128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{}{fraction:0<PLACES$}", whole.trim_start_matches('-'));
    let value: i128 = digits.parse().unwrap();
    if text.starts_with('-') { -value } else { value }
}

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
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

/// W, by hand.
fn is_wide(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    digits(whole) && (whole == "0" || !whole.starts_with('0')) && fraction.is_none_or(digits)
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
    let mut random = Random(1);
    for _ in 0..5000 {
        let (a, b) = (random.text(), random.text());
        assert_eq!(decimal(&a).cmp(&decimal(&b)), scaled(&a).cmp(&scaled(&b)), "{a} {b}");
        assert_eq!(scaled(&decimal(&a).text()), scaled(&a));
    }
}

#[test]
fn comparisons_agree_with_integers() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let mut random = Random(2);
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
            (equal_to(&exact, &meter), Ordering::is_eq),
        ]
        .map(|(dfa, keep)| (dfa.unwrap(), keep));
        let mut texts =
            vec![bound.clone(), format!("{bound}0"), format!("-{bound}"), exact.text(), exact.text() + ".00"];
        texts.extend((0..60).map(|_| random.text()));
        texts.extend((0..60).map(|_| random.near(&exact.text())));
        for text in texts {
            for (dfa, keep) in &automata {
                let expected = is_wide(&text) && keep(scaled(&text).cmp(&scaled(&bound)));
                members += usize::from(expected);
                assert_eq!(dfa.matches(text.as_bytes()), expected, "{text} beside {bound}");
            }
        }
    }
    assert!(members > 10_000);
}

#[test]
fn huge_bounds() {
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
    assert!(!tiny.matches(b"0.0") && !tiny.matches(format!("0.{}1", "0".repeat(299)).as_bytes()));
}

#[test]
fn multiples_agree_with_integers() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let steps = [
        "1", "2", "3", "5", "7", "8", "10", "12", "16", "40", "100", "1000000", "3600", "0.01", "0.0001",
        "2.5", "0.3", "0.125", "0.75", "1.1", "0.05", "12.34", "97",
    ];
    let mut random = Random(3);
    let mut members = 0;
    for step in steps {
        let dfa = multiple_of(&decimal(step), &meter).unwrap();
        let unit = scaled(step);
        let mut texts: Vec<String> = (0..2000).map(|_| random.text()).collect();
        for _ in 0..500 {
            // A multiple, written out, and what is near it.
            let value = unit * i128::from(random.below(100_000));
            let (whole, rest) = (value / 10i128.pow(PLACES as u32), value % 10i128.pow(PLACES as u32));
            let text = format!("{whole}.{rest:012}");
            texts.push(random.near(&text));
            texts.push(text.trim_end_matches('0').trim_end_matches('.').to_owned());
            texts.push(format!("-{text}"));
        }
        texts.extend(["0", "-0", "0.0", "-0.00"].map(str::to_owned));
        for text in
            texts.iter().filter(|text| text.split('.').nth(1).is_none_or(|digits| digits.len() <= PLACES))
        {
            let expected = is_wide(text) && scaled(text) % unit == 0;
            members += usize::from(expected);
            assert_eq!(dfa.matches(text.as_bytes()), expected, "{text} by {step}");
        }
    }
    assert!(members > 20_000);
    assert_eq!(multiple_of(&decimal("1"), &meter).unwrap(), integers(&meter).unwrap());
    let huge = multiple_of(&decimal("1e308"), &meter).unwrap();
    assert!(huge.matches(format!("3{}", "0".repeat(308)).as_bytes()) && huge.matches(b"0.0"));
    assert!(!huge.matches(format!("3{}", "0".repeat(307)).as_bytes()));
    assert!(multiple_of(&decimal("1e-300"), &meter).unwrap().matches(b"0.25"));
    let zero = multiple_of(&decimal("0"), &meter).unwrap();
    assert!(zero.matches(b"-0.0") && !zero.matches(b"1"));
    for large in ["1234567.891", "12345678901234567890"] {
        assert!(multiple_of(&decimal(large), &meter).unwrap_err().is_limit(), "{large}");
    }
}

#[test]
fn forms_pick_spellings() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let plain = universe(Form::Plain, None, &meter).unwrap();
    let any = universe(Form::Any, None, &meter).unwrap();
    let mut random = Random(4);
    for at in 0..5000 {
        let mut text = random.text();
        if at % 2 == 0 {
            text = random.near(&text);
        }
        assert_eq!(any.matches(text.as_bytes()), is_wide(&text), "{text}");
        let canonical = is_wide(&text) && {
            let integer = scaled(&text) % 10i128.pow(PLACES as u32) == 0;
            integer != text.contains('.') && !(scaled(&text) == 0 && text.starts_with('-'))
        };
        assert_eq!(plain.matches(text.as_bytes()), canonical, "{text}");
        for max in [1, 3] {
            let parts = text.trim_start_matches('-').split('.').all(|part| part.len() <= max);
            let short = universe(Form::Plain, Some(max), &meter).unwrap();
            assert_eq!(short.matches(text.as_bytes()), canonical && parts, "{text}, {max}");
        }
        for (form, base) in [(Form::Plain, &plain), (Form::Any, &any)] {
            let exponential = exponential(form, None, &meter).unwrap();
            let with = |end: &str| exponential.matches(format!("{text}{end}").as_bytes());
            // An exponent already there makes a second one wrong and a digit more right.
            let base = base.matches(text.as_bytes());
            if !text.contains(['e', 'E']) {
                assert!([with(""), with("e1"), with("E+12"), with("e-00")].iter().all(|&same| same == base));
            }
            assert!(!with("e") && !with("e+") && !with("e123") && !with("e1.5"), "{text}");
        }
    }
    assert!(exponential(Form::Any, Some(2), &meter).unwrap().matches(b"-12.00e99"));
    assert!(!exponential(Form::Any, Some(2), &meter).unwrap().matches(b"123e9"));
}

#[test]
fn limits_hold() {
    let limits = Limits { states: 10, ..Limits::default() };
    let meter = Meter::start(&limits);
    assert!(universe(Form::Any, Some(1000), &meter).unwrap_err().is_limit());
    assert!(at_least(&decimal("123456789"), false, &meter).unwrap_err().is_limit());
    assert!(multiple_of(&decimal("97"), &meter).unwrap_err().is_limit());
    let wide = Limits::default();
    assert!(universe(Form::Any, Some(usize::MAX), &Meter::start(&wide)).unwrap_err().is_limit());
}

#[test]
fn automata_are_made_fast() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let timed = |name: &str, make: &dyn Fn() -> ByteDfa| {
        let mut times: Vec<_> = (0..200)
            .map(|_| {
                let before = Instant::now();
                make();
                before.elapsed()
            })
            .collect();
        times.sort_unstable();
        println!("{name}: {} states, p50 {:?}, p99 {:?}", make().state_count(), times[100], times[198]);
        times[100]
    };
    for bound in ["0", "100", "-273.15", "65535", "9007199254740991", "1e308"] {
        let bound = decimal(bound);
        let name = bound.text().chars().take(20).collect::<String>();
        let time = timed(&format!("at least {name}"), &|| at_least(&bound, false, &meter).unwrap());
        assert!(time.as_millis() < 100);
        timed(&format!("equal to {name}"), &|| equal_to(&bound, &meter).unwrap());
    }
    for step in ["1", "0.01", "0.0001", "2.5", "7", "1000000", "0.3", "3600", "12.34"] {
        let step = decimal(step);
        let time = timed(&format!("multiple of {}", step.text()), &|| multiple_of(&step, &meter).unwrap());
        assert!(time.as_millis() < 100);
    }
    for digits in [9, 15] {
        timed(&format!("at most {digits} digits"), &|| universe(Form::Plain, Some(digits), &meter).unwrap());
    }
}
