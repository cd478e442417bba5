//! Markdown tables of the savings of drafters.

use std::time::{Duration, Instant};

use burn_dfa::generation::speculative::{Drafter, SpeculativeOutput, speculate};
use burn_dfa::generation::{GenerationConfig, Output, Request, generate};
use burn_dfa_tiny::generator::{Example, Generator, Kind, Split};
use serde_json::Value;

use super::{Args, Pair, Result};

/// Rows at a time in untimed runs.
const ROWS: usize = 20;

pub(crate) fn measure(pair: &Pair, args: &Args) -> Result<()> {
    let generator = Generator::new(2);
    let examples: Vec<_> = (0..args.prompts).map(|index| generator.example(Split::HeldOut, index)).collect();
    let runs = drafters(pair, args, &examples)? + masks(pair, args, &examples)?;
    println!(
        "\nAll {runs} outputs were valid and complete within their budgets. The greedy outputs have\n\
         the tokens that `generate` writes."
    );
    Ok(())
}

/// Measures all drafters, greedily, one prompt at a time; returns the number of outputs.
fn drafters(pair: &Pair, args: &Args, examples: &[Example]) -> Result<usize> {
    let requests =
        examples.iter().map(|example| pair.request(example, example.kind)).collect::<Result<Vec<_>>>()?;
    println!(
        "{} prompts, one at a time, {} draft tokens a call, up to {} forced tokens more, greedy\n",
        requests.len(),
        args.drafts,
        args.run
    );
    println!(
        "| drafter | tokens a call | calls a token | tokens/s | fields right |\n|---|---:|---:|---:|---:|"
    );

    let (model, config) = (pair.pretrained.model(), GenerationConfig::new());
    let started = Instant::now();
    let plain = plain(pair, &requests, &config, 1)?;
    let tokens: usize = plain.iter().map(|output| output.tokens.len()).sum();
    row("none: `generate`", tokens, tokens, started.elapsed(), fields(examples, plain.iter()));

    let drafters = pair.drafters(args)?;
    let count = drafters.len() * requests.len();
    for (name, mut drafter) in drafters {
        let mut rows: Vec<SpeculativeOutput> = Vec::with_capacity(requests.len());
        let started = Instant::now();
        for request in &requests {
            let one = std::slice::from_ref(request);
            rows.extend(speculate(model, &pair.vocabulary, one, &config, &mut drafter)?);
        }
        let elapsed = started.elapsed();
        check(name, &requests, &rows, Some(&plain));
        let calls = rows.iter().map(|row| row.calls).sum();
        row(name, tokens, calls, elapsed, fields(examples, rows.iter().map(|row| &row.output)));
    }
    Ok(count)
}

/// Measures the tokens per call of the draft model, constrained and unconstrained; returns the
/// number of outputs.
fn masks(pair: &Pair, args: &Args, examples: &[Example]) -> Result<usize> {
    println!(
        "\nThe same prompts under the schema of their kind, and under that of another, {} draft tokens a call\n",
        args.drafts
    );
    println!("| schema | tokens | masked: tokens a call | unmasked |\n|---|---|---:|---:|");
    let mut count = 0;
    for shift in [0, 1] {
        let other = |kind: Kind| Kind::ALL[(kind as usize + shift) % Kind::ALL.len()];
        let requests = examples.iter().zip(0..);
        let requests =
            requests.map(|(example, seed)| Ok(pair.request(example, other(example.kind))?.with_seed(seed)));
        let requests = requests.collect::<Result<Vec<_>>>()?;
        for temperature in [None, Some(1.0)] {
            let config = GenerationConfig::new().with_temperature(temperature);
            let plain = match temperature {
                None => Some(plain(pair, &requests, &config, ROWS)?),
                Some(_) => None,
            };
            let mut figures = Vec::new();
            for masked in [true, false] {
                let drafter = pair.draft_model(args.drafts);
                let mut drafter: Box<dyn Drafter> =
                    Box::new(if masked { drafter } else { drafter.unmasked() });
                let mut rows = Vec::with_capacity(requests.len());
                for some in requests.chunks(ROWS) {
                    let model = pair.pretrained.model();
                    rows.extend(speculate(model, &pair.vocabulary, some, &config, &mut drafter)?);
                }
                check("draft model", &requests, &rows, plain.as_deref());
                let tokens: usize = rows.iter().map(|row| row.output.tokens.len()).sum();
                let calls: usize = rows.iter().map(|row| row.calls).sum();
                figures.push(tokens as f64 / calls as f64);
                count += rows.len();
            }
            let schema = if shift == 0 { "its own" } else { "another kind's" };
            let drawn = temperature.map_or("likeliest".into(), |value| format!("drawn at {value:.1}"));
            println!("| {schema} | {drawn} | {:.2} | {:.2} |", figures[0], figures[1]);
        }
    }
    Ok(count)
}

/// Outputs without speculation, `rows` at a time.
fn plain(pair: &Pair, requests: &[Request], config: &GenerationConfig, rows: usize) -> Result<Vec<Output>> {
    let mut outputs = Vec::with_capacity(requests.len());
    for some in requests.chunks(rows) {
        let model = pair.pretrained.model();
        outputs.extend(generate(model, &pair.vocabulary, some, config)?);
    }
    Ok(outputs)
}

/// Checks that outputs are valid, complete within their budgets and, if `plain` is given, equal.
fn check(name: &str, requests: &[Request], rows: &[SpeculativeOutput], plain: Option<&[Output]>) {
    assert_eq!(requests.len(), rows.len());
    for (index, (request, row)) in requests.iter().zip(rows).enumerate() {
        let text = row.output.text();
        assert!(
            row.output.is_complete() && row.output.tokens.len() <= request.max_new_tokens,
            "{name}: {text}"
        );
        assert!(
            request.constraint.as_ref().is_some_and(|constraint| constraint.accepts(&row.output.tokens)),
            "{name}: {text}"
        );
        if let Some(plain) = plain {
            assert_eq!(row.output.tokens, plain[index].tokens, "{name}: {text}");
        }
    }
}

/// The fraction of correct fields of all records.
fn fields<'a>(examples: &[Example], outputs: impl Iterator<Item = &'a Output>) -> f64 {
    let (mut right, mut all) = (0u32, 0u32);
    for (example, output) in examples.iter().zip(outputs) {
        let [expected, found] = [&example.record, &output.text()]
            .map(|text| serde_json::from_str::<Value>(text).unwrap_or_default());
        for (name, value) in expected.as_object().into_iter().flatten() {
            right += u32::from(found.get(name) == Some(value));
            all += 1;
        }
    }
    f64::from(right) / f64::from(all.max(1))
}

fn row(name: &str, tokens: usize, calls: usize, elapsed: Duration, fields: f64) {
    let (tokens, calls) = (tokens as f64, calls as f64);
    println!(
        "| {name} | {:.2} | {:.3} | {:.0} | {:.1} % |",
        tokens / calls,
        calls / tokens,
        tokens / elapsed.as_secs_f64(),
        100.0 * fields
    );
}
