//! XGrammar as its authors build it, through Python, since the crate is a port of it.

use serde_json::{Value, json};

use crate::cases::Case;
use crate::engines::Grammar;
use crate::measure::{BATCHES, Effort, Outcome};
use crate::python::Python;
use crate::tokens::Tokens;

/// Its names in the tables: the whole step, and the step without applying the mask, for which its own loop on the
/// CPU takes longest.
pub const NAMES: [&str; 2] = ["XGrammar (original)", "XGrammar (original), no apply"];

/// Its outcomes for each case, in both ways; `None`, having said so, where it cannot run.
pub fn measure(
    python: &Python,
    tokens: &Tokens,
    cases: &[Case],
    effort: &Effort,
) -> Option<Vec<[Outcome; 2]>> {
    if !python.offers("upstream.py", NAMES[0]) {
        return None;
    }
    let file = std::env::temp_dir().join(format!("peers-{}.json", std::process::id()));
    std::fs::write(&file, work(tokens, cases, effort).to_string()).ok()?;
    let output = python.run("upstream.py", &[&file.to_string_lossy()]);
    let _ = std::fs::remove_file(&file);
    let outcomes = output.and_then(|output| {
        // XGrammar prints warnings of its own; the last line is the result.
        let line = output.lines().last().unwrap_or_default();
        serde_json::from_str::<Vec<Value>>(line).map_err(|error| error.to_string())
    });
    match outcomes {
        Ok(outcomes) => Some(outcomes.iter().map(|case| [outcome(&case[0]), outcome(&case[1])]).collect()),
        Err(error) => {
            println!("skipped: {} ({error})", NAMES[0]);
            None
        }
    }
}

/// What the script is to do.
fn work(tokens: &Tokens, cases: &[Case], effort: &Effort) -> Value {
    let vocabulary = &tokens.vocabulary;
    let words: Vec<String> = (0..vocabulary.len() as u32)
        .map(|id| vocabulary.bytes(burn_dfa::TokenId(id)).unwrap_or_default())
        .map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    let cases: Vec<Value> = cases
        .iter()
        .map(|case| {
            let (kind, text) = match &case.grammar {
                Grammar::Regex(regex) => ("regex", regex),
                Grammar::Schema(schema) => ("schema", schema),
            };
            let texts: Vec<_> = case.texts.iter().map(|text| tokens.encode(text)).collect();
            json!({kind: text, "texts": texts})
        })
        .collect();
    json!({
        "vocabulary": words, "eos": tokens.eos, "runs": effort.runs, "window": effort.window,
        "batches": BATCHES, "cases": cases
    })
}

/// What the script says of a case.
fn outcome(case: &Value) -> Outcome {
    let times = |times: &Value| -> Option<Vec<f64>> { times.as_array()?.iter().map(Value::as_f64).collect() };
    let list = |name: &str| case[name].as_array().cloned().unwrap_or_default();
    let texts: Vec<_> = list("texts").iter().map(times).collect();
    let rejected = texts.iter().any(Option::is_none).then(|| "rejects a text".to_owned());
    Outcome {
        refusal: case["refusal"].as_str().map(str::to_owned).or(rejected),
        first_mask: case["first_mask"].as_f64().unwrap_or(0.0),
        texts,
        batches: list("batches").iter().map(|ways| [times(&ways[0]), times(&ways[1])]).collect(),
        bytes: case["bytes"].as_u64().map(|bytes| bytes as usize),
        ..Outcome::default()
    }
}
