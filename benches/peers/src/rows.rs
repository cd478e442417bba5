//! Reads files of rows from the command line, in the corpus format (`docs/command-line.md`): one
//! JSON object per line.
//!
//! An engine refuses constraints that it cannot read. Rows without anything to measure are left out
//! and counted by reason.

use std::collections::BTreeMap;
use std::path::Path;

use burn_dfa::constraint::Syntax;
use serde_json::Value;

use crate::cases::{self, Case, INSTANCES, Kind};
use crate::engines::Grammar;
use crate::lark;
use crate::maskbench;
use crate::texts;

/// Options of a row that keep the language of compact JSON unchanged.
const OPTIONS: [&str; 4] = ["any_whitespace", "separators", "strict_mode", "root"];

/// The rows of a file.
#[derive(Default)]
pub struct Rows {
    pub cases: Vec<Case>,
    /// The number of left out rows, by reason.
    pub left_out: BTreeMap<&'static str, usize>,
}

/// Reads a file. A file `NAME.cases.jsonl` holds texts of the grammar in the same folder.
///
/// # Errors
/// Names the file that cannot be read, and the line.
pub fn read(path: &Path) -> Result<Rows, String> {
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| in_file(&error))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let in_line =
        |at: usize, error: &dyn std::fmt::Display| format!("{}, line {at}: {error}", path.display());
    let mut values = Vec::new();
    for (at, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let value: Value = serde_json::from_str(line).map_err(|error| in_line(at, &error))?;
        values.push((at, value));
    }
    let mut rows = Rows::default();
    if let Some(stem) = name.strip_suffix(".cases.jsonl") {
        let beside = |syntax: Syntax| path.with_file_name(format!("{stem}.{syntax}"));
        let syntax = Syntax::ALL.into_iter().find(|&syntax| beside(syntax).exists());
        let syntax = syntax.ok_or_else(|| in_file(&"no grammar beside it"))?;
        let grammar = std::fs::read_to_string(beside(syntax)).map_err(|error| in_file(&error))?;
        let (mut valid, mut invalid) = (Vec::new(), Vec::new());
        for (at, value) in &values {
            let text = |key: &str| value[key].as_str().map(str::to_owned);
            match (text("accepts"), text("rejects").or(text("incomplete"))) {
                (Some(text), None) => valid.push(text),
                (None, Some(text)) => invalid.push(text),
                _ => return Err(in_line(*at, &"no text to accept or to reject")),
            }
        }
        rows.cases.push(case(stem, context_free(syntax, grammar), valid, invalid));
        return Ok(rows);
    }
    let stem = name.strip_suffix(".jsonl").unwrap_or(&name);
    for (at, value) in values {
        match row(&value, &format!("{stem}: {at}")).map_err(|error| in_line(at, &error))? {
            Row::Case(case) => rows.cases.push(*case),
            Row::LeftOut(why) => *rows.left_out.entry(why).or_default() += 1,
        }
    }
    Ok(rows)
}

