//! XGrammar as its authors build it, through Python, since the crate is a port of it.

use burn_dfa::constraint::Syntax;
use serde_json::{Value, json};

use crate::cases::Case;
use crate::engines::Grammar;
use crate::first_mask::FirstMask;
use crate::measure::{BATCHES, Effort, Outcome, Walks};
use crate::python::Python;
use crate::tokens::Tokens;

/// Its names in the tables: the whole step, and the step without applying the mask, for which its own loop on the
/// CPU takes longest.
pub const NAMES: [&str; 2] = ["XGrammar (original)", "XGrammar (original), no apply"];

/// Its outcomes for each case, in both ways; `None`, having said so, where it cannot run.
pub fn measure(
    python: &Python,
    tokens: &Tokens,
    cases: &[&Case],
    walks: &[Walks],
    effort: &Effort,
) -> Option<Vec<[Outcome; 2]>> {
    if !python.offers("upstream.py", NAMES[0]) {
        return None;
    }
    let file = std::env::temp_dir().join(format!("peers-{}.json", std::process::id()));
    std::fs::write(&file, work(tokens, cases, walks, effort).to_string()).ok()?;
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
fn work(tokens: &Tokens, cases: &[&Case], walks: &[Walks], effort: &Effort) -> Value {
    let vocabulary = &tokens.vocabulary;
    let words: Vec<String> = (0..vocabulary.len() as u32)
        .map(|id| vocabulary.bytes(burn_dfa::TokenId(id)).unwrap_or_default())
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
            json!({kind: text, "texts": walks.texts, "batched": walks.batched})
        })
        .collect();
    json!({
        "vocabulary": words, "eos": tokens.eos, "runs": effort.runs, "first_runs": effort.first_runs, "window": effort.window,
        "batches": BATCHES, "cases": cases
    })
}

/// What the script says of a case.
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
        batches: list("batches").iter().map(|ways| [times(&ways[0]), times(&ways[1])]).collect(),
        ..Outcome::default()
    }
}
