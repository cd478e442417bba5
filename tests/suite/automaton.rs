//! The automata of regexes, choices and patterns against `regex-automata`, RE2's verdicts and their own laws.


use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use burn_dfa::automaton::{ByteDfa, ByteStateId};
use burn_dfa::constraint::{CharClass, CharPattern, Transitions};
use burn_dfa::{Constraint, Error, Limit, Limits, TokenId};
use proptest::prelude::*;
use regex_automata::dfa::{Automaton, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::{start, syntax};
use regex_automata::{Anchored, MatchKind, meta};

fn compile(pattern: &str) -> Result<ByteDfa, Error> {
    Ok(Constraint::regex(pattern)?.to_byte_dfa(&Limits::default())?.expect("a constraint on bytes"))
}

fn accepts(pattern: &str, text: &str) -> bool {
    match compile(pattern) {
        Ok(dfa) => dfa.matches(text.as_bytes()),
        Err(error) if error.is_unsatisfiable() => false,
        Err(error) => panic!("{pattern:?}: {error}"),
    }
}

/// Trimmed, minimal, canonically numbered, classes as few as can be.
fn check_invariants(dfa: &ByteDfa) {
    let states: Vec<ByteStateId> = (0..dfa.state_count() as u32).map(ByteStateId).collect();
    let classes = 0..dfa.class_count();
    let row = |state| classes.clone().map(|c| dfa.next_by_class(state, c)).collect::<Vec<_>>();

    assert!(row(ByteStateId::DEAD).iter().all(|&next| next == ByteStateId::DEAD));
    assert!(!dfa.is_accepting(ByteStateId::DEAD));
    // Numbered breadth first from the start: the order of arrival is 1, 2, 3 …
    assert_eq!(dfa.start(), ByteStateId::START);
    let mut arrived = vec![ByteStateId::START];
    let mut at = 0;
    while at < arrived.len() {
        for next in row(arrived[at]) {
            if next != ByteStateId::DEAD && !arrived.contains(&next) {
                arrived.push(next);
            }
        }
        at += 1;
    }
    assert_eq!(arrived, states[1..]);

    // Moore's algorithm: the blocks must be the single states.
    let mut block: Vec<usize> = states.iter().map(|&s| usize::from(dfa.is_accepting(s))).collect();
    loop {
        let before = block.iter().collect::<HashSet<_>>().len();
        let mut numbers = HashMap::new();
        block = states
            .iter()
            .map(|&state| {
                let row: Vec<usize> = row(state).iter().map(|next| block[next.index()]).collect();
                let number = numbers.len();
                *numbers.entry((block[state.index()], row)).or_insert(number)
            })
            .collect();
        if numbers.len() == before {
            assert_eq!(before, states.len(), "equivalent states");
            break;
        }
    }

    let columns: HashSet<Vec<ByteStateId>> =
        classes.clone().map(|c| states.iter().map(|&s| dfa.next_by_class(s, c)).collect()).collect();
    assert_eq!(columns.len(), dfa.class_count(), "classes that no state tells apart");
    let mut highest = 0;
    for &class in dfa.classes() {
        assert!(class as usize <= highest, "classes in order of their first byte");
        highest = highest.max(class as usize + 1);
    }
}

/// `regex-automata`'s dense automaton, all matches.
fn dense(pattern: &str) -> Option<dense::DFA<Vec<u32>>> {
    dense::Builder::new()
        .configure(dense::Config::new().match_kind(MatchKind::All))
        .thompson(thompson::Config::new().utf8(false))
        .syntax(syntax::Config::new().utf8(false))
        .build(pattern)
        .ok()
}

/// Walks both automata side by side over all byte strings at once.
fn assert_same_language(pattern: &str, dfa: Option<&ByteDfa>, dense: &dense::DFA<Vec<u32>>) {
    let start = dense.start_state(&start::Config::new().anchored(Anchored::Yes)).unwrap();
    let ours = dfa.map_or(ByteStateId::DEAD, ByteDfa::start);
    let mut seen = HashSet::from([(ours, start)]);
    let mut stack = vec![(ours, start, Vec::new())];
    while let Some((ours, theirs, text)) = stack.pop() {
        let accepting = dfa.is_some_and(|dfa| dfa.is_accepting(ours));
        let matched = dense.is_match_state(dense.next_eoi_state(theirs));
        assert_eq!(accepting, matched, "{pattern:?} on {:?}", String::from_utf8_lossy(&text));
        for byte in 0..=u8::MAX {
            let next = (dfa.map_or(ours, |dfa| dfa.next(ours, byte)), dense.next_state(theirs, byte));
            if seen.insert(next) {
                let text = text.iter().copied().chain([byte]).collect();
                stack.push((next.0, next.1, text));
            }
        }
    }
}

const LEAVES: &[&str] = &[
    "a",
    "b",
    "é",
    "λ",
    "_",
    "-",
    "ab",
    "ba",
    "1",
    r"\n",
    ".",
    "(?s:.)",
    "[ab]",
    "[^a]",
    "[a-zλ]",
    r"\w",
    r"\d",
    r"\s",
    "(?i:k)",
    "(?i:é)",
    r"(?-u:\w)",
    "",
    "[^λé]",
];
const LOOKS: &[&str] = &[
    "^",
    "$",
    r"\A",
    r"\z",
    "(?m:^)",
    "(?m:$)",
    "(?mR:^)",
    "(?mR:$)",
    r"(?-u:\b)",
    r"(?-u:\B)",
    r"(?-u:\b{start})",
    r"(?-u:\b{end})",
    r"(?-u:\b{start-half})",
    r"(?-u:\b{end-half})",
];
const UNICODE_LOOKS: &[&str] = &[r"\b", r"\B", r"\b{start}", r"\b{end}", r"\b{start-half}", r"\b{end-half}"];

fn pattern(leaves: Vec<&'static str>) -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(leaves).prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 4, |inner| {
        let quantifier =
            prop::sample::select(vec!["*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}", "*?", "+?"]);
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            1 => prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|parts| format!("(?:{})", parts.join("|"))),
            1 => (inner, quantifier).prop_map(|(part, q)| format!("(?:{part}){q}")),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    let characters = prop::sample::select("aabbéλ_- 1kK\u{212A}\n\r\u{2028}€😀".chars().collect::<Vec<_>>());
    prop::collection::vec(characters, 0..7).prop_map(|characters| characters.into_iter().collect())
}

