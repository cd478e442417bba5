//! burn-dfa beside its peers: the same vocabulary, constraint, text and logits, in one process.
//!
//! `cargo run --release -p peers` prints tables with ratios, draws them, and ends with one `name=value` per figure.

mod args;
mod cases;
mod data;
mod engines;
mod figures;
mod measure;
mod memory;
mod model;
mod plot;
mod python;
mod results;
mod statistics;
mod table;
mod tokens;
mod upstream;

use std::time::Duration;

use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Args;
use crate::cases::Case;
use crate::engines::Engine;
use crate::measure::Effort;
use crate::python::Python;
use crate::results::{Measured, Results};
use crate::tokens::{Name, Tokens};

fn main() {
    let args = Args::parse();
    let effort = if args.quick {
        Effort { runs: 1, window: 4, patience: Duration::from_secs(2) }
    } else {
        Effort { runs: args.runs.max(1), window: 16, patience: Duration::from_secs(10) }
    };
    let names = if args.vocabulary.is_empty() { Name::value_variants() } else { &args.vocabulary };
    let cases: Vec<Case> = cases::all().into_iter().step_by(if args.quick { 3 } else { 1 }).collect();
    if let Some(index) = args.memory_of {
        let tokens = names.iter().find_map(|&name| Tokens::load(name)).expect("a vocabulary");
        let cases: Vec<Case> = cases.into_iter().filter(|case| args.cases.contains(&case.name)).collect();
        return memory::print(engines::ALL[index](&tokens).as_ref(), &tokens, &cases);
    }

    let python = Python::new(&args.python);
    let vocabularies = names.iter().filter_map(|&name| Tokens::load(name));
    let results: Vec<Results> =
        vocabularies.map(|tokens| run(&tokens, &cases, &effort, &python)).inspect(table::print).collect();
    match plot::draw(&results, &args.out) {
        Ok(()) => println!("\nDrawn: {}", args.out.display()),
        Err(error) => println!("\nNot drawn: {error}"),
    }
    println!("A timer around nothing: {:.3} µs, not subtracted.", measure::empty_timer());

    let mut figures = figures::all(&results);
    if !args.no_models {
        figures.extend(model::figures(&args, effort.runs));
    }
    println!();
    for (name, value) in figures {
        println!("{name}={value:.4}");
    }
}

/// All cases with one vocabulary.
fn run(tokens: &Tokens, cases: &[Case], effort: &Effort, python: &Python) -> Results {
    let bar = ProgressBar::new((cases.len() + engines::ALL.len()) as u64);
    let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} {wide_msg}").expect("a template");
    bar.set_style(style);
    bar.set_prefix(tokens.name);
    let engines: Vec<Box<dyn Engine>> = engines::ALL.iter().map(|make| make(tokens)).collect();
    let mut patient = vec![true; engines.len()];
    let mut measured = Vec::new();
    for case in cases {
        bar.set_message(case.name.clone());
        let outcomes = measure::measure(case, tokens, &engines, &mut patient, effort);
        measured.push(Measured { name: case.name.clone(), kind: case.kind, outcomes });
        bar.inc(1);
    }
    let growth = (0..engines.len()).map(|index| {
        bar.set_message(format!("memory of {}", engines[index].name()));
        bar.inc(1);
        let compiled = measured.iter().filter(|case| case.outcomes[index].is_compiled());
        let compiled: Vec<&str> = compiled.map(|case| case.name.as_str()).collect();
        memory::growth(tokens, index, &compiled)
    });
    let mut growth: Vec<_> = growth.collect();
    let mut names: Vec<_> = engines.iter().map(|engine| engine.name()).collect();
    bar.set_message(upstream::NAMES[0]);
    if let Some(outcomes) = bar.suspend(|| upstream::measure(python, tokens, cases, effort)) {
        names.extend(upstream::NAMES);
        growth.extend([None, None]);
        for (case, outcomes) in measured.iter_mut().zip(outcomes) {
            case.outcomes.extend(outcomes);
        }
    }
    bar.finish_and_clear();
    Results { vocabulary: tokens.name, width: tokens.width(), engines: names, cases: measured, growth }
}
