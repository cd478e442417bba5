//! Prints the results as tables.

use crate::cases::Kind;
use crate::measure::{BATCHES, Outcome};
use crate::memory::PROCESSES;
use crate::results::{Counts, Measured, Pair, Results};
use crate::statistics::{QUANTILES, quantile};

/// Prints all tables of one vocabulary.
pub fn print(results: &Results) {
    println!("\n# {}, {} ids\n", results.vocabulary, results.vocab_size);
    reasons(results);
    if results.cases.iter().any(|case| case.kind != Kind::Grammar) {
        schemas(results);
    }
    if results.grammars().next().is_some() {
        grammars(results);
    }
}

/// Prints one table of all engines and vocabularies, with each engine's full results, independent
/// of other engines.
pub fn print_together(results: &[Results]) {
    if results.iter().flat_map(|results| &results.cases).all(|case| case.kind == Kind::Grammar) {
        return;
    }
    println!("\n# All engines and vocabularies: regexes and schemas");
    println!(
        "\nThe first mask in ms; a step of one row, and the median step of a batch per row, in µs; MiB by which the process"
    );
    println!(
        "grows over the vocabulary, and over the cases with steps; schemas without a mask. Each engine on what it takes: ratios are above.\n"
    );
    let sizes = BATCHES.map(|rows| format!("{:>9}", format!("b{rows}"))).concat();
    let header =
        ["first p50", "p90", "p99", "step p50", "p90", "p99", "p99.9"].map(|name| format!("{name:>11}"));
    println!(
        "  {:18}{:30}{}{sizes}{:>10}{:>10}{:>9}{:>10}",
        "",
        "",
        header.concat(),
        "vocab MiB",
        "MiB",
        "refused",
        "too long"
    );
    for results in results {
        for (index, engine) in results.engines.iter().enumerate() {
            let (first, steps) = (results.own_first_masks(index), results.own_steps(index));
            let counts = Results::counts(index, results.schemas());
            if steps.is_empty() && counts.refused == 0 {
                continue;
            }
            let cell = |value: Option<f64>, width: usize, decimals: usize| match value {
                Some(value) => format!("{value:width$.decimals$}"),
                None => format!("{:>width$}", "-"),
            };
            let first = [0.5, 0.9, 0.99].map(|q| cell(quantile(&first, q).map(|time| time / 1e3), 11, 2));
            let steps = [0.5, 0.9, 0.99, 0.999].map(|q| cell(quantile(&steps, q), 11, 1));
            let batches: [String; BATCHES.len()] = std::array::from_fn(|size| {
                let (pair, _) = results.batches(index, size);
                cell(quantile(&pair.theirs, 0.5), 9, 1)
            });
            let memory = &results.growth[index];
            let growth: Vec<f64> = memory.cases.iter().copied().flatten().collect();
            let growth = (!growth.is_empty()).then(|| growth.iter().sum());
            let growth =
                [memory.vocabulary, growth].map(|kib: Option<f64>| cell(kib.map(|kib| kib / 1024.0), 10, 1));
            // A variant shows no counts, since it compiles the same grammars as its engine.
            let counts = match results.cases.iter().any(|case| case.outcomes[index].first_mask.is_some()) {
                true => format!("{:9}{:10}", counts.refused - counts.too_long, counts.too_long),
                false => format!("{:>9}{:>10}", "-", "-"),
            };
            println!(
                "  {:18}{engine:30}{}{}{}{}{counts}",
                results.vocabulary,
                first.concat(),
                steps.concat(),
                batches.concat(),
                growth.concat()
            );
        }
    }
}

/// The tables of regexes and schemas.
fn schemas(results: &Results) {
    first_masks(results);
    println!(
        "\nInstances of the schemas along which steps are timed; of a schema that is refused all are rejected\n"
    );
    instances(results, "schemas", |engine| Results::counts(engine, results.schemas()));
    println!("\nMasks along the texts that both accept, beside burn-dfa's\n");
    masks(results, |case| case.kind != Kind::Grammar);
    comparison(results, "Mask + apply + advance per token, batch 1, µs", |peer| {
        (results.steps(peer, true), "")
    });
    if results.cases.iter().any(|case| case.kind == Kind::Long) {
        let title = "The same without the schema of a long string";
        comparison(results, title, |peer| (results.steps(peer, false), ""));
    }
    for (size, rows) in BATCHES.iter().enumerate() {
        let title = format!("Mask + apply + advance per token, batch {rows}, µs per row");
        comparison(results, &title, |peer| {
            let (pair, on_all_cores) = results.batches(peer, size);
            (pair, if on_all_cores { ", all cores" } else { "" })
        });
    }
    memory(results);
}

