//! First masks of tool catalogs as one structural tag, from the text of the tag to a row of masked
//! logits.
//!
//! The schemas come from MaskBench, around the median length. Each describes an object and has a
//! valid instance. burn-dfa, llguidance and XGrammar compile each of them alone, since one refused
//! schema would make an engine refuse the whole catalog. Objects with declared properties get
//! `additionalProperties: false`, so that all engines interpret them alike.

use burn_dfa::constraint::{Tool, ToolFormat, Tools};
use serde_json::Value;

use crate::engines::{ALL, Engine, Grammar};
use crate::figures::Figures;
use crate::first_mask::{self, FirstMask, compile};
use crate::maskbench;
use crate::measure::{self, Effort};
use crate::tokens::{Tokens, logits};
use crate::work::Folder;

/// The numbers of tools.
const COUNTS: [usize; 3] = [10, 100, 500];

/// The engines that read structural tags or an equivalent.
const ENGINES: [usize; 3] = [0, 2, 5];

/// The number of MaskBench rows to search.
const ROWS: usize = 2_500;

/// A schema, and an instance as compact JSON.
struct Schema {
    schema: Value,
    instance: String,
}

/// Measures all catalogs, prints them, and returns the figures.
pub fn figures(tokens: &Tokens, effort: &Effort) -> Figures {
    let engines: Vec<Box<dyn Engine>> = ENGINES.iter().map(|&engine| ALL[engine](tokens)).collect();
    let max = if effort.runs == 1 { COUNTS[1] } else { COUNTS[2] };
    let schemas = schemas(&engines, max);
    if schemas.is_empty() {
        return Figures::new();
    }
    let mut lengths: Vec<usize> = schemas.iter().map(|of| of.schema.to_string().len()).collect();
    lengths.sort_unstable();
    let [first, middle, last] = [0, lengths.len() / 2, lengths.len() - 1].map(|at| lengths[at]);
    println!("\n# Tools, {}, {} ids\n", tokens.name, tokens.vocab_size());
    println!("{} schemas of {first} to {last} bytes, {middle} at the median", schemas.len());
    let catalogues: Vec<(String, Grammar)> = COUNTS
        .into_iter()
        .filter(|&count| count <= schemas.len())
        .flat_map(|count| {
            let distinct: Vec<&Schema> = schemas[..count].iter().collect();
            let shared = vec![&schemas[0]; count];
            [("schemas", distinct), ("one_schema", shared)].map(|(kind, of)| {
                // The larger catalogs differ only in the number of tools.
                if count == COUNTS[0] {
                    say_verdicts(&engines, tokens, &of);
                }
                (format!("tools_{count}_{kind}"), catalogue(&of))
            })
        })
        .collect();
    let grammars: Vec<&Grammar> = catalogues.iter().map(|(_, grammar)| grammar).collect();
    let folder = Folder::of_grammars(tokens, &grammars);
    println!(
        "\nFrom the structural tag to masked logits, ms; states of the automaton; KiB as the engine says it\n"
    );
    let header: String = engines.iter().map(|engine| format!("{:>36}", engine.name())).collect();
    println!("  {:26}{header}", "");
    let mut figures = Figures::new();
    for (at, (name, _)) in catalogues.iter().enumerate() {
        let masks: Vec<FirstMask> = ENGINES
            .iter()
            .map(|&engine| first_mask::measure(&folder, engine, at, effort.runs, effort.grammar_patience))
            .collect();
        let cells: String = masks.iter().map(|mask| format!("{:>36}", cell(mask))).collect();
        println!("  {name:26}{cells}");
        masks.iter().filter_map(|mask| mask.refusal.as_ref()).for_each(|refusal| println!("    {refusal}"));
        let Some(ours) = masks[0].time else { continue };
        figures.push((format!("{name}_first_mask_us"), ours));
        for (mask, peer) in masks[1..].iter().zip(["llguidance", "xgrammar"]) {
            figures
                .extend(mask.time.map(|theirs| (format!("{name}_first_mask_ratio_{peer}"), ours / theirs)));
        }
    }
    figures
}

fn cell(mask: &FirstMask) -> String {
    let Some(time) = mask.time else { return "refused".to_owned() };
    let states = mask.states.map(|states| format!("{states} states")).unwrap_or_default();
    let bytes = mask.bytes.map(|bytes| format!("{} KiB", bytes / 1024)).unwrap_or_default();
    format!("{:.2}  {states}  {bytes}", time / 1e3)
}

