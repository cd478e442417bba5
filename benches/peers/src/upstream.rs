//! Peers that run in Python: the original XGrammar, since the crate is a port, and glrmask, whose
//! crate cannot be linked together with llguidance's.

use burn_dfa::TokenId;
use burn_dfa::constraint::Syntax;
use serde_json::{Value, json};

use crate::cases::Case;
use crate::engines::Grammar;
use crate::first_mask::FirstMask;
use crate::measure::{Effort, Outcome, Walks};
use crate::python::Python;
use crate::tokens::Tokens;

/// A library with a Python package.
pub struct Library {
    package: &'static str,
    /// Its names in the tables. The second name stands for steps without applying the mask, since
    /// applying it takes XGrammar's own CPU loop longest. glrmask has no such loop.
    pub names: &'static [&'static str],
    /// Whether it writes JSON with a space after commas and colons, which no setting changes.
    spaced: bool,
}

/// All libraries.
pub const ALL: [Library; 2] = [
    Library {
        package: "xgrammar",
        names: &["XGrammar (original)", "XGrammar (original), no apply"],
        spaced: false,
    },
    Library { package: "glrmask", names: &["glrmask (no apply)"], spaced: true },
];

impl Library {
    /// Its outcomes for each case, one per name. If it cannot run, prints a notice and returns
    /// `None`.
    pub fn measure(
        &self,
        python: &Python,
        tokens: &Tokens,
        cases: &[&Case],
        walks: &[Walks],
        effort: &Effort,
    ) -> Option<Vec<Vec<Outcome>>> {
        if !python.offers("upstream.py", &[self.package, "--check"], self.names[0]) {
            return None;
        }
        let file = std::env::temp_dir().join(format!("peers-{}.json", std::process::id()));
        std::fs::write(&file, self.work(tokens, cases, walks, effort).to_string()).ok()?;
        let output = python.run("upstream.py", &[self.package, &file.to_string_lossy()]);
        let _ = std::fs::remove_file(&file);
        let outcomes = output.and_then(|output| {
            // XGrammar may print warnings; the last line is the result.
            let line = output.lines().last().unwrap_or_default();
            serde_json::from_str::<Vec<Value>>(line).map_err(|error| error.to_string())
        });
        match outcomes {
            Ok(outcomes) => Some(
                outcomes
                    .iter()
                    .map(|case| (0..self.names.len()).map(|mode| outcome(&case[mode])).collect())
                    .collect(),
            ),
            Err(error) => {
                println!("skipped: {} ({error})", self.names[0]);
                None
            }
        }
    }

    /// The input of the script.
    fn work(&self, tokens: &Tokens, cases: &[&Case], walks: &[Walks], effort: &Effort) -> Value {
        let vocabulary = &tokens.vocabulary;
        let words: Vec<String> = (0..vocabulary.len() as u32)
            .map(|id| vocabulary.bytes(TokenId(id)).unwrap_or_default())
            .map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
            .collect();
        let cases: Vec<Value> = cases
            .iter()
            .zip(walks)
            .map(|(case, walks)| {
                let (kind, text) = match &case.grammar {
                    Grammar::Regex(regex) => ("regex", regex),
                    Grammar::Schema(schema) => ("schema", schema),
                    Grammar::ContextFree { syntax: Syntax::Lark, text, .. } => ("lark", text),
                    Grammar::ContextFree { text, .. } => ("grammar", text),
                    Grammar::Tools { tag, .. } => ("structural_tag", tag),
                };
                let is_spaced = self.spaced && matches!(case.grammar, Grammar::Schema(_));
                let written = |texts: &[Vec<u32>]| -> Vec<Vec<u32>> {
                    texts.iter().map(|text| if is_spaced { with_spaces(tokens, text) } else { text.clone() }).collect()
                };
                let as_lark = match &case.grammar {
                    Grammar::ContextFree { lark, .. } | Grammar::Tools { lark, .. } => lark.as_ref(),
                    _ => None,
                };
                json!({
                    kind: text, "as_lark": as_lark, "texts": written(&walks.texts), "batched": written(&walks.batched),
                    "batches": walks.batches
                })
            })
            .collect();
        json!({
            "vocabulary": words, "eos": tokens.eos, "runs": effort.runs, "first_runs": effort.first_runs, "window": effort.window,
            "patience": effort.patience, "grammar_patience": effort.grammar_patience, "text_patience": effort.text_patience,
            "cases": cases
        })
    }
}

/// The tokens of compact JSON with a space after each comma and colon outside of strings. Returns
/// no tokens if none spell this text; every engine rejects the empty text.
fn with_spaces(tokens: &Tokens, text: &[u32]) -> Vec<u32> {
    let ids: Vec<_> = text.iter().map(|&id| TokenId(id)).collect();
    let text = String::from_utf8(tokens.vocabulary.decode(&ids)).unwrap_or_default();
    tokens.encode(&spaced(&text)).unwrap_or_default()
}

fn spaced(json: &str) -> String {
    let mut spaced = String::new();
    let (mut in_string, mut behind_a_backslash) = (false, false);
    for c in json.chars() {
        spaced.push(c);
        if c == '"' && !behind_a_backslash {
            in_string = !in_string;
        }
        behind_a_backslash = c == '\\' && !behind_a_backslash;
        if !in_string && matches!(c, ',' | ':') {
            spaced.push(' ');
        }
    }
    spaced
}

/// The script's result for a case.
fn outcome(case: &Value) -> Outcome {
    let times = |times: &Value| -> Option<Vec<f64>> { times.as_array()?.iter().map(Value::as_f64).collect() };
    let list = |name: &str| case[name].as_array().cloned().unwrap_or_default();
    let texts: Vec<_> = list("texts").iter().map(times).collect();
    let rejected = texts.iter().any(Option::is_none).then(|| "rejects a text".to_owned());
    let first_mask = FirstMask {
        time: case["first_mask"].as_f64(),
        refusal: case["refusal"].as_str().map(str::to_owned),
        bytes: case["bytes"].as_u64().map(|bytes| bytes as usize),
        states: None,
    };
    Outcome {
        first_mask: Some(first_mask),
        failure: rejected,
        late: vec![false; texts.len()],
        texts,
        batches: list("batches").iter().map(|modes| [times(&modes[0]), times(&modes[1])]).collect(),
        ..Outcome::default()
    }
}

#[cfg(test)]
mod tests {
    use super::spaced;

    #[test]
    fn spaces_stand_behind_commas_and_colons_outside_of_strings() {
        assert_eq!(spaced(r#"{"a,\":":[1,2],"\\":":"}"#), r#"{"a,\":": [1, 2], "\\": ":"}"#);
    }
}
