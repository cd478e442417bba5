//! Compares the automata of regexes, choices and patterns with `regex-automata`, and checks their
//! invariants.

mod cases;

use burn_dfa_tokens::{
    Constraint, Error, ErrorKind, Limits,
    automaton::{ByteDfa, ByteStateId},
};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

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
        Err(error) if error.kind() == ErrorKind::Unsatisfiable => false,
        Err(error) => panic!("{pattern:?}: {error}"),
    }
}

/// The automaton is trimmed, minimal and canonically numbered, with the minimum number of classes.
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

    // Moore's algorithm must end with one state per block.
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

/// The dense automaton of `regex-automata` with all matches.
fn dense(pattern: &str) -> Option<dense::DFA<Vec<u32>>> {
    dense::Builder::new()
        .configure(dense::Config::new().match_kind(MatchKind::All))
        .thompson(thompson::Config::new().utf8(false))
        .syntax(syntax::Config::new().utf8(false))
        .build(pattern)
        .ok()
}

/// Compares the languages by a search over pairs of states.
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
            prop_assert!(error.kind() == ErrorKind::Unsatisfiable, "{pattern:?}: {error}");
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
