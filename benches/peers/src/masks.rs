//! Masks in the memory of the host, without a device and without other engines: first and later
//! visits of each position.

use std::time::Instant;

use burn_dfa::constraint::{JsonOptions, StructuralTag, Whitespace};
use burn_dfa::tokens::RowPosition;
use burn_dfa::{CompiledConstraint, Constraint, Limits, Masker, Result, TokenId};

use crate::cases::{Case, Kind};
use crate::engines::Grammar;
use crate::measure::microseconds;
use crate::statistics::{QUANTILES, median, medians, quantile};
use crate::tokens::Tokens;

/// The texts of a case that are walked.
const TEXTS: usize = 2;

/// Maximum number of steps of a text.
const STEPS: usize = 2_000;

/// Prints the quantiles of all schemas of MaskBench and all grammars over one vocabulary.
pub fn print(cases: &[Case], tokens: &Tokens, runs: usize) {
    tokens.vocabulary.prepare();
    let (mut first, mut later, mut first_masks) = (Vec::new(), Vec::new(), Vec::new());
    for case in cases.iter().filter(|case| matches!(case.kind, Kind::Row | Kind::Grammar)) {
        let Ok(constraint) = constraint(&case.grammar) else { continue };
        let compile = || CompiledConstraint::compile(&constraint, &tokens.vocabulary, &Limits::default());
        let Ok(compiled) = compile() else { continue };
        let texts = texts(case, tokens, &compiled);
        let (mut times, mut passes) = (Vec::new(), [Vec::new(), Vec::new()]);
        for _ in 0..runs {
            let start = Instant::now();
            let Ok(compiled) = compile() else { continue };
            let masker = Masker::new(&compiled);
            masker.tokens(&RowPosition::unlimited(compiled.start()));
            times.push(microseconds(start.elapsed()));
            for (pass, walked) in passes.iter_mut().zip(walk(&masker, &texts)) {
                pass.push(walked);
            }
        }
        first_masks.push(median(&times));
        let [one, other] = passes;
        first.extend(medians(&one));
        later.extend(medians(&other));
    }
    println!("\n# Masks on the host, {}, {} ids\n", tokens.name, tokens.vocab_size());
    println!("| µs | count | {} |", QUANTILES.map(|(name, _)| name).join(" | "));
    println!("|---|---:|{}", "---:|".repeat(QUANTILES.len()));
    for (name, values) in
        [("first visits", &first), ("later visits", &later), ("compilation and first mask", &first_masks)]
    {
        let cells = QUANTILES
            .map(|(_, of)| quantile(values, of).map_or(String::new(), |value| format!("{value:.2}")));
        println!("| {name} | {} | {} |", values.len(), cells.join(" | "));
    }
}

/// The constraint of a case, for compact JSON.
///
/// # Errors
/// If burn-dfa refuses the constraint.
pub fn constraint(grammar: &Grammar) -> Result<Constraint> {
    match grammar {
        Grammar::Regex(regex) => Constraint::regex(regex),
        Grammar::Schema(schema) => {
            let compact = JsonOptions::new().with_whitespace(Whitespace::Compact);
            Constraint::json_schema_from_str_with(schema, &compact)
        }
        Grammar::ContextFree { syntax, text, .. } => Constraint::grammar(*syntax, text),
        Grammar::Tools { tag, .. } => Constraint::structural_tag(&StructuralTag::read(tag)?),
    }
}

/// The first valid texts of a case that the constraint accepts, as tokens.
pub fn texts(case: &Case, tokens: &Tokens, compiled: &CompiledConstraint) -> Vec<Vec<u32>> {
    let texts = case.valid.iter().filter_map(|texts| tokens.encode(texts.first()?)).take(TEXTS);
    texts.filter(|text| accepts(compiled, text)).collect()
}

fn accepts(compiled: &CompiledConstraint, text: &[u32]) -> bool {
    let mut position = RowPosition::unlimited(compiled.start());
    text.iter().take(STEPS).all(|&token| {
        position = compiled.after(&position, TokenId(token));
        compiled.can_end(&position)
    })
}

/// The time of the mask at each position of the texts, in microseconds: on the first pass, then on
/// the second.
pub fn walk(masker: &Masker, texts: &[Vec<u32>]) -> [Vec<f64>; 2] {
    [(); 2].map(|()| {
        let mut times = Vec::new();
        for text in texts {
            let mut position = RowPosition::unlimited(masker.constraint().start());
            for &token in text.iter().take(STEPS) {
                position = masker.constraint().after(&position, TokenId(token));
                let start = Instant::now();
                std::hint::black_box(masker.legal(&position));
                times.push(microseconds(start.elapsed()));
            }
        }
        times
    })
}
