//! The crate `jsonschema` and the official test suite as judges.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::super::*;
use burn_dfa_automata::ByteStateId;
use burn_dfa_common::Limits;

fn lower(format: Format) -> ByteDfa {
    let limits = Limits::default();
    format.lower(Certainty::Surely, &Meter::start(&limits)).unwrap()
}

fn validator(name: &str) -> jsonschema::Validator {
    let schema = json!({"format": name});
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .build(&schema)
        .unwrap()
}

/// Whether the judge knows the format: it is one of the standard.
fn is_known(name: &str) -> bool {
    NAMES.iter().position(|&(known, _)| known == name)
        < NAMES.iter().position(|&(known, _)| known == "base64")
}

/// Draws members of a language.
struct Drawer<'a> {
    dfa: &'a ByteDfa,
    /// By state, the bytes with a path to the end, and the bytes that come nearer to it.
    bytes: Vec<[Vec<u8>; 2]>,
}

impl<'a> Drawer<'a> {
    fn new(dfa: &'a ByteDfa) -> Self {
        let distances = distances(dfa);
        let bytes = |state: usize| {
            let after = |byte: u8| distances[dfa.next(ByteStateId(state as u32), byte).index()];
            let nearer =
                |distance: usize| -> Vec<u8> { (0..=255).filter(|&byte| after(byte) < distance).collect() };
            [nearer(usize::MAX), nearer(distances[state])]
        };
        Self { dfa, bytes: (0..dfa.state_count()).map(bytes).collect() }
    }

    /// A member, drawn at random: wandering for a while, then on the shortest path to the end.
    fn draw(&self, random: &mut StdRng) -> String {
        let (mut state, mut text) = (self.dfa.start(), Vec::new());
        let wander = random.random_range(0..40);
        loop {
            let hurry = text.len() >= wander;
            if self.dfa.is_accepting(state) && (hurry || random.random_ratio(1, 8)) {
                return String::from_utf8(text).unwrap();
            }
            let bytes = &self.bytes[state.index()][usize::from(hurry)];
            if bytes.is_empty() {
                return String::from_utf8(text).unwrap();
            }
            let byte = bytes[random.random_range(0..bytes.len())];
            text.push(byte);
            state = self.dfa.next(state, byte);
        }
    }
}

/// For each state the fewest bytes to the end; none from the dead state.
fn distances(dfa: &ByteDfa) -> Vec<usize> {
    let mut distances = vec![usize::MAX; dfa.state_count()];
    let states = || (1..dfa.state_count()).map(|state| ByteStateId(state as u32));
    for state in states().filter(|&state| dfa.is_accepting(state)) {
        distances[state.index()] = 0;
    }
    for length in 0..dfa.state_count() {
        for state in states() {
            let leads = |class| distances[dfa.next_by_class(state, class).index()] == length;
            if distances[state.index()] == usize::MAX && (0..dfa.class_count()).any(leads) {
                distances[state.index()] = length + 1;
            }
        }
    }
    distances
}