/// `count` schemas around the median length that all engines compile.
fn schemas(engines: &[Box<dyn Engine>], count: usize) -> Vec<Schema> {
    let mut all: Vec<Schema> = maskbench::first(ROWS).into_iter().filter_map(of_row).collect();
    all.sort_by_key(|of| of.schema.to_string().len());
    all.dedup_by(|one, other| one.schema == other.schema);
    // Order by the distance from the median.
    let middle = all.len() / 2;
    let mut ordered: Vec<(usize, Schema)> =
        all.into_iter().enumerate().map(|(at, of)| (at.abs_diff(middle), of)).collect();
    ordered.sort_by_key(|(distance, _)| *distance);
    let compiles = |of: &Schema| {
        let grammar = catalogue(&[of]);
        engines.iter().all(|engine| compile(engine.as_ref(), &grammar).is_ok())
    };
    ordered.into_iter().map(|(_, of)| of).filter(compiles).take(count).collect()
}

/// The schema of a row, if it can be the parameters of a tool.
fn of_row(row: maskbench::Row) -> Option<Schema> {
    let mut schema = row.schema;
    let is_object =
        schema["type"] == "object" && schema["properties"].is_object() && schema.get("$ref").is_none();
    let instance = row.tests.into_iter().find(|test| test["valid"] == true && test["data"].is_object())?;
    is_object.then(|| close(&mut schema))?;
    Some(Schema { schema, instance: instance["data"].to_string() })
}

/// Closes objects with declared properties.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object)
                && !fields.contains_key("additionalProperties")
            {
                fields.insert("additionalProperties".to_owned(), false.into());
            }
            fields.iter_mut().for_each(|(_, value)| close(value));
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Tools with these schemas in the format of Hermes, and an equivalent Lark grammar.
fn catalogue(schemas: &[&Schema]) -> Grammar {
    let tool =
        |(at, of): (usize, &&Schema)| Tool::new(format!("tool_{at}")).with_parameters(of.schema.clone());
    let tools = Tools::new(schemas.iter().enumerate().map(tool)).expect("names of tools");
    let tag = tools.with_format(ToolFormat::Hermes).to_structural_tag().expect("tools");
    let begin = |at: usize| format!("\n{{\"name\": \"tool_{at}\", \"arguments\": ");
    let alternatives: Vec<String> = schemas
        .iter()
        .enumerate()
        .map(|(at, of)| {
            let mut schema = of.schema.clone();
            schema["x-guidance"] = serde_json::json!({"whitespace_flexible": true});
            let [begin, end] =
                [begin(at), "}\n</tool_call>".to_owned()].map(|text| Value::from(text).to_string());
            format!("tool_{at}: {begin} arguments_{at} {end}\narguments_{at}: %json {schema}\n")
        })
        .collect();
    let names: Vec<String> = (0..schemas.len()).map(|at| format!("tool_{at}")).collect();
    let lark = format!(
        "start: (before ({}))* rest\nbefore[lazy]: /(?s:.*)<tool_call>/\nrest: /(?s:.*)/\n{}",
        names.join(" | "),
        alternatives.concat()
    );
    Grammar::Tools { tag: serde_json::to_string(&tag).expect("JSON"), lark: Some(lark) }
}

/// Prints how many calls in free text each engine accepts, among the calls that burn-dfa accepts
/// and among the calls that it rejects. The calls name every tool and, for each, an unknown tool.
fn say_verdicts(engines: &[Box<dyn Engine>], tokens: &Tokens, schemas: &[&Schema]) {
    let output = |(at, of): (usize, &&Schema)| {
        let call = |name: String| {
            format!(
                "1 < 2, so <tool_call>\n{{\"name\": \"{name}\", \"arguments\": {}}}\n</tool_call> and so on",
                of.instance
            )
        };
        [call(format!("tool_{at}")), call(format!("other_{at}"))]
    };
    let tokenizer = tokens.tokenizer.as_ref().expect("a tokenizer");
    let texts: Vec<Vec<u32>> =
        schemas.iter().enumerate().flat_map(output).map(|text| tokenizer.encode(&text)).collect();
    let logits = logits(tokens.vocab_size());
    let mut first: Option<Vec<bool>> = None;
    for engine in engines {
        let grammar = match compile(engine.as_ref(), &catalogue(schemas)) {
            Ok(grammar) => grammar,
            Err(error) => {
                println!("  {}: {}", engine.name(), error.lines().next().unwrap_or_default());
                continue;
            }
        };
        let takes = |text: &Vec<u32>| {
            measure::check(grammar.as_ref(), text, tokens.eos, &logits, text.len() + 1).is_ok()
        };
        let verdicts: Vec<bool> = texts.iter().map(takes).collect();
        let first = first.get_or_insert_with(|| verdicts.clone());
        let count = |wanted: bool| {
            let both = first.iter().zip(&verdicts).filter(|(first, _)| **first == wanted);
            let all = both.clone().count();
            format!("{} of {all}", both.filter(|(_, own)| **own).count())
        };
        println!("  {} takes {} and {}", engine.name(), count(true), count(false));
    }
}
