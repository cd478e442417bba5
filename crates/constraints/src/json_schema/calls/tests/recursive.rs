//! Recursive schemas.

use burn_dfa_common::ErrorKind;
use rand::SeedableRng;

use super::*;
use crate::json_schema::plan::Planner;
use burn_dfa_automata::Pushdown;

/// A schema with a generator of values of a given nesting depth, most of them valid.
struct Case {
    schema: Value,
    value: fn(usize, &mut StdRng) -> Value,
}

fn cases() -> Vec<Case> {
    let node = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"],
        "additionalProperties": false
    });
    let list = json!({
        "type": ["object", "null"],
        "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}},
        "required": ["v", "next"],
        "additionalProperties": false
    });
    let mutual = json!({
        "$defs": {
            "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}, "additionalProperties": false},
            "b": {"type": "array", "items": {"$ref": "#/$defs/a"}, "maxItems": 2}
        },
        "$ref": "#/$defs/a"
    });
    let contains = json!({
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}, "contains": {"const": "x"}}]
    });
    // Whether an item is an empty array decides whether an array may end.
    let empty = json!({
        "type": "array", "items": {"$ref": "#"}, "contains": {"maxItems": 0}, "minContains": 0, "maxContains": 1
    });
    // Exactly one child is tagged.
    let tagged = json!({
        "type": "object",
        "properties": {
            "t": {"enum": ["a", "b"]},
            "k": {
                "type": "array", "items": {"$ref": "#"},
                "contains": {"properties": {"t": {"const": "a"}}}, "minContains": 1, "maxContains": 1
            }
        },
        "required": ["t"],
        "additionalProperties": false
    });
    let both = json!({
        "$defs": {
            "x": {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/x"}}},
            "y": {"properties": {"n": {"minimum": 0}, "next": {"$ref": "#/$defs/y"}}, "required": ["n"]}
        },
        "allOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y"}]
    });
    vec![
        Case { schema: node, value: tree },
        Case {
            schema: list,
            value: |depth, random| chain(depth, random, json!(null), |next, _| json!({"v": 3, "next": next})),
        },
        Case { schema: json!({"properties": {"a": true, "b": {"type": "array"}}}), value: anything },
        Case { schema: json!(true), value: anything },
        Case {
            schema: mutual,
            value: |depth, random| {
                chain(depth / 2, random, json!({}), |below, random| match random.random_range(0..3) {
                    0 => json!({"b": [below]}),
                    1 => json!({"b": [{}, below]}),
                    _ => json!({"b": [below, {"b": []}]}),
                })
            },
        },
        Case {
            schema: contains,
            value: |depth, random| {
                chain(depth, random, json!("y"), |below, random| match random.random_range(0..3) {
                    0 => json!([below, "x"]),
                    1 => json!(["x", below, "z"]),
                    _ => json!(["x", ["x"], below]),
                })
            },
        },
        Case {
            schema: empty,
            value: |depth, random| {
                chain(depth, random, json!([]), |below, random| match random.random_range(0..3) {
                    0 => json!([below]),
                    1 => json!([[[]], below]),
                    _ => json!([below, [[[]]]]),
                })
            },
        },
        Case {
            schema: tagged,
            value: |depth, random| {
                chain(depth / 2, random, json!({"t": "a"}), |below, random| {
                    // Mostly the tag that the other child lacks.
                    let other = if below["t"] == "a" || random.random_range(0..40) == 0 { "b" } else { "a" };
                    let tag = ["a", "b"][random.random_range(0..2)];
                    if random.random_range(0..2) == 0 {
                        json!({"t": tag, "k": [{"t": other}, below]})
                    } else {
                        json!({"t": tag, "k": [below, {"t": other}]})
                    }
                })
            },
        },
        Case {
            schema: both,
            value: |depth, random| {
                chain(depth, random, json!({"n": 0}), |below, random| {
                    if random.random_range(0..20) == 0 {
                        json!({"n": 1.5, "next": below})
                    } else {
                        json!({"n": 2, "next": below})
                    }
                })
            },
        },
        Case {
            schema: tags_at_a_distance(2),
            value: |depth, random| {
                chain(depth, random, json!({"t": "a"}), |below, random| {
                    let tag = ["a", "b"][random.random_range(0..2)];
                    json!({"t": tag, "next": below})
                })
            },
        },
    ]
}

