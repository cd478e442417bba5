//! Random schemas over all keywords and random values, compared with the crate `jsonschema`.

use burn_dfa_tokens::{Constraint, ErrorKind, Limits, constraint::JsonOptions};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};

use super::{Judge, oracle};

const NAMES: [&str; 4] = ["a", "b", "c", "ab"];

fn name(rng: &mut StdRng) -> &'static str {
    NAMES.choose(rng).unwrap()
}

fn scalar(rng: &mut StdRng) -> Value {
    match rng.random_range(0..4) {
        0 => [json!(null), json!(true), json!(false)].choose(rng).unwrap().clone(),
        1 | 2 => {
            [json!(0), json!(1), json!(2), json!(3.0), json!(1.5), json!(-1)].choose(rng).unwrap().clone()
        }
        _ => json!(["", "a", "ab", "b", "bba"].choose(rng).unwrap()),
    }
}

/// A value with at most `depth` levels of containers.
fn value(rng: &mut StdRng, depth: usize) -> Value {
    match rng.random_range(0..if depth == 0 { 3 } else { 8 }) {
        0..=2 => scalar(rng),
        3 | 4 => (0..rng.random_range(0..4)).map(|_| value(rng, depth - 1)).collect(),
        _ => {
            let count = rng.random_range(0..4);
            Value::Object((0..count).map(|_| (name(rng).to_owned(), value(rng, depth - 1))).collect())
        }
    }
}

/// A schema with at most `depth` levels.
fn schema(rng: &mut StdRng, depth: usize) -> Value {
    if depth == 0 || rng.random_ratio(1, 8) {
        return match rng.random_range(0..8) {
            0 => json!(true),
            1 => json!(false),
            2 => json!({}),
            3 => json!({"$ref": "#/$defs/d"}),
            4 => json!({"const": scalar(rng)}),
            _ => json!({"type": of_type(rng)}),
        };
    }
    let mut map = Map::new();
    for _ in 0..rng.random_range(1..5) {
        keyword(rng, depth, &mut map);
    }
    Value::Object(map)
}

fn of_type(rng: &mut StdRng) -> &'static str {
    ["null", "boolean", "integer", "number", "string", "array", "object"].choose(rng).unwrap()
}

/// Adds a keyword, and related keywords.
fn keyword(rng: &mut StdRng, depth: usize, map: &mut Map<String, Value>) {
    let depth = depth - 1;
    let small = rng.random_range(0..4);
    let schemas =
        |rng: &mut StdRng| -> Value { (0..rng.random_range(1..4)).map(|_| schema(rng, depth)).collect() };
    let members = |rng: &mut StdRng, names: &[&str]| -> Value {
        let count = rng.random_range(1..4);
        Value::Object(
            (0..count).map(|_| ((*names.choose(rng).unwrap()).to_owned(), schema(rng, depth))).collect(),
        )
    };
    let mut set = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    match rng.random_range(0..36) {
        0 => set("type", json!(of_type(rng))),
        1 => set("type", json!(["object", "array"])),
        2 => set("enum", (0..3).map(|_| value(rng, 1)).collect()),
        3 => set("const", value(rng, 1)),
        4 => set("allOf", schemas(rng)),
        5 => set("anyOf", schemas(rng)),
        6 => set("oneOf", schemas(rng)),
        7 => set("not", schema(rng, depth)),
        8 => {
            set("if", schema(rng, depth));
            set("then", schema(rng, depth));
            if rng.random() {
                set("else", schema(rng, depth));
            }
        }
        9..=11 => set("properties", members(rng, &NAMES)),
        12 => set("patternProperties", members(rng, &["^a", "b", "^c$"])),
        13 | 14 => set("additionalProperties", schema(rng, depth)),
        15 => set(
            "propertyNames",
            [json!({"maxLength": 1}), json!({"pattern": "^[ab]"})].choose(rng).unwrap().clone(),
        ),
        16 => set("minProperties", json!(small)),
        17 => set("maxProperties", json!(small)),
        18 => set("required", json!([name(rng)])),
        19 => set("dependentRequired", json!({name(rng): [name(rng)]})),
        20 => set("dependentSchemas", members(rng, &NAMES)),
        21 => set("items", schema(rng, depth)),
        22 => set("prefixItems", schemas(rng)),
        23 => set("contains", schema(rng, depth)),
        24 => {
            set("contains", schema(rng, depth));
            set("minContains", json!(small));
            set("maxContains", json!(rng.random_range(1..4)));
        }
        25 => set("minItems", json!(small)),
        26 => set("maxItems", json!(small)),
        27 => {
            set("uniqueItems", json!(true));
            set("items", json!({"enum": [1, 1.5, "a", [1], {"a": 1, "b": 2}]}));
        }
        28 => set("unevaluatedProperties", schema(rng, depth)),
        29 => set("unevaluatedItems", schema(rng, depth)),
        30 => set(["minLength", "maxLength"].choose(rng).unwrap(), json!(small)),
        31 => set("pattern", json!(["^a", "b$", "^(a|b)*$"].choose(rng).unwrap())),
        32 => set(["minimum", "exclusiveMinimum"].choose(rng).unwrap(), json!(small)),
        33 => set(["maximum", "exclusiveMaximum"].choose(rng).unwrap(), json!(small)),
        34 => set("multipleOf", json!([1.0, 2.0, 0.5, 1.5].choose(rng).unwrap())),
        // Recursion.
        _ => set("properties", json!({name(rng): {"$ref": "#"}})),
    }
}

