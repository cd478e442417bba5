use burn_dfa_common::{ErrorKind, Limits, limits::Meter};
use std::time::Instant;

use super::*;
use crate::Constraint;
use burn_dfa_automata::{ByteDfa, Expr};

const SPELLINGS: [Spelling; 6] = [
    Spelling { ascii: false, escapes: Escapes::Canonical },
    Spelling { ascii: true, escapes: Escapes::Canonical },
    Spelling { ascii: false, escapes: Escapes::Numbered },
    Spelling { ascii: true, escapes: Escapes::Numbered },
    Spelling { ascii: false, escapes: Escapes::Any },
    Spelling { ascii: true, escapes: Escapes::Any },
];

/// Contents of many shapes.
const CONTENTS: [&str; 11] = [
    r"(?s:.)*",
    r"(?s:.){0,3}",
    r"[a-c]*",
    r#"[\x00-\x1f"\\/]*"#,
    r"(ab|é😀|\n)*x?",
    r"\PL+",
    r"[\u{80}-\u{7ff}]*|[\u{fff0}-\u{103ff}]{2}",
    r"(\u{10000}|\u{103ff}|\u{10400}|[\u{20000}-\u{2ffff}]|\u{10ffff})+",
    r"n|\n|an",
    r"(\d\d\d)+",
    r"",
];

fn content(regex: &str) -> ByteDfa {
    Constraint::regex(regex).unwrap().to_byte_dfa(&Limits::default()).unwrap().unwrap()
}

fn size(text: &str) -> u64 {
    text.chars().count() as u64
}

#[test]
fn members_mean_strings_of_the_content() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let mut members = 0;
    for regex in CONTENTS {
        let content = content(regex);
        for spelling in SPELLINGS {
            for (min, max) in [(0, None), (0, Some(2)), (2, None), (3, Some(3)), (2, Some(7)), (3, Some(1))] {
                let texts = quote(&content, min, max, spelling, &meter).unwrap();
                for text in texts.samples(min, 60).take(50) {
                    let string: String = serde_json::from_slice(&text).unwrap();
                    assert!(content.matches(string.as_bytes()), "{regex}: {text:?}");
                    assert!(size(&string) >= min && max.is_none_or(|max| size(&string) <= max));
                    assert!(!spelling.ascii || text.is_ascii());
                    members += 1;
                }
            }
        }
    }
    assert!(members > 5000);
}

#[test]
fn strings_have_their_spellings_and_no_other() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    let all: Vec<String> = [r"(?s:.){0,4}", r"[\x00-\xff/]{3}", "[\u{d000}-\u{10fff}]{2}"]
        .iter()
        .enumerate()
        .flat_map(|(at, regex)| {
            let drawn = content(regex).samples(at as u64, 40).take(60).collect::<Vec<_>>();
            drawn.into_iter().map(|text| String::from_utf8(text).unwrap())
        })
        .collect();
    for regex in CONTENTS {
        let content = content(regex);
        let own = content.samples(9, 12).take(40).map(|text| String::from_utf8(text).unwrap());
        let strings: Vec<String> = own.chain(all.iter().cloned()).collect();
        for spelling in SPELLINGS {
            let texts = quote(&content, 1, Some(3), spelling, &meter).unwrap();
            for (turn, string) in strings.iter().enumerate() {
                let member = content.matches(string.as_bytes()) && (1..=3).contains(&size(string));
                let options = spellings(string, spelling);
                let max = options.iter().map(Vec::len).max().unwrap_or(1);
                for at in 0..max {
                    let written = options
                        .iter()
                        .enumerate()
                        .flat_map(|(index, of)| of[(at + index * turn) % of.len()].clone());
                    let text: Vec<u8> = [b'"'].into_iter().chain(written).chain([b'"']).collect();
                    assert_eq!(serde_json::from_slice::<String>(&text).unwrap(), *string);
                    assert_eq!(texts.matches(&text), member, "{regex}: {string:?} as {text:?}");
                }
            }
        }
    }
}

