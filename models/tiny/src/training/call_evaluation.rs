//! The held-out evaluation of tool calls: whether the model calls if it should, the right tool,
//! with the right arguments.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::time::Instant;

use burn_dfa::constraint::{Expression, Grammar, JsonOptions};
use burn_dfa::{CompiledConstraint, Constraint, Limits};
use burn_dfa_decoder::{Message, Pretrained};
use serde_json::Value;

use super::Error;
use super::decode::{Prompt, decode};
use crate::generator::{
    AnswerExample, CALL_ARGUMENTS, CALL_END, CALL_START, CallExample, Generator, NO_TOOL, Split,
};
use crate::load::WHITESPACE;
use crate::tools::{Tool, tools};

/// Number of wrong outputs that are printed for each setting.
const PRINTED: usize = 8;

/// The constraint of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallMode {
    /// No constraint.
    Free,
    /// A call of a tool on offer, or a text without `<`.
    Auto,
    /// A call of a tool on offer.
    Required,
}

impl CallMode {
    /// All modes, in the order of the tables.
    pub const ALL: [CallMode; 3] = [CallMode::Free, CallMode::Auto, CallMode::Required];

    fn title(self) -> &'static str {
        match self {
            CallMode::Free => "unconstrained",
            CallMode::Auto => "call or text",
            CallMode::Required => "call",
        }
    }

    fn constraint(self, offered: &[&Tool]) -> Result<Option<Constraint>, Error> {
        let mut choices = Vec::with_capacity(offered.len() + 1);
        let options = JsonOptions::new().with_whitespace(WHITESPACE);
        for tool in offered {
            let before = format!("{CALL_START}{}{CALL_ARGUMENTS}", tool.name);
            choices.push(Expression::sequence([
                Expression::literal(&before),
                Expression::constraint(Constraint::json_schema_with(tool.parameters(), &options)?),
                Expression::literal(CALL_END),
            ]));
        }
        match self {
            CallMode::Free => return Ok(None),
            CallMode::Auto => choices.push(Expression::constraint(Constraint::regex("[^<]+")?)),
            CallMode::Required => {}
        }
        let mut builder = Grammar::builder();
        builder.define("answer", Expression::choice(choices))?;
        Ok(Some(Constraint::from_grammar(builder.finish("answer")?)))
    }
}

/// The numbers of outputs with each property.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallScore {
    /// Outputs.
    pub outputs: usize,
    /// Outputs that begin a call.
    pub calls: usize,
    /// Calls of a tool on offer with arguments that its schema admits.
    pub valid: usize,
    /// Calls of the right tool.
    pub tool: usize,
    /// Calls of the right tool with the right arguments, or the right text if no call is wanted.
    pub right: usize,
}

impl CallScore {
    fn add(&mut self, other: CallScore) {
        self.outputs += other.outputs;
        self.calls += other.calls;
        self.valid += other.valid;
        self.tool += other.tool;
        self.right += other.right;
    }

    /// The share of `part` in the outputs.
    fn percent(&self, part: usize) -> String {
        format!("{:.1} %", 100.0 * part as f64 / self.outputs.max(1) as f64)
    }
}

