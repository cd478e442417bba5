//! The files of a corpus, of whatever shape, as rows.

use std::path::Path;

use serde_json::Value;

use crate::output::Result;

/// A constraint with instances.
pub struct Row {
    pub id: String,
    pub source: Source,
    pub tests: Vec<Test>,
}

impl Row {
    /// Whether the schema names draft 4.
    pub fn is_draft_4(&self) -> bool {
        let Source::Schema(schema) = &self.source else { return false };
        schema["$schema"].as_str().is_some_and(|draft| draft.contains("draft-04"))
    }
}

/// What is compiled.
pub enum Source {
    Schema(Value),
    Regex(String),
}

/// An instance with its verdict.
pub struct Test {
    pub instance: Instance,
    pub valid: bool,
    /// Invalid only where `format` is asserted.
    pub needs_format: bool,
}

/// Something to be accepted or rejected.
pub enum Instance {
    /// A value, in any of its texts.
    Value(Value),
    /// This text alone.
    Text(String),
    /// This text, or any other of its value.
    TextOfValue(String, Value),
}

/// The rows of a file.
pub struct Rows {
    pub rows: Vec<Row>,
    /// Rows that ask for what is not offered: grammars, options.
    pub skipped: usize,
}

/// Reads a file: a JSON array, an object with `cases`, or JSON lines.
pub fn read(path: &Path) -> Result<Rows> {
    let text = burn_dfa::cli::text(path)?;
    let values = match serde_json::from_str(&text) {
        Ok(Value::Array(values)) => values,
        Ok(Value::Object(mut file)) if file.contains_key("cases") => match file["cases"].take() {
            Value::Array(values) => values,
            _ => return Err(format!("{}: `cases` is not an array", path.display()).into()),
        },
        _ => lines(&text).map_err(|error| format!("{}: {error}", path.display()))?,
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let draft = draft(path);
    let mut rows = Rows { rows: Vec::new(), skipped: 0 };
    for (at, value) in values.into_iter().enumerate() {
        let row = row(value, &stem, at).ok_or_else(|| {
            format!("{}, row {at}: neither a schema with tests nor a regex with texts", path.display())
        })?;
        match row {
            Some(mut row) => {
                if let (Source::Schema(Value::Object(keywords)), Some(draft)) = (&mut row.source, draft) {
                    keywords.entry("$schema").or_insert_with(|| draft.into());
                }
                rows.rows.push(row);
            }
            None => rows.skipped += 1,
        }
    }
    Ok(rows)
}

/// The draft of the folder of a file, as the official suite has them; its schemas do not name it themselves.
fn draft(path: &Path) -> Option<&'static str> {
    match path.parent()?.file_name()?.to_str()? {
        "draft4" => Some("http://json-schema.org/draft-04/schema#"),
        "draft6" => Some("http://json-schema.org/draft-06/schema#"),
        "draft7" => Some("http://json-schema.org/draft-07/schema#"),
        "draft2019-09" => Some("https://json-schema.org/draft/2019-09/schema"),
        "draft2020-12" => Some("https://json-schema.org/draft/2020-12/schema"),
        _ => None,
    }
}

fn lines(text: &str) -> Result<Vec<Value>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| serde_json::from_str(line).map_err(|e| format!("line {}: {e}", at + 1).into()))
        .collect()
}

/// `None` where `value` is no row, `Some(None)` where it asks for what is not offered.
fn row(mut value: Value, stem: &str, at: usize) -> Option<Option<Row>> {
    let row = value.as_object_mut()?;
    let text = |key: &str| row.get(key).and_then(Value::as_str);
    let id = match (text("id").or(text("source")), text("description")) {
        (Some(id), _) => id.to_owned(),
        (None, Some(description)) => format!("{stem}: {description}"),
        (None, None) => format!("{stem}: {at}"),
    };
    if row.contains_key("grammar")
        || text("kind") == Some("json")
        || row.get("options").is_some_and(asks_for_more)
    {
        return Some(None);
    }
    let tests = match row.get_mut("tests") {
        Some(tests) => tests.as_array_mut()?.iter_mut().map(test).collect::<Option<_>>()?,
        None => texts(row)?,
    };
    let source = match (row.remove("schema"), row.remove("regex")) {
        (Some(schema), _) => Source::Schema(schema),
        (None, Some(Value::String(regex))) => Source::Regex(regex),
        _ => return None,
    };
    Some(Some(Row { id, source, tests }))
}

/// Whether options change the language in a way that is not offered.
fn asks_for_more(options: &Value) -> bool {
    // Of strings that these two decide, the cases say so themselves, see `texts`.
    let known = ["any_whitespace", "strict_mode"];
    options.as_object().is_none_or(|options| options.keys().any(|name| !known.contains(&name.as_str())))
}

fn test(test: &mut Value) -> Option<Test> {
    let valid = test.get("valid")?.as_bool()?;
    let needs_format = test.get("needs_format") == Some(&Value::Bool(true));
    Some(Test { instance: Instance::Value(test.get_mut("data")?.take()), valid, needs_format })
}

/// Texts that are accepted or rejected, less those on which their engine differs from the standard.
fn texts(row: &serde_json::Map<String, Value>) -> Option<Vec<Test>> {
    let differing = row.get("differs_from_jsonschema_py").and_then(Value::as_array);
    let differing: Vec<&str> =
        differing.into_iter().flatten().filter_map(|entry| entry[0].as_str()).collect();
    let is_schema = row.contains_key("schema");
    let mut tests = Vec::new();
    for (key, valid) in [("accepts", true), ("rejects", false), ("rejects_incomplete", false)] {
        for text in row.get(key).and_then(Value::as_array).into_iter().flatten() {
            let text = text.as_str()?;
            if differing.contains(&text) {
                continue;
            }
            let instance = match serde_json::from_str(text) {
                Ok(value) if is_schema && valid => Instance::TextOfValue(text.to_owned(), value),
                _ => Instance::Text(text.to_owned()),
            };
            tests.push(Test { instance, valid, needs_format: false });
        }
    }
    Some(tests)
}
