//! Single regexes, choices, patterns and token constraints: their languages and their errors.

use burn_dfa_tokens::{
    Constraint, Error, ErrorKind, Limit, Limits, TokenId,
    constraint::{CharClass, CharPattern, Transitions},
};
use std::time::{Duration, Instant};

use super::{accepts, compile};

#[test]
fn equal_languages_are_equal_automata() {
    assert_eq!(compile("a|ab").unwrap(), compile("ab?").unwrap());
    assert_eq!(compile("(a|b)*").unwrap(), compile("(a*b*)*").unwrap());
    assert_eq!(compile(r"^\w+$").unwrap(), compile(r"\w\w*\b").unwrap());
    assert_eq!(compile("a|ab").unwrap().state_count(), 4);
    assert_ne!(compile("a").unwrap(), compile("b").unwrap());
}

#[test]
fn the_whole_text_has_to_match() {
    assert!(accepts("a|ab", "ab"));
    assert!(accepts("a*?", "aaa"));
    assert!(!accepts("a", "ab"));
    assert!(!accepts("b", "ab"));
    assert!(accepts("^a$", "a"));
    assert!(!accepts("^a$", "a\n"));
    assert!(!accepts("(?m)^a$.^b$", "a\nb"));
    assert!(accepts("(?ms)^a$.^b$", "a\nb"));
}

#[test]
fn repetitions_that_run_together_are_exact() {
    for pattern in [
        r"^(?-u:\w+\W*){1,9}$",
        r"(?:[ab]+ ?){2,6}",
        r"(?:a|b|ab|aab){0,7}",
        r"(?:- [ab]{1,4} *){1,4}",
        r"(?:[a-c]{1,5} ){1,6}c?",
        r"(?:(?:a?b?){1,3}c?){2,4}",
        r"(?:(?:a|aaa){2,4}b?){3,}",
        r"(?m)(?:^[ab]*$\n?){1,4}",
        r"(?:(?-u:\b)a+(?-u:\b)[ -]*){1,5}",
        r"(?:é+[é-ü]*){3,5}a{2,}",
    ] {
        let dense = super::dense(pattern).unwrap();
        super::assert_same_language(pattern, compile(pattern).ok().as_ref(), &dense);
    }
}

#[test]
fn repetitions_that_run_together_are_few_states() {
    for (pattern, max) in [
        (r"^(?:\w+\W*){1,50}$", 50_000),
        (r"^(?-u:\w+\W*){1,50}$", 1_000),
        (r"^(?:\S+\s*){1,100}$", 10_000),
        (r"(?:[a-z]{1,10} ?){1,30}", 1_000),
        (r"(?:[A-Z][^.]{1,200}\.\s?){1,5}", 10_000),
        (r"(?:[ab]+,?){60,}", 200),
    ] {
        let states = compile(pattern).unwrap().state_count();
        assert!(states <= max, "{pattern}: {states} states");
    }
}

#[test]
fn unicode_word_boundaries_are_exact() {
    assert!(accepts(r".+\b.+", "é-"));
    assert!(!accepts(r".\b.", "éa"));
    assert!(accepts(r".\b.", "λ€"));
    assert!(accepts(r".\B.", "λé"));
    assert!(accepts(r"(?-u:\b)λ|λ(?-u:\b)a", "λa"));
    assert!(accepts(r"\b\w+\b \b\w+\b", "naïve λόγος"));
}

#[test]
fn bytes_that_are_no_text_are_allowed_where_asked_for() {
    let dfa = compile(r"(?-u:\xFF)a(?s-u:.)").unwrap();
    assert!(dfa.matches(b"\xFFa\x80"));
    assert!(!compile(r"(?s:.)").unwrap().matches(b"\x80"));
    let error = compile(r"a(?-u:\xFF)(?u:\b)").unwrap_err();
    assert!(error.kind() == ErrorKind::Pattern && error.offset() == Some(15), "{error}");
}

#[test]
fn patterns_that_cannot_be_read_name_the_place() {
    for (pattern, offset) in [
        ("a(b", 1),
        ("é(", 2),
        ("a**)", 3),
        ("[z-a]", 1),
        (r"a\1", 1),
        ("a(?=b)", 1),
        (r"\p{Nonsense}", 0),
        ("a{3,2}", 1),
    ] {
        let error = Constraint::regex(pattern).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Pattern);
        assert_eq!(error.offset(), Some(offset), "{pattern}: {error}");
    }
    let deep = "(".repeat(10_000) + &")".repeat(10_000);
    assert_eq!(Constraint::regex(&deep).unwrap_err().kind(), ErrorKind::Pattern);
}