/// The tables of context-free grammars.
fn grammars(results: &Results) {
    println!("\nGrammars: first mask, from the text of a grammar to masked logits, ms\n");
    each_grammar(results, |outcome| Some(outcome.time()? / 1e3));
    println!("\nGrammars: memory of a compiled one, KiB, as the engine says it\n");
    each_grammar(results, |outcome| Some(outcome.first_mask.as_ref()?.bytes? as f64 / 1024.0));
    comparison(results, "Grammars: first masks of those that burn-dfa and the peer compiled, µs", |peer| {
        (Results::first_masks(peer, results.grammars()), "")
    });
    println!("\nTexts of the grammars; of a grammar that is refused all are rejected\n");
    instances(results, "grammars", |engine| Results::counts(engine, results.grammars()));
    println!("\nMasks along the texts of grammars that both accept, beside burn-dfa's\n");
    masks(results, |case| case.kind == Kind::Grammar);
    let title = "Grammars: mask + apply + advance per token, batch 1, µs";
    comparison(results, title, |peer| (Results::steps_of(peer, results.grammars()), ""));
    for case in results.grammars() {
        comparison(results, &format!("{}: the same", case.name), |peer| {
            (Results::steps_of(peer, std::iter::once(case)), "")
        });
    }
}

/// A line per grammar, and a column per engine, without variants.
fn each_grammar(results: &Results, value: impl Fn(&Outcome) -> Option<f64>) {
    let engines: Vec<usize> =
        (0..results.engines.len()).filter(|&engine| !results.engines[engine].contains(',')).collect();
    let header: String = engines.iter().map(|&engine| format!("{:>21}", results.engines[engine])).collect();
    println!("  {:26}{header}", "");
    for case in results.grammars() {
        let cell = |&engine: &usize| match (&case.outcomes[engine], value(&case.outcomes[engine])) {
            (_, Some(value)) => format!("{value:21.2}"),
            (outcome, None) if outcome.refused() => format!("{:>21}", "refused"),
            _ => format!("{:>21}", "-"),
        };
        println!("  {:26}{}", case.name, engines.iter().map(cell).collect::<String>());
    }
}

/// Prints the reasons for missing masks and failed texts.
fn reasons(results: &Results) {
    println!("What was refused or rejected\n");
    for case in &results.cases {
        for (engine, outcome) in results.engines.iter().zip(&case.outcomes) {
            let refusal = outcome.first_mask.as_ref().and_then(|first| first.refusal.as_ref());
            if let Some(why) = refusal.or(outcome.failure.as_ref()) {
                let why: String = why.lines().next().unwrap_or_default().chars().take(100).collect();
                println!("  {:40} {engine:26} {why}", case.name);
            }
        }
    }
}

/// The first masks and refusals of each engine, then a comparison with burn-dfa on the schemas that
/// both compiled.
fn first_masks(results: &Results) {
    println!(
        "\nFirst mask: from the text of a schema to masked logits, µs, with the schemas that have none\n"
    );
    println!("  {:30}{:>8}{:>10}{}", "", "refused", "too long", header());
    for (index, engine) in results.engines.iter().enumerate() {
        let (times, counts) = (results.own_first_masks(index), Results::counts(index, results.schemas()));
        if !times.is_empty() {
            let (refused, too_long) = (counts.refused - counts.too_long, counts.too_long);
            println!("  {engine:30}{refused:8}{too_long:10}{}", quantiles(&times, 0));
        }
    }
    comparison(results, "The same, of the schemas that burn-dfa and the peer compiled", |peer| {
        (Results::first_masks(peer, results.schemas()), "")
    });
}

