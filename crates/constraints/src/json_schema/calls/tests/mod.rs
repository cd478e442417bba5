//! Schemas with calls, compared with the plans' own verdict on values, and with another validator.

mod counted;
mod maskbench;
mod recursive;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::Preferred;
use crate::json_schema::{Json, JsonOptions, Schema, Unrolled, parse};
use burn_dfa_automata::{ByteAutomaton, SparseAutomaton};
use burn_dfa_common::{Limits, limits::Meter};

/// Uses calls as often as possible.
const ALWAYS: Preferred =
    Preferred { schema: 0, sub_plan: 0, items: 0, characters: 0, patterned: 0, block: 1 };

fn read(schema: &Value, options: &JsonOptions) -> Schema {
    parse(&Json::read(&schema.to_string()).unwrap(), options).unwrap()
}

fn lowered(schema: &Schema, copies: Preferred) -> (SparseAutomaton, Unrolled) {
    let limits = Limits::new().with_frames(64);
    schema.lower_preferring(copies, &Meter::start(&limits)).unwrap()
}

/// Whether a text is in the language, with at most `depth` calls open.
fn reads(texts: &SparseAutomaton, text: &[u8], depth: usize) -> bool {
    match texts {
        SparseAutomaton::Finite(rows) => {
            rows.to_dense(&Meter::start(&Limits::new().with_frames(64))).unwrap().matches(text)
        }
        SparseAutomaton::Pushdown(pushdown) => {
            ByteAutomaton::Pushdown(pushdown.clone().with_frames(depth)).matches(text)
        }
    }
}

/// The text of a value and whether it is valid, by the plans.
fn written(schema: &Schema, value: &Value) -> (Vec<u8>, bool) {
    written_json(schema, &Json::read(&value.to_string()).unwrap())
}

fn written_json(schema: &Schema, value: &Json) -> (Vec<u8>, bool) {
    let limits = Limits::new().with_frames(64);
    let mut written = schema.write(std::slice::from_ref(value), &Meter::start(&limits)).unwrap();
    written.remove(0)
}

/// The nesting depth of arrays and objects.
fn nesting(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(nesting).max().unwrap_or(0),
        _ => 0,
    }
}

/// Replaces, leaves out or adds some part of `value`.
fn change(value: &mut Value, random: &mut StdRng) {
    let stop = random.random_range(0..4) == 0;
    match value {
        Value::Array(items) if !items.is_empty() && !stop => {
            let item = random.random_range(0..items.len());
            change(&mut items[item], random);
        }
        Value::Object(members) if !members.is_empty() && !stop => {
            let member = random.random_range(0..members.len());
            members.values_mut().skip(member).take(1).for_each(|member| change(member, random));
        }
        _ => edit(value, random),
    }
}

fn edit(value: &mut Value, random: &mut StdRng) {
    match (value, random.random_range(0..3)) {
        (Value::Array(items), 0) => items.push(json!("x")),
        (Value::Array(items), 1) => {
            items.pop();
        }
        (Value::Object(members), 0) => {
            members.insert("x".to_owned(), json!(1));
        }
        (Value::Object(members), 1) => {
            if let Some(name) = members.keys().next().cloned() {
                members.remove(&name);
            }
        }
        (value, _) => {
            let others = [json!(null), json!(-1), json!(7), json!("a"), json!([]), json!({})];
            *value = others[random.random_range(0..others.len())].clone();
        }
    }
}
