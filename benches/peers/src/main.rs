//! Compares burn-dfa with its peers on the same vocabulary, constraint, text and logits.
//!
//! `cargo run --release -p peers` prints tables with ratios, draws them, and ends with one
//! `name=value` line per figure.

mod ablation;
mod acceptance;
mod args;
mod beside_pytorch;
mod cases;
#[path = "../../data.rs"]
mod data;
mod engines;
mod figures;
mod first_mask;
mod folder;
mod grammars;
mod lark;
#[path = "../../quality/machine.rs"]
#[allow(dead_code, reason = "the benchmark of quality measures memory as well")]
mod machine;
#[path = "../../maskbench.rs"]
mod maskbench;
mod masks;
mod measure;
mod memory;
mod model;
mod plot;
mod progress;
#[path = "../../published.rs"]
mod published;
mod python;
mod results;
mod rows;
mod shapes;
mod statistics;
mod table;
mod texts;
mod tiktoken;
mod tokens;
mod tools;
#[path = "../../triggers.rs"]
mod triggers;
mod upstream;
mod work;

use clap::Parser;

use crate::args::Args;
use crate::cases::Case;
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
    let named = rows_or_chosen(&args, effort.schemas).and_then(|mut cases| {
        cases.retain(|case| case.name.contains(&args.only));
        if cases.is_empty() {
            return Err(
                "there is no case: name rows that are there, or another part of a name to --only".into()
            );
        }
        Ok((cases, folders(&args)?))
    });
    let (cases, folders) = named.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        std::process::exit(2)
    });
    if args.masks {
        let named = args.vocabularies().into_iter().filter_map(Tokens::load).chain(folders);
        return named.for_each(|tokens| masks::print(&cases, &tokens, args.runs));
    }
    if let Some(path) = &args.ablation {
        let named: Vec<Tokens> =
            args.vocabularies().into_iter().filter_map(Tokens::load).chain(folders).collect();
        if let Err(error) = ablation::write(path, &cases, &named, &args) {
            eprintln!("error: {}: {error}", path.display());
            std::process::exit(1);
        }
        return;
    }
    let python = Python::new(&args.python);
    let vocabularies = args.vocabularies().into_iter().filter_map(Tokens::load).chain(folders);
    let results: Vec<Results> = vocabularies
        .map(|tokens| results::measure(&tokens, &cases, &args.effort_of(&tokens), &python))
        .inspect(table::print)
        .collect();
    table::print_together(&results);
    if results.iter().any(|results| results.schemas().next().is_some()) {
        match plot::draw(&results, &args.out) {
            Ok(()) => println!("\nDrawn: {}", args.out.display()),
            Err(error) => println!("\nNot drawn: {error}"),
        }
    }
    println!("A timer around nothing: {:.3} µs, not subtracted.", measure::empty_timer());

    let mut figures = figures::all(&results);
    if args.with_models() {
        figures.extend(beside_pytorch::figures(&args, effort.runs));
        figures.extend(model::figures(&args, effort.runs));
    }
    figures::print_what_is_ahead(&figures);
    println!();
    let lines: String = figures.iter().map(|(name, value)| format!("{name}={value:.4}\n")).collect();
    print!("{lines}");
    if let Some(path) = &args.figures
        && let Err(error) = std::fs::write(path, &lines)
    {
        eprintln!("error: {}: {error}", path.display());
        std::process::exit(1);
    }
}

/// The cases from files of rows, or the built-in cases with `schemas` schemas.
fn rows_or_chosen(args: &Args, schemas: usize) -> Result<Vec<Case>, String> {
    let mut cases = if args.grammars || !args.rows.is_empty() { Vec::new() } else { cases::all(schemas) };
    if args.rows.is_empty() {
        cases.extend(grammars::all());
    }
    for path in &args.rows {
        let rows = rows::read(path)?;
        println!("{}: {} rows", path.display(), rows.cases.len());
        for (why, count) in &rows.left_out {
            println!("  left out: {count} {why}");
        }
        cases.extend(rows.cases);
    }
    Ok(cases)
}

/// The vocabularies from folders, with distinct prefixes for their figures.
fn folders(args: &Args) -> Result<Vec<Tokens>, String> {
    let folders: Vec<Tokens> =
        args.tokenizer.iter().map(|path| folder::read(path)).collect::<Result<_, _>>()?;
    let mut prefixes: Vec<&str> = folders.iter().map(|tokens| tokens.prefix.as_str()).collect();
    prefixes.sort_unstable();
    match prefixes.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two folders whose figures would be called `{}…`: rename one", pair[0])),
        None => Ok(folders),
    }
}

/// The work of a process that another process of this program started.
fn part(part: &work::Part, folder: &std::path::Path) {
    let tokens = work::vocabulary(folder);
    let make = engines::ALL[part.engine];
    let grammars = work::grammars(folder);
    match part.case {
        Some(case) if part.texts => {
            let texts = work::texts(folder);
            acceptance::print(make(&tokens).as_ref(), &tokens, &grammars[case], &texts, part.patience);
        }
        Some(case) => first_mask::print(make(&tokens).as_ref(), &tokens, &grammars[case], part.patience),
        None => memory::print(make, &tokens, &grammars, &work::walks(folder)),
    }
}
