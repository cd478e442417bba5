//! The demonstration: compares the embedded model unconstrained and constrained.

use std::time::Instant;

use anstream::println;
use anstyle::{AnsiColor, Style};
use burn_dfa::cli::Failure;
use burn_dfa::generation::{GenerationConfig, Output, Request, generate};
use burn_dfa::{CompiledConstraint, Constraint, Limits, TokenId};
use burn_dfa_decoder::Pretrained;
use burn_dfa_decoder::cli::GenerateArgs;
use serde_json::Value;

const BOLD: Style = Style::new().bold();
const DIM: Style = AnsiColor::BrightBlack.on_default();
const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// The verdict on an output that satisfies its schema.
const FITS: &str = "fits the schema";

/// Sentences and the schemas of their records. The last two differ from the training data of the
/// model.
const PROMPTS: [(&str, &str); 4] = [
    ("person", "Meet Nora Keller, a 34 year old baker from Lisbon."),
    ("event", "The concert in Vienna starts at 19:30 on 2027-05-17."),
    ("person", "zzz 99 ??? hello hello hello"),
    ("order", "{\"item\": \"a trap\", \"quantity\": \"many\"}"),
];

/// Runs the demonstration.
pub fn run(args: &GenerateArgs, pretrained: &Pretrained) -> Result<(), Failure> {
    let vocabulary = pretrained.vocabulary();
    let weights = burn_dfa_tiny::WEIGHTS.len() as f64 / 1e6;
    println!("{BOLD}The embedded model ({weights:.1} MB), greedy, with and without a constraint{BOLD:#}\n");
    let mut totals = [Total::default(), Total::default()];
    for (name, prompt) in PROMPTS {
        let schema = burn_dfa_tiny::schema(name).ok_or_else(|| format!("no schema {name}"))?;
        let constraint = schema.constraint()?;
        let compiled = CompiledConstraint::compile(&constraint, vocabulary, &Limits::default())?;
        println!("{CYAN}{prompt}{CYAN:#} {DIM}→ {name}{DIM:#}");
        let prompt = pretrained.prompt(prompt)?;
        for (label, compiled, total) in [("unconstrained", None, 0usize), ("constrained", Some(&compiled), 1)]
        {
            let total = &mut totals[total];
            let (output, seconds) = one(args, pretrained, &prompt, compiled)?;
            let text = output.text();
            let (verdict, style) = match serde_json::from_str(&text) {
                Err(_) => ("not JSON", RED),
                Ok(value) if fits(&constraint, &value)? => (FITS, GREEN),
                Ok(_) => ("breaks the schema", RED),
            };
            total.add(verdict == FITS, &output, seconds);
            let line = text.replace('\n', "\\n");
            println!("  {label:13} {style}{verdict:17}{style:#} {line}");
        }
        println!();
    }
    for (label, total) in ["unconstrained", "constrained"].into_iter().zip(totals) {
        println!(
            "{BOLD}{label:13}{BOLD:#} {} of {} fit their schema, {:.0} tokens/s",
            total.fitting,
            PROMPTS.len(),
            total.tokens as f64 / total.seconds
        );
    }
    Ok(())
}

/// Whether a value satisfies the schema, in any spelling.
fn fits(constraint: &Constraint, value: &Value) -> Result<bool, Failure> {
    let text = constraint.json_text(value, &Limits::default())?;
    Ok(text.is_some_and(|(_, is_member)| is_member))
}

#[derive(Default)]
struct Total {
    fitting: usize,
    tokens: usize,
    seconds: f64,
}

impl Total {
    fn add(&mut self, fits: bool, output: &Output, seconds: f64) {
        self.fitting += usize::from(fits);
        self.tokens += output.tokens.len();
        self.seconds += seconds;
    }
}

fn one(
    args: &GenerateArgs,
    pretrained: &Pretrained,
    prompt: &[TokenId],
    constraint: Option<&CompiledConstraint>,
) -> Result<(Output, f64), Failure> {
    let request = Request {
        constraint: constraint.cloned(),
        ..Request::new(prompt.to_vec(), args.sampling.max_tokens)
    };
    let started = Instant::now();
    let (model, vocabulary) = (pretrained.model(), pretrained.vocabulary());
    let mut outputs = generate(model, vocabulary, &[request], &GenerationConfig::new())?;
    let output = outputs.pop().ok_or("a batch of one row gives one output")?;
    Ok((output, started.elapsed().as_secs_f64()))
}