/// The file or folder at `path` in the test data, as for the integration tests
/// (`crates/testing/src/data.rs`).
fn data(path: &str) -> Option<PathBuf> {
    let above = || {
        let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        folders.map(|folder| folder.join("shared/data")).find(|folder| folder.is_dir())
    };
    let folder = std::env::var_os("BURN_DFA_DATA").map(PathBuf::from).or_else(above);
    let found = folder.map(|folder| folder.join(path)).filter(|path| path.exists());
    if found.is_none() {
        let required = std::env::var_os("BURN_DFA_REQUIRE_DATA").is_some();
        assert!(!required, "BURN_DFA_REQUIRE_DATA is set, and there is no {path} in the test data");
        // Bypasses the test harness, which captures the output of passing tests.
        let line = format!("skipped: no {path} in the test data (BURN_DFA_DATA names its folder)\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    found
}

#[test]
fn members_are_valid() {
    let mut random = StdRng::seed_from_u64(11);
    let mut wrong = Vec::new();
    for (name, format) in NAMES {
        let (dfa, validator) = (lower(format), validator(name));
        if dfa.matches(b"\0") {
            continue;
        }
        let drawer = Drawer::new(&dfa);
        for _ in 0..300 {
            let member = drawer.draw(&mut random);
            assert!(dfa.matches(member.as_bytes()), "{name}: {member:?}");
            if !validator.is_valid(&Value::from(member.as_str())) {
                wrong.push(format!("{name}: {member:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(80)].join("\n"));
}

/// A string close to `text`.
fn changed(text: &str, random: &mut StdRng) -> String {
    const PARTS: [&str; 24] = [
        "-", "--", ".", "..", "@", "\"", "<", " ", "(", "/", "~", "+", "#", ":", "%", "[", "]", "60", "xn--",
        "0", "a", "Z", "\u{e9}", "\u{3002}",
    ];
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..=characters.len());
        let part = PARTS[random.random_range(0..PARTS.len())];
        match random.random_range(0..4) {
            0 if at < characters.len() => {
                characters.remove(at);
            }
            1 if at < characters.len() => {
                let repeated = vec![characters[at]; random.random_range(2..90)];
                characters.splice(at..=at, repeated);
            }
            2 if at < characters.len() => {
                characters.splice(at..=at, part.chars());
            }
            _ => {
                characters.splice(at..at, part.chars());
            }
        }
    }
    characters.into_iter().collect()
}

/// Whether the judge takes one of the bytes from `*` to `/` for a digit of a date or a time, as it
/// does.
fn has_misread_digit(format: Format, text: &str) -> bool {
    let form = match format {
        Format::Date => "0000-00-00",
        Format::Time => "00:00:00",
        Format::DateTime => "0000-00-00T00:00:00",
        _ => return false,
    };
    let misread = |byte: &u8| (b'*'..=b'/').contains(byte);
    let offset = text.bytes().rev().zip("00:00".bytes());
    text.bytes().zip(form.bytes()).chain(offset).any(|(byte, form)| form == b'0' && misread(&byte))
}

/// The judge accepts every surely valid string, and every string it accepts is possibly valid, for
/// random valid strings and changed ones.
#[test]
fn the_judge_lies_between_surely_and_possibly() {
    let mut random = StdRng::seed_from_u64(12);
    let mut wrong = Vec::new();
    for (name, format) in NAMES {
        if format.is_exact() == Exactness::Annotation || !is_known(name) {
            continue;
        }
        let limits = Limits::default();
        let automata = [Certainty::Surely, Certainty::Possibly]
            .map(|certainty| format.lower(certainty, &Meter::start(&limits)).unwrap());
        let drawers = automata.each_ref().map(Drawer::new);
        // The judge lacks formats beyond ASCII too; for ASCII strings the plain format is the same.
        let beyond = name.strip_prefix("idn-");
        let validator = validator(beyond.unwrap_or(name));
        let (mut valid, mut undecided) = (0, 0);
        for turn in 0..6_000 {
            let of = turn % 2;
            let mut text = drawers[of].draw(&mut random);
            if turn % 3 > 0 {
                text = changed(&text, &mut random);
            }
            let [surely, possibly] = [0, 1].map(|of: usize| automata[of].matches(text.as_bytes()));
            if beyond.is_some() && (!text.is_ascii() || text.contains("xn--")) {
                continue;
            }
            let verdict = validator.is_valid(&Value::from(text.as_str()));
            valid += usize::from(verdict);
            undecided += usize::from(possibly && !surely);
            if surely && !verdict || verdict && !possibly && !has_misread_digit(format, &text) {
                wrong.push(format!("{name}: {text:?}: valid: {verdict}"));
            }
        }
        println!("{name}: {valid} valid, {undecided} undecided");
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(80)].join("\n"));
}

#[test]
fn formats_agree_with_the_official_suite() {
    let mut wrong = Vec::new();
    let mut left_out: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut verdicts = [0, 0];
    for draft in ["draft2020-12", "draft7"] {
        for (name, format) in NAMES {
            let path = format!("json-schema-test-suite/{draft}/optional/format");
            let Some(path) = data(&path).map(|path| path.join(format!("{name}.json"))) else { return };
            // Each draft has the formats of its time.
            if !path.exists() {
                continue;
            }
            let groups: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            let dfa = lower(format);
            let limits = Limits::default();
            let possibly = format.lower(Certainty::Possibly, &Meter::start(&limits)).unwrap();
            for test in groups.iter().flat_map(|group| group["tests"].as_array().unwrap()) {
                let Some(text) = test["data"].as_str() else { continue };
                let accepted = dfa.matches(text.as_bytes());
                verdicts[usize::from(accepted)] += 1;
                match (test["valid"].as_bool().unwrap(), accepted, format.is_exact()) {
                    (false, true, Exactness::Annotation) => {}
                    (true, false, Exactness::Bounded) if possibly.matches(text.as_bytes()) => {
                        left_out.entry(name).or_default().push(text.to_owned())
                    }
                    (valid, accepted, _) if valid != accepted => wrong.push(format!("{name}: {test}")),
                    _ => {}
                }
            }
        }
    }
    println!("{verdicts:?} rejected and accepted; valid and left out: {left_out:#?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Strings with a format in valid instances of MaskBench: the share of accepted ones.
#[test]
fn most_strings_of_maskbench_are_accepted() {
    let Some(folder) = data("maskbench") else { return };
    let automata: HashMap<&str, (Format, ByteDfa, jsonschema::Validator)> =
        NAMES.map(|(name, format)| (name, (format, lower(format), validator(name)))).into();
    let mut counts: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let mut left_out = BTreeMap::<String, Vec<String>>::new();
    let mut wrong = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            for test in row["tests"].as_array().into_iter().flatten() {
                if test["valid"] != json!(true) {
                    continue;
                }
                visit(&row["schema"], &test["data"], &mut |name, text| {
                    let Some((format, dfa, validator)) = automata.get(name) else { return };
                    let accepted = dfa.matches(text.as_bytes());
                    let valid = validator.is_valid(&Value::from(text));
                    let count = counts.entry(name.to_owned()).or_default();
                    match (valid, accepted) {
                        (true, true) => count[0] += 1,
                        (true, false) => {
                            count[1] += 1;
                            left_out.entry(name.to_owned()).or_default().push(text.to_owned());
                            if format.is_exact() == Exactness::Exact && is_known(name) {
                                wrong.push(format!("{name}: {text:?} is valid"));
                            }
                        }
                        (false, false) => count[2] += 1,
                        (false, true) if format.is_exact() == Exactness::Annotation => {}
                        (false, true) => wrong.push(format!("{name}: {text:?} is invalid")),
                    }
                });
            }
        }
    }
    println!("accepted, valid but left out, invalid: {counts:#?}\nleft out: {left_out:#?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Calls `found` with the formats in `schema` and the strings they apply to, through properties and
/// items.
fn visit(schema: &Value, value: &Value, found: &mut impl FnMut(&str, &str)) {
    if let (Some(name), Some(text)) = (schema["format"].as_str(), value.as_str()) {
        found(name, text);
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        visit(&schema["properties"][name], value, found);
    }
    for value in value.as_array().into_iter().flatten() {
        visit(&schema["items"], value, found);
    }
}
