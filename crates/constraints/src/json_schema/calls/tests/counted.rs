//! Strings and arrays with characters and items counted by calls, compared with copies.

use super::*;
use burn_dfa_automata::Configuration;

/// Characters of each length in UTF-8 with all of their spellings, and parts of characters.
const LETTERS: [&str; 12] =
    ["a", "é", "€", "😀", "\\n", "\\u0001", "\\u00e9", "\\uD83D\\uDE00", "\\ud83d", "\\", "\"", "b"];

fn string(min: u64, max: Option<u64>, pattern: Option<&str>) -> Value {
    let mut schema = json!({"type": "string", "minLength": min});
    if let Some(max) = max {
        schema["maxLength"] = json!(max);
    }
    if let Some(pattern) = pattern {
        schema["pattern"] = json!(pattern);
    }
    schema
}

/// All texts of up to `max` of `parts`, one after the other.
fn words(parts: &[&str], max: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..max {
        let to = all.len();
        for at in from..to {
            let word = all[at].clone();
            all.extend(parts.iter().map(|part| format!("{word}{part}")));
        }
        from = to;
    }
    all
}

/// Asserts that calls and copies accept the same texts, and that calls exist.
fn same(schema: &Value, options: &JsonOptions, copies: Preferred, texts: impl Iterator<Item = String>) {
    let limits = Limits::new().with_frames(64);
    let read = read(schema, options);
    let (SparseAutomaton::Pushdown(called), _) = lowered(&read, copies) else { panic!("{schema}: no calls") };
    let called = ByteAutomaton::Pushdown(called.with_frames(3));
    let copied = read.lower(&Meter::start(&limits)).unwrap().0.to_dense(&Meter::start(&limits)).unwrap();
    let (mut members, mut others) = (0, 0);
    // The bytes of a text up to a dead configuration, each with the configuration after it. The next
    // text often begins alike.
    let mut path: Vec<(u8, Configuration)> = Vec::new();
    for text in texts {
        let bytes = text.as_bytes();
        let common = path.iter().zip(bytes).take_while(|((own, _), byte)| own == *byte).count();
        path.truncate(common);
        while let Some(&byte) = bytes.get(path.len())
            && path.last().is_none_or(|(_, at)| !at.is_dead())
        {
            let next = match path.last() {
                Some((_, at)) => called.next(at, byte),
                None => called.next(&called.start(), byte),
            };
            path.push((byte, next));
        }
        let found = path.len() == bytes.len() && path.last().is_some_and(|(_, at)| called.is_accepting(at));
        let expected = copied.matches(bytes);
        assert_eq!(found, expected, "{schema} {text:?}");
        *if expected { &mut members } else { &mut others } += 1;
    }
    assert!(members > 0 && others > 0, "{schema} {members} {others}");
}

/// Counts by calls from nine characters on, the least counted number.
const BOUNDS: [(u64, Option<u64>); 8] = [
    (0, Some(9)),
    (1, Some(10)),
    (4, Some(13)),
    (9, Some(9)),
    (12, None),
    (11, Some(40)),
    (20, Some(21)),
    (0, Some(70)),
];

#[test]
fn short_strings_are_counted_as_copies_do() {
    for (min, max) in BOUNDS {
        for escapes in [crate::json_schema::Escapes::Canonical, crate::json_schema::Escapes::Any] {
            for ascii in [false, true] {
                let options = JsonOptions::new().with_escapes(escapes).with_ascii(ascii);
                // Every text of three parts as the last characters at each border.
                let words = words(&LETTERS, 3);
                let sizes = [min, max.unwrap_or(min + 3)].into_iter().flat_map(|count| {
                    let least = count.saturating_sub(4);
                    least..=count
                });
                let sizes: Vec<u64> = sizes.collect();
                let texts = words.iter().flat_map(|word| {
                    sizes.iter().map(move |&size| format!("\"{word}{}\"", "a".repeat(size as usize)))
                });
                same(&string(min, max, None), &options, ALWAYS, texts);
                // And the other way round.
                let words = self::words(&LETTERS, 2);
                let texts = words.iter().flat_map(|word| {
                    sizes.iter().map(move |&size| format!("\"{}{word}\"", "b".repeat(size as usize)))
                });
                same(&string(min, max, None), &options, ALWAYS, texts);
            }
        }
    }
}

