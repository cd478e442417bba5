//! The held-out evaluation: greedy decoding of unseen prompts, free and under constraints.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::Instant;

use burn_dfa::generation::{Options, Request, generate};
use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
use burn_dfa_llama::{Llama, Message, Pretrained};
use indicatif::ProgressBar;
use serde_json::Value;

use super::Error;
use crate::generator::{Example, Generator, Kind, Split};
use crate::schemas::schema;

/// Prompts decoded together.
const ROWS: usize = 32;

/// The longest record has about 50 tokens.
const MAX_TOKENS: usize = 96;

/// What the output is constrained by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Free,
    /// The regex of the example's kind.
    Regex,
    /// The JSON schema of the example's kind.
    Schema,
    /// The schema that admits every kind.
    AnySchema,
}

impl Mode {
    /// All modes, in the order of the table.
    pub const ALL: [Mode; 4] = [Mode::Free, Mode::Regex, Mode::Schema, Mode::AnySchema];

    fn title(self) -> &'static str {
        match self {
            Mode::Free => "unconstrained",
            Mode::Regex => "regex of the kind",
            Mode::Schema => "schema of the kind",
            Mode::AnySchema => "schema `any`",
        }
    }

    fn constraint(self, kind: Kind) -> Result<Option<Constraint>, Error> {
        let of = |name| schema(name).ok_or_else(|| format!("no schema {name}"));
        Ok(match self {
            Mode::Free => None,
            Mode::Regex => {
                let regex = of(kind.name())?.regex.ok_or("a kind without a regex")?;
                Some(Constraint::regex(regex)?)
            }
            Mode::Schema => Some(Constraint::json_schema(serde_json::from_str(of(kind.name())?.json)?)?),
            Mode::AnySchema => Some(Constraint::json_schema(serde_json::from_str(of("any")?.json)?)?),
        })
    }
}

/// How many outputs had which property.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    /// Outputs.
    pub outputs: usize,
    /// Valid JSON.
    pub json: usize,
    /// Valid under the schema of the example's kind.
    pub schema: usize,
    /// Equal to the record in every field.
    pub right: usize,
}

impl Score {
    fn add(&mut self, other: Score) {
        self.outputs += other.outputs;
        self.json += other.json;
        self.schema += other.schema;
        self.right += other.right;
    }
}

/// Decodes `count` held-out examples in every mode; returns a markdown table of the results.
pub fn evaluate(pretrained: &Pretrained, seed: u64, count: u64) -> Result<String, Error> {
    let generator = Generator::new(seed);
    let examples: Vec<Example> = (0..count).map(|index| generator.example(Split::HeldOut, index)).collect();
    let vocabulary = vocabulary(pretrained)?;
    let validators = validators()?;

    let mut table = String::from(
        "| decoding | kind | prompts | valid JSON | schema-valid | all fields right |\n\
         |---|---|---:|---:|---:|---:|\n",
    );
    let mut wrong = String::new();
    let bar = ProgressBar::new(count * Mode::ALL.len() as u64);
    for mode in Mode::ALL {
        let start = Instant::now();
        let outputs = decode(pretrained, &vocabulary, mode, &examples, &bar)?;
        let seconds = start.elapsed().as_secs_f64();
        let mut scores: HashMap<Kind, Score> = HashMap::new();
        for (example, output) in examples.iter().zip(&outputs) {
            let score = judge(example, output, &validators[&example.kind])?;
            scores.entry(example.kind).or_default().add(score);
            if mode == Mode::Schema && score.right == 0 && wrong.lines().count() < 30 {
                writeln!(wrong, "{}\n  wanted {}\n  got    {output}", example.prompt, example.record)?;
            }
        }
        let mut all = Score::default();
        for kind in Kind::ALL {
            let score = scores.get(&kind).copied().unwrap_or_default();
            row(&mut table, mode, kind.name(), score)?;
            all.add(score);
        }
        row(&mut table, mode, "**all**", all)?;
        println!("{}: {seconds:.1} s", mode.title());
    }
    bar.finish_and_clear();
    print!("{wrong}");
    Ok(table)
}

/// The vocabulary of the tokenizer with the tokens that end a record.
fn vocabulary(pretrained: &Pretrained) -> Result<Vocabulary, Error> {
    let end = pretrained.eos().iter().map(|id| TokenId(*id));
    Ok(Vocabulary::from_tokenizer_json(pretrained.tokenizer_json())?.with_eos(end)?)
}

fn validators() -> Result<HashMap<Kind, jsonschema::Validator>, Error> {
    let mut validators = HashMap::new();
    for kind in Kind::ALL {
        let text = schema(kind.name()).ok_or("a kind without a schema")?.json;
        let validator =
            jsonschema::validator_for(&serde_json::from_str(text)?).map_err(|error| error.to_string())?;
        validators.insert(kind, validator);
    }
    Ok(validators)
}

fn decode(
    pretrained: &Pretrained,
    vocabulary: &Vocabulary,
    mode: Mode,
    examples: &[Example],
    bar: &ProgressBar,
) -> Result<Vec<String>, Error> {
    let limits = Limits::default();
    let mut tables: HashMap<Kind, TokenTable> = HashMap::new();
    for kind in Kind::ALL {
        if let Some(constraint) = mode.constraint(kind)? {
            let table = TokenTable::compile(&constraint, vocabulary, &limits)?;
            tables.insert(kind, table);
        }
    }
    let model: &Llama = pretrained.model();
    let mut outputs = Vec::with_capacity(examples.len());
    for rows in examples.chunks(ROWS) {
        let mut requests = Vec::with_capacity(rows.len());
        for example in rows {
            let prompt = pretrained.encode_chat(&[Message::user(example.prompt.as_str())])?;
            let prompt = prompt.into_iter().map(TokenId).collect();
            let request = Request::new(prompt, MAX_TOKENS);
            requests.push(match tables.get(&example.kind) {
                Some(table) => request.with_table(table),
                None => request,
            });
        }
        let options = Options::default();
        let batch = generate(model, vocabulary, &requests, &options, |_| ControlFlow::Continue(()))?;
        outputs.extend(batch.iter().map(|output| output.text()));
        bar.inc(rows.len() as u64);
    }
    Ok(outputs)
}

fn judge(example: &Example, output: &str, validator: &jsonschema::Validator) -> Result<Score, Error> {
    let wanted: Value = serde_json::from_str(&example.record)?;
    let parsed: Option<Value> = serde_json::from_str(output).ok();
    Ok(Score {
        outputs: 1,
        json: usize::from(parsed.is_some()),
        schema: usize::from(parsed.as_ref().is_some_and(|value| validator.is_valid(value))),
        right: usize::from(parsed.is_some_and(|value| value == wanted)),
    })
}

fn row(table: &mut String, mode: Mode, kind: &str, score: Score) -> Result<(), Error> {
    let percent = |part: usize| format!("{:.1} %", 100.0 * part as f64 / score.outputs.max(1) as f64);
    writeln!(
        table,
        "| {} | {kind} | {} | {} | {} | {} |",
        mode.title(),
        score.outputs,
        percent(score.json),
        percent(score.schema),
        percent(score.right),
    )?;
    Ok(())
}