/// A row: a case, or the reason to leave it out.
enum Row {
    Case(Box<Case>),
    LeftOut(&'static str),
}

fn row(row: &Value, name: &str) -> Result<Row, String> {
    let fields = row.as_object().ok_or("no JSON object")?;
    let name = row["id"].as_str().or(row["source"].as_str()).unwrap_or(name);
    let kind = row["kind"].as_str();
    let options = row["options"].as_object();
    if fields.contains_key("vocab") {
        return Ok(Row::LeftOut("with a vocabulary of their own"));
    }
    if matches!(kind, Some("request" | "json")) {
        return Ok(Row::LeftOut("of a kind that no peer reads"));
    }
    // Keep schemas: the standard does not determine which schemas an engine refuses.
    if row["compiles"] == false && !fields.contains_key("schema") {
        return Ok(Row::LeftOut("that have to be refused"));
    }
    if options.into_iter().flatten().any(|(name, _)| !OPTIONS.contains(&name.as_str())) {
        return Ok(Row::LeftOut("with options that change the language"));
    }
    let grammar = || fields.get("grammar").ok_or("no `grammar`");
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let syntax: Option<Syntax> = kind.and_then(|kind| kind.parse().ok());
    let schema = match (kind, fields.get("schema")) {
        (Some("json_schema"), None) => Some(grammar()?),
        (_, schema) => schema,
    };
    if let (Some(schema), None) = (schema, syntax) {
        return of_schema(row, name, schema).map(|case| Row::Case(Box::new(case)));
    }
    let grammar = match (kind, syntax) {
        (Some("structural_tag"), _) => Grammar::Tools { tag: grammar()?.to_string(), lark: None },
        (_, Some(syntax)) => {
            let start = row["start"].as_str().or(row["options"]["root"].as_str());
            if start.is_some_and(|start| start != syntax.start()) {
                return Ok(Row::LeftOut("that begin with another rule"));
            }
            context_free(syntax, text("grammar").ok_or("no `grammar` that is text")?)
        }
        (None | Some("regex"), None) => {
            let regex = text("regex").or(text("grammar"));
            Grammar::Regex(regex.ok_or("no schema, regex, grammar or structural tag")?)
        }
        (Some(kind), None) => return Err(format!("the kind `{kind}` is none that can be read")),
    };
    let [valid, mut invalid] = [strings(row, "accepts")?, strings(row, "rejects")?];
    invalid.extend(strings(row, "rejects_incomplete")?);
    Ok(Row::Case(Box::new(case(name, grammar, valid, invalid))))
}

/// A case with one text per instance.
fn case(name: &str, grammar: Grammar, valid: Vec<String>, invalid: Vec<String>) -> Case {
    let kind = match grammar {
        Grammar::Regex(_) | Grammar::Schema(_) => Kind::Row,
        Grammar::ContextFree { .. } | Grammar::Tools { .. } => Kind::Grammar,
    };
    let invalid = invalid.into_iter().take(INSTANCES).map(|text| vec![text]).collect();
    Case { invalid, ..Case::new(kind, name, grammar, valid.into_iter().take(INSTANCES)) }
}

/// A grammar without a choice of terminals, so that only literals and brackets are terminals in
/// Lark.
fn context_free(syntax: Syntax, text: String) -> Grammar {
    let lark = match syntax {
        Syntax::Lark => Some(text.clone()),
        _ => lark::from_gbnf(&text, &[]).ok(),
    };
    Grammar::ContextFree { syntax, text, lark }
}

/// A schema with tests or with texts. An accepted text stands for any text of its value, since
/// engines are set to write compact JSON.
fn of_schema(row: &Value, name: &str, schema: &Value) -> Result<Case, String> {
    let tests = row["tests"].as_array().filter(|tests| tests.iter().all(Value::is_object));
    let mut case = cases::schema(maskbench::Row {
        id: name.to_owned(),
        schema: schema.clone(),
        tests: tests.cloned().unwrap_or_default(),
    });
    if tests.into_iter().flatten().any(|test| !test["valid"].is_boolean() || test.get("data").is_none()) {
        return Err("a test without `valid` or `data`".to_owned());
    }
    for text in strings(row, "accepts")?.into_iter().take(INSTANCES) {
        case.valid.push(match serde_json::from_str(&text) {
            Ok(value) => texts::of(&value, schema),
            Err(_) => vec![text],
        });
    }
    case.invalid.extend(strings(row, "rejects")?.into_iter().take(INSTANCES).map(|text| vec![text]));
    Ok(case)
}

/// The texts of a list, except the texts that are no verdicts.
fn strings(row: &Value, key: &str) -> Result<Vec<String>, String> {
    let list = |key: &str| row[key].as_array().into_iter().flatten();
    let no_verdicts: Vec<&str> = list("peer_only_accepts")
        .chain(list("peer_only_rejects"))
        .chain(list("differs_from_jsonschema_py").map(|entry| &entry[0]))
        .chain(list("llguidance_differs").map(|entry| &entry[1]))
        .filter_map(Value::as_str)
        .collect();
    let text = |text: &Value| {
        text.as_str().map(str::to_owned).ok_or_else(|| format!("`{key}` holds what is no text"))
    };
    let texts: Vec<String> = list(key).map(text).collect::<Result<_, _>>()?;
    Ok(texts.into_iter().filter(|text| !no_verdicts.contains(&text.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn file(name: &str, text: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("peers-rows-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name)
    }

    #[test]
    fn rows_of_every_kind_are_read() {
        let text = r#"
{"id":"a","schema":{"type":"object","properties":{"x":{},"y":{}}},"tests":[{"valid":true,"data":{"y":1,"x":2}},{"valid":false,"data":3},{"valid":false,"data":4,"needs_format":true}]}
{"id":"b","kind":"json_schema","grammar":{"type":"integer"},"accepts":[" 1"],"rejects":["x"]}

{"id":"c","regex":"a+","accepts":["a"],"rejects":["b"]}
{"kind":"regex","grammar":"b+","accepts":["b","bb"],"peer_only_accepts":["bb"]}
{"id":"e","kind":"gbnf","grammar":"root ::= \"a\" root?","accepts":["aa"],"rejects_incomplete":[""]}
{"id":"f","kind":"ebnf","grammar":"root ::= <[1]>","start":"root"}
{"id":"g","kind":"lark","grammar":"start: \"a\"","llguidance_differs":[["accepts","b","reject"]],"accepts":["a","b"]}
{"id":"h","kind":"structural_tag","grammar":{"type":"structural_tag","format":{"type":"any_text"}},"accepts":["x"]}
{"id":"i","kind":"request","grammar":{"messages":[]}}
{"id":"j","kind":"lark","grammar":"a: \"a\"","start":"a"}
{"id":"k","kind":"regex","grammar":"a++","compiles":false}
"#;
        let rows = read(&file("all.jsonl", text)).unwrap();
        let names: Vec<&str> = rows.cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "all: 6", "e", "f", "g", "h"]);
        let counts: Vec<(usize, usize)> =
            rows.cases.iter().map(|case| (case.valid.len(), case.invalid.len())).collect();
        assert_eq!(counts, [(1, 1), (1, 1), (1, 1), (1, 0), (1, 1), (0, 0), (1, 0), (1, 0)]);
        assert!(rows.cases[0].valid[0].contains(&r#"{"x":2,"y":1}"#.to_owned()));
        assert_eq!(rows.cases[1].valid[0], ["1"]);
        let is_lark =
            |at: usize| matches!(&rows.cases[at].grammar, Grammar::ContextFree { lark: Some(_), .. });
        assert_eq!([4, 5, 6].map(is_lark), [true, false, true]);
        let kinds = rows.cases.iter().map(|case| case.kind == Kind::Row).collect::<Vec<_>>();
        assert_eq!(kinds, [true, true, true, true, false, false, false, false]);
        assert_eq!(rows.left_out.values().sum::<usize>(), 3);
    }

    #[test]
    fn cases_are_of_the_grammar_beside_them() {
        file("list.gbnf", "root ::= \"a\"");
        let rows = read(&file(
            "list.cases.jsonl",
            "{\"accepts\":\"a\"}\n{\"rejects\":\"b\"}\n{\"incomplete\":\"\"}",
        ))
        .unwrap();
        assert_eq!((rows.cases[0].valid.len(), rows.cases[0].invalid.len()), (1, 2));
        let error = read(&file("none.cases.jsonl", "")).err().unwrap();
        assert!(error.contains("none.cases.jsonl"), "{error}");
    }

    #[test]
    fn a_malformed_row_is_an_error_that_names_the_line() {
        for bad in [
            "{",
            "[]",
            "{\"id\":\"a\"}",
            "{\"kind\":\"poem\",\"grammar\":\"a\"}",
            "{\"kind\":\"gbnf\"}",
            "{\"kind\":\"structural_tag\"}",
            "{\"regex\":\"a\",\"accepts\":[1]}",
            "{\"schema\":{},\"tests\":[{\"data\":1}]}",
        ] {
            let path = file("bad.jsonl", &format!("{{\"regex\":\"a\"}}\n\n{bad}\n"));
            let error = read(&path).err().unwrap_or_else(|| panic!("{bad} is read"));
            assert!(error.contains("bad.jsonl, line 3: "), "{error}");
        }
        assert!(read(Path::new("/nowhere.jsonl")).err().unwrap().contains("/nowhere.jsonl"));
    }
}
