//! The held-out evaluation of records: decoding of unseen prompts, with and without constraints.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Instant;

use burn_dfa::{CompiledConstraint, Constraint, Limits};
use burn_dfa_decoder::{Message, Pretrained};
use serde_json::Value;

use super::Error;
use super::decode::{Prompt, decode};
use crate::generator::{Example, Generator, Kind, Split};
use crate::schemas::schema;

/// Number of wrong outputs that are printed for each setting.
const PRINTED: usize = 5;

/// The constraint of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No constraint.
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
            Mode::Schema => Some(of(kind.name())?.constraint()?),
            Mode::AnySchema => Some(of("any")?.constraint()?),
        })
    }
}

/// The numbers of outputs with each property.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    /// Outputs.
    pub outputs: usize,
    /// Valid JSON.
    pub json: usize,
    /// Valid under the requested schema.
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

/// A setting for decoding all prompts.
#[derive(Debug, Clone, Copy)]
struct Setting {
    mode: Mode,
    /// Greedy if `None`.
    temperature: Option<f32>,
    /// Whether the constraint is for another kind than the kind of the sentence.
    astray: bool,
}

impl Setting {
    /// The kind whose schema the output is checked against.
    fn target(self, kind: Kind) -> Kind {
        match (self.astray, kind) {
            (false, kind) => kind,
            (true, Kind::Person) => Kind::Order,
            (true, Kind::Order) => Kind::Event,
            (true, Kind::Event) => Kind::Team,
            (true, Kind::Team) => Kind::Person,
        }
    }
}

/// Decodes `count` held-out examples: greedily in every mode, sampled at a high temperature, and
/// under the schema of another kind. Returns markdown tables of the results.
pub fn evaluate(pretrained: &Pretrained, seed: u64, count: u64) -> Result<String, Error> {
    let generator = Generator::new(seed);
    let examples: Vec<Example> = (0..count).map(|index| generator.example(Split::HeldOut, index)).collect();
    let judges = Judges::new()?;

    let mut text = String::from(HEADER);
    for mode in Mode::ALL {
        let setting = Setting { mode, temperature: None, astray: false };
        let scores = judges.run(pretrained, setting, &examples)?;
        let mut all = Score::default();
        for kind in Kind::ALL {
            let score = scores.get(&kind).copied().unwrap_or_default();
            row(&mut text, mode.title(), kind.name(), score)?;
            all.add(score);
        }
        row(&mut text, mode.title(), "**all**", all)?;
    }

    text.push('\n');
    text.push_str(HEADER);
    for (title, temperature, astray) in
        [("temperature 1.5", Some(1.5), false), ("greedy, of another kind", None, true)]
    {
        for mode in [Mode::Free, Mode::Regex, Mode::Schema] {
            let scores = judges.run(pretrained, Setting { mode, temperature, astray }, &examples)?;
            let mut all = Score::default();
            scores.into_values().for_each(|score| all.add(score));
            row(&mut text, &format!("{title}: {}", mode.title()), "**all**", all)?;
        }
    }
    Ok(text)
}

const HEADER: &str = "| decoding | kind | prompts | valid JSON | schema-valid | all fields right |\n\
    |---|---|---:|---:|---:|---:|\n";

/// Checks outputs.
struct Judges {
    validators: HashMap<Kind, jsonschema::Validator>,
}

impl Judges {
    fn new() -> Result<Self, Error> {
        Ok(Self { validators: validators()? })
    }

    /// The scores of one setting by kind of sentence. Prints some of the wrong outputs.
    fn run(
        &self,
        pretrained: &Pretrained,
        setting: Setting,
        examples: &[Example],
    ) -> Result<HashMap<Kind, Score>, Error> {
        let start = Instant::now();
        let outputs = outputs(pretrained, setting, examples)?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{setting:?}: {seconds:.1} s");
        let mut scores: HashMap<Kind, Score> = HashMap::new();
        let mut printed = 0;
        for (example, output) in examples.iter().zip(&outputs) {
            let score = judge(example, output, &self.validators[&setting.target(example.kind)])?;
            scores.entry(example.kind).or_default().add(score);
            if score.right == 0 && printed < PRINTED {
                println!("{}\n  wanted {}\n  got    {output}", example.prompt, example.record);
                printed += 1;
            }
        }
        Ok(scores)
    }
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

fn outputs(pretrained: &Pretrained, setting: Setting, examples: &[Example]) -> Result<Vec<String>, Error> {
    let vocabulary = pretrained.vocabulary();
    let limits = Limits::default();
    let mut compiled: HashMap<Kind, CompiledConstraint> = HashMap::new();
    for kind in Kind::ALL {
        if let Some(constraint) = setting.mode.constraint(setting.target(kind))? {
            compiled.insert(kind, CompiledConstraint::compile(&constraint, vocabulary, &limits)?);
        }
    }
    let prompts: Result<Vec<_>, Error> = examples
        .iter()
        .map(|example| {
            let tokens = pretrained.encode_chat(&[Message::user(example.prompt.as_str())])?;
            Ok(Prompt { tokens, constraint: compiled.get(&example.kind) })
        })
        .collect();
    decode(pretrained, prompts?, setting.temperature)
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

fn row(table: &mut String, title: &str, kind: &str, score: Score) -> Result<(), Error> {
    let percent = |part: usize| format!("{:.1} %", 100.0 * part as f64 / score.outputs.max(1) as f64);
    writeln!(
        table,
        "| {title} | {kind} | {} | {} | {} | {} |",
        score.outputs,
        percent(score.json),
        percent(score.schema),
        percent(score.right),
    )?;
    Ok(())
}