/// Wraps a value in `around`, repeatedly.
fn chain(
    depth: usize,
    random: &mut StdRng,
    innermost: Value,
    around: fn(Value, &mut StdRng) -> Value,
) -> Value {
    (0..depth).fold(innermost, |value, _| around(value, random))
}

fn tree(depth: usize, random: &mut StdRng) -> Value {
    chain(depth / 2, random, json!({"name": "leaf"}), |below, random| match random.random_range(0..3) {
        0 => json!({"name": "", "children": [below]}),
        1 => json!({"name": "n", "children": [{"name": "m"}, below]}),
        _ => json!({"name": "n", "children": [below, {"name": "m", "children": []}]}),
    })
}

fn anything(depth: usize, random: &mut StdRng) -> Value {
    chain(depth, random, json!(1), |below, random| match random.random_range(0..5) {
        0 => json!([below]),
        1 => json!({"b": below}),
        2 => json!({"a": below, "b": []}),
        3 => json!([null, below, {"z": "é"}]),
        _ => json!({"c": "", "d": below}),
    })
}

fn called(texts: &SparseAutomaton) -> &Pushdown {
    let SparseAutomaton::Pushdown(pushdown) = texts else { panic!("everything is copied") };
    pushdown
}

#[test]
fn values_to_depth_40_are_judged_alike() {
    let mut random = StdRng::seed_from_u64(1);
    for Case { schema, value } in cases() {
        let judge = jsonschema::validator_for(&schema).unwrap();
        let read = read(&schema, &JsonOptions::default());
        let (mut valid, mut invalid) = (0, 0);
        for copies in [Preferred::default(), ALWAYS] {
            let (texts, unrolled) = lowered(&read, copies);
            called(&texts);
            assert_eq!(unrolled, Unrolled::default(), "{schema}");
            for at in 0..150 {
                let mut value = value(at % 41, &mut random);
                if at % 3 == 1 {
                    change(&mut value, &mut random);
                }
                let (text, member) = written(&read, &value);
                assert_eq!(member, judge.is_valid(&value), "{schema} {value}");
                assert_eq!(reads(&texts, &text, 200), member, "{schema} {value}");
                *if member { &mut valid } else { &mut invalid } += 1;
            }
        }
        assert!(valid >= 50 && (invalid >= 20 || schema == json!(true)), "{schema}: {valid} {invalid}");
    }
}

#[test]
fn texts_with_other_brackets_are_not_read() {
    let mut random = StdRng::seed_from_u64(2);
    for Case { schema, value } in cases() {
        let read = read(&schema, &JsonOptions::default());
        let (texts, _) = lowered(&read, ALWAYS);
        let mut refused = 0;
        for at in 0..200 {
            let (mut text, _) = written(&read, &value(1 + at % 12, &mut random));
            let at = random.random_range(0..text.len());
            match random.random_range(0..3) {
                0 => drop(text.remove(at)),
                1 => text.insert(at, b"{}[],"[random.random_range(0..5)]),
                _ => text[at] = b"{}[],"[random.random_range(0..5)],
            }
            let parsed = std::str::from_utf8(&text).ok().map(Json::read);
            let expected = match parsed {
                Some(Ok(value)) => written_json(&read, &value) == (text.clone(), true),
                // The plans do not handle duplicate names.
                Some(Err(_)) if serde_json::from_slice::<Value>(&text).is_ok() => continue,
                _ => false,
            };
            assert_eq!(reads(&texts, &text, 200), expected, "{schema} {}", String::from_utf8_lossy(&text));
            refused += u32::from(!expected);
        }
        assert!(refused > 60, "{schema}: {refused}");
    }
}