/// Decodes `count` held-out sentences that ask for a tool on offer and `count` that do not:
/// greedily in every mode and sampled at a high temperature. Returns markdown tables of the
/// results.
pub fn evaluate_calls(pretrained: &Pretrained, seed: u64, count: usize) -> Result<String, Error> {
    let generator = Generator::new(seed);
    let examples = |asks: bool| -> Vec<CallExample> {
        (0..)
            .map(|index| generator.call_example(Split::HeldOut, index))
            .filter(|example| example.call.is_some() == asks)
            .take(count)
            .collect()
    };
    let judge = Judge::new(pretrained)?;
    let (asking, others) = (examples(true), examples(false));

    let mut text = String::from(
        "| decoding | prompts | calls | valid calls | right tool | right arguments |\n|---|---:|---:|---:|---:|---:|\n",
    );
    let mut by_tool = HashMap::new();
    for (title, temperature) in [("greedy", None), ("temperature 1.5", Some(1.5))] {
        for mode in CallMode::ALL {
            let scores = judge.run(mode, temperature, &asking)?;
            calls_row(&mut text, &format!("{title}: {}", mode.title()), total(&scores))?;
            if temperature.is_none() && mode == CallMode::Required {
                by_tool = scores;
            }
        }
    }

    text.push_str("\n| tool | prompts | calls | valid calls | right tool | right arguments |\n|---|---:|---:|---:|---:|---:|\n");
    for tool in tools() {
        calls_row(
            &mut text,
            &format!("`{}`", tool.name),
            by_tool.get(tool.name).copied().unwrap_or_default(),
        )?;
    }

    text.push_str("\n| decoding | sentence | prompts | calls | right text |\n|---|---|---:|---:|---:|\n");
    for mode in [CallMode::Free, CallMode::Auto] {
        let scores = judge.run(mode, None, &others)?;
        for kind in [OTHER_TOOL, SMALL_TALK] {
            let score = scores.get(kind).copied().unwrap_or_default();
            let (calls, right) = (score.percent(score.calls), score.percent(score.right));
            writeln!(text, "| {} | {kind} | {} | {calls} | {right} |", mode.title(), score.outputs)?;
        }
    }

    let examples: Vec<AnswerExample> =
        (0..count as u64).map(|index| generator.answer_example(Split::HeldOut, index)).collect();
    let right = judge.answers(&examples)?;
    text.push_str("\n| answers from what tools returned | right text |\n|---:|---:|\n");
    writeln!(text, "| {count} | {:.1} % |", 100.0 * right as f64 / count.max(1) as f64)?;
    Ok(text)
}

/// Sentences that need none of the tools on offer.
const OTHER_TOOL: &str = "asks for another tool";
const SMALL_TALK: &str = "greets or thanks";

/// The kind of an example: the requested tool, or the kind of the sentence.
fn kind(example: &CallExample) -> &'static str {
    match &example.call {
        Some(call) => call.tool.name,
        None if example.answer == NO_TOOL => OTHER_TOOL,
        None => SMALL_TALK,
    }
}

/// Makes and checks outputs.
struct Judge<'a> {
    pretrained: &'a Pretrained,
    validators: HashMap<&'static str, jsonschema::Validator>,
}

impl<'a> Judge<'a> {
    fn new(pretrained: &'a Pretrained) -> Result<Self, Error> {
        let mut validators = HashMap::new();
        for tool in tools() {
            let validator =
                jsonschema::validator_for(&tool.parameters()).map_err(|error| error.to_string())?;
            validators.insert(tool.name, validator);
        }
        Ok(Self { pretrained, validators })
    }

