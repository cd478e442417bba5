//! The cases: grammars, each with instances that match it.
//!
//! Schemas are the first of MaskBench by the SHA-256 of their ids (`benches/maskbench.rs`),
//! unchanged. Objects without `additionalProperties` are open, and each engine is configured
//! accordingly.

use serde_json::{Value, json};

use crate::data;
use crate::engines::Grammar;
use crate::maskbench;
use crate::texts;

/// The maximum number of valid instances of a schema, and of invalid instances.
pub const INSTANCES: usize = 4;

/// The source of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regex.
    Regex,
    /// A schema of MaskBench, or a schema or regex from a file of rows. The counts cover this kind
    /// only.
    Row,
    /// The schema of one long string.
    Long,
    /// A context-free grammar, or a structural tag from a file of rows.
    Grammar,
}

/// A grammar with instances. Each instance is a list of equivalent texts.
pub struct Case {
    pub name: String,
    pub kind: Kind,
    pub grammar: Grammar,
    pub valid: Vec<Vec<String>>,
    pub invalid: Vec<Vec<String>>,
}

impl Case {
    /// A case with one text per instance.
    pub fn new(kind: Kind, name: &str, grammar: Grammar, texts: impl IntoIterator<Item = String>) -> Self {
        let valid = texts.into_iter().map(|text| vec![text]).collect();
        Self { name: name.to_owned(), kind, grammar, valid, invalid: Vec::new() }
    }
}

/// All regexes and schemas whose data exists, with `schemas` schemas of MaskBench.
pub fn all(schemas: usize) -> Vec<Case> {
    let mut cases = vec![date(), email()];
    cases.extend(long_string());
    cases.extend(maskbench::first(schemas).into_iter().map(schema));
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

/// A schema with one property of at most 10,000 characters, and prose for it.
fn long_string() -> Option<Case> {
    let prose = data::read("tinyshakespeare/input.txt", "the schema with a maxLength of 10,000")?;
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": 10_000}},
        "required": ["text"],
        "additionalProperties": false
    });
    // On one line, since XGrammar accepts no escapes in strings with a length limit.
    let text: String = prose.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(2_000).collect();
    let texts = [json!({ "text": text }).to_string()];
    Some(Case::new(Kind::Long, "maxLength 10,000", Grammar::Schema(schema.to_string()), texts))
}

/// A schema of MaskBench with its first instances. Instances that only a format makes invalid are
/// left out, since engines may treat `format` as an annotation.
pub fn schema(row: maskbench::Row) -> Case {
    let instances = |valid: bool| -> Vec<Vec<String>> {
        let tests = row.tests.iter().filter(|test| test["valid"] == valid && test["needs_format"] != true);
        tests.take(INSTANCES).map(|test| texts::of(&test["data"], &row.schema)).collect()
    };
    Case {
        kind: Kind::Row,
        grammar: Grammar::Schema(Value::to_string(&row.schema)),
        valid: instances(true),
        invalid: instances(false),
        name: row.id,
    }
}