#[test]
fn each_level_takes_one_frame() {
    let mut random = StdRng::seed_from_u64(3);
    for Case { schema, value } in cases() {
        let read = read(&schema, &JsonOptions::default());
        let (texts, _) = lowered(&read, Preferred::default());
        let mut met = 0;
        for _ in 0..50 {
            let value = value(12, &mut random);
            let (text, member) = written(&read, &value);
            if member {
                assert!(reads(&texts, &text, nesting(&value)), "{schema} {value}");
                met += 1;
            }
        }
        assert!(met > 5, "{schema}");
    }
    // As deep as the stack, and no deeper.
    let (texts, _) = lowered(&read(&json!(true), &JsonOptions::default()), Preferred::default());
    for depth in [1, 2, 3, 64] {
        let text = [vec![b'['; depth], vec![b']'; depth]].concat();
        assert!(reads(&texts, &text, depth) && !reads(&texts, &text, depth - 1));
    }
}

#[test]
fn a_schema_without_end_is_unsatisfiable() {
    let endless = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]});
    let limits = Limits::new().with_frames(64);
    let error = read(&endless, &JsonOptions::default()).lower_called(&Meter::start(&limits)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsatisfiable, "{error}");
}

/// Lists with a node that has the tag a, such that the n-th node after it has the tag b. The next n
/// nodes have 2ⁿ combinations of the tag b, each an outcome.
fn tags_at_a_distance(n: usize) -> Value {
    let mut defs = serde_json::Map::new();
    defs.insert("s".to_owned(), json!({"anyOf": [
        {"properties": {"t": {"const": "a"}, "next": {"$ref": format!("#/$defs/{}", n - 1)}}, "required": ["t", "next"]},
        {"properties": {"next": {"$ref": "#/$defs/s"}}, "required": ["next"]}
    ]}));
    for at in 1..n {
        defs.insert(
            at.to_string(),
            json!({"properties": {"next": {"$ref": format!("#/$defs/{}", at - 1)}}, "required": ["next"]}),
        );
    }
    defs.insert("0".to_owned(), json!({"properties": {"t": {"const": "b"}}, "required": ["t"]}));
    defs.insert(
        "node".to_owned(),
        json!({
            "type": "object",
            "properties": {"t": {"enum": ["a", "b"]}, "next": {"$ref": "#/$defs/node"}},
            "required": ["t"],
            "additionalProperties": false
        }),
    );
    json!({"$defs": defs, "allOf": [{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/s"}]})
}

#[test]
fn many_outcomes_are_copied_to_a_depth() {
    // Enough states for the plans, which have thousands of times as many outcomes, to detect the
    // excess.
    let limits = Limits::new().with_frames(64).with_states(20_000);
    for n in [4, 5, 10, 20, 40] {
        let read = read(&tags_at_a_distance(n), &JsonOptions::default());
        let meter = Meter::start(&limits);
        assert!(Planner::new(&read, &meter).recursive_root(Preferred::default()).unwrap().is_none(), "{n}");
        match read.lower_called(&meter) {
            Ok((texts, unrolled)) => {
                assert!(matches!(texts, SparseAutomaton::Finite(_)) && unrolled.recursion.is_some(), "{n}");
            }
            // As without calls.
            Err(error) => {
                let copied = read.lower(&Meter::start(&limits)).unwrap_err();
                assert_eq!(error.to_string(), copied.to_string(), "{n}");
            }
        }
    }
}

#[test]
fn options_can_force_copies() {
    use crate::json_schema::Whitespace;

    let list = cases()[1].schema.clone();
    for options in [
        JsonOptions::new().with_recursion(2),
        JsonOptions::new().with_any_depth(2),
        JsonOptions::new().with_whitespace(Whitespace::Pretty(2)),
    ] {
        let (texts, unrolled) = lowered(&read(&list, &options), Preferred::default());
        assert!(matches!(texts, SparseAutomaton::Finite(_)) && unrolled.recursion.is_some());
    }
    // Nothing in it contains itself, and it is small.
    let flat =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
    assert!(matches!(
        lowered(&read(&flat, &JsonOptions::default()), Preferred::default()).0,
        SparseAutomaton::Finite(_)
    ));
}
