//! Reads the files of a corpus, in all formats.

use std::path::Path;

use burn_dfa::constraint::Syntax;
use serde::de::IgnoredAny;

use super::parts::{Members, Parts, items, members, parts, string};
use super::rows::{Begin, Compiles, Instance, Prefix, Row, Source, Test};
use super::toy;
use crate::output::Result;

/// The rows of a file.
pub struct Rows {
    pub rows: Vec<Row>,
    /// Rows with unsupported options, and requests that name a template instead of a constraint.
    pub skipped: usize,
}

/// Reads a file: a JSON array, an object with `cases`, JSON lines, or the cases of a grammar in the
/// same folder.
pub fn read(path: &Path) -> Result<Rows> {
    let text = burn_dfa::cli::text(path)?;
    if let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".cases.jsonl")) {
        return cases(path, name, &text);
    }
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
            format!("{}, row {at}: no schema with tests, no regex or grammar with texts", path.display())
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

/// Lines of texts, `{"accepts": …}`, `{"rejects": …}` or `{"incomplete": …}`, of a grammar in the
/// same folder.
fn cases(path: &Path, name: &str, text: &str) -> Result<Rows> {
    let beside = |syntax: &Syntax| path.with_file_name(format!("{name}.{syntax}"));
    let syntax = Syntax::ALL.into_iter().find(|syntax| beside(syntax).exists());
    let syntax = syntax.ok_or_else(|| {
        format!("{}: no grammar beside it, {name}.gbnf, {name}.ebnf or {name}.lark", path.display())
    })?;
    let grammar = burn_dfa::cli::text(&beside(&syntax))?;
    let source = Source::Grammar { syntax, text: grammar, start: None };
    let (mut tests, mut prefixes) = (Vec::new(), Vec::new());
    for (at, line) in lines(text).map_err(|error| format!("{}: {error}", path.display()))?.iter().enumerate()
    {
        let case = members(line).unwrap_or_default();
        let given = |key: &str| case.get(key).and_then(|text| string(text));
        let (text, valid, viable) = match (given("accepts"), given("rejects"), given("incomplete")) {
            (Some(text), None, None) => (text, true, None),
            (None, Some(text), None) => (text, false, Some(false)),
            (None, None, Some(text)) => (text, false, Some(true)),
            _ => return Err(format!("{}, row {at}: no text to accept or to reject", path.display()).into()),
        };
        prefixes.extend(viable.map(|viable| Prefix { begin: Begin::Text(text.clone()), viable }));
        tests.push(Test { instance: Instance::Text(text), valid, needs_format: false });
    }
    let compiles = Compiles::default();
    let row = Row { id: name.to_owned(), source, tests, prefixes, compiles, vocabulary: None };
    Ok(Rows { rows: vec![row], skipped: 0 })
}

/// The draft of the folder of a file, as in the official suite, whose schemas do not name their
/// draft.
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

/// Makes a schema name its draft, if it names none.
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

/// `None` if `value` is no row, `Some(None)` if it requests something unsupported.
fn row(value: &str, stem: &str, at: usize) -> Option<Option<Row>> {
    let row = members(value)?;
    let text = |key: &str| row.get(key).and_then(|text| string(text));
    let id = match (text("id").or(text("source")), text("description")) {
        (Some(id), _) => id,
        (None, Some(description)) => format!("{stem}: {description}"),
        (None, None) => format!("{stem}: {at}"),
    };
    let kind = text("kind");
    let kind = kind.as_deref();
    let is_tag = kind == Some("structural_tag");
    let compact = row.get("options").is_some_and(|options| is_compact(options));
    let is_offered = match row.get("options") {
        None => true,
        Some(options) if is_tag => compact || members(options).is_some_and(|options| options.is_empty()),
        Some(options) => !asks_for_more(options),
    };
    if kind == Some("json") || !is_offered {
        return Some(None);
    }
    if kind == Some("request") {
        let body = row.get("grammar")?;
        if !members(body)?.contains_key("messages") {
            return Some(None);
        }
        let source = Source::Request(body.clone());
        let (tests, prefixes) = texts(&row, &source)?;
        let compiles = compiles(&row);
        return Some(Some(Row { id, source, tests, prefixes, compiles, vocabulary: None }));
    }
    let (source, is_grammar) = match (kind.and_then(|kind| kind.parse().ok()), row.get("schema")) {
        _ if is_tag => (Source::Tag { text: row.get("grammar")?.clone(), compact }, true),
        (Some(syntax), _) => {
            let root = row.get("options").and_then(|options| string(members(options)?.get("root")?));
            (Source::Grammar { syntax, text: text("grammar")?, start: text("start").or(root) }, true)
        }
        // A string holds the text of a schema, with the intended spelling of numbers.
        (None, Some(schema)) => (Source::Schema(string(schema).unwrap_or_else(|| schema.clone())), false),
        (None, None) if kind == Some("json_schema") => (Source::Schema(row.get("grammar")?.clone()), false),
        (None, None) => (Source::Regex(text("regex").or(text("grammar"))?), false),
    };
    let compiles = compiles(&row);
    if row.contains_key("vocab") {
        let toy::Toy { vocabulary, tests, prefixes } = toy::read(&row)?;
        let vocabulary = Some(vocabulary);
        return Some(Some(Row { id, source, tests, prefixes, compiles, vocabulary }));
    }
    let (tests, prefixes) = match row.get("tests").filter(|_| !is_grammar).and_then(|tests| items(tests)) {
        // The tests of a schema, not the original tests of a grammar row.
        Some(tests) if tests.iter().all(|test| members(test).is_some()) => {
            (tests.iter().map(|row| test(row)).collect::<Option<_>>()?, Vec::new())
        }
        _ => texts(&row, &source)?,
    };
    Some(Some(Row { id, source, tests, prefixes, compiles, vocabulary: None }))
}