fn leaves(with: &[&[&'static str]]) -> Vec<&'static str> {
    with.iter().flat_map(|list| list.iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn regexes_match_as_regex_automata_does(
        pattern in pattern(leaves(&[LEAVES, LEAVES, LOOKS, UNICODE_LOOKS])),
        texts in prop::collection::vec(text(), 24),
    ) {
        let oracle = meta::Regex::new(&format!(r"\A(?:{pattern})\z")).unwrap();
        let dfa = compile(&pattern);
        if let Err(error) = &dfa {
            prop_assert!(error.is_unsatisfiable(), "{pattern:?}: {error}");
        }
        for text in &texts {
            let ours = dfa.as_ref().is_ok_and(|dfa| dfa.matches(text.as_bytes()));
            prop_assert_eq!(ours, oracle.is_match(text), "{:?} on {:?}", pattern, text);
        }
    }

    #[test]
    fn regexes_have_the_language_of_the_dense_automaton(pattern in pattern(leaves(&[LEAVES, LOOKS]))) {
        if let Some(dense) = dense(&pattern) {
            let dfa = compile(&pattern).ok();
            assert_same_language(&pattern, dfa.as_ref(), &dense);
        }
    }

    #[test]
    fn automata_are_minimal_and_canonical(pattern in pattern(leaves(&[&["a", "b", "é", "λ", ".", "[^a]", ""]]))) {
        let dfa = compile(&pattern).unwrap();
        check_invariants(&dfa);
        let twice = compile(&format!("(?:{pattern})|(?:{pattern})")).unwrap();
        prop_assert_eq!(&dfa, &twice);
        let plus = compile(&format!("(?:{pattern})+")).unwrap();
        prop_assert_eq!(&plus, &compile(&format!("(?:{pattern})(?:{pattern})*")).unwrap());
    }

    #[test]
    fn products_obey_the_laws_of_sets(
        a in pattern(LEAVES.to_vec()),
        b in pattern(LEAVES.to_vec()),
        texts in prop::collection::vec(text(), 16),
    ) {
        let limits = Limits::default();
        let (a, b) = (compile(&a).unwrap(), compile(&b).unwrap());
        let both = a.intersection(&b, &limits).unwrap();
        let either = a.union(&b, &limits).unwrap();
        let rest = a.difference(&b, &limits).unwrap();
        for text in &texts {
            let (in_a, in_b) = (a.matches(text.as_bytes()), b.matches(text.as_bytes()));
            prop_assert_eq!(both.matches(text.as_bytes()), in_a && in_b);
            prop_assert_eq!(either.matches(text.as_bytes()), in_a || in_b);
            prop_assert_eq!(rest.matches(text.as_bytes()), in_a && !in_b);
        }
        prop_assert_eq!(&both, &b.intersection(&a, &limits).unwrap());
        prop_assert_eq!(&both, &a.difference(&rest, &limits).unwrap());
        prop_assert_eq!(&a, &both.union(&rest, &limits).unwrap());
        prop_assert_eq!(&either, &b.union(&rest, &limits).unwrap());
        for dfa in [both, either, rest] {
            if !dfa.is_empty() {
                check_invariants(&dfa);
            }
        }
    }

    #[test]
    fn choices_accept_their_members_alone(words in prop::collection::vec(text(), 1..12), other in text()) {
        let dfa = Constraint::choice(words.clone()).unwrap().to_byte_dfa(&Limits::default()).unwrap().unwrap();
        check_invariants(&dfa);
        for word in &words {
            prop_assert!(dfa.matches(word.as_bytes()));
        }
        prop_assert_eq!(dfa.matches(other.as_bytes()), words.contains(&other));
        let alternatives: Vec<String> = words.iter().map(|word| regex_syntax::escape(word)).collect();
        prop_assert_eq!(&dfa, &compile(&alternatives.join("|")).unwrap());
    }

    #[test]
    fn no_pattern_panics(pattern in "\\PC{0,24}") {
        let limits = Limits { states: 10_000, bytes: 16 << 20, time: Duration::from_millis(500), ..Limits::default() };
        if let Ok(constraint) = Constraint::regex(&pattern) {
            let _ = constraint.to_byte_dfa(&limits);
        }
    }
}

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
    assert!(error.is_pattern() && error.offset() == Some(15), "{error}");
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
        assert!(error.is_pattern());
        assert_eq!(error.offset(), Some(offset), "{pattern}: {error}");
    }
    let deep = "(".repeat(10_000) + &")".repeat(10_000);
    assert!(Constraint::regex(&deep).unwrap_err().is_pattern());
}

#[test]
fn an_empty_language_is_unsatisfiable() {
    for pattern in ["[^\\x00-\\x{10FFFF}]", "a^b", r"a\bb", "$a"] {
        let error = compile(pattern).unwrap_err();
        assert!(error.is_unsatisfiable(), "{pattern}: {error}");
    }
    assert!(Constraint::choice(Vec::<String>::new()).unwrap_err().is_input());
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
            assert!(error.is_limit(), "{pattern}: {error}");
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
    assert!(empty.to_byte_dfa(&Limits::default()).unwrap_err().is_unsatisfiable());
}

#[test]
fn token_constraints_are_checked() {
    let token = TokenId;
    let good = [(7, token(3), 9), (7, token(3), 9), (9, token(0), 7)];
    let constraint = Constraint::transitions(Transitions::new(7, [9], good).unwrap());
    assert!(constraint.to_byte_dfa(&Limits::default()).unwrap().is_none());
    let message = |error: Error| {
        assert!(error.is_input());
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
    assert!(Constraint::token_sets(vec![]).unwrap_err().is_input());
}
