//! Compares patterns with the crate `regress`, another engine of ECMA-262.

use burn_dfa_tokens::{ByteDfa, Constraint, ErrorKind, Limits};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::oracle;
use burn_dfa_testing::data;

/// The engine, with the flag `u` if the pattern allows it.
fn judge(pattern: &str) -> Option<regress::Regex> {
    regress::Regex::with_flags(pattern, "u").or_else(|_| regress::Regex::new(pattern)).ok()
}

/// The automaton of the JSON texts of strings that match `pattern`; `None` if no string matches.
fn compile(pattern: &str) -> burn_dfa_tokens::Result<Option<ByteDfa>> {
    let limits = Limits { states: 50_000, ..Limits::default() };
    let constraint = Constraint::json_schema(json!({"type": "string", "pattern": pattern}))?;
    match constraint.to_byte_dfa(&limits) {
        Err(error) if error.kind() == ErrorKind::Unsatisfiable => Ok(None),
        other => other,
    }
}

/// The strings on which the automaton and the engine disagree, and the numbers of verdicts.
///
/// Tests 20 members of each pattern, six neighbors of each (a character removed, replaced or
/// doubled), 20 strings of the pattern's own characters and 20 random strings.
fn disagreements(
    pattern: &str,
    dfa: &ByteDfa,
    judge: &regress::Regex,
    seed: u64,
) -> (Vec<String>, [usize; 2]) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut strings = Vec::new();
    for text in oracle::draw(dfa, 20, seed) {
        let Ok(Value::String(member)) = serde_json::from_slice(&text) else {
            panic!("{pattern}: drew {}", String::from_utf8_lossy(&text));
        };
        let characters: Vec<char> = member.chars().take(60).collect();
        for _ in 0..6 {
            let mut near = characters.clone();
            if near.is_empty() {
                near.push('a');
            }
            let at = random.random_range(0..near.len());
            match random.random_range(0..3) {
                0 => drop(near.remove(at)),
                1 => {
                    near[at] = [' ', 'a', 'Z', '0', '-', '.', '/', '_', '\n', 'é', '\u{2028}', '😀']
                        [random.random_range(0..12)];
                }
                _ => near.insert(at, near[at]),
            }
            strings.push(near.into_iter().collect());
        }
        strings.push(member);
    }
    let own: Vec<char> = pattern.chars().chain("aZ0 -_".chars()).collect();
    for _ in 0..20 {
        let length = random.random_range(0..12);
        strings.push((0..length).map(|_| own[random.random_range(0..own.len())]).collect());
        strings.push((0..random.random_range(0..8)).map(|_| random.random::<char>()).collect());
    }
    // The engine backtracks. If a repeated group makes backtracking exponential, the test uses
    // short strings and stops after the first slow one.
    if [")*", ")+", "){"].iter().any(|group| pattern.contains(group)) {
        strings.retain(|string: &String| string.chars().count() <= 24);
    }
    strings.sort_by_key(String::len);
    let (mut wrong, mut verdicts) = (Vec::new(), [0, 0]);
    for string in strings {
        let start = Instant::now();
        let expected = judge.find(&string).is_some();
        let accepted = dfa.matches(Value::from(string.as_str()).to_string().as_bytes());
        verdicts[usize::from(accepted)] += 1;
        if accepted != expected {
            wrong.push(format!("{pattern:?}: {string:?}: accepted: {accepted}"));
        }
        if start.elapsed() > Duration::from_millis(20) {
            println!("{pattern:?}: left to itself after a string of {} bytes", string.len());
            break;
        }
    }
    (wrong, verdicts)
}

#[test]
fn patterns_of_every_corpus() {
    for corpus in data::patterns() {
        // The count may not grow; the one refused pattern exceeds a limit.
        let refused = if corpus.is_sample() { 0 } else { 1 };
        agree(&serde_json::from_str::<Vec<Value>>(&corpus.read()).unwrap(), refused);
    }
}