#[test]
fn spellings_are_complete() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    for string in ["a", "\n", "\u{1f}", "\"", "/", "é", "\u{fabc}", "😀", "\u{10ffff}", "\u{7f}"] {
        let content = content(&regex_syntax::escape(string));
        for spelling in SPELLINGS {
            let texts = quote(&content, 1, Some(1), spelling, &meter).unwrap();
            let words = spellings(string, spelling).remove(0);
            let words: Vec<Vec<u8>> =
                words.into_iter().map(|word| [b"\"", &word[..], b"\""].concat()).collect();
            assert_eq!(texts, Expr::Literals(words).determinize(&meter).unwrap(), "{string:?}");
        }
    }
    let count = |text: &str, spelling| spellings(text, spelling)[0].len();
    assert_eq!(count("a", SPELLINGS[0]), 1);
    assert_eq!(count("\n", SPELLINGS[0]), 3);
    assert_eq!(count("/", SPELLINGS[2]), 3);
    assert_eq!(count("/", SPELLINGS[4]), 4);
    assert_eq!(count("😀", SPELLINGS[1]), 16);
}

#[test]
fn no_lone_surrogates_and_no_controls() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    for spelling in SPELLINGS {
        let texts = quote(&content(r"(?s:.)*"), 0, None, spelling, &meter).unwrap();
        for wrong in [
            r#""\ud800""#,
            r#""\ud83dx""#,
            r#""\ude00\ud83d""#,
            r#""\u12""#,
            r#""\x""#,
            "\"\n\"",
            "\"",
            r#"""""#,
            r#""\'""#,
        ] {
            assert!(!texts.matches(wrong.as_bytes()), "{wrong} with {spelling:?}");
        }
        assert!(!texts.matches(b"\"\xed\xa0\x80\"") && !texts.matches(b"\"\xc0\x80\""));
    }
}

#[test]
fn long_strings_are_made_fast() {
    let limits = Limits::default();
    let meter = Meter::start(&limits);
    for max in [100, 1000, 10_000] {
        let any = content(r"(?s:.)*");
        let before = Instant::now();
        let dfa = quote(&any, 0, Some(max), Spelling::default(), &meter).unwrap();
        println!("at most {max}: {} states, {:?}", dfa.state_count(), before.elapsed());
        // Of each count 13; before the quote, at the end, dead, and nothing more after the last
        // character.
        assert_eq!(dfa.state_count() as u64, 13 * max + 4);
        assert!(before.elapsed().as_secs() < 5);
    }
    for spelling in SPELLINGS {
        for regex in [r"(?s:.)*", r"\w*"] {
            let content = content(regex);
            let before = Instant::now();
            let dfa = quote(&content, 0, Some(100), spelling, &meter).unwrap();
            println!("{spelling:?} {regex}: {} states, {:?}", dfa.state_count(), before.elapsed());
        }
    }
}

#[test]
fn lengths_beyond_the_limits_are_refused() {
    let limits = Limits { states: 5000, ..Limits::default() };
    let meter = Meter::start(&limits);
    let any = content(r"(?s:.)*");
    for (min, max) in [(0, Some(1000)), (u64::MAX, None), (0, Some(u64::MAX)), (u64::MAX, Some(u64::MAX))] {
        assert_eq!(quote(&any, min, max, Spelling::default(), &meter).unwrap_err().kind(), ErrorKind::Limit);
    }
    let none = Expr::Literals(Vec::new()).determinize(&meter).unwrap();
    assert!(quote(&none, 0, None, Spelling::default(), &meter).unwrap().is_empty());
    assert!(quote(&none, 0, Some(3), Spelling::default(), &meter).unwrap().is_empty());
    // Short strings need no counting.
    let short = content("[ab]{0,9}");
    let free = quote(&short, 0, None, Spelling::default(), &meter).unwrap();
    assert_eq!(quote(&short, 0, Some(u64::MAX), Spelling::default(), &meter).unwrap(), free);
    assert!(quote(&short, u64::MAX, None, Spelling::default(), &meter).unwrap().is_empty());
}
