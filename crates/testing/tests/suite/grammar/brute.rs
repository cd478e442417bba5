//! All texts of a grammar up to a length, by the definition alone, and a comparison with the
//! recognizer.

use std::collections::{BTreeMap, BTreeSet};

use rand::{SeedableRng, rngs::StdRng};

use super::earley::{Chart, Recognizer};
use super::form::{Grammar, Node, all, one, rule, text};
use super::random;

/// The number of random grammars. The recognizer agrees on 6,000 as well.
const GRAMMARS: u64 = 150;

/// The maximum length of compared texts.
const LENGTH: usize = 6;

/// Texts up to a length, and the prefixes of this length of longer texts.
#[derive(Clone, Default, PartialEq)]
struct Texts {
    whole: BTreeSet<Vec<u8>>,
    cut: BTreeSet<Vec<u8>>,
}

impl Texts {
    fn of(texts: impl IntoIterator<Item = Vec<u8>>, length: usize) -> Self {
        let mut all = Self::default();
        for mut text in texts {
            if text.len() <= length {
                all.whole.insert(text);
            } else {
                text.truncate(length);
                all.cut.insert(text);
            }
        }
        all
    }

    fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.cut.is_empty()
    }

    /// The same texts, up to a smaller length.
    fn shortened(&self, length: usize) -> Self {
        let mut texts = Self::of(self.whole.iter().cloned(), length);
        texts.cut.extend(self.cut.iter().map(|text| text[..length.min(text.len())].to_vec()));
        texts
    }

    fn or(mut self, other: Self) -> Self {
        self.whole.extend(other.whole);
        self.cut.extend(other.cut);
        self
    }

    fn then(&self, next: &Self, length: usize) -> Self {
        let mut texts = Self::default();
        if !next.is_empty() {
            texts.cut.clone_from(&self.cut);
        }
        let next: Vec<Self> = (0..=length).map(|left| next.shortened(left)).collect();
        for text in &self.whole {
            let next = &next[length - text.len()];
            texts.whole.extend(next.whole.iter().map(|next| [&text[..], next].concat()));
            texts.cut.extend(next.cut.iter().map(|next| [&text[..], next].concat()));
        }
        texts
    }
}

/// The texts of a part of a grammar, given the texts of its rules.
fn texts_of(node: &Node, rules: &[Texts], length: usize) -> Texts {
    let empty = || Texts::of([Vec::new()], length);
    match node {
        Node::Text(text) => Texts::of([text.clone().into_bytes()], length),
        Node::Class(ranges) => {
            let characters = ranges.iter().flat_map(|&(first, last)| first..=last);
            Texts::of(characters.map(|character| character.to_string().into_bytes()), length)
        }
        Node::Rule(rule) => rules[*rule].clone(),
        Node::Sequence(parts) => {
            parts.iter().fold(empty(), |texts, part| texts.then(&texts_of(part, rules, length), length))
        }
        Node::Choice(parts) => {
            parts.iter().fold(Texts::default(), |texts, part| texts.or(texts_of(part, rules, length)))
        }
        Node::Repeat(inner, min, max) => {
            let inner = texts_of(inner, rules, length);
            let mut times = (0..*min).fold(empty(), |texts, _| texts.then(&inner, length));
            let mut texts = times.clone();
            for _ in *min..max.unwrap_or(usize::MAX) {
                times = times.then(&inner, length);
                let more = texts.clone().or(times.clone());
                if more == texts {
                    break;
                }
                texts = more;
            }
            texts
        }
    }
}

/// The texts of a grammar: the least solution of its rules as equations.
fn texts(grammar: &Grammar, length: usize) -> Texts {
    let mut rules = vec![Texts::default(); grammar.rules.len()];
    loop {
        let next: Vec<Texts> = grammar.rules.iter().map(|body| texts_of(body, &rules, length)).collect();
        if next == rules {
            return rules.swap_remove(0);
        }
        rules = next;
    }
}

/// The properties of a prefix of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Beginning {
    is_text: bool,
    /// The minimum number of bytes that complete a text, if the total is within the length.
    left: Option<usize>,
}