/// Whether a row must compile.
fn compiles(row: &Members) -> Compiles {
    // The standard does not define which schemas other engines support; rows of the kind
    // `json_schema` record it.
    let is_own = row.get("kind").is_some_and(|kind| kind == "\"schema\"");
    if row.contains_key("schema") && !is_own {
        return Compiles::Must;
    }
    if differing(row, "llguidance_differs", 0).iter().any(|list| list == "compiles") {
        return Compiles::May;
    }
    match row.get("compiles").map(String::as_str) {
        Some("false") => Compiles::MustNot,
        Some("true") => Compiles::SaysMust,
        _ => Compiles::Must,
    }
}

/// The string at `at` of each entry of a list of differences between implementations.
fn differing(row: &Members, key: &str, at: usize) -> Vec<String> {
    let entries = row.get(key).and_then(|list| items(list)).unwrap_or_default();
    entries.iter().filter_map(|entry| string(items(entry)?.get(at)?)).collect()
}

/// Whether options change the language in an unsupported way.
fn asks_for_more(options: &str) -> bool {
    // The cases mark the strings that depend on the first two options, see `texts`; the third
    // option is a start rule.
    let known = ["any_whitespace", "strict_mode", "root"];
    members(options).is_none_or(|options| options.keys().any(|name| !known.contains(&name.as_str())))
}

/// Whether options request only JSON without white space, as XGrammar's options do.
fn is_compact(options: &str) -> bool {
    let Some(options) = members(options) else { return false };
    let is = |key: &str, value: &str| options.get(key).is_some_and(|text| text == value);
    options.len() == 2 && is("any_whitespace", "false") && is("separators", r#"[",",":"]"#)
}

fn test(text: &str) -> Option<Test> {
    let mut test = members(text)?;
    let valid = serde_json::from_str(test.get("valid")?).ok()?;
    let needs_format = test.get("needs_format").is_some_and(|needs| needs == "true");
    Some(Test { instance: Instance::Value(test.remove("data")?), valid, needs_format })
}

/// Accepted and rejected texts, and prefixes, without the texts on which their engine differs from
/// the standard: JSON Schema, and llguidance for Lark.
fn texts(row: &Members, source: &Source) -> Option<(Vec<Test>, Vec<Prefix>)> {
    let list = |key: &str| row.get(key).and_then(|list| items(list)).unwrap_or_default();
    let strings = |key: &str| list(key).iter().map(|text| string(text)).collect::<Option<Vec<_>>>();
    let mut left_out = differing(row, "differs_from_jsonschema_py", 0);
    left_out.extend(strings("peer_only_accepts")?.into_iter().chain(strings("peer_only_rejects")?));
    if matches!(source, Source::Grammar { syntax: Syntax::Lark, .. }) {
        left_out.extend(differing(row, "llguidance_differs", 1));
    }
    let is_schema = matches!(source, Source::Schema(_));
    let mut tests: Vec<Test> = Vec::new();
    let rejects = strings("rejects")?;
    for (key, valid) in [("accepts", true), ("rejects", false), ("rejects_incomplete", false)] {
        for text in strings(key)?.into_iter().filter(|text| !left_out.contains(text)) {
            if key == "rejects_incomplete" && rejects.contains(&text) {
                continue;
            }
            let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            let instance = match is_schema && is_json {
                true => Instance::TextOfValue(text),
                false => Instance::Text(text),
            };
            tests.push(Test { instance, valid, needs_format: false });
        }
    }
    let all_dead = row.get("all_rejects_dead").is_some_and(|all| all == "true");
    let all_dead = if all_dead { "rejects" } else { "" };
    // Prefixes of schemas do not count: a prefix in one style of white space may be a dead end in
    // another.
    let [incomplete, prefixes] = if is_schema { [""; 2] } else { ["rejects_incomplete", "prefixes"] };
    let mut beginnings: Vec<Prefix> = Vec::new();
    for (key, viable) in [(incomplete, true), (prefixes, true), ("dead", false), (all_dead, false)] {
        for text in strings(key)?.into_iter().filter(|text| !left_out.contains(text)) {
            let begin = Begin::Text(text);
            if !beginnings.iter().any(|known| known.begin == begin) {
                beginnings.push(Prefix { begin, viable });
            }
        }
    }
    Some((tests, beginnings))
}
