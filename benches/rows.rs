//! The mask of single rows on Flex, by how many tokens are legal: when a place of a table is met first, and again.
//!
//! `cargo bench --bench rows -- [f32|f16|bf16] [ROWS]` walks texts of schemas of MaskBench and of the example grammars, in ROWS
//! equal rows, and prints quantiles of the time a row. Every text begins with nothing kept of its table. Texts are cut into the
//! longest tokens there are.

mod data;
mod maskbench;

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_dfa::constraint::Syntax;
use burn_dfa::processor::{DfaProcessor, LogitsProcessor, StepContext};
use burn_dfa::{Constraint, Limits, TensorOptions, TensorTable, TokenId, TokenTable, Vocabulary};
use serde_json::Value;

/// How often a text is walked.
const RUNS: usize = 6;

/// A step of a row: its legal tokens, and the microseconds of each run.
struct Step {
    case: String,
    legal: usize,
    times: Vec<f64>,
}

impl Step {
    /// The median of the runs after the first one.
    fn again(&self) -> f64 {
        let mut times = self.times[1..].to_vec();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if std::env::args().any(|arg| arg == "--test") {
        println!("skipped: the times of single rows");
        return;
    }
    let dtype = match args.iter().find_map(|arg| arg.contains('f').then_some(arg.as_str())) {
        Some("f16") => DType::F16,
        Some("bf16") => DType::BF16,
        _ => DType::F32,
    };
    let rows = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(1);
    let Some(json) = data::read("tokenizers/smollm2/tokenizer.json", "SmolLM2's vocabulary") else { return };
    let vocabulary = Vocabulary::from_tokenizer_json(json).unwrap().with_eos([TokenId(2)]).unwrap();
    let ids: HashMap<&[u8], u32> = vocabulary.iter().map(|(id, bytes)| (bytes, id.0)).collect();
    let mut steps = Vec::new();
    for (name, constraint, texts) in cases() {
        let Ok(table) = TokenTable::compile(&constraint, &vocabulary, &Limits::default()) else { continue };
        for text in texts {
            walk(&name, &table, &cut(text.as_bytes(), &ids), dtype, rows, &mut steps);
        }
    }
    print(&mut steps, vocabulary.len());
}

/// Constraints with texts that they take.
fn cases() -> Vec<(String, Constraint, Vec<String>)> {
    let mut cases = Vec::new();
    for row in maskbench::first(60) {
        let valid = row.tests.iter().filter(|test| test["valid"] == true).take(2);
        let texts = valid.map(|test| test["data"].to_string()).collect();
        cases.extend(Constraint::json_schema(row.schema).ok().map(|schema| (row.id, schema, texts)));
    }
    let grammars = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/grammars");
    for name in ["json.gbnf", "c-like.gbnf", "sql-select.ebnf", "arithmetic.gbnf", "python-expression.lark"] {
        let (stem, extension) = name.split_once('.').expect("a name with an extension");
        let syntax = match extension {
            "gbnf" => Syntax::Gbnf,
            "ebnf" => Syntax::Ebnf,
            _ => Syntax::Lark,
        };
        let read = |name: &str| std::fs::read_to_string(grammars.join(name)).expect("an example");
        let accepted = read(&format!("{stem}.cases.jsonl"));
        let accepted = accepted.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut texts: Vec<String> =
            accepted.filter_map(|case| case["accepts"].as_str().map(str::to_owned)).collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        texts.truncate(4);
        cases.push((name.to_owned(), Constraint::grammar(syntax, &read(name)).expect("a grammar"), texts));
    }
    cases
}

/// The longest token at every place.
fn cut(mut text: &[u8], ids: &HashMap<&[u8], u32>) -> Vec<i32> {
    let mut tokens = Vec::new();
    while !text.is_empty() {
        let len = (1..=text.len().min(64)).rev().find(|&len| ids.contains_key(&text[..len]));
        let (token, rest) = text.split_at(len.expect("every byte is a token"));
        tokens.push(ids[token] as i32);
        text = rest;
    }
    tokens
}

/// Walks a text, as far as it is legal.
fn walk(name: &str, table: &TokenTable, text: &[i32], dtype: DType, rows: usize, steps: &mut Vec<Step>) {
    let (device, width) = (Device::flex(), table.vocabulary_len());
    let options = TensorOptions::default();
    let Ok(on_device) = TensorTable::new(&[table], width, &options, &device) else { return };
    let processor = DfaProcessor::new(on_device, &vec![0; rows]).expect("rows of one table");
    let values = (0..rows * width).map(|at| (at % 251) as f32 / 8.0);
    let data = TensorData::new(values.collect::<Vec<f32>>(), [rows, width]).convert_dtype(dtype);
    let first = steps.len();
    for run in 0..RUNS {
        let mut position = processor.start();
        for (step, token) in std::iter::once(width as i32).chain(text.iter().copied()).enumerate() {
            let context = StepContext {
                tokens: Tensor::<1, Int>::full([rows], token, (&device, DType::I32)),
                step: Tensor::zeros([1], (&device, DType::I32)),
            };
            let logits = Tensor::<2>::from_data(data.clone(), (&device, dtype));
            let began = Instant::now();
            let (masked, next) = black_box(processor.process(position, logits, &context));
            let time = began.elapsed().as_secs_f64() * 1e6 / rows as f64;
            position = next;
            if run == 0 {
                let masked = masked.slice([0..1, 0..width]).into_data().convert::<f32>();
                let masked: Vec<f32> = masked.try_to_vec().expect("floats");
                let legal = masked.iter().filter(|logit| logit.is_finite()).count();
                steps.push(Step { case: format!("{name}, step {step}"), legal, times: Vec::new() });
                steps[first + step].times.push(time);
                let follows = text.get(step).is_none_or(|&next| masked[next as usize].is_finite());
                if !follows {
                    break;
                }
            } else if let Some(step) = steps.get_mut(first + step) {
                step.times.push(time);
            } else {
                break;
            }
        }
    }
    steps.retain(|step| step.times.len() == RUNS);
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() as f64 * part) as usize).min(sorted.len() - 1)]
}

fn print(steps: &mut [Step], all: usize) {
    println!("| legal tokens | steps | first p50 | p90 | p99 | p99.9 | again p50 | p90 | p99 | p99.9 |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let borders = [0, all / 512, all / 32, all / 6, all / 2, all - all / 6, all - all / 32, all + 1];
    let parts = borders.windows(2).map(|pair| (pair[0], pair[1])).chain([(0, all + 1)]);
    for (from, to) in parts {
        let own: Vec<&Step> = steps.iter().filter(|step| (from..to).contains(&step.legal)).collect();
        if own.is_empty() {
            continue;
        }
        let column = |time: &dyn Fn(&Step) -> f64| {
            let mut times: Vec<f64> = own.iter().map(|step| time(step)).collect();
            times.sort_by(f64::total_cmp);
            [0.5, 0.9, 0.99, 0.999].map(|part| format!("{:.1}", quantile(&times, part))).join(" | ")
        };
        let [first, again] = [column(&|step| step.times[0]), column(&Step::again)];
        println!("| {from} to {} | {} | {first} | {again} |", to - 1, own.len());
    }
    for (what, time) in [("first", (|step| step.times[0]) as fn(&Step) -> f64), ("again", Step::again)] {
        steps.sort_by(|a, b| time(b).total_cmp(&time(a)));
        println!("\nThe slowest, met {what}:");
        for step in steps.iter().take(12) {
            println!("{:8.1} µs, {:6} legal: {}", time(step), step.legal, step.case);
        }
    }
}