fn beginnings(texts: &Texts) -> BTreeMap<Vec<u8>, Beginning> {
    let mut beginnings: BTreeMap<Vec<u8>, Beginning> = BTreeMap::new();
    for text in &texts.whole {
        for at in 0..=text.len() {
            let beginning = beginnings.entry(text[..at].to_vec()).or_default();
            let left = text.len() - at;
            beginning.is_text |= left == 0;
            beginning.left = Some(beginning.left.map_or(left, |known| known.min(left)));
        }
    }
    for text in &texts.cut {
        for at in 0..=text.len() {
            beginnings.entry(text[..at].to_vec()).or_default();
        }
    }
    beginnings
}

/// Collects the prefixes that the recognizer finds, over an alphabet and up to a length.
fn recognized(
    chart: &mut Chart,
    text: &mut Vec<u8>,
    alphabet: &[char],
    found: &mut BTreeMap<Vec<u8>, Beginning>,
) {
    let left = chart.left().unwrap();
    let within = text.len() + left <= LENGTH;
    found.insert(text.clone(), Beginning { is_text: chart.accepts(), left: within.then_some(left) });
    if left == 0 {
        assert!(chart.accepts());
    } else {
        // Some byte reduces the distance to the end.
        let nearer = |byte| {
            let nearer = chart.push(byte) && chart.left() == Some(left - 1);
            chart.truncate(text.len());
            nearer
        };
        assert!((0..=255).any(nearer), "{text:?}");
    }
    if text.len() == LENGTH {
        return;
    }
    for &character in alphabet {
        if chart.push(character as u8) {
            text.push(character as u8);
            recognized(chart, text, alphabet, found);
            text.pop();
            chart.truncate(text.len());
        }
    }
}

/// Compares all prefixes of texts; returns their number.
fn check(grammar: &Grammar, alphabet: &[char]) -> usize {
    let texts = texts(grammar, LENGTH);
    let recognizer = Recognizer::new(grammar);
    assert_eq!(recognizer.is_empty(), texts.is_empty(), "{grammar}");
    let mut found = BTreeMap::new();
    if !recognizer.is_empty() {
        recognized(&mut Chart::new(&recognizer), &mut Vec::new(), alphabet, &mut found);
    }
    let expected = beginnings(&texts);
    for beginning in found.keys().chain(expected.keys()) {
        let (found, expected) = (found.get(beginning), expected.get(beginning));
        assert_eq!(found, expected, "{grammar}, {:?}", String::from_utf8_lossy(beginning));
    }
    expected.len()
}

#[test]
fn the_recognizer_matches_the_definition() {
    let mut beginnings = 0;
    for seed in 0..GRAMMARS {
        let mut rng = StdRng::seed_from_u64(seed);
        let alphabet = [['a', '(', ')'], ['a', 'b', '+']][seed as usize % 2];
        let grammar = random::grammar(&mut rng, &alphabet);
        beginnings += check(&grammar, &alphabet);
    }
    assert!(beginnings as u64 > 20 * GRAMMARS, "{beginnings}");
}

#[test]
fn the_recognizer_knows_left_recursion_that_is_hidden_or_empty() {
    let a = || text("a");
    for rules in [
        vec![one([all([rule(0), a()]), a()])],
        vec![one([all([rule(1), rule(0), a()]), a()]), text("b").optional()],
        vec![one([all([rule(1), a()]), all([])]), one([all([rule(0), text("b")]), rule(1)])],
        vec![one([all([rule(0), rule(0)]), a(), all([])])],
        vec![all([rule(1), rule(1), rule(1)]), one([all([]), a(), rule(0)])],
        vec![one([rule(0), all([text("("), rule(0), text(")")])])],
        vec![one([all([a(), rule(1)]), text("b")]), all([rule(1), a()])],
        vec![one([all([a(), rule(0), a()]), all([])])],
        vec![all([a().optional().repeat(0, None), text("b").repeat(2, Some(4))])],
    ] {
        check(&Grammar { rules }, &['a', 'b', '(', ')']);
    }
}
