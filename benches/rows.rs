//! Mask times of single rows on Flex, by the number of legal tokens: at the first visit of a
//! position and at later visits.
//!
//! `cargo bench --bench rows -- [f32|f16|bf16] [ROWS]` advances ROWS equal rows along texts of
//! MaskBench schemas and of the example grammars, and prints quantiles of the time per row. Each
//! text starts with an empty mask cache and is split into the longest possible tokens. A second
//! table times single positions, each first visited with a constraint that was just compiled.

mod data;
mod maskbench;

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_dfa::constraint::{JsonOptions, Syntax, Whitespace};
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, Position, StepContext};
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId, Vocabulary,
};
use serde_json::{Value, json};

/// Runs of each text.
const RUNS: usize = 6;

/// Compilations for each position.
const COMPILATIONS: usize = 21;

/// A step of a row: the number of its legal tokens, and the microseconds of each run.
struct Step {
    case: String,
    legal: usize,
    times: Vec<f64>,
}

impl Step {
    /// The median of all runs but the first.
    fn again(&self) -> f64 {
        median(self.times[1..].to_vec())
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Equal rows with one compiled constraint.
struct Rows {
    processor: ConstraintProcessor,
    count: usize,
    logits: TensorData,
}

impl Rows {
    fn new(constraint: &CompiledConstraint, dtype: DType, count: usize) -> Option<Self> {
        let (device, vocab_size) = (Device::flex(), constraint.vocabulary_len());
        let on_device =
            DeviceConstraint::new(&[constraint], vocab_size, &TensorOptions::default(), &device).ok()?;
        let processor = ConstraintProcessor::new(on_device, &vec![0; count]).expect("rows of one constraint");
        let values = (0..count * vocab_size).map(|at| (at % 251) as f32 / 8.0);
        let logits = TensorData::new(values.collect::<Vec<f32>>(), [count, vocab_size]).convert_dtype(dtype);
        Some(Self { processor, count, logits })
    }

    /// Advances by a token and masks; also returns the microseconds per row.
    fn step(&self, position: Position, token: i32) -> (Tensor<2>, Position, f64) {
        let device = Device::flex();
        let context = StepContext {
            tokens: Tensor::<1, Int>::full([self.count], token, (&device, DType::I32)),
            step: Tensor::zeros([1], (&device, DType::I32)),
        };
        let logits = Tensor::<2>::from_data(self.logits.clone(), (&device, self.logits.dtype()));
        let began = Instant::now();
        let (masked, next) = black_box(self.processor.process(position, logits, &context));
        let time = began.elapsed().as_secs_f64() * 1e6 / self.count as f64;
        (masked, next, time)
    }
}

/// The masked logits of the first row.
fn first_row(masked: Tensor<2>) -> Vec<f32> {
    let [_, vocab_size] = masked.dims();
    let masked = masked.slice([0..1, 0..vocab_size]).into_data().convert::<f32>();
    masked.try_to_vec().expect("floats")
}

/// The number of tokens that a mask allows.
fn legal(masked: &[f32]) -> usize {
    masked.iter().filter(|logit| logit.is_finite()).count()
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
        let Ok(compiled) = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()) else {
            continue;
        };
        for text in texts {
            walk(&name, &compiled, &cut(text.as_bytes(), &ids), dtype, rows, &mut steps);
        }
    }
    print(&mut steps, vocabulary.len());
    print_places(&vocabulary, &ids, dtype, rows);
}

/// The constraint of a schema, for compact JSON as serde_json writes it.
fn compact(schema: Value) -> burn_dfa::Result<Constraint> {
    Constraint::json_schema_with(schema, &JsonOptions::new().with_whitespace(Whitespace::Compact))
}

/// Constraints with valid texts.
fn cases() -> Vec<(String, Constraint, Vec<String>)> {
    let mut cases = Vec::new();
    for row in maskbench::first(60) {
        let valid = row.tests.iter().filter(|test| test["valid"] == true).take(2);
        let texts = valid.map(|test| test["data"].to_string()).collect();
        cases.extend(compact(row.schema).ok().map(|schema| (row.id, schema, texts)));
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

/// Splits a text into tokens, always the longest one.
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

/// Advances along a text until a token is illegal.
fn walk(
    name: &str,
    constraint: &CompiledConstraint,
    text: &[i32],
    dtype: DType,
    rows: usize,
    steps: &mut Vec<Step>,
) {
    let Some(rows) = Rows::new(constraint, dtype, rows) else { return };
    let first = steps.len();
    for run in 0..RUNS {
        let mut position = rows.processor.start();
        let none = rows.processor.device_constraint().no_token() as i32;
        for (step, token) in std::iter::once(none).chain(text.iter().copied()).enumerate() {
            let (masked, next, time) = rows.step(position, token);
            position = next;
            if run == 0 {
                let masked = first_row(masked);
                let case = format!("{name}, step {step}");
                steps.push(Step { case, legal: legal(&masked), times: vec![time] });
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

/// Prints the times of single positions, each with new compiled constraints: the first visit and
/// later visits. The tokens before the position are already processed.
fn print_places(vocabulary: &Vocabulary, ids: &HashMap<&[u8], u32>, dtype: DType, rows: usize) {
    println!(
        "\n| the first visit of a new table, medians of {COMPILATIONS} | legal tokens | first | again |"
    );
    println!("|---|---:|---:|---:|");
    for (name, constraint, text) in positions(vocabulary) {
        let (mut first, mut again, mut left) = (Vec::new(), Vec::new(), 0);
        for _ in 0..COMPILATIONS {
            let compiled = CompiledConstraint::compile(&constraint, vocabulary, &Limits::default())
                .expect("a constraint");
            let rows = Rows::new(&compiled, dtype, rows).expect("the constraint fits");
            let mut last = rows.processor.device_constraint().no_token() as i32;
            let mut position = rows.processor.start();
            for token in cut(text.as_bytes(), ids) {
                position = rows.step(position, last).1;
                last = token;
            }
            let (masked, _, time) = rows.step(position.clone(), last);
            first.push(time);
            left = legal(&first_row(masked));
            again.extend((1..RUNS).map(|_| rows.step(position.clone(), last).2));
        }
        println!("| {name} | {left} | {:.1} | {:.1} |", median(first), median(again));
    }
}

/// Positions: a name, a constraint, and the text before the position.
fn positions(vocabulary: &Vocabulary) -> [(&'static str, Constraint, &'static str); 4] {
    let schema = |of: Value| {
        let properties = json!({"type": "object", "properties": {"a": of}, "required": ["a"]});
        compact(properties).expect("a schema")
    };
    let chosen = vocabulary.iter().filter(|(id, _)| id.0.wrapping_mul(0x9e37_79b9) >> 30 == 0);
    let texts: Vec<&str> = chosen.filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok()).collect();
    let choice = Constraint::choice(texts.into_iter().filter(|text| !text.is_empty())).expect("a choice");
    let counted = || schema(json!({"type": "string", "maxLength": 96}));
    [
        ("at the start of a string of up to 96 characters", counted(), r#"{"a":""#),
        ("behind its first word", counted(), r#"{"a":"The"#),
        ("behind a digit", schema(json!({"type": "number"})), r#"{"a":1"#),
        ("a quarter of all tokens, by chance, and what they begin with", choice, ""),
    ]
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
