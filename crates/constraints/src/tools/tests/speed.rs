//! How long tools take.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;

use crate::{Tool, ToolFormat, Tools};
use burn_dfa_common::Limits;

/// Schemas of objects that compile, of about the median size.
fn schemas(format: ToolFormat, count: usize) -> Vec<Value> {
    let folder = std::env::var_os("BURN_DFA_DATA").map(PathBuf::from).unwrap();
    let mut all = Vec::new();
    for name in ["Glaiveai2K.jsonl", "Github_easy.jsonl"] {
        let text = fs::read_to_string(folder.join("maskbench").join(name)).unwrap();
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            all.push((row["schema"].to_string().len(), row["schema"].clone()));
        }
    }
    all.sort_by_key(|(length, _)| *length);
    all.dedup_by(|a, b| a.1 == b.1);
    let tool = |schema: &Value| Tools::new([Tool::new("f").with_parameters(schema.clone())]);
    let from = all.len().saturating_sub(count * 2) / 2;
    println!("schemas of {} to {} bytes", all[from].0, all[(from + count * 2).min(all.len() - 1)].0);
    let usable = |schema: &Value| {
        let tools = tool(schema).map(|tools| tools.with_format(format));
        tools.and_then(|tools| tools.to_constraint()).is_ok()
    };
    all.into_iter().skip(from).map(|(_, schema)| schema).filter(usable).take(count).collect()
}

#[test]
#[ignore = "a measurement; it needs the schemas of MaskBench in the folder that BURN_DFA_DATA names"]
fn many_tools_are_compiled_in_time() {
    for format in [ToolFormat::Hermes, ToolFormat::Harmony, ToolFormat::QwenXml] {
        let all = schemas(format, 500);
        for count in [10, 100, 500] {
            for repeated in [false, true] {
                let tool = |i: usize| {
                    let schema = &all[if repeated { 0 } else { i % all.len() }];
                    Tool::new(format!("tool_{i}")).with_parameters(schema.clone())
                };
                let tools = Tools::new((0..count).map(tool)).unwrap().with_format(format);
                let start = Instant::now();
                let constraint = match tools.to_constraint() {
                    Ok(constraint) => constraint,
                    Err(error) => {
                        println!("{format} {count}: {error}");
                        continue;
                    }
                };
                let read = start.elapsed();
                let start = Instant::now();
                let automaton = constraint.to_automaton(&Limits::default());
                let compiled = start.elapsed();
                let start = Instant::now();
                tools.reader().unwrap();
                let states = match automaton {
                    Ok(automaton) => automaton.unwrap().state_count().to_string(),
                    Err(error) => error.to_string(),
                };
                println!(
                    "{format} {count:3} {}: read {read:.1?}, automaton {compiled:.1?}, {states} states, reader {:.1?}",
                    if repeated { "one schema" } else { "schemas" },
                    start.elapsed()
                );
            }
        }
    }
}
