//! Formats compared with their own rules, and with other implementations.

mod judge;

use super::*;
use burn_dfa_automata::Op;
use burn_dfa_common::{ErrorKind, Limits};

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
        assert!(dfa.state_count() < 1_600, "{name}: {} states", dfa.state_count());
    }
    assert_eq!(Format::named("Date"), None);
}

#[test]
fn urls_that_are_counted_are_urls_and_few_states() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let counted = Format::CountedUrl.lower(Certainty::Surely, &meter).unwrap();
    let url = Format::Uri.lower(Certainty::Surely, &meter).unwrap();
    assert!(counted.product(&url, Op::Difference, &meter).unwrap().is_empty());
    assert!(counted.state_count() < 40, "{} states", counted.state_count());
    assert!(
        counted.matches(b"https://a-b.example.org:8080/c%20d?e=f#g")
            && !counted.matches(b"https://localhost/")
    );
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
                let is_day = year > 0 && (1..=length).contains(&day);
                assert_eq!(dfa.matches(date.as_bytes()), is_day, "{date}");
            }
        }
    }
}

/// If readers disagree with the standard on a string, it is undecided: neither written nor invalid.
#[test]
fn strings_in_doubt_are_undecided() {
    let cases: [(Format, &[&str]); 12] = [
        (Format::Date, &["0000-02-29"]),
        (Format::Time, &["23:59:60Z", "12:00:00z", "12:00:00.1234567890Z"]),
        (Format::DateTime, &["1998-12-31T23:59:60Z", "2016-06-30 23:59:59Z", "2016-06-30t23:59:59Z"]),
        (Format::Duration, &["P1234567D"]),
        (Format::Email, &["joe@localhost", "\"a b\"@example.com", "joe@[127.0.0.1]", "joe@1.2"]),
        (Format::IdnEmail, &["joe@b\u{fc}cher.example", "\u{e000}@example.com"]),
        (
            Format::Uri,
            &["http:", "http:///a", "http://xn--x/", "http://1.2.3/", "a://h:65536", "a://[v1.x]", "a:"],
        ),
        (Format::UriReference, &["http:a", "//:80"]),
        (Format::UriTemplate, &["{a.b}", "{%41}", "{=a}", "'"]),
        (Format::RelativeJsonPointer, &["100/a", "1+2"]),
        (Format::Ipv4Network, &["10.0.0.1/8"]),
        (Format::Base64Url, &["YQ"]),
    ];
    let limits = Limits::default();
    for (format, texts) in cases {
        let [surely, possibly] = [Certainty::Surely, Certainty::Possibly]
            .map(|certainty| format.lower(certainty, &Meter::start(&limits)).unwrap());
        for text in texts {
            assert!(!surely.matches(text.as_bytes()) && possibly.matches(text.as_bytes()), "{text}");
        }
    }
    let bad = ["23:59:61Z", "24:00:00Z", "00:00:00+24:00", "1:00:00Z", "12:00:00"];
    let possible = Format::Time.lower(Certainty::Possibly, &Meter::start(&limits)).unwrap();
    assert!(!bad.iter().any(|text| possible.matches(text.as_bytes())));
}

/// Networks by the arithmetic of their bits.
#[test]
fn networks_have_no_bits_after_the_prefix() {
    let limits = Limits::default();
    let [four, six] = [Format::Ipv4Network, Format::Ipv6Network]
        .map(|format| format.lower(Certainty::Surely, &Meter::start(&limits)).unwrap());
    let addresses = [0, 1, 1 << 31, 0x0a00_0000, 0xc0a8_0180, 0xffff_ffff, 0xac10_0000u32];
    for (address, length) in
        addresses.into_iter().flat_map(|address| (0..=33).map(move |length| (address, length)))
    {
        let is_network = length <= 32 && u64::from(address) << length & 0xffff_ffff == 0;
        let text = format!("{}/{length}", std::net::Ipv4Addr::from(address));
        assert_eq!(four.matches(text.as_bytes()), is_network, "{text}");
    }
    for (address, length) in (0..128).flat_map(|bit| (0..=129).map(move |length| (1u128 << bit, length))) {
        let is_network = length == 128 || length < 128 && address << length == 0;
        let text = format!("{}/{length}", std::net::Ipv6Addr::from(address));
        // Zeros at the end are written as `::` only if they are the longest run.
        let is_written = is_network && (length == 128 || text.contains("::/"));
        assert_eq!(six.matches(text.as_bytes()), is_written, "{text}");
    }
}

#[test]
fn surely_valid_strings_are_possibly_valid() {
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
fn lengths_of_formats_are_bounded() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let hostname = Format::Hostname.lower(Certainty::Surely, &meter).unwrap();
    assert!(hostname.matches("a".repeat(63).as_bytes()));
    assert!(!hostname.matches("a".repeat(64).as_bytes()));
    let email = Format::Email.lower(Certainty::Surely, &meter).unwrap();
    assert!(email.matches(format!("{}@a.bc", "x".repeat(64)).as_bytes()));
    assert!(!email.matches(format!("{}@a.bc", "x".repeat(65)).as_bytes()));
    let few = Limits { states: 10, ..Limits::default() };
    assert!(
        Format::Uri.lower(Certainty::Surely, &Meter::start(&few)).unwrap_err().kind() == ErrorKind::Limit
    );
}

#[test]
fn integers_have_ranges() {
    assert_eq!(Format::Int32.range(), Some((-2_147_483_648, 2_147_483_647)));
    assert_eq!(Format::Uint64.range(), Some((0, 18_446_744_073_709_551_615)));
    assert_eq!(Format::Int32.is_exact(), Exactness::Annotation);
}