#[test]
fn strings_of_a_pattern_are_counted_as_copies_do() {
    for pattern in ["^[ab]*$", "^a[ab]*$", "^a([ab]*a)?$", "^(aa|b)*$", "^(aab?)*$", "^[^b]*$"] {
        for (min, max) in BOUNDS {
            let copies = words(&["a", "b"], 13).into_iter();
            let padded = words(&["a", "b"], 6).into_iter().flat_map(|word| {
                let behind = (0..72).map(|size| format!("a{word}{}", "a".repeat(size)));
                let before = (0..72).map(|size| format!("{}{word}", "a".repeat(size)));
                behind.chain(before).collect::<Vec<_>>()
            });
            let texts = copies.chain(padded).map(|text| format!("\"{text}\""));
            same(&string(min, max, Some(pattern)), &JsonOptions::default(), ALWAYS, texts);
        }
    }
}

#[test]
fn strings_of_a_pattern_that_counts_are_counted_as_copies_do() {
    // More states between characters than a procedure may have outcomes.
    for pattern in
        ["^(b+a+){0,5}b+$", "^a{0,12}b*$", "^b{9}(a|bb)*$", "^(a{1,4}b){3,5}$", "^(b+a{1,2}){2,4}b*$"]
    {
        for (min, max) in BOUNDS {
            let short = words(&["a", "b"], 13).into_iter();
            let padded = words(&["a", "b"], 6).into_iter().flat_map(|word| {
                let rest = |size| "b".repeat(size);
                let behind = (0..72).map(|size| format!("bbbbbbbbb{word}{}", rest(size)));
                let before = (0..72).map(|size| format!("{}{word}", rest(size)));
                let around = (0..72).map(|size| format!("{0}a{word}{0}", rest(size)));
                behind.chain(before).chain(around).collect::<Vec<_>>()
            });
            let words = ["bbab", "aaab", "bab", "b", "aabab"]
                .into_iter()
                .flat_map(|word| (0..30).map(move |count| word.repeat(count)));
            let texts = short.chain(padded).chain(words).map(|text| format!("\"{text}\""));
            let schema = string(min, max, Some(pattern));
            let read = read(&schema, &JsonOptions::default());
            if read.lower(&Meter::start(&Limits::new())).is_ok() {
                same(&schema, &JsonOptions::default(), ALWAYS, texts);
            }
        }
    }
}

#[test]
fn counts_of_words_and_characters_do_not_multiply() {
    // Copies of 51 words of 500 characters take 700,000 states.
    let schema = string(1, Some(500), Some("^(?:\\S+\\s+){0,50}\\S+$"));
    let (texts, _) = lowered(&read(&schema, &JsonOptions::default()), Preferred::default());
    let SparseAutomaton::Pushdown(pushdown) = &texts else { panic!("copied") };
    assert!(pushdown.state_count() < 20_000, "{}", pushdown.state_count());
    for (count, length) in [(1, 9), (51, 8), (51, 9), (52, 1), (26, 18), (51, 4), (10, 49), (10, 50)] {
        let word = "w".repeat(length);
        let text = vec![word; count].join(" ");
        let expected = count <= 51 && text.len() <= 500;
        assert_eq!(reads(&texts, format!("\"{text}\"").as_bytes(), 3), expected, "{count} {length}");
    }
    for text in ["", " a", "a ", "a  b", "é\u{2003}é", "\u{2003}"] {
        let expected = ["a  b", "é\u{2003}é"].contains(&text);
        assert_eq!(reads(&texts, format!("\"{text}\"").as_bytes(), 3), expected, "{text:?}");
    }
}

#[test]
fn long_strings_are_counted_at_their_borders() {
    for (min, max) in [(0, 4096), (1, 65_535), (4096, 4096), (4000, 65_535), (63_000, 65_535)] {
        let read = read(&string(min, Some(max), None), &JsonOptions::default());
        let (texts, _) = lowered(&read, Preferred::default());
        let SparseAutomaton::Pushdown(pushdown) = &texts else { panic!("{max} characters are copied") };
        let states = pushdown.state_count();
        // At most two blocks and their calls; each pair takes about 2·√(13·n) states.
        assert!(states < 8 * (13 * max).isqrt() as usize, "{min} {max}: {states}");
        for count in
            [0, 1, min.saturating_sub(1), min, min + 1, (min + max) / 2, max - 1, max, max + 1, 2 * max]
        {
            for letter in ["a", "€", "\\n"] {
                let text = format!("\"{}\"", letter.repeat(count as usize));
                let expected = min <= count && count <= max;
                assert_eq!(reads(&texts, text.as_bytes(), 1), expected, "{min} {max} {count} {letter}");
                assert!(!reads(&texts, &text.as_bytes()[..text.len() - 1], 1));
            }
        }
    }
}

