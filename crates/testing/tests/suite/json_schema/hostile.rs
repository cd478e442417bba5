//! Adversarial schemas: each compiles in time or fails with a typed error.

use burn_dfa_tokens::{Constraint, Error, ErrorKind, Limits, constraint::JsonOptions};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

fn error(schema: Value, limits: &Limits) -> Error {
    Constraint::json_schema(schema)
        .and_then(|constraint| constraint.to_byte_dfa(limits))
        .expect_err("too much")
}

/// `null` inside `depth` levels of `wrap`.
fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!({"type": "null"}), |inner, _| wrap(inner))
}

#[test]
fn nesting_beyond_128_levels_is_refused() {
    type Wrap = fn(Value) -> Value;
    let wraps: [Wrap; 3] = [
        |inner| Value::Object(Map::from_iter([("type".into(), "array".into()), ("items".into(), inner)])),
        |inner| Value::Object(Map::from_iter([("anyOf".into(), Value::Array(vec![inner]))])),
        |inner| Value::Object(Map::from_iter([("const".into(), inner)])),
    ];
    for wrap in wraps {
        let refusal = Constraint::json_schema(nested(10_000, wrap)).unwrap_err();
        assert!(
            refusal.kind() == ErrorKind::Schema && refusal.to_string().contains("more than 128 deep"),
            "{refusal}"
        );
        assert!(!refusal.pointer().unwrap().is_empty(), "{refusal}");
    }
    let fits = nested(100, |inner| json!({"type": "array", "items": inner}));
    Constraint::json_schema(fits).unwrap().to_byte_dfa(&Limits::default()).unwrap();
}

/// Runs on a thread with the default stack size, which overflows if recursion has no bound.
#[test]
fn nesting_beyond_the_limit_is_refused() {
    const STACK: usize = 2 << 20;
    let deep = |options: JsonOptions, schema: Value| {
        let compile = move || {
            let constraint = Constraint::json_schema_with(schema, &options).unwrap();
            constraint.explain(&Limits::default());
            constraint.to_byte_dfa(&Limits::default())
        };
        std::thread::Builder::new().stack_size(STACK).spawn(compile).unwrap().join().unwrap()
    };
    let object = |inner: Value| json!({"type": "object", "properties": {"a": inner}, "required": ["a"], "additionalProperties": false});
    let tree = json!({"type": "array", "items": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}});
    let around = (0..60).fold(json!({"anyOf": [{"type": "null"}, {"$ref": "#"}]}), |inner, _| object(inner));
    let (new, any) = (JsonOptions::new, json!({}));
    for (options, schema) in [
        (new().with_any_depth(1_000), any.clone()),
        (new().with_any_depth(1_000_000), any.clone()),
        (new().with_recursion(1_000), tree.clone()),
        (new().with_recursion(1_000_000), tree.clone()),
        (new().with_recursion(490), around.clone()),
    ] {
        let error = deep(options, schema).unwrap_err();
        assert!(matches!(error.breached(), Some(burn_dfa_tokens::Limit::Nesting(500))), "{error}");
        assert!(error.to_string().contains("more than 500 levels"), "{error}");
    }
    for levels in [3_000, 100_000] {
        let error = Constraint::json_schema(chain_that_is_read_from_its_end(levels)).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Schema && error.to_string().contains("nested too deep"),
            "{error}"
        );
        assert!(error.pointer().unwrap().starts_with("/$defs/"), "{error}");
    }
    // Nesting below the limit compiles.
    for (options, schema) in [
        (new().with_any_depth(8), any),
        (new().with_recursion(490), tree),
        (new().with_recursion(3), around.clone()),
        (new(), around),
        (new(), chain_that_is_read_from_its_end(240)),
    ] {
        deep(options, schema).unwrap();
    }
}

/// Nested objects with `levels` levels; each definition is read before the one around it.
fn chain_that_is_read_from_its_end(levels: usize) -> Value {
    let level = |i: usize| json!({"type": "object", "properties": {"a": {"$ref": format!("#/$defs/{}", i - 1)}}, "required": ["a"], "additionalProperties": false});
    let mut defs: Map<String, Value> = (1..=levels).map(|i| (i.to_string(), level(i))).collect();
    defs.insert("0".into(), json!({"type": "null"}));
    let properties: Map<String, Value> =
        (0..=levels).step_by(30).map(|i| (i.to_string(), json!({"$ref": format!("#/$defs/{i}")}))).collect();
    json!({"$defs": defs, "type": "object", "properties": properties, "additionalProperties": false})
}

#[test]
fn depth_is_no_reason_to_breach_a_limit() {
    let again = json!({"$ref": "#"});
    let tree = json!({"type": "object", "properties": {"a": again, "b": again, "c": again}, "additionalProperties": false});
    let shallow = JsonOptions { recursion: Some(1), any_depth: Some(3), ..JsonOptions::default() };
    for schema in [tree, json!({}), json!({"type": "object", "properties": {"a": {}}})] {
        let least = Constraint::json_schema_with(schema.clone(), &shallow).unwrap();
        let least = least.to_byte_dfa(&Limits::default()).unwrap().unwrap().state_count();
        for states in [least * 5 / 4, least * 2, least * 7] {
            let limits = Limits { states, ..Limits::default() };
            let found = Constraint::json_schema(schema.clone()).unwrap().to_byte_dfa(&limits);
            assert!(found.is_ok(), "{schema}, {states} states: {found:?}");
        }
    }
}

