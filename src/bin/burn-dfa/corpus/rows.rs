//! The files of a corpus, of whatever shape, as rows.

use std::path::Path;

use serde::de::IgnoredAny;

use super::parts::{Members, Parts, items, members, parts, string};
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
        let named = members(schema).and_then(|keywords| string(keywords.get("$schema")?));
        named.is_some_and(|draft| draft.contains("draft-04"))
    }
}

/// What is compiled.
pub enum Source {
    /// As text.
    Schema(String),
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
    /// The value of this text, in any of its texts.
    Value(String),
    /// This text alone.
    Text(String),
    /// This text, or any other of its value.
    TextOfValue(String),
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
    let values = match parts(&text) {
        Ok(Parts::Array(values)) => values,
        Ok(Parts::Object(file)) if file.contains_key("cases") => {
            items(&file["cases"]).ok_or_else(|| format!("{}: `cases` is not an array", path.display()))?
        }
        _ => lines(&text).map_err(|error| format!("{}: {error}", path.display()))?,
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let draft = draft(path);
    let mut rows = Rows { rows: Vec::new(), skipped: 0 };
    for (at, value) in values.into_iter().enumerate() {
        let row = row(&value, &stem, at).ok_or_else(|| {
            format!("{}, row {at}: neither a schema with tests nor a regex with texts", path.display())
        })?;
        match row {
            Some(mut row) => {
                if let (Source::Schema(schema), Some(draft)) = (&mut row.source, draft) {
                    name_draft(schema, draft);
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

/// Has a schema name its draft, where it names none.
fn name_draft(schema: &mut String, draft: &str) {
    let Some(keywords) = members(schema) else { return };
    if !keywords.contains_key("$schema") {
        let comma = if keywords.is_empty() { "" } else { "," };
        schema.insert_str(1, &format!("\"$schema\":\"{draft}\"{comma}"));
    }
}

fn lines(text: &str) -> Result<Vec<String>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| match serde_json::from_str::<IgnoredAny>(line) {
            Ok(_) => Ok(line.to_owned()),
            Err(error) => Err(format!("line {}: {error}", at + 1).into()),
        })
        .collect()
}

/// `None` where `value` is no row, `Some(None)` where it asks for what is not offered.
fn row(value: &str, stem: &str, at: usize) -> Option<Option<Row>> {
    let row = members(value)?;
    let text = |key: &str| row.get(key).and_then(|text| string(text));
    let id = match (text("id").or(text("source")), text("description")) {
        (Some(id), _) => id,
        (None, Some(description)) => format!("{stem}: {description}"),
        (None, None) => format!("{stem}: {at}"),
    };
    if row.contains_key("grammar")
        || text("kind").as_deref() == Some("json")
        || row.get("options").is_some_and(|options| asks_for_more(options))
    {
        return Some(None);
    }
    let tests = match row.get("tests") {
        Some(tests) => items(tests)?.iter().map(|row| test(row)).collect::<Option<_>>()?,
        None => texts(&row)?,
    };
    let source = match row.get("schema") {
        Some(schema) => Source::Schema(schema.clone()),
        None => Source::Regex(text("regex")?),
    };
    Some(Some(Row { id, source, tests }))
}

/// Whether options change the language in a way that is not offered.
fn asks_for_more(options: &str) -> bool {
    // Of strings that these two decide, the cases say so themselves, see `texts`.
    let known = ["any_whitespace", "strict_mode"];
    members(options).is_none_or(|options| options.keys().any(|name| !known.contains(&name.as_str())))
}

fn test(text: &str) -> Option<Test> {
    let mut test = members(text)?;
    let valid = serde_json::from_str(test.get("valid")?).ok()?;
    let needs_format = test.get("needs_format").is_some_and(|needs| needs == "true");
    Some(Test { instance: Instance::Value(test.remove("data")?), valid, needs_format })
}

/// Texts that are accepted or rejected, less those on which their engine differs from the standard.
fn texts(row: &Members) -> Option<Vec<Test>> {
    let list = |key: &str| row.get(key).and_then(|list| items(list)).unwrap_or_default();
    let differing = list("differs_from_jsonschema_py");
    let differing: Vec<String> =
        differing.iter().filter_map(|entry| string(items(entry)?.first()?)).collect();
    let is_schema = row.contains_key("schema");
    let mut tests = Vec::new();
    for (key, valid) in [("accepts", true), ("rejects", false), ("rejects_incomplete", false)] {
        for text in list(key) {
            let text = string(&text)?;
            if differing.contains(&text) {
                continue;
            }
            let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            let instance = match is_schema && valid && is_json {
                true => Instance::TextOfValue(text),
                false => Instance::Text(text),
            };
            tests.push(Test { instance, valid, needs_format: false });
        }
    }
    Some(tests)
}