    /// The scores of one setting by kind of sentence. Prints some of the wrong outputs.
    fn run(
        &self,
        mode: CallMode,
        temperature: Option<f32>,
        examples: &[CallExample],
    ) -> Result<HashMap<&'static str, CallScore>, Error> {
        let start = Instant::now();
        let outputs = self.outputs(mode, temperature, examples)?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{mode:?}, temperature {temperature:?}: {seconds:.1} s");
        let mut scores: HashMap<&'static str, CallScore> = HashMap::new();
        let mut printed = 0;
        for (example, output) in examples.iter().zip(&outputs) {
            let score = self.score(example, output);
            scores.entry(kind(example)).or_default().add(score);
            if score.right == 0 && printed < PRINTED {
                println!("{}{}", example.catalogue(), example.prompt);
                println!("  wanted {:?}\n  got    {output:?}", example.answer);
                printed += 1;
            }
        }
        Ok(scores)
    }

    fn outputs(
        &self,
        mode: CallMode,
        temperature: Option<f32>,
        examples: &[CallExample],
    ) -> Result<Vec<String>, Error> {
        let (vocabulary, limits) = (self.pretrained.vocabulary(), Limits::default());
        let mut compiled: HashMap<Vec<&str>, CompiledConstraint> = HashMap::new();
        for example in examples {
            let Some(constraint) = mode.constraint(&example.tools)? else { continue };
            if let Entry::Vacant(entry) = compiled.entry(names(example)) {
                entry.insert(CompiledConstraint::compile(&constraint, vocabulary, &limits)?);
            }
        }
        let prompts: Result<Vec<_>, Error> = examples
            .iter()
            .map(|example| {
                let tools: Vec<Value> = example.tools.iter().map(|tool| tool.definition()).collect();
                let message = Message::user(example.prompt.as_str());
                let tokens = self.pretrained.encode_chat_with_tools(&[message], &tools)?;
                Ok(Prompt { tokens, constraint: compiled.get(&names(example)) })
            })
            .collect();
        decode(self.pretrained, prompts?, temperature)
    }

    /// The number of right answers after the result of the right call. Prints some of the wrong
    /// answers.
    fn answers(&self, examples: &[AnswerExample]) -> Result<usize, Error> {
        let prompts: Result<Vec<_>, Error> = examples
            .iter()
            .map(|AnswerExample { request, result, .. }| {
                let tools: Vec<Value> = request.tools.iter().map(|tool| tool.definition()).collect();
                let messages = [
                    Message::user(request.prompt.as_str()),
                    Message::assistant(request.answer.as_str()),
                    Message::new("tool", result.to_string()),
                ];
                Ok(Prompt {
                    tokens: self.pretrained.encode_chat_with_tools(&messages, &tools)?,
                    constraint: None,
                })
            })
            .collect();
        let outputs = decode(self.pretrained, prompts?, None)?;
        let wrong = examples.iter().zip(&outputs).filter(|(example, output)| example.answer != **output);
        for (example, output) in wrong.clone().take(PRINTED) {
            println!("{} {}", example.request.answer, example.result);
            println!("  wanted {:?}\n  got    {output:?}", example.answer);
        }
        Ok(examples.len() - wrong.count())
    }

    fn score(&self, example: &CallExample, output: &str) -> CallScore {
        let called = parse(output);
        let valid = called.as_ref().is_some_and(|(name, arguments)| {
            example.tools.iter().any(|tool| tool.name == name) && self.validators[&**name].is_valid(arguments)
        });
        let (tool, right) = match (&example.call, &called) {
            (Some(call), Some((name, arguments))) if call.tool.name == name => {
                (true, arguments.as_object() == Some(&call.arguments))
            }
            (None, None) => (false, output == example.answer),
            _ => (false, false),
        };
        CallScore {
            outputs: 1,
            calls: usize::from(output.starts_with("<tool_call>")),
            valid: usize::from(valid),
            tool: usize::from(tool),
            right: usize::from(right),
        }
    }
}

/// The names of the tools on offer, in alphabetical order.
fn names(example: &CallExample) -> Vec<&'static str> {
    let mut names: Vec<_> = example.tools.iter().map(|tool| tool.name).collect();
    names.sort_unstable();
    names
}

/// Name and arguments of a call, if the output is a call.
fn parse(output: &str) -> Option<(String, Value)> {
    let inner = output.strip_prefix("<tool_call>")?.strip_suffix("</tool_call>")?;
    let mut call: Value = serde_json::from_str(inner).ok()?;
    let fields = call.as_object().filter(|fields| fields.len() == 2)?;
    let name = fields.get("name")?.as_str()?.to_string();
    fields.get("arguments")?;
    Some((name, call["arguments"].take()))
}

fn total(scores: &HashMap<&'static str, CallScore>) -> CallScore {
    scores.values().fold(CallScore::default(), |mut total, score| {
        total.add(*score);
        total
    })
}

fn calls_row(table: &mut String, title: &str, score: CallScore) -> Result<(), Error> {
    let [calls, valid, tool, right] =
        [score.calls, score.valid, score.tool, score.right].map(|part| score.percent(part));
    writeln!(table, "| {title} | {} | {calls} | {valid} | {tool} | {right} |", score.outputs)?;
    Ok(())
}
