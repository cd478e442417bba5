//! Formats by their own rules; and by the judgement of others.

mod judge;

use super::*;
use crate::automaton::Op;
use crate::limits::Limits;

fn members(format: Format, candidates: &[&'static str]) -> Vec<&'static str> {
    let limits = Limits::default();
    let dfa = format.lower(Certainty::Surely, &Meter::start(&limits)).unwrap();
    candidates.iter().copied().filter(|text| dfa.matches(text.as_bytes())).collect()
}

#[test]
fn every_grammar_is_read_and_small() {
    let limits = Limits::default();
    for (name, format) in NAMES {
        let start = std::time::Instant::now();
        let dfa = format
            .lower(Certainty::Surely, &Meter::start(&limits))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        println!(
            "{name}: {} states, {} classes, {:?}",
            dfa.state_count(),
            dfa.class_count(),
            start.elapsed()
        );
        assert_eq!(Format::named(name), Some(format));
        assert!(dfa.state_count() < 1_500, "{name}: {} states", dfa.state_count());
    }
    assert_eq!(Format::named("Date"), None);
}

#[test]
fn every_day_of_the_calendar() {
    let limits = Limits::default();
    let dfa = Format::Date.lower(Certainty::Surely, &Meter::start(&limits)).unwrap();
    for year in 0..10_000 {
        let is_leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
        let february = if is_leap { 29 } else { 28 };
        let lengths = [0, 31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0];
        for (month, &length) in lengths.iter().enumerate() {
            for day in 0..=32 {
                let date = format!("{year:04}-{month:02}-{day:02}");
                assert_eq!(dfa.matches(date.as_bytes()), (1..=length).contains(&day), "{date}");
            }
        }
    }
}

#[test]
fn leap_seconds_end_a_day_in_utc() {
    let good =
        ["23:59:60Z", "23:59:60.5z", "01:29:60+01:30", "23:29:60+23:30", "15:59:60-08:00", "00:29:60-23:30"];
    let bad = [
        "22:59:60Z",
        "23:59:60+01:00",
        "23:59:60-00:30",
        "23:59:61Z",
        "24:00:00Z",
        "00:00:00+24:00",
        "1:00:00Z",
    ];
    assert_eq!(members(Format::Time, &[&good[..], &bad[..]].concat()), good);
}

#[test]
fn leap_seconds_of_dates_end_june_or_december() {
    let good = ["1998-12-31T23:59:60Z", "1990-12-31T15:59:60-08:00", "2016-07-01t05:29:60.5+05:30"];
    let undecided = ["1998-12-30T23:59:60Z", "1998-12-31T05:29:60+05:30", "2016-06-30 23:59:59Z"];
    let bad = ["1998-12-31T23:59:61Z", "1998-02-30T23:59:59Z", "1998-12-31T24:00:00Z"];
    assert_eq!(members(Format::DateTime, &[&good[..], &undecided, &bad].concat()), good);
    let limits = Limits::default();
    let possible = Format::DateTime.lower(Certainty::Possibly, &Meter::start(&limits)).unwrap();
    assert!(good.iter().chain(&undecided).all(|text| possible.matches(text.as_bytes())));
    assert!(!bad.iter().any(|text| possible.matches(text.as_bytes())));
}

#[test]
fn what_is_surely_valid_is_possibly_valid() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    for (name, format) in NAMES {
        let [surely, possibly] = [Certainty::Surely, Certainty::Possibly]
            .map(|certainty| format.lower(certainty, &meter).unwrap());
        let only = surely.product(&possibly, Op::Difference, &meter).unwrap();
        assert!(only.is_empty(), "{name}");
        let is_exact = surely == possibly;
        assert_eq!(is_exact, format.is_exact() != Exactness::Bounded, "{name}");
    }
}

#[test]
fn bounds_are_kept() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let hostname = Format::Hostname.lower(Certainty::Surely, &meter).unwrap();
    assert!(hostname.matches("a".repeat(63).as_bytes()));
    assert!(!hostname.matches("a".repeat(64).as_bytes()));
    let email = Format::Email.lower(Certainty::Surely, &meter).unwrap();
    assert!(email.matches(format!("{}@a.b", "x".repeat(64)).as_bytes()));
    assert!(!email.matches(format!("{}@a.b", "x".repeat(65)).as_bytes()));
    let few = Limits { states: 10, ..Limits::default() };
    assert!(Format::Uri.lower(Certainty::Surely, &Meter::start(&few)).unwrap_err().is_limit());
}

#[test]
fn integers_have_ranges() {
    assert_eq!(Format::Int32.range(), Some((-2_147_483_648, 2_147_483_647)));
    assert_eq!(Format::Uint64.range(), Some((0, 18_446_744_073_709_551_615)));
    assert_eq!(Format::Double.range(), None);
    assert_eq!(Format::Int32.is_exact(), Exactness::Annotation);
}