/// Compares patterns with the engine; at most `max_refused` may be refused.
fn agree(patterns: &[Value], max_refused: usize) {
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let (mut compiled, mut unjudged, mut verdicts, mut wrong) = (0, 0, [0, 0], Vec::new());
    let (mut times, mut states) = (Vec::new(), Vec::new());
    for (seed, pattern) in patterns.iter().enumerate() {
        let pattern = pattern["pattern"].as_str().unwrap();
        let start = Instant::now();
        let result = compile(pattern);
        times.push((start.elapsed(), pattern));
        let dfa = match result {
            Ok(Some(dfa)) => dfa,
            Ok(None) => {
                *refused.entry("matches nothing".into()).or_default() += 1;
                continue;
            }
            Err(error) => {
                assert!(
                    error.kind() == ErrorKind::Limit || error.pointer() == Some("/pattern"),
                    "{pattern}: {error}"
                );
                *refused.entry(error.to_string()).or_default() += 1;
                continue;
            }
        };
        compiled += 1;
        states.push(dfa.state_count());
        let Some(judge) = judge(pattern) else {
            unjudged += 1;
            println!("not read by the judge: {pattern:?}");
            continue;
        };
        let (found, [rejected, accepted]) = disagreements(pattern, &dfa, &judge, seed as u64);
        wrong.extend(found);
        verdicts = [verdicts[0] + rejected, verdicts[1] + accepted];
    }
    times.sort_unstable();
    states.sort_unstable();
    let at = |of: usize, percent: usize| (of - 1) * percent / 100;
    println!("{compiled} compiled, {unjudged} not judged; {verdicts:?} strings rejected and accepted");
    println!("refused: {refused:#?}");
    for percent in [50, 99, 100] {
        println!(
            "p{percent}: {:?} ({:.40}), {} states",
            times[at(times.len(), percent)].0,
            times[at(times.len(), percent)].1,
            states[at(states.len(), percent)]
        );
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
    assert!(compiled + max_refused >= patterns.len(), "{refused:#?}");
}

/// Syntax from Annex B of the standard, as the engine reads it without the flag `u`.
#[test]
fn the_unambiguous_of_annex_b() {
    for (pattern, member) in [
        (r"^\101\60\08\1$", "A0\08\u{1}"),
        (r"^[\1-\3]\377\400$", "\u{2}ÿ 0"),
        (r#"^\_\-\@\/\"\é\ $"#, "_-@/\"é "),
        (r"^a{]}$", "a{]}"),
        (r"^(?=a)*b(?!a){2}$", "b"),
        (r"^[\w-.]$", "-"),
    ] {
        let dfa = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")).unwrap();
        let judge = judge(pattern).unwrap_or_else(|| panic!("{pattern} is not read"));
        assert!(judge.find(member).is_some(), "{pattern}");
        assert!(dfa.matches(json!(member).to_string().as_bytes()), "{pattern}");
        let (wrong, _) = disagreements(pattern, &dfa, &judge, 3);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Every string of at most `length` characters of `alphabet`, and whether it is a member.
fn verdicts_on_all(
    alphabet: &str,
    length: u32,
    dfa: Option<&ByteDfa>,
) -> impl Iterator<Item = (String, bool)> {
    let alphabet: Vec<char> = alphabet.chars().collect();
    (0..=length).flat_map(move |length| {
        let alphabet = alphabet.clone();
        (0..alphabet.len().pow(length)).map(move |number| {
            let at = |i| alphabet[number / alphabet.len().pow(i) % alphabet.len()];
            let string: String = (0..length).map(at).collect();
            let text = Value::from(string.as_str()).to_string();
            let accepted = dfa.is_some_and(|dfa| dfa.matches(text.as_bytes()));
            (string, accepted)
        })
    })
}

/// A random pattern, with look-around in any position.
fn random_pattern(random: &mut StdRng, depth: u32) -> String {
    let branch = |random: &mut StdRng| {
        let mut text = String::new();
        for _ in 0..random.random_range(0..4) {
            let pick = random.random_range(0..if depth > 0 { 20 } else { 10 });
            let mut inner = || random_pattern(random, depth - 1);
            let (atom, is_assertion) = match pick {
                0..4 => ("a".to_owned(), false),
                4..6 => ("b".to_owned(), false),
                6 => (".".to_owned(), false),
                7 => ("[^a]".to_owned(), false),
                8 => (["^", "$"][random.random_range(0..2)].to_owned(), true),
                9 => ([r"\b", r"\B"][random.random_range(0..2)].to_owned(), true),
                10..14 => (format!("(?:{})", inner()), false),
                14 => (format!("(?={})", inner()), true),
                15 | 16 => (format!("(?!{})", inner()), true),
                17 => (format!("(?<={})", inner()), true),
                _ => (format!("(?<!{})", inner()), true),
            };
            text += &atom;
            if !is_assertion && random.random_ratio(2, 5) {
                // The engine takes too long for nested loops.
                let few = if (10..14).contains(&pick) && depth > 1 { 2 } else { 6 };
                text += ["?", "{2}", "*", "+", "{0,2}", "{1,3}"][random.random_range(0..few)];
            }
        }
        text
    };
    let first = branch(random);
    if random.random_ratio(1, 4) { format!("{first}|{}", branch(random)) } else { first }
}

#[test]
fn random_look_around_is_exact() {
    let mut random = StdRng::seed_from_u64(5);
    let (mut patterns, mut verdicts, mut wrong) = (0, [0, 0], Vec::new());
    while patterns < 400 {
        let pattern = format!("^(?:{})$", random_pattern(&mut random, 3));
        if !["(?=", "(?!", "(?<"].iter().any(|look| pattern.contains(look)) {
            continue;
        }
        patterns += 1;
        let judge = judge(&pattern).unwrap_or_else(|| panic!("{pattern} is not read"));
        let dfa = compile(&pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        for (string, accepted) in verdicts_on_all("ab é", 4, dfa.as_ref()) {
            verdicts[usize::from(accepted)] += 1;
            if accepted != judge.find(&string).is_some() {
                wrong.push(format!("{pattern:?}: {string:?}: accepted: {accepted}"));
                break;
            }
        }
    }
    println!("{patterns} patterns, {verdicts:?} strings rejected and accepted");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(verdicts[0] > 10_000 && verdicts[1] > 1_000);
}

/// Look-ahead at the start and a count of characters do not multiply before the automaton combines
/// them.
#[test]
fn counts_with_look_ahead_are_exact_and_small() {
    let mut verdicts = [0, 0];
    for (pattern, max) in [
        (r"^(?!.*<[^>]+>).{0,1000}$", 2_500),
        (r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=.*[^\w\s]).{8,64}$", 20_000),
        (r"^(?=.{1,253}$)(?:(?!-)[a-z0-9-]{1,63}(?<!-)\.)+(?!-)[a-z]{2,63}$", 50_000),
        (r"^(?!.*--)(?!-)[a-z0-9.-]{1,255}(?<!-)$", 2_500),
        (r"^(?:[0-9a-f]{2}:){5,100}[0-9a-f]{2}$", 2_500),
        (r"^(?:(?!--)[a-z<>-]){2,300}$", 2_500),
    ] {
        let judge = judge(pattern).unwrap();
        let constraint = Constraint::json_schema(json!({"type": "string", "pattern": pattern})).unwrap();
        let automaton = constraint.to_automaton(&Limits::default()).unwrap().unwrap();
        assert!(automaton.state_count() <= max, "{pattern}: {} states", automaton.state_count());
        for part in ["a", "aB3!", "<", "<b>", "b.", "ab.cd", "a-", "--", "0f:", "é"] {
            for length in
                [0, 1, 2, 7, 8, 9, 15, 17, 63, 64, 65, 66, 253, 254, 255, 256, 300, 301, 302, 999, 1000, 1001]
            {
                for end in ["", "a", "0f", ".ab", "-"] {
                    let string: String = part.chars().cycle().take(length).chain(end.chars()).collect();
                    let accepted = automaton.matches(Value::from(string.as_str()).to_string().as_bytes());
                    assert_eq!(accepted, judge.find(&string).is_some(), "{pattern}: {string:?}");
                    verdicts[usize::from(accepted)] += 1;
                }
            }
        }
    }
    assert!(verdicts[0] > 1_000 && verdicts[1] > 500, "{verdicts:?}");
}

/// Large patterns with look-around reach a limit quickly, or have a small automaton.
#[test]
fn great_look_around_meets_a_limit() {
    let nested = format!("{}a{}", "(?=".repeat(99), ")".repeat(99));
    let behind = format!("{}a{}", "(?<!".repeat(99), ")".repeat(99));
    let alternating = format!("{}a{}b", "(?!x|".repeat(40), ")".repeat(40));
    let many: String = (b'a'..=b'z').map(|c| format!("(?=.*{0}.*{0})", char::from(c))).collect();
    for (pattern, breaches) in [
        (r"(?=x)[a-z]{100000000}", true),
        (r"(?:(?=a)){4000000000}b", true),
        (r"(?:(?:(?:(?=a)a?){1000}){1000}){1000}", true),
        (r"^(?=.*a.{18})(?=.*b.{18}).*(?!c)$", true),
        (r"^(?:(?!.*a.{14}).)*$", true),
        (r"(?<=a.{20})b(?<!b.{19})", true),
        (r"^(?!\w{3000}$)\w+$", false),
        (&nested, false),
        (&behind, false),
        (&alternating, false),
        (&many, true),
    ] {
        let start = Instant::now();
        let result = compile(pattern);
        println!("{pattern:.40}: {:?} {:?}", start.elapsed(), result.as_ref().err().map(ToString::to_string));
        match result {
            Err(error) => assert!(breaches && error.kind() == ErrorKind::Limit, "{pattern}: {error}"),
            Ok(_) => assert!(!breaches, "{pattern}"),
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{pattern}");
    }
}

#[test]
fn look_around_is_exact() {
    let patterns = [
        r"^(?!foo)",
        r"^(?!.*foo)",
        r"^(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{4,8}$",
        r"^(?!-)(?!.*--)[a-z-]{1,9}(?<!-)$",
        r"^((?!ab)(?!ba).)*$",
        r"(?<=a)b",
        r"(?<!a)b",
        r"^.*(?<!\.tmp)$",
        r"(?<=^a|b)c(?=d|$)",
        r"(?<=\bfoo)bar\b",
        r"(?=a(?!b))a.",
        r"(?<=a(?=bc)b)c",
        r"(?<=a(?=b*c)b+)d|c",
        r"(?<!a(?!b).)c",
        r"^(?:a(?=b)|b(?=a|$))+$",
        r"^(?:(?<=b|^)a|(?<=a)b)+$",
        r"(?!)",
        r"(?=)",
        r"^(?!$)",
        r"^(?![\s\S])",
        r"(?<=é)ü(?!\w)",
        r"(?!^)a",
        r"(?<!^)a",
        r"^(?=(?:..)*$)(?=(?:...)*$)a*$",
        r"^(?!(?=a)b|(?!a)c).$",
        r"\b(?!a)\w+\b",
        r"(?=x)*y",
        r"(?!x)?y{2}",
        r"(?=x){0}a",
        r"^(?=[\s\S]{2,4}$)\w*",
        r"(?<=(?<!a)b)c",
        r"(?<!(?<=a)b)c",
        r"(?:(?=a)a?)*b",
        r"^(?:(?!a)b?c?)*$",
        r"^(?!.*(.)(?=x)y)z*",
        r"a(?=\b)",
        r"(?<=\B)b",
        r"(?<=$)",
        r"^(?=a|.*b$)[abc]+$",
        r"(?<=😀)(?=😀)",
        r"^(?<!a).(?!b)",
    ];
    let mut verdicts = [0, 0];
    for (seed, pattern) in patterns.into_iter().enumerate() {
        let judge = judge(pattern).unwrap_or_else(|| panic!("{pattern} is not read"));
        let dfa = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        // All short strings over an alphabet, and random strings.
        for (string, accepted) in verdicts_on_all("abcdxy é", 5, dfa.as_ref()) {
            assert_eq!(accepted, judge.find(&string).is_some(), "{pattern}: {string:?}");
            verdicts[usize::from(accepted)] += 1;
        }
        if let Some(dfa) = dfa {
            let (wrong, _) = disagreements(pattern, &dfa, &judge, seed as u64);
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
    }
    println!("{verdicts:?} strings rejected and accepted");
    assert!(verdicts[0] > 10_000 && verdicts[1] > 10_000);
}