#[test]
fn a_chain_of_references() {
    let chain = |length: usize| {
        let mut defs = Map::new();
        for i in 0..length {
            defs.insert(format!("d{i}"), json!({"$ref": format!("#/$defs/d{}", i + 1)}));
        }
        defs.insert(format!("d{length}"), json!({"type": "null"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    };
    assert_eq!(error(chain(10_000), &Limits::default()).kind(), ErrorKind::Schema);
    super::compile(&chain(100));
}

#[test]
fn definitions_that_double_reach_a_limit() {
    let doubling = |levels: usize, twice: fn(Value) -> Value| {
        let mut defs = Map::from_iter([("d0".to_owned(), json!({"type": "string", "maxLength": 2}))]);
        for i in 0..levels {
            defs.insert(format!("d{}", i + 1), twice(json!({"$ref": format!("#/$defs/d{i}")})));
        }
        json!({"$ref": format!("#/$defs/d{levels}"), "$defs": defs})
    };
    let limits = Limits { states: 100_000, ..Limits::default() };
    let object = |d: Value| json!({"type": "object", "properties": {"a": d, "b": d}, "required": ["a", "b"]});
    assert_eq!(error(doubling(60, object), &limits).kind(), ErrorKind::Limit);
    let array = |d: Value| json!({"type": "array", "items": d, "maxItems": 2});
    assert_eq!(error(doubling(60, array), &limits).kind(), ErrorKind::Limit);
    // Two equal schemas count as one.
    super::compile(&doubling(60, |d| json!({"anyOf": [d, d]})));
}

#[test]
fn filters_that_double_are_decided_in_time() {
    let mut defs = Map::from_iter([("d0".to_owned(), json!({"type": "null"}))]);
    for i in 0..60 {
        let d = json!({"$ref": format!("#/$defs/d{i}")});
        let other = json!({"anyOf": [d, {"const": i}]});
        defs.insert(format!("d{}", i + 1), json!({"anyOf": [d, other]}));
    }
    let schema = json!({"enum": ["x"], "anyOf": [{"$ref": "#/$defs/d60"}], "$defs": defs});
    let began = Instant::now();
    assert_eq!(error(schema, &Limits::default()).kind(), ErrorKind::Unsatisfiable);
    assert!(began.elapsed() < Duration::from_secs(5), "equal formulas are one");
}

#[test]
fn great_counts_reach_a_limit() {
    let limits = Limits { states: 50_000, ..Limits::default() };
    for count in [json!(100_000), json!(u64::MAX), json!(1e30)] {
        for keyword in ["minLength", "maxLength"] {
            assert!(
                error(json!({"type": "string", keyword: count}), &limits).kind() == ErrorKind::Limit,
                "{keyword}"
            );
        }
        for keyword in ["minItems", "maxItems"] {
            let schema = json!({"type": "array", "items": {"type": "integer"}, keyword: count});
            assert_eq!(error(schema, &limits).kind(), ErrorKind::Limit, "{keyword}");
        }
    }
    // A large bound on a short value costs nothing.
    super::compile(&json!({"type": "string", "pattern": "^a{0,3}$", "maxLength": 1e30}));
    super::compile(&json!({"type": "array", "items": {"type": "null"}, "minItems": 0, "maxItems": 1000}));
}

#[test]
fn great_patterns_reach_a_limit() {
    let limits = Limits { states: 50_000, ..Limits::default() };
    for pattern in ["(((a{1000}){1000}){1000}){1000}", "(a|b)*a(a|b){30}", "x{4294967295}"] {
        assert!(
            error(json!({"type": "string", "pattern": pattern}), &limits).kind() == ErrorKind::Limit,
            "{pattern}"
        );
    }
    let deep = format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(error(json!({"type": "string", "pattern": deep}), &limits).kind(), ErrorKind::Schema);
    let fits = format!("{}a|b{}", "(?:x(".repeat(30), "|y+)*z){2}".repeat(30).replace("{2}", ""));
    super::compile(&json!({"type": "string", "pattern": fits}));
    let fits = format!("{}a{}", "(x|y".repeat(100), "z)?".repeat(100));
    super::compile(&json!({"type": "string", "pattern": fits}));
}

#[test]
fn many_values_and_properties() {
    let values: Vec<Value> = (0..100_000).map(|i| json!(format!("value {}", i * 7919 % 100_000))).collect();
    let dfa = super::compile(&json!({"type": "string", "enum": values}));
    assert!(dfa.matches(b"\"value 99999\"") && !dfa.matches(b"\"value 100000\""));
    let properties: Map<String, Value> =
        (0..2_000).map(|i| (format!("p{i}"), json!({"type": "integer"}))).collect();
    let dfa = super::compile(&json!({"type": "object", "properties": properties}));
    assert!(dfa.matches(b"{\"p3\":1,\"p1999\":2}"));
}