/// Whether a verdict on `value` may depend on undeclared names being distinct.
///
/// The plan cannot tell such names apart. If a count or a negated assertion depends on them, it
/// leaves out objects with several properties, with a note.
fn depends_on_names(constraint: &Constraint, limits: &Limits, value: &Value) -> bool {
    fn several(value: &Value) -> bool {
        match value {
            Value::Object(members) => members.len() > 1 || members.values().any(several),
            Value::Array(items) => items.iter().any(several),
            _ => false,
        }
    }
    several(value) && constraint.explain(limits).iter().any(|note| note.to_string().contains("distinct"))
}

#[derive(Debug, Default)]
struct Counts {
    schemas: usize,
    refused: usize,
    over_limits: usize,
    valid: usize,
    invalid: usize,
    left_out: usize,
    drawn: usize,
}

#[test]
fn random_schemas_agree_with_a_validator() {
    let mut rng = StdRng::seed_from_u64(1);
    let mut counts = Counts::default();
    let mut wrong = Vec::new();
    let limits = Limits { states: 10_000, ..Limits::default() };
    let options =
        JsonOptions { any_depth: Some(3), recursion: Some(3), max_digits: Some(6), ..JsonOptions::default() };
    while counts.schemas < 1_000 {
        let (depth, of_definition) = (rng.random_range(1..4), rng.random_range(0..2));
        let mut schema = schema(&mut rng, depth);
        let definition = self::schema(&mut rng, of_definition);
        match schema.as_object_mut() {
            Some(map) if !definition.to_string().contains("#/$defs/d") => {
                map.insert("$defs".into(), json!({"d": definition}))
            }
            _ => continue,
        };
        counts.schemas += 1;
        let judge = match Judge::new(&schema, &options, &limits) {
            Ok(judge) => judge,
            Err(error) => {
                if error.kind() == ErrorKind::Limit {
                    counts.over_limits += 1;
                } else {
                    assert_eq!(error.kind(), ErrorKind::Schema, "{schema}: {error}");
                    counts.refused += 1;
                }
                continue;
            }
        };
        let Ok(validator) = oracle::build(jsonschema::Draft::Draft202012, &schema, false) else { continue };
        let mut values: Vec<Value> = (0..12).map(|_| value(&mut rng, 2)).collect();
        for text in judge.finite().iter().flat_map(|dfa| oracle::draw(dfa, 5, counts.schemas as u64)) {
            counts.drawn += 1;
            if let Err(why) = oracle::check(&validator, &text) {
                wrong.push(format!("{schema}: drew {}: {why}", String::from_utf8_lossy(&text)));
            }
            // Members with a small change, which are often invalid.
            if let Ok(mut member) = serde_json::from_slice::<Value>(&text) {
                match &mut member {
                    Value::Object(members) => {
                        members.insert(name(&mut rng).into(), scalar(&mut rng));
                    }
                    Value::Array(items) => items.push(scalar(&mut rng)),
                    _ => {}
                }
                if !text.iter().any(|byte| matches!(byte, b'e' | b'E')) && member.to_string().len() < 60 {
                    values.push(member);
                }
            }
        }
        let judged = judge.judge_all(&values);
        for (value, (text, accepted)) in values.iter().zip(judged) {
            match (validator.is_valid(value), accepted) {
                (true, true) => counts.valid += 1,
                (false, false) => counts.invalid += 1,
                (true, false) if depends_on_names(&judge.constraint, &limits, value) => counts.left_out += 1,
                (valid, _) => wrong.push(format!("{schema}: {text}: valid: {valid}")),
            }
        }
    }
    println!("{counts:#?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert!(counts.valid > 3_000 && counts.left_out * 20 < counts.valid, "{counts:#?}");
}