/// The results for instances of the cases with steps. `kinds` names these cases in the table.
fn instances(results: &Results, kinds: &str, counts: impl Fn(usize) -> Counts) {
    let header = [kinds, "refused", "valid", "rejected", "too long", "invalid", "accepted"];
    println!("  {:30}{}", "", header.map(|name| format!("{name:>10}")).concat());
    for (index, engine) in results.engines.iter().enumerate() {
        // Variants and Python peers read no invalid instances.
        let counts = counts(index);
        if counts.invalid > 0 {
            let row = [
                counts.step_schemas,
                counts.step_refused,
                counts.valid,
                counts.valid_rejected,
                counts.valid_late,
                counts.invalid,
                counts.invalid_accepted,
            ];
            println!("  {engine:30}{}", row.map(|count| format!("{count:10}")).concat());
        }
    }
}

/// Compares the masks of each engine with burn-dfa's, in the cases that `which` selects.
fn masks(results: &Results, which: fn(&Measured) -> bool) {
    println!("  {:38}{:>8}{:>8}{:>8}", "", "equal", "wider", "other");
    for (index, engine) in results.engines.iter().enumerate().skip(1) {
        let sum = |count: fn(&Outcome) -> usize| {
            let cases = results.cases.iter().filter(|case| which(case));
            cases.map(|case| count(&case.outcomes[index])).sum::<usize>()
        };
        let [equal, wider, other] = [sum(|o| o.equal), sum(|o| o.wider), sum(|o| o.other)];
        if equal + wider + other > 0 {
            println!("  {engine:38}{equal:8}{wider:8}{other:8}");
        }
    }
}

/// The quantiles of burn-dfa and of each peer on common work, and their ratios.
fn comparison(results: &Results, title: &str, pair: impl Fn(usize) -> (Pair, &'static str)) {
    println!("\n{title}\n");
    println!("  {:38}{:>8}{}", "", "of", header());
    line("burn-dfa", &pair(0).0.ours, 1);
    for (peer, engine) in results.engines.iter().enumerate().skip(1) {
        let (pair, mode) = pair(peer);
        if pair.is_empty() {
            continue;
        }
        line(&format!("{engine}{mode}"), &pair.theirs, 1);
        let ratio = |q: f64| Some(quantile(&pair.ours, q)? / quantile(&pair.theirs, q)?);
        println!("  {:46}{}", "  burn-dfa ÷ it, on the same", cells(ratio, 3));
    }
}

fn line(name: &str, values: &[f64], decimals: usize) {
    println!("  {name:38}{:8}{}", values.len(), quantiles(values, decimals));
}

fn header() -> String {
    QUANTILES.iter().map(|(name, _)| format!("{name:>10}")).collect()
}

fn quantiles(values: &[f64], decimals: usize) -> String {
    cells(|q| quantile(values, q), decimals)
}

/// A cell per quantile; a dash if there are too few values.
fn cells(value: impl Fn(f64) -> Option<f64>, decimals: usize) -> String {
    let cell = |(_, q): &(&str, f64)| match value(*q) {
        Some(value) => format!("{value:10.decimals$}"),
        None => format!("{:>10}", "-"),
    };
    QUANTILES.iter().map(cell).collect()
}

/// The bytes of compiled schemas, as the engines report them.
fn memory(results: &Results) {
    println!("\nMemory of a compiled schema, KiB, as the engine says it\n");
    println!("  {:38}{:>8}{}", "", "of", header());
    for (index, engine) in results.engines.iter().enumerate() {
        let bytes: Vec<f64> = results.bytes(index).iter().map(|bytes| bytes / 1024.0).collect();
        if !bytes.is_empty() {
            line(engine, &bytes, 0);
        }
    }
    println!(
        "\nGrowth of resident memory over the cases with steps, compiled, walked and kept, the median of {PROCESSES} processes, KiB;"
    );
    println!("apart from it what the engine prepared of the vocabulary alone\n");
    println!("  {:38}{:>8}{:>10}{:>10}{:>12}", "", "of", "sum", "max", "vocabulary");
    for (engine, memory) in results.engines.iter().zip(&results.growth) {
        let growth: Vec<f64> = memory.cases.iter().copied().flatten().collect();
        if growth.is_empty() {
            continue;
        }
        let (sum, max) = (growth.iter().sum::<f64>(), growth.iter().copied().fold(0.0, f64::max));
        let vocabulary = memory.vocabulary.unwrap_or_default();
        println!("  {engine:38}{:8}{sum:10.0}{max:10.0}{vocabulary:12.0}", growth.len());
    }
}
