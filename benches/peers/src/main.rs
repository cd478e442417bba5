//! burn-dfa beside its peers: the same vocabulary, constraint, text and logits.
//!
//! `cargo run --release -p peers` prints tables with ratios, draws them, and ends with one `name=value` per figure.

mod acceptance;
mod args;
mod beside_pytorch;
mod cases;
#[path = "../../data.rs"]
mod data;
mod engines;
mod figures;
mod first_mask;
mod grammars;
mod lark;
#[path = "../../maskbench.rs"]
mod maskbench;
mod measure;
mod memory;
mod model;
mod plot;
mod progress;
mod python;
mod results;
mod shapes;
mod statistics;
mod table;
mod texts;
mod tokens;
mod tools;
#[path = "../../triggers.rs"]
mod triggers;
mod upstream;
mod work;

use clap::Parser;

use crate::args::Args;
use crate::python::Python;
use crate::results::Results;
use crate::tokens::Tokens;

fn main() {
    let args = Args::parse();
    if let Some(folder) = &args.part.folder {
        return part(&args.part, folder);
    }
    let effort = args.effort();
    if args.models {
        let mut figures = beside_pytorch::figures(&args, effort.runs);
        figures.extend(model::figures(&args, effort.runs));
        println!();
        return figures.iter().for_each(|(name, value)| println!("{name}={value:.4}"));
    }
    if args.tools {
        let mut figures = figures::Figures::new();
        if let Some(tokens) = Tokens::load(tokens::Name::Smollm2) {
            figures.extend(tools::figures(&tokens, &effort));
        }
        if !args.no_models {
            figures.extend(model::in_free_text(&args, effort.runs));
        }
        println!();
        return figures.iter().for_each(|(name, value)| println!("{name}={value:.4}"));
    }
    let mut cases = if args.grammars { Vec::new() } else { cases::all(effort.schemas) };
    cases.extend(grammars::all());
    cases.retain(|case| case.name.contains(&args.only));
    let python = Python::new(&args.python);
    let vocabularies = args.vocabulary.iter().filter_map(|&name| Tokens::load(name));
    let results: Vec<Results> = vocabularies
        .map(|tokens| results::measure(&tokens, &cases, &args.effort_of(&tokens), &python))
        .inspect(table::print)
        .collect();
    if !args.grammars {
        match plot::draw(&results, &args.out) {
            Ok(()) => println!("\nDrawn: {}", args.out.display()),
            Err(error) => println!("\nNot drawn: {error}"),
        }
    }
    println!("A timer around nothing: {:.3} µs, not subtracted.", measure::empty_timer());

    let mut figures = figures::all(&results);
    if !args.no_models && !args.grammars {
        figures.extend(beside_pytorch::figures(&args, effort.runs));
        figures.extend(model::figures(&args, effort.runs));
    }
    figures::print_what_is_ahead(&figures);
    println!();
    for (name, value) in figures {
        println!("{name}={value:.4}");
    }
}

/// What a process does that another of this program started.
fn part(part: &work::Part, folder: &std::path::Path) {
    let tokens = work::vocabulary(folder);
    let engine = engines::ALL[part.engine](&tokens);
    let grammars = work::grammars(folder);
    match part.case {
        Some(case) if part.texts => {
            let texts = work::texts(folder);
            acceptance::print(engine.as_ref(), &tokens, &grammars[case], &texts, part.patience);
        }
        Some(case) => first_mask::print(engine.as_ref(), &tokens, &grammars[case], part.patience),
        None => memory::print(engine.as_ref(), &tokens, &grammars, &work::walks(folder)),
    }
}