#[test]
fn an_empty_language_is_unsatisfiable() {
    for pattern in ["[^\\x00-\\x{10FFFF}]", "a^b", r"a\bb", "$a"] {
        let error = compile(pattern).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsatisfiable, "{pattern}: {error}");
    }
    assert_eq!(Constraint::choice(Vec::<String>::new()).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn hostile_patterns_meet_a_limit() {
    let limits =
        Limits { states: 200_000, bytes: 64 << 20, time: Duration::from_secs(5), ..Limits::default() };
    for pattern in [
        "((a{0,100}){0,100}){0,100}",
        r"\w{5000}",
        r"(?:\w{1000}){1000}",
        "(a|b)*a(a|b){30}",
        "(?:(?:(?:a?){1000}){1000}){1000}",
        "(.{1,500}){1,500}",
        r"(?:x*\b){100000000}",
        r"(?:){4000000000}",
        "(?:[a-m]|[b-n]|[c-o]|[d-p]){0,30000}",
        r".*\w{300}.*\d{300}.*\s{300}.*",
        "(?i)(?:straße|ſtraſſe|K)*.{200}(?:.*x){20}",
        r"(?:a(?:b{0,1000}c?){0,1000}\b){0,5}",
    ] {
        let started = Instant::now();
        let result = Constraint::regex(pattern).and_then(|c| c.to_byte_dfa(&limits).map(drop));
        let took = started.elapsed();
        println!("{pattern}: {took:?} {:?}", result.as_ref().map_err(|error| error.breached()));
        assert!(took < Duration::from_secs(15), "{pattern}: {took:?}");
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Limit, "{pattern}: {error}");
        }
    }
    let tight = Limits { states: 100, ..Limits::default() };
    let error = Constraint::regex("[abc]{5000}").unwrap().to_byte_dfa(&tight).unwrap_err();
    assert_eq!(error.breached(), Some(Limit::States(100)));
}

#[test]
fn nullable_repetitions_collapse() {
    assert_eq!(compile("(a|a)*{1000}").unwrap(), compile("a*").unwrap());
    assert_eq!(compile("(?:(?:a*)*)*").unwrap(), compile("a*").unwrap());
}

#[test]
fn a_hundred_thousand_choices_are_fine() {
    let words: Vec<String> =
        (0..100_000u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let limits = Limits { states: 2_000_000, ..Limits::default() };
    let dfa = Constraint::choice(words.clone()).unwrap().to_byte_dfa(&limits).unwrap().unwrap();
    assert!(words.iter().all(|word| dfa.matches(word.as_bytes())));
    assert!(!dfa.matches(b"nonsense"));
    let numbers: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
    let dfa = Constraint::choice(numbers).unwrap().to_byte_dfa(&limits).unwrap().unwrap();
    assert_eq!(dfa, compile("0|[1-9][0-9]{0,4}").unwrap());
}

#[test]
fn character_patterns_are_regexes_of_a_small_kind() {
    let lower = |text: &str| {
        let pattern = CharPattern::parse(text).unwrap();
        Constraint::pattern(pattern).to_byte_dfa(&Limits::default()).unwrap().unwrap()
    };
    for (text, regex) in [
        ("UPPER+: LOWER+\n", "[A-Z]+: [a-z]+\n"),
        ("UPPER+: LOWER+\\n", "[A-Z]+: [a-z]+\n"),
        ("xDIGIT?y*é+", "x[0-9]?y*é+"),
        ("Ab\\+\\D\\Oc", r"Ab\+DOc"),
        ("ANY*", ".*"),
        ("", ""),
    ] {
        assert_eq!(lower(text), compile(regex).unwrap(), "{text:?}");
    }
    let literal = CharPattern::new().zero_or_more("ab").optional(CharClass::any_of("é-"));
    let literal = Constraint::pattern(literal).to_byte_dfa(&Limits::default()).unwrap().unwrap();
    assert_eq!(literal, compile("(ab)*[é-]?").unwrap());
    for (text, offset) in [("é UPER+", 3), ("+a", 0), ("a+*", 2), ("ab\\", 2)] {
        assert_eq!(CharPattern::parse(text).unwrap_err().offset(), Some(offset), "{text:?}");
    }
    let empty = Constraint::pattern(CharPattern::new().one(CharClass::range('z', 'a')));
    assert_eq!(empty.to_byte_dfa(&Limits::default()).unwrap_err().kind(), ErrorKind::Unsatisfiable);
}

#[test]
fn token_constraints_are_checked() {
    let token = TokenId;
    let good = [(7, token(3), 9), (7, token(3), 9), (9, token(0), 7)];
    let constraint = Constraint::transitions(Transitions::new(7, [9], good).unwrap());
    assert!(constraint.to_byte_dfa(&Limits::default()).unwrap().is_none());
    let message = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Input);
        error.to_string()
    };
    let twice = Transitions::new(1, [2], [(1, token(5), 2), (1, token(5), 3)]).unwrap_err();
    assert!(message(twice).contains("to state 2 and to state 3"));
    assert!(message(Transitions::new(1, [2], []).unwrap_err()).contains("at least one"));
    assert!(message(Transitions::new(4, [9], good).unwrap_err()).contains("initial state 4"));
    assert!(message(Transitions::new(7, [8], good).unwrap_err()).contains("accepting state 8"));
    assert!(message(Transitions::new(7, [], good).unwrap_err()).contains("no state accepts"));

    assert!(Constraint::token_sets(vec![vec![token(1)], vec![token(2), token(3)]]).is_ok());
    let gap = Constraint::token_sets(vec![vec![token(1)], vec![]]).unwrap_err();
    assert!(message(gap).contains("position 1"));
    assert_eq!(Constraint::token_sets(vec![]).unwrap_err().kind(), ErrorKind::Input);
}