#[test]
fn names_are_not_counted() {
    let schema = json!({
        "type": "object",
        "properties": {"ab": {"type": "null"}},
        "propertyNames": {"maxLength": 12},
        "additionalProperties": {"type": "string", "maxLength": 12}
    });
    let words = [
        "\"ab\": null",
        "\"ab\": \"\"",
        "\"b\": \"a\"",
        "\"abcdefghijkl\": \"abcdefghijkl\"",
        "\"abcdefghijklm\": \"\"",
        "\"c\": \"abcdefghijklm\"",
        ", ",
    ];
    let texts = self::words(&words, 4).into_iter().map(|text| format!("{{{text}}}"));
    same(&schema, &JsonOptions::default(), ALWAYS, texts);
}

#[test]
fn items_are_counted_as_copies_do() {
    use crate::json_schema::Whitespace;

    let items = [
        json!({"type": "null"}),
        json!({"type": "array", "items": {"type": "null"}}),
        json!({"type": "integer"}),
    ];
    for (min, max) in BOUNDS {
        for (item, words) in items.iter().zip([["null", "1"], ["[null]", "[]"], ["12", "\"\""]]) {
            for whitespace in [Whitespace::Compact, Whitespace::Spaced, Whitespace::Flexible(2)] {
                let mut schema = json!({"type": "array", "items": item, "minItems": min});
                if let Some(max) = max {
                    schema["maxItems"] = json!(max);
                }
                let commas: &[&str] = match whitespace {
                    Whitespace::Compact => &[",", ", "],
                    Whitespace::Spaced => &[", ", ","],
                    _ => &[",", " ,  ", ",   "],
                };
                let texts = (0..75).flat_map(|count| {
                    commas.iter().flat_map(move |comma| {
                        let all = vec![words[0]; count];
                        let mut last = all.clone();
                        let mut first = all.clone();
                        if count > 0 {
                            last[count - 1] = words[1];
                            first[0] = words[1];
                        }
                        let trailing = format!("[{}{comma}]", all.join(*comma));
                        [all, last, first]
                            .map(|all| format!("[{}]", all.join(*comma)))
                            .into_iter()
                            .chain([trailing])
                    })
                });
                same(&schema, &JsonOptions::new().with_whitespace(whitespace), ALWAYS, texts);
            }
        }
    }
}

#[test]
fn many_items_are_counted_at_their_borders() {
    for (min, max) in [(0, 1000), (1, 65_535), (600, 1000)] {
        let schema = json!({"type": "array", "items": {"type": "integer"}, "minItems": min, "maxItems": max});
        let read = read(&schema, &JsonOptions::default());
        let (texts, _) = lowered(&read, ALWAYS);
        let SparseAutomaton::Pushdown(pushdown) = &texts else { panic!("{max} items are copied") };
        assert!(pushdown.state_count() < 3000, "{:?}", pushdown.state_count());
        for count in [0, 1, 2, min.max(1) - 1, min, min + 1, max - 1, max, max + 1] {
            let value = json!(vec![7; count]);
            let (text, member) = written(&read, &value);
            assert_eq!(member, min <= count && count <= max);
            assert_eq!(reads(&texts, &text, 2), member, "{min} {max} {count}");
        }
    }
}

#[test]
fn a_part_with_several_uses_is_called() {
    let part = json!({"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "number"}}, "additionalProperties": false});
    let properties: serde_json::Map<String, Value> =
        (0..6).map(|at| (format!("p{at}"), part.clone())).collect();
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let words = [
        "\"p0\": {}",
        "\"p1\": {\"name\": \"\"}",
        "\"p3\": {\"name\": \"\", \"size\": 1}",
        "\"p5\": {\"size\": 1.5}",
        ", ",
        "\"p2\": {\"size\": 1, \"name\": \"\"}",
    ];
    let texts = self::words(&words, 5).into_iter().map(|text| format!("{{{text}}}"));
    same(&schema, &JsonOptions::default(), ALWAYS, texts);
}
