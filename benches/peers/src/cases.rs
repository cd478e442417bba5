//! What is measured: grammars, each with texts that match it.
//!
//! Schemas are those of MaskBench that `benches/schemas.txt` lists. Objects that are silent about other properties
//! are closed before any engine sees them, since engines differ in what they make of silence; texts are the valid
//! instances, compact, members in the order of the schema. So every engine is asked for the same language.

use std::collections::HashMap;
use std::path::Path;

use burn_dfa::{Constraint, Limits};
use serde_json::{Map, Value, json};

use crate::data;
use crate::engines::Grammar;

/// Where a case comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regex.
    Regex,
    /// A schema of MaskBench.
    Listed,
    /// The schema of one long string.
    Long,
}

/// A grammar with texts.
pub struct Case {
    pub name: String,
    pub grammar: Grammar,
    pub texts: Vec<String>,
    pub kind: Kind,
}

impl Case {
    fn new(kind: Kind, name: &str, grammar: Grammar, texts: impl IntoIterator<Item = String>) -> Self {
        Self { name: name.to_owned(), grammar, texts: texts.into_iter().collect(), kind }
    }
}

/// All cases for which there is data.
pub fn all() -> Vec<Case> {
    let mut cases = vec![date(), email()];
    cases.extend(listed());
    cases.extend(long_string());
    cases
}

fn date() -> Case {
    let regex = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])";
    let texts = ["2027-05-17", "1999-12-31", "2024-02-29", "0800-10-08"];
    Case::new(Kind::Regex, "date regex", Grammar::Regex(regex.to_owned()), texts.map(str::to_owned))
}

fn email() -> Case {
    let regex = r"[a-zA-Z0-9._%+\-]+@[a-zA-Z0-9.\-]+\.[a-zA-Z]{2,}";
    let texts = [
        "ada.lovelace@example.org",
        "nora+invoices@post.kellerbaeckerei.de",
        "x@y.io",
        "first_last%dept-7@sub.domain.example.museum",
    ];
    Case::new(Kind::Regex, "e-mail regex", Grammar::Regex(regex.to_owned()), texts.map(str::to_owned))
}

/// One property of at most 10,000 characters, and prose for it.
fn long_string() -> Option<Case> {
    let prose = data::read("tinyshakespeare/input.txt", "the schema with a maxLength of 10,000")?;
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": 10_000}},
        "required": ["text"],
        "additionalProperties": false
    });
    // In one line: of strings with a length, XGrammar takes no escapes.
    let text: String = prose.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(2_000).collect();
    let texts = [json!({ "text": text }).to_string()];
    Some(Case::new(Kind::Long, "maxLength 10,000", Grammar::Schema(schema.to_string()), texts))
}

/// The schemas of the list in its order, with those of their instances that match them.
fn listed() -> Vec<Case> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas.txt");
    let list = std::fs::read_to_string(&list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    let ids: Vec<&str> =
        list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let rows = rows(&ids);
    let mut cases = Vec::new();
    for id in ids {
        let Some(row) = rows.get(id) else {
            println!("skipped: the schema {id}, which is not in maskbench of the test data");
            continue;
        };
        let schema = close(&row["schema"]);
        let texts = texts(&schema, row["tests"].as_array().expect("tests"));
        if texts.is_empty() {
            println!("no steps: {id}, of which no valid instance matches once its objects are closed");
        }
        cases.push(Case::new(Kind::Listed, id, Grammar::Schema(schema.to_string()), texts));
    }
    cases
}

/// The rows of MaskBench of the schemas `ids`.
fn rows(ids: &[&str]) -> HashMap<String, Value> {
    let files = std::fs::read_dir(data::folder().join("maskbench")).into_iter().flatten();
    let files = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
    let mut rows = HashMap::new();
    for file in files {
        // A line begins with `{"id":"`, and only lines of the list are worth parsing.
        for line in file.lines() {
            if let Some(id) = line.split('"').nth(3).filter(|id| ids.contains(id)) {
                rows.insert(id.to_owned(), serde_json::from_str(line).expect("JSON"));
            }
        }
    }
    rows
}

/// The valid ones of `tests` as texts; those that the closed schema does not match are left out.
pub fn texts(schema: &Value, tests: &[Value]) -> Vec<String> {
    const MOST: usize = 4;
    let constraint = Constraint::json_schema(schema.clone()).expect("a schema of the list");
    let automaton = constraint.to_byte_dfa(&Limits::default()).expect("a schema of the list").expect("text");
    let valid = tests.iter().filter(|test| test["valid"] == true);
    let texts = valid.filter_map(|test| {
        let arranged = arrangements(&test["data"], schema, schema);
        arranged.iter().map(Value::to_string).find(|text| automaton.matches(text.as_bytes()))
    });
    texts.take(MOST).collect()
}

/// `schema` with `additionalProperties: false` wherever it is silent about them.
pub fn close(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let mut closed = Map::new();
    for (name, value) in keywords {
        let value = match (name.as_str(), value) {
            ("properties" | "definitions" | "$defs", Value::Object(members)) => {
                members.iter().map(|(name, schema)| (name.clone(), close(schema))).collect()
            }
            ("anyOf", Value::Array(branches)) => branches.iter().map(close).collect(),
            ("items", value) => close(value),
            _ => value.clone(),
        };
        closed.insert(name.clone(), value);
    }
    if keywords.contains_key("properties") && !keywords.contains_key("additionalProperties") {
        closed.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(closed)
}

/// `value` with its members in the orders that the branches of `schema` may want, and integers as integers.
fn arrangements(value: &Value, schema: &Value, root: &Value) -> Vec<Value> {
    const MOST: usize = 64;
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        return match root.pointer(pointer) {
            Some(target) => arrangements(value, target, root),
            None => vec![value.clone()],
        };
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        let all = branches.iter().flat_map(|branch| arrangements(value, branch, root));
        return all.take(MOST).collect();
    }
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                vec![Value::from(float as i64), value.clone()]
            }
            _ => vec![value.clone()],
        },
        Value::Array(items) => {
            let choices = items.iter().map(|item| arrangements(item, &schema["items"], root));
            product(choices, MOST).into_iter().map(Value::Array).collect()
        }
        Value::Object(members) => {
            let properties = &schema["properties"];
            let order: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_by_key(|name| order.iter().position(|other| other == name).unwrap_or(usize::MAX));
            let choices =
                names.iter().map(|name| arrangements(&members[*name], &properties[name.as_str()], root));
            let named = |values: Vec<Value>| names.iter().map(|name| name.to_string()).zip(values).collect();
            product(choices, MOST).into_iter().map(|values| Value::Object(named(values))).collect()
        }
        scalar => vec![scalar.clone()],
    }
}

/// One of each choice, in all ways up to `most`.
fn product(choices: impl Iterator<Item = Vec<Value>>, most: usize) -> Vec<Vec<Value>> {
    choices.fold(vec![Vec::new()], |heads, choice| {
        let longer = heads.iter().flat_map(|head| {
            choice.iter().map(|last| head.iter().cloned().chain([last.clone()]).collect::<Vec<_>>())
        });
        longer.take(most).collect()
    })
}
