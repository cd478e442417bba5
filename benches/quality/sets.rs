//! The prompts: function calls of a file, fields to extract from texts, and any JSON object.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::Failure;
use crate::judge::Expected;

/// A prompt with its expected answer.
pub struct Task {
    /// The system message.
    pub system: &'static str,
    /// The user's message.
    pub user: String,
    /// The expected answer.
    pub expected: Expected,
}

/// Prompts of one kind.
pub struct Set {
    /// The heading of its table.
    pub title: String,
    /// The prompts.
    pub tasks: Vec<Task>,
}

/// Texts of ten kinds, ten records of each, and patterns that write a record as a text.
const EXTRACTION: &str = include_str!("extraction.json");

/// A prompt on each line.
const OBJECTS: &str = include_str!("objects.txt");

/// The simple Python calls of the Berkeley Function-Calling Leaderboard, from a file of rows with
/// the function, its schema and the right arguments. They are sorted by the SHA-256 of their ids,
/// so that the first ones are a fair sample.
///
/// # Errors
/// The file cannot be read, or has no such rows.
pub fn calls(file: &Path, count: usize) -> Result<Set, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let rows = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let mut calls: Vec<_> = rows.iter().filter_map(|row| Some((id(row), call(row)?))).collect();
    if calls.is_empty() {
        return Err(format!("{} has no row of the category simple_python", file.display()).into());
    }
    calls.sort_by_key(|(id, _)| Sha256::digest(id));
    let tasks = calls.into_iter().map(|(_, task)| task).take(count).collect();
    Ok(Set { title: "Function calls".into(), tasks })
}

fn id(row: &Value) -> &str {
    row["id"].as_str().unwrap_or_default()
}

/// The prompt of a row; `None` if it is of another category, or lacks a schema.
fn call(row: &Value) -> Option<Task> {
    let [function] = row["functions"].as_array()?.as_slice() else { return None };
    if row["category"] != "simple_python" {
        return None;
    }
    let schema = row["json_schema"]["properties"].as_object()?.values().next()?.clone();
    let right = row["ground_truth"][0].as_object()?.values().next()?.as_object()?;
    let values = right.iter().map(|(name, values)| Some((name.clone(), values.as_array()?.clone())));
    let values = values.collect::<Option<BTreeMap<_, _>>>()?;
    let name = function["name"].as_str()?;
    let parameters = &function["parameters"];
    let arguments: Map<String, Value> = parameters["properties"]
        .as_object()?
        .iter()
        .map(|(name, value)| (name.clone(), brief(value)))
        .collect();
    let required = parameters.get("required").cloned().unwrap_or_else(|| json!([]));
    let user = format!(
        "Function {name}: {}\nArguments: {}\nRequired: {}\n\nRequest: {}",
        function["description"].as_str()?,
        spaced(&Value::Object(arguments)),
        spaced(&required),
        row["messages"][0][0]["content"].as_str()?
    );
    Some(Task {
        system: "You extract function arguments. Answer with one JSON object of the arguments and nothing else.",
        user,
        expected: Expected { schema, values: Some(values), function: Some(name.to_owned()) },
    })
}

/// The type and the description of an argument.
fn brief(argument: &Value) -> Value {
    let kept = ["type", "description"].into_iter();
    kept.filter_map(|name| Some((name.to_owned(), argument.get(name)?.clone()))).collect::<Map<_, _>>().into()
}

/// A value as Python's `json.dumps` writes it, with a space after commas and colons.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| format!("{}: {}", json!(name), spaced(value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

/// Texts with four fields each.
///
/// # Errors
/// The built-in data is malformed.
pub fn extraction(count: usize) -> Result<Set, Failure> {
    let kinds: Vec<Value> = serde_json::from_str(EXTRACTION)?;
    let max = kinds.iter().map(|kind| items(&kind["records"]).len()).max().unwrap_or(0);
    // The kinds take turns, so that the first prompts are of all kinds.
    let turns =
        (0..max).flat_map(|record| kinds.iter().enumerate().map(move |(turn, kind)| (kind, record, turn)));
    let tasks = turns.filter_map(|(kind, record, turn)| {
        let patterns = items(&kind["patterns"]);
        let pattern = patterns[(record + turn) % patterns.len()].as_str()?;
        extract(kind["fields"].as_object()?, pattern, items(items(&kind["records"]).get(record)?))
    });
    Ok(Set { title: "Extraction".into(), tasks: tasks.take(count).collect() })
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The prompt of a record, whose values replace the names in the pattern. A value is written as
/// JSON writes it, or is a pair of the value and its text.
fn extract(fields: &Map<String, Value>, pattern: &str, record: &[Value]) -> Option<Task> {
    let mut text = pattern.to_owned();
    let mut values = BTreeMap::new();
    let mut properties = Map::new();
    let mut lines = String::new();
    for ((name, field), cell) in fields.iter().zip(record) {
        let (value, written) = match cell {
            Value::Array(pair) => (pair.first()?, pair.get(1)?),
            value => (value, value),
        };
        text = text.replace(&format!("{{{name}}}"), &plain(written));
        values.insert(name.clone(), vec![value.clone()]);
        // A list of choices, or the name of a type.
        let (schema, said) = match field {
            Value::Array(choices) => {
                (json!({"enum": choices}), choices.iter().map(plain).collect::<Vec<_>>().join(", "))
            }
            kind => (json!({"type": kind}), plain(kind)),
        };
        properties.insert(name.clone(), schema);
        lines += &format!("- {name}: {said}\n");
    }
    let required: Vec<&String> = fields.keys().collect();
    let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    Some(Task {
        system: "You extract data from a text. Answer with one JSON object and nothing else.",
        user: format!("Text: {text}\n\nFields of the JSON object:\n{lines}"),
        expected: Expected { schema, values: Some(values), function: None },
    })
}

/// A string without quotes, or any other value as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Requests that any JSON object answers.
pub fn objects(count: usize) -> Set {
    let task = |line: &str| Task {
        system: "Answer with one JSON object and nothing else.",
        user: line.to_owned(),
        expected: Expected { schema: json!({"type": "object"}), values: None, function: None },
    };
    Set { title: "Any JSON object".into(), tasks: OBJECTS.lines().map(task).take(count).collect() }
}

/// One long prompt: texts of the extraction set.
///
/// # Errors
/// As [`extraction`].
pub fn long(texts: usize) -> Result<Task, Failure> {
    let mut tasks = extraction(texts)?.tasks;
    let user = tasks.iter().map(|task| task.user.as_str()).collect::<Vec<_>>().join("\n");
    let first = tasks.swap_remove(0);
    Ok(Task { user, ..first })
}
