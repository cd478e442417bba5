//! The files of a corpus, of whatever shape, as rows.

use std::path::Path;

use burn_dfa::constraint::Syntax;
use burn_dfa::{TokenId, Vocabulary};
use serde::de::IgnoredAny;

use super::parts::{Members, Parts, items, members, parts, string};
use super::toy;
use crate::output::Result;

/// A constraint with instances.
pub struct Row {
    pub id: String,
    pub source: Source,
    pub tests: Vec<Test>,
    pub prefixes: Vec<Prefix>,
    pub compiles: Compiles,
    /// If it has one of its own.
    pub vocabulary: Option<Vocabulary>,
}

/// Whether a constraint has to be read and compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compiles {
    /// As is taken for granted.
    #[default]
    Must,
    /// The row says so, which is a verdict of its own.
    SaysMust,
    /// It has to be refused.
    MustNot,
    /// Dialects disagree.
    May,
}

/// The beginning of a text.
pub struct Prefix {
    pub begin: Begin,
    /// Whether something that follows completes it.
    pub viable: bool,
}

/// How a text begins.
#[derive(PartialEq, Eq)]
pub enum Begin {
    Text(String),
    Tokens(Vec<TokenId>),
}

impl Row {
    /// Whether the schema names draft 4.
    pub fn is_draft_4(&self) -> bool {
        let Source::Schema(schema) = &self.source else { return false };
        let named = members(schema).and_then(|keywords| string(keywords.get("$schema")?));
        named.is_some_and(|draft| draft.contains("draft-04"))
    }

    /// Whether it counts tokens, so that a text may be allowed by how it is cut into them.
    pub fn counts_tokens(&self) -> bool {
        let (Source::Grammar { text, .. } | Source::Tag { text, .. }) = &self.source else { return false };
        let given = |rest: &str| {
            rest.trim_start_matches(['"', ' ', ':', '=']).starts_with(|c: char| c.is_ascii_digit())
        };
        text.split("max_tokens").skip(1).any(given)
    }
}

/// What is compiled.
pub enum Source {
    /// As text.
    Schema(String),
    Regex(String),
    Grammar {
        syntax: Syntax,
        text: String,
        start: Option<String>,
    },
    /// A structural tag as JSON; in its schemas there may be no white space where `compact`.
    Tag {
        text: String,
        compact: bool,
    },
    /// The body of a request for a chat completion, as JSON.
    Request(String),
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
    Tokens(Vec<TokenId>),
}

/// The rows of a file.
pub struct Rows {
    pub rows: Vec<Row>,
    /// Rows that ask for what is not offered: options, requests that name a template instead of what is asked for.
    pub skipped: usize,
}

/// Reads a file: a JSON array, an object with `cases`, JSON lines, or the cases of the grammar beside it.
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

/// Lines of texts, `{"accepts": …}`, `{"rejects": …}` or `{"incomplete": …}`, of the grammar beside the file.
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
        (None, Some(schema)) => (Source::Schema(schema.clone()), false),
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
        // The tests of a schema, and not those that a row of a grammar is from.
        Some(tests) if tests.iter().all(|test| members(test).is_some()) => {
            (tests.iter().map(|row| test(row)).collect::<Option<_>>()?, Vec::new())
        }
        _ => texts(&row, &source)?,
    };
    Some(Some(Row { id, source, tests, prefixes, compiles, vocabulary: None }))
}

/// Whether a row has to be compiled.
fn compiles(row: &Members) -> Compiles {
    // Which schemas other engines offer is no matter of the standard.
    if row.contains_key("schema") {
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

/// A string of each entry of a list on which implementations differ.
fn differing(row: &Members, key: &str, at: usize) -> Vec<String> {
    let entries = row.get(key).and_then(|list| items(list)).unwrap_or_default();
    entries.iter().filter_map(|entry| string(items(entry)?.get(at)?)).collect()
}

/// Whether options change the language in a way that is not offered.
fn asks_for_more(options: &str) -> bool {
    // Of strings that the first two decide, the cases say so themselves, see `texts`; the third is a start rule.
    let known = ["any_whitespace", "strict_mode", "root"];
    members(options).is_none_or(|options| options.keys().any(|name| !known.contains(&name.as_str())))
}

/// Whether options ask for JSON without white space, as XGrammar's do, and for nothing else.
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

/// Texts that are accepted or rejected, and beginnings of texts, less those on which their engine differs from the standard: from
/// JSON Schema, and in Lark from llguidance.
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
            let instance = match is_schema && valid && is_json {
                true => Instance::TextOfValue(text),
                false => Instance::Text(text),
            };
            tests.push(Test { instance, valid, needs_format: false });
        }
    }
    let all_dead = row.get("all_rejects_dead").is_some_and(|all| all == "true");
    let all_dead = if all_dead { "rejects" } else { "" };
    // White space may end what goes on for another writer of the same schema.
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
